"""Every vector instruction of the host, alone: load, issue, store, against the interpreter, with guard pages."""

from __future__ import annotations

import numpy as np
import pytest

import isam
from isam.codegen.llvm import generate, machine
from isam.ir import interp
from isam.ir.dtype import DTYPES
from isam.ir.instruction import Instruction
from isam.system.features import lacking
from isam.system.graph import System
from isam.system.load import load_system
from tests.native import first_x86_64, run
from tests.values import random, ulps
from tests.vectors import single

SYSTEMS = ("host-avx512", "host-avx2", "host-generic")


def available(name: str) -> System:
    system = load_system(name)
    if missing := lacking(system.needs):
        pytest.skip(f"this CPU lacks {', '.join(missing)}")
    return system


def reorders(i: Instruction) -> bool:
    """Float results that may differ from the interpreter's: contracted or summed in another order."""
    ops = {s.op for s in i.body.statements if s.accumulate}
    return bool(i.body.permits & {"reassociate", "contract"}) and not ops <= {"max", "min"}


def bound(i: Instruction, kernel, arrays: dict[str, np.ndarray], want: np.ndarray) -> np.ndarray:
    """How far a product or a sum of up to 16 terms may be off: 20 roundings of the sum of magnitudes. A product that is
    rounded where it is denormal is off by up to the smallest of them, times what it is then multiplied by."""
    dtype = next(b.dtype for b in kernel.arguments if b.role == "inout")
    unit = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}[dtype]
    sizes = [np.abs(a.astype(np.float64)) for a in arrays.values()]
    if i.name.startswith("sum_mul"):
        smallest = {"f64": 5e-324, "f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133}[dtype]
        return 20 * (unit * np.abs(want) + smallest * np.prod([np.maximum(a, 1).prod() for a in sizes]))
    terms = sizes[0] if len(sizes) == 2 else sizes[0] * sizes[1]
    total = terms.sum() if want.ndim == 0 else terms.sum(-1) if terms.ndim > want.ndim else terms
    return 20 * unit * (total + sizes[-1])


def moderate(rng: np.random.Generator, dtype: str, n: int) -> np.ndarray:
    x = rng.standard_normal(n) * (1 if DTYPES[dtype].kind == "f" else 5)
    return x.astype(random(rng, dtype, 1).dtype)


def arrays_for(kernel, rng: np.random.Generator, calm: bool) -> dict[str, np.ndarray]:
    make = moderate if calm else random
    out = {}
    for b in kernel.arguments:
        shape = tuple(d.const for d in b.shape)
        out[b.name] = np.array(make(rng, b.dtype, int(np.prod(shape)))).reshape(shape)
    return out


@pytest.fixture
def oldest_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for the first x86-64: nothing beyond SSE2, whatever this CPU has."""
    old = first_x86_64()
    if old is None:
        pytest.skip("not an x86-64")
    monkeypatch.setattr(machine, "_machine", lambda: old)


def test_generic_vectors_need_no_extension(oldest_cpu: None) -> None:
    check_all("host-generic", 4)


@pytest.mark.parametrize(("name", "every"), [("host-avx512", 1), ("host-avx2", 4), ("host-generic", 5)])
def test_every_instruction_does_what_its_body_says(name: str, every: int) -> None:
    check_all(name, every)


def check_all(name: str, every: int) -> None:
    system = available(name)
    rng = np.random.default_rng(7)
    faults: list[str] = []
    checked = 0
    for n, i in enumerate(system.compute):
        if n % every or lacking(i.needs):
            continue
        sizes = {s.name: (1, s.hi - 1, s.hi, s.hi // 2 + 1)[(n // every) % 4] for s in i.syms}
        schedule = single(system, i, sizes)
        code = generate(schedule)
        floats = any(b.role == "inout" and DTYPES[b.dtype].kind == "f" for b in i.body.arguments)
        arrays = arrays_for(schedule.kernel, rng, floats and reorders(i))
        given = {b.name: arrays[b.name] for b in schedule.kernel.arguments if b.role != "out"}
        want = interp.run(schedule.kernel, given)
        got = run(schedule, arrays, code=code, at_end=n % 3 > 0)
        for o, w in want.items():
            checked += 1
            if not same(i, schedule.kernel, o, got[o], w, given):
                faults.append(f"{i.name} {sizes} {o}: {got[o]} instead of {w} from {given}")
    assert not faults, "\n".join(faults[:20])
    assert checked > 100


def same(i: Instruction, kernel, operand: str, got: np.ndarray, want: np.ndarray, given: dict[str, np.ndarray]) -> bool:
    dtype = kernel.buffer(operand).dtype
    if DTYPES[dtype].kind != "f":
        return np.array_equal(got, want)
    if reorders(i):
        away = np.abs(got.astype(np.float64) - want.astype(np.float64))
        return bool((away <= bound(i, kernel, given, want.astype(np.float64))).all())
    return float(ulps(got, want, dtype).max(initial=0)) <= i.ulp


def test_all_dtypes_and_operations_are_there() -> None:
    names = set(available("host-generic").instructions)
    for dtype in DTYPES:
        assert {f"copy_v_{dtype}", f"select_vs_{dtype}", f"eq_vv_{dtype}"} <= names
        for other in DTYPES:
            if other != dtype:
                assert {f"cast_v_{dtype}_{other}", f"cast_s_{dtype}_{other}"} <= names


def test_bf16_is_rounded_to_even_and_denormals_are_lost_where_that_is_permitted_alone() -> None:
    """All halves between neighbours and what lies beside them, infinities, NaNs and denormals of both signs."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    bits = (upper[:, None] | np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)).ravel()
    a = bits.view(np.float32)
    text = "kernel k(N)\n{}  in  A: f32[N]\n  out D: bf16[N]\n  forall i < N\n    D[i] = bf16(A[i])\n"
    for permitted in (False, True):
        k = isam.parse(text.format("  permits flush\n" if permitted else ""))
        f = isam.compile(k, on="host", sizes={"N": a.size})
        name = "round_v_f32_bf16" if permitted and not lacking(["avx512bf16"]) else "cast_v_f32_bf16"
        assert f.mapping.mappings[0].instruction.name == name
        got = f(a)
        kept = interp.run(f.job.kernel, {"A": a})["D"].view(np.uint16)
        small = (bits & 0x7F800000) == 0
        same = (got.view(np.uint16) == kept) | (np.isnan(a) & np.isnan(got.astype(np.float32)))
        if permitted:
            same |= small & (got.view(np.uint16) == (bits >> 16) & 0x8000)
        assert same.all(), bits[~same][:8]


def test_a_lane_count_beyond_the_register_is_refused() -> None:
    from isam.diagnostics import IsamError

    system = available("host-generic")
    with pytest.raises(IsamError, match="does not fit 4 lanes"):
        generate(single(system, system.instructions["add_vv_f32"], {"J": 5}))
