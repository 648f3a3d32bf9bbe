"""A slice of ``python -m tests.campaign_native``: random kernels of all dtypes between guard pages, on every
description that this CPU can run; and that the campaign would tell."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from isam.ir.text import parse_kernel
from isam.system.features import lacking
from isam.system.load import load_system
from tests import campaign_native, native_cases
from tests.native import Guarded
from tests.native_cases import Case, case, differs, split

FOUND = (206, 718, 996, 1374, 567, 613, 801, 1002, 5536, 5893)  # wrong at one time, called wrong, or not proved


@pytest.mark.parametrize("on", campaign_native.DESCRIPTIONS)
def test_random_kernels_between_guard_pages(on):
    if lacks := lacking(load_system(on).needs):
        pytest.skip(f"this CPU lacks {', '.join(lacks)}")
    seeds = (*range(4), *(FOUND if on in ("host-generic", "host-avx512") else ()))
    found = {seed: campaign_native.one(seed, on, check=seed in FOUND) for seed in seeds}
    assert {seed: how for seed, (kind, how) in found.items() if kind == "wrong"} == {}
    assert sum(kind == "right" for kind, _ in found.values()) >= 0.9 * len(found)


def test_the_cases_are_worth_their_name():
    cases = [case(seed) for seed in range(200)]
    seen = Counter(b.dtype for c in cases for b in c.kernel.buffers)
    assert all(seen[d] >= 20 for d in (*native_cases.FLOATS, *native_cases.WHOLE))
    for some in (c for c in ([c for c in cases if c.open], [c for c in cases if c.bound])):
        assert len(some) >= 20
    assert sum(c.given != c.sizes and not c.open for c in cases) >= 5  # recurrent trips that stay open in the code
    assert sum(bool(split(c.kernel)[0] & {b.name for b in c.kernel.arguments if b.role == "out"}) for c in cases) >= 100
    special = [a for c in cases if c.kind == "special" for a in native_cases.data(c).values() if a.dtype.kind == "f"]
    flat = np.concatenate([a.astype(np.float64).reshape(-1) for a in special])
    assert np.isnan(flat).any()
    assert np.isinf(flat).any()
    assert (np.signbit(flat) & (flat == 0)).any()


def behaves(seed, on, check):
    """One child that crashes, one that hangs, one that gives up."""
    if seed == 3:
        os.abort()
    if seed == 5:
        time.sleep(60)
    if seed == 6:
        raise SystemExit(3)
    return "right", ""


def test_a_case_that_crashes_or_hangs_is_told_and_the_others_go_on():
    found = list(campaign_native.outcomes(0, 9, "host", run=behaves, budget=0.5))
    assert [seed for seed, _, _ in found] == list(range(9))
    assert [how for how in found if how[1] != "right"] == [
        (3, "crashed", "signal SIGABRT"), (5, "slow", "no answer within 0 s"), (6, "crashed", "exit code 1"),
    ]  # fmt: skip


TEXT = "kernel sides(N)\n  in a: {0}[N]\n  out y: {0}[N]\n  forall i < N\n    y[i] = a[i] * 2\n"


@pytest.mark.parametrize("dtype", ["f32", "i8"])
def test_a_wrong_number_would_be_told(dtype):
    for permits in (frozenset({"reassociate", "contract"}), frozenset()):
        c = Case(1, replace(parse_kernel(TEXT.format(dtype)), permits=permits), {"N": 5}, "normal", False, False)
        given = native_cases.data(c)
        right = given["a"] * given["a"].dtype.type(2)
        assert differs(c, given, {"y": right}) is None
        wrong = right.copy()
        wrong[3] += 1
        assert "y[" in differs(c, given, {"y": wrong})
    zero = np.zeros(5, np.float32)
    if dtype == "f32":  # nothing permitted: the sign of a zero is told, too
        assert differs(c, {"a": zero}, {"y": zero}) is None
        assert differs(c, {"a": zero}, {"y": -zero}) is not None


@pytest.mark.parametrize("at_end", [True, False])
def test_what_is_written_around_a_guarded_array_is_told(at_end):
    g = Guarded(np.arange(5, dtype=np.float32), at_end)
    assert g.intact
    assert g.array.tolist() == [0, 1, 2, 3, 4]
    g.room[3000] = 1
    assert not g.intact
    assert Guarded(np.zeros((0, 3)), at_end).intact
    aligned = Guarded(np.zeros(100, np.uint8), at_end, 64)
    assert aligned.array.ctypes.data % 64 == 0


def test_who_touches_the_pages_around_or_writes_to_what_is_still_dies():
    def beyond(seed, on, check):
        g = Guarded(np.zeros(5, np.float32), seed != 1, still=seed == 2)
        if seed == 2:
            g.array[0] = 1
        else:
            np.lib.stride_tricks.as_strided(g.array, (6,) if seed == 0 else (5,), (4,) if seed == 0 else (-4,)).sum()
        return "right", ""

    found = list(campaign_native.outcomes(0, 3, "host", run=beyond, budget=20))
    assert found == [(n, "crashed", "signal SIGSEGV") for n in range(3)]
