"""The benchmark of simulated machines: what is on record is all of it, and what got worse is said."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import simulated
from benchmarks.simulated import MACHINES, MARGIN, OWN, SIZES, Row, line, machine, measured, recorded, worse

GOOD = Row("dsp", "product", (8, 8, 8), 1e-6, 5e-7, "compute of array")
NONE = replace(GOOD, seconds=None, floor=0.0, bound="", why="uncovered")


def test_on_record_is_every_kernel_on_every_machine() -> None:
    rows = recorded()
    assert [(r.machine, r.kernel, r.sizes) for r in rows] == [(m, k, s) for m in MACHINES for k in SIZES
                                                              for s in SIZES[k]]  # fmt: skip
    assert not worse(rows, rows)
    for on in MACHINES:
        assert any(r.seconds for r in rows if r.machine == on), f"nothing runs on {on}"
    for r in rows:
        assert (r.seconds is None) == bool(r.why)
        assert r.seconds is None or r.floor <= r.seconds * (1 + 1e-9), r.name
    assert all(r.seconds for r in rows if r.machine in OWN)


@pytest.mark.parametrize(("on", "kernel"), [("systolic", "product_i8"), ("dsp", "dense"), ("gemmini", "softmax")])
def test_a_row_is_what_is_on_record(on: str, kernel: str) -> None:
    sizes = SIZES[kernel][0]
    now, before = measured(on, kernel, sizes), next(r for r in recorded() if (r.machine, r.kernel) == (on, kernel))
    assert not worse([now], [before])


def test_what_got_worse() -> None:
    assert not worse([replace(GOOD, seconds=MARGIN * 1e-6)], [GOOD])
    assert worse([replace(GOOD, seconds=1.5e-6)], [GOOD]) == [
        "product 8x8x8 on dsp: 1.5 us, before 1 us, 1.50 times as long"]  # fmt: skip
    assert worse([NONE], [GOOD]) == ["product 8x8x8 on dsp: uncovered, before 1 us"]
    assert not worse([GOOD], [NONE])
    assert not worse([GOOD], [])
    assert line(GOOD, None).endswith("new")
    assert line(GOOD, NONE).endswith("before uncovered")
    assert line(GOOD, replace(GOOD, seconds=2e-6)).endswith("2.00 times as fast as before")
    assert "before" not in line(GOOD, GOOD)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "simulated.json"
    monkeypatch.setattr(simulated, "RESULTS", path)
    asked = ["systolic", "--only", "product_i8"]
    assert simulated.main([*asked, "--record"]) == 0
    assert "new" in capsys.readouterr().out
    assert simulated.main([*asked, "--json"]) == 0
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert json.loads(capsys.readouterr().out) == kept
    assert [asdict(r) for r in recorded()] == [{**r, "sizes": tuple(r["sizes"])} for r in kept["rows"]]
    kept["rows"][0]["seconds"] /= 2
    path.write_text(json.dumps(kept), encoding="utf-8")
    assert simulated.main(asked) == 1
    assert "2.00 times as long" in capsys.readouterr().err
    path.write_text(json.dumps({**kept, "schema": "isam.simulated/0"}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"isam\.simulated/0"):
        simulated.main(asked)


def test_the_machines_of_somebody_new() -> None:
    dsp, mesh = map(machine, OWN)
    assert dsp.home == mesh.home == "dram"
    assert mesh.replicas["core"].count == 8
    assert dsp.instructions.keys() < mesh.instructions.keys()
