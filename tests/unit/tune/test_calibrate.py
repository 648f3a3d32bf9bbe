"""What instructions take on this CPU: orders that hold on any, however busy it is, and what is written down."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import isam
from isam.cli.app import app
from isam.cli.system.calibrate import _base, _description, _lines
from isam.diagnostics import IsamError
from isam.system.features import lacking
from isam.system.load import load_system
from isam.tune.calibrate import Calibration, Measured, Stream, Timed
from isam.tune.drift import Left, drifted

MACHINES = ["host-avx512", "host-avx2", "host-generic"]


@pytest.fixture(scope="module")
def host() -> Calibration:
    return Calibration(load_system("host"))


def measured(c: Calibration, name: str) -> Measured:
    return c.measure(c.system.instructions[name])


def test_a_cycle_is_one_of_this_cpu(host: Calibration) -> None:
    assert 2e8 < host.clock < 1e10


def test_divisions_take_longer_than_sums_and_exponentials_longer_still(host: Calibration) -> None:
    add, divide, exp = (measured(host, n) for n in ("add_vv_f32", "div_vv_f32", "exp_v_f32"))
    assert 0.05 < add.issue < divide.issue < 100
    assert add.issue * 3 < exp.issue < 1000
    assert add.latency is not None
    assert exp.latency is not None
    assert add.latency * 3 < exp.latency


def test_a_template_that_branches_is_measured(host: Calibration) -> None:
    assert measured(host, "add_vv_f32").issue < measured(host, "sin_v_f32").issue < 1000


def test_what_waits_for_its_own_result_takes_longer(host: Calibration) -> None:
    m = measured(host, "fma_vv_f32")
    assert m.latency is not None
    assert m.issue < m.latency


def test_narrow_forms_are_measured_and_written_down(tmp_path) -> None:
    """On the half and the quarter of the lanes no instruction takes longer: `host-generic` with such forms."""
    text = "isam: 1\nsystem: parts\nextends: host-generic\ninstructions:\n"
    text += "  div_vv_f64: {cost: {issue: 9 cycles, latency: 9 cycles, narrow: {J: {2: 8 cycles, 1: 7 cycles}}}}\n"
    (tmp_path / "parts.yaml").write_text(text)
    found = Calibration(load_system(tmp_path / "parts.yaml")).measure(
        load_system(tmp_path / "parts.yaml").instructions["div_vv_f64"])  # fmt: skip
    assert [(f.size, f.most) for f in found.narrow] == [("J", 1), ("J", 2)]
    assert all(0 < f.issue < 1.2 * found.issue for f in found.narrow)
    out, given = tmp_path / "mine.yaml", str(tmp_path / "parts.yaml")
    made = CliRunner().invoke(app, ["system", "calibrate", given, "-i", "div_vv_f64", "-o", str(out)])
    assert made.exit_code == 0, made.output
    written = load_system(out).instructions["div_vv_f64"].cost.narrow
    assert [(f.size, f.most) for f in written] == [("J", 1), ("J", 2)]
    assert all(0 < f.issue != stated for f, stated in zip(written, (7, 8), strict=True))


def test_what_a_move_can_prefetch_stays(host: Calibration, tmp_path) -> None:
    """Costs are replaced whole, and what it costs to ask a cache is stated, not measured."""
    stream = Stream("load", host.system.caches[0].name, 1024, 64.0)
    (tmp_path / "mine.yaml").write_text(_description(host.system, host, [], [stream], host.system.name))
    written, stated = (s.instructions["load"].cost for s in (load_system(tmp_path / "mine.yaml"), host.system))
    assert written.prefetch == stated.prefetch is not None
    assert written.bandwidth == 64.0


def test_the_system_that_was_measured_is_named_so_that_it_is_found(tmp_path) -> None:
    """By its name only where that leads to it: not to a file beside, nor to the one that is written."""
    tiny, out = load_system("tiny"), tmp_path / "measured" / "mine.yaml"
    out.parent.mkdir()
    assert _base(tiny, out) == "tiny"
    (tmp_path / "tiny.yaml").write_text(Path(tiny.source).read_text())
    own = load_system(tmp_path / "tiny.yaml")
    assert _base(own, out) == '"../tiny.yaml"'
    assert _base(own, tmp_path / "mine.yaml") == "tiny"
    for to, text in ((out.parent / "tiny.yaml", _base(tiny, out.parent / "tiny.yaml")), (out, _base(own, out))):
        to.write_text(f"isam: 1\nsystem: mine\nextends: {text}\n")
        assert load_system(to).memories == tiny.memories


def test_a_copy_that_needs_no_code_takes_next_to_nothing(host: Calibration) -> None:
    assert measured(host, "copy_f32").issue < measured(host, "div_vv_f64").issue


@pytest.mark.parametrize("name", MACHINES)
def test_every_kind_of_register_can_be_measured(name: str) -> None:
    system = load_system(name)
    if missing := lacking(system.needs):
        pytest.skip(f"this CPU lacks {', '.join(missing)}")
    c = Calibration(system)
    kinds = {tuple(c._type(i, b) for b in i.body.arguments): i for i in c.instructions()}
    assert len(kinds) > 40
    for i in list(kinds.values())[::4]:
        m = c.measure(i)
        assert 0 < m.issue < math.inf
        assert m.latency is None or m.latency > 0


def test_what_is_not_in_caches_comes_slower(host: Calibration) -> None:
    found = {(s.name, s.memory): s.rate for s in host.streams()}
    assert found["load", "ram"] < found["load", "l1"] < 1000
    assert {m for _, m in found} == {"ram", *(m.name for m in host.system.memories.values() if m.kind == "cached")}


def test_what_was_measured_is_a_description(tmp_path) -> None:
    out = tmp_path / "mine.yaml"
    made = CliRunner().invoke(app, ["system", "calibrate", "host", "-i", "add_v*_f32", "-o", str(out), "--json"])
    assert made.exit_code == 0, made.output
    said = json.loads(made.stdout)
    assert set(said["instructions"]) == {"add_vv_f32", "add_vs_f32"}
    mine = load_system(out)
    assert mine.instructions["add_vv_f32"].cost.issue == round(said["instructions"]["add_vv_f32"]["issue"], 2)
    assert mine.instructions["mul_vv_f32"].cost == load_system("host").instructions["mul_vv_f32"].cost
    assert mine.units["core"].clock == pytest.approx(said["clock"], rel=0.01)
    loads = {name: rate for move, name, _, rate in said["streams"] if move == "load"}
    assert mine.memories["l2"].bandwidth == pytest.approx(loads["l2"] * said["clock"], rel=0.01)
    a, b = (np.arange(6, dtype=np.float32).reshape(s) for s in ((2, 3), (3, 2)))
    np.testing.assert_array_equal(isam.compile(isam.einsum("mk,kn->mn"), on=mine, cache=False)(a, b), a @ b)
    again = CliRunner().invoke(app, ["system", "calibrate", "host", "-i", "add_v*_f32", "-o", str(out)])
    assert again.exit_code == 2
    assert "is there already" in again.output


def test_machines_that_do_not_run_here_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = CliRunner().invoke(app, ["system", "calibrate", "host", "-i", "no_such"])
    assert made.exit_code == 2
    assert "calibrate-none" in made.output
    with pytest.raises(IsamError, match="'toy' has no code that runs here"):
        Calibration(load_system("toy"))
    monkeypatch.setattr("isam.system.features.host_features", lambda: frozenset())
    with pytest.raises(IsamError, match="which this CPU lacks"):
        Calibration(load_system("host-avx2"))


def test_what_this_cpu_lacks_is_not_measured(host: Calibration, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM ends the process where it finds no code for an instruction."""
    given = host.runnable()
    assert not any(lacking(i.needs) for i in given)
    some = next(i for i in given if i.name == "add_vv_f32")
    told = replace(some, needs=("no-such-feature",))
    monkeypatch.setattr(host, "instructions", lambda: [told, *(i for i in given if i is not some)])
    assert {i.name for i in given} - {i.name for i in host.runnable()} == {"add_vv_f32"}


class Watched(Calibration):
    """Remembers the numbers that what was timed last left."""

    last: Timed

    def _cycles(self, *args, **how) -> Timed:
        self.last = super()._cycles(*args, **how)
        return self.last

    def _latency(self, i, fed, out) -> float:
        self._timed(lambda m, fresh: self._chain(m, i, fed, out, fresh), 8, fed.role == "inout")
        self.chained = self.last
        return super()._latency(i, fed, out)


def normal(values: np.ndarray) -> bool:
    """By NumPy's own next number: no denormal, infinity or NaN."""
    least = np.finfo(values.dtype).tiny if values.dtype.kind == "f" else 0
    return bool(np.isfinite(values).all() and ((np.abs(values) >= least) | (values == 0)).all())


@pytest.mark.parametrize(("name", "step"), [("host", 1), ("host-avx512", 23), ("host-avx2", 23), ("host-generic", 23)])
def test_nothing_is_timed_on_denormals_infinities_or_nan(name: str, step: int) -> None:
    """Float instructions, until their own results have gone through them thousands of times; of `host` all."""
    system = load_system(name)
    if missing := lacking(system.needs):
        pytest.skip(f"this CPU lacks {', '.join(missing)}")
    c, seen, floats = Watched(system, times=1), set(), ("f64", "f32", "f16", "bf16")
    for i in [i for i in c.runnable() if any(b.dtype in floats for b in i.body.arguments)][::step]:
        c.issue(i)
        assert c.last.left, i.name
        assert all(map(normal, c.last.left)), f"{i.name}: {c.last.left}"
        if c.measure(i).latency is not None:
            assert all(map(normal, c.chained.left)), f"{i.name}: {c.chained.left}"
            seen.add(i.name)
    if step == 1:
        assert {"mul_vv_f32", "acc_mul_v_f64", "sum_mul_f32", "exp_v_f64", "div_vs_f16", "sqrt_v_bf16"} <= seen


PRODUCTS = ["mul_vv_f32", "mul_vs_f64", "acc_mul_v_f64", "acc_mul_v_f32"]


def test_products_take_no_longer_than_sums_of_products(host: Calibration) -> None:
    """Not the hundreds of cycles that a product with a denormal takes."""
    for m in [measured(host, n) for n in PRODUCTS]:
        same = measured(host, f"fma_vv_{m.name[-3:]}")
        assert m.issue < 8 * same.issue, m
        assert m.latency is not None
        assert same.latency is not None
        assert 1 < m.latency < 8 * same.latency, m


def test_a_chain_has_all_its_calls(host: Calibration) -> None:
    """A number negated twice is itself, as LLVM knows: a call takes a cycle at least."""
    for name in ("neg_v_f32", "abs_v_f32", "or_vv", "neg_v_i32"):
        latency = measured(host, name).latency
        assert latency is not None
        assert latency > 0.5, name


def test_numbers_that_drift_are_told() -> None:
    rng = np.random.default_rng(1)
    drawn = rng.uniform(0.5, 1.5, 16)
    for dtype in (np.float64, np.float32, np.float16):
        x = drawn.astype(dtype)
        info = np.finfo(dtype)
        assert not drifted(x)
        assert not drifted(-x)
        for value in (info.tiny / 2, np.inf, np.nan):
            y = x.copy()
            y[7] = value
            assert drifted(y), value
        assert not drifted(np.array([info.tiny, 1, info.max], dtype))
        assert drifted(x * 0 + 1), "all the same: a root of a root of a root"
        assert not drifted(x * 0 + 1, summed=True), "one sum in all lanes"
        assert drifted(x * np.inf, summed=True)
        assert not drifted(x[:1]), "one alone is not compared"
        assert not drifted(np.where(np.arange(16) == 3, x, 0)), "a sum, and lanes beside it"
        assert drifted(x * 0)
    whole = rng.integers(-9, 9, 16)
    assert not drifted(whole)
    assert drifted(whole * 0)
    room = np.zeros(64, np.uint8)
    room[:4].view(np.uint32)[:] = 0x3F80_0001
    assert list(Left(0, "bf16", 2).read(room)) == [np.array([0x0001_0000], np.uint32).view(np.float32)[0], 1.0]
    assert drifted(Left(0, "bf16", 2).read(room)), "the first is a denormal"


def test_what_is_compared_is_said(host: Calibration) -> None:
    """Issue and latency: one as stated does not hide the other."""
    cases = [(0.5, 4.0, 0, 0), (0.5, 128.0, 0, 1), (2.0, 4.0, 1, 0), (2.0, 1.0, 1, 1), (0.5, None, 0, 0)]
    for issue, latency, by_issue, by_latency in cases:
        m = Measured("mul_vv_f32", issue, latency, 0.5, 4.0)
        text = "\n".join(_lines(host.system, host, [m], [], {}, {}, {}, None))
        said = f": {by_issue} in issue, {by_latency} in latency" if by_issue or by_latency else ", in issue or latency"
        many = int(bool(by_issue or by_latency))
        assert f"{many} instructions take more than 1.5 times as long or short as described{said}" in text
        assert ("  mul_vv_f32 " in text) == bool(many)
    copied = Measured("copy_f32", 0.5, 0.0, 0.5, 1.0)
    assert "0 instructions" in "\n".join(_lines(host.system, host, [copied], [], {}, {}, {}, None))
