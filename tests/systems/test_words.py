"""Products of words and bytes with AVX2: right for every size, layout, role and extreme value; taken where they fit."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import isam
from isam.codegen.llvm import generate
from isam.runtime.linking import Target
from isam.system.features import lacking
from isam.system.load import load_system
from tests.elsewhere import elsewhere
from tests.pipeline import compiled
from tests.systems.test_groups import CONVOLUTION, NUMPY, SIZES, product, taken, values

NEEDS = ("avx2", "fma", "f16c")
pytestmark = pytest.mark.skipif(bool(lacking(NEEDS)), reason=f"this CPU lacks {', '.join(lacking(NEEDS))}")

AVX2 = "host-avx2"
PAIRS = [("i16", "i16"), ("u8", "i8"), ("i8", "u8"), ("i8", "i8"), ("u8", "u8"), ("i16", "u8"), ("i8", "i16")]
ALDER_LAKE = Target("x86_64-unknown-linux-gnu", "alderlake", frozenset({"avx2", "fma", "f16c", "avxvnni"}))
without_vnni = pytest.mark.skipif(not lacking(["avxvnni"]), reason="this CPU has AVX-VNNI")


def judge(pair, sizes, role="in", turned=False, draw=values, f=None):
    """Raises where a product is not NumPy's; the instructions that were taken."""
    f = f or isam.compile(product(*pair, role, turned), on=AVX2, sizes=sizes)
    rng = np.random.default_rng(sum(sizes.values()))
    a, b = draw(rng, pair[0], (sizes["M"], sizes["K"])), draw(rng, pair[1], (sizes["K"], sizes["N"]))
    given, want = np.ascontiguousarray(b.T) if turned else b, a.astype(np.int32) @ b.astype(np.int32)
    np.testing.assert_array_equal(f(a, given), want, err_msg=f"{pair} {sizes}")
    if role == "const":
        np.testing.assert_array_equal(f.bind(B=given)(a), want, err_msg=f"{pair} {sizes}")
    return taken(f)


def extremes(rng, dtype, shape):
    """The least and the most, and little else: pairs of products of the least leave what i32 has."""
    limits = np.iinfo(NUMPY[dtype])
    return rng.choice([limits.min, limits.min, limits.min, limits.max, 3], shape).astype(NUMPY[dtype])


@without_vnni
@pytest.mark.parametrize("pair", PAIRS)
def test_every_size_and_layout(pair):
    """Of two pairs that follow each other a size has one layout each."""
    for n, (rows, columns, depth) in enumerate(SIZES):
        role, turned = ("in", "const")[n % 2], bool((n // 2 + PAIRS.index(pair)) % 2)
        names = judge(pair, {"M": rows, "N": columns, "K": depth}, role, turned)
        if min(rows, columns, depth) > 10:
            assert "dot2_i16" in names, (rows, columns, depth)


@pytest.mark.parametrize("pair", PAIRS)
def test_extreme_values_wrap(pair):
    judge(pair, {"M": 19, "N": 35, "K": 34}, draw=extremes)
    judge(pair, {"M": 8, "N": 16, "K": 18}, draw=lambda _, t, shape: np.full(shape, np.iinfo(NUMPY[t]).min, NUMPY[t]))


@without_vnni
@pytest.mark.parametrize("channels", [3, 16, 30])
def test_convolutions_take_them_along_the_channels(channels):
    rng = np.random.default_rng(1)
    f = isam.compile(isam.parse(CONVOLUTION), on=AVX2, sizes={"N": 2, "H": 5, "W": 6, "C": channels, "K": 24})
    x, w = values(rng, "u8", (2, 7, 8, channels)), values(rng, "i8", (3, 3, channels, 24))
    want = sum(np.einsum("nhvc,ck->nhvk", x[:, r : r + 5, s : s + 6].astype(np.int64), w[r, s].astype(np.int64))
               for r in range(3) for s in range(3))  # fmt: skip
    assert "dot2_i16" in taken(f)
    np.testing.assert_array_equal(f(x, w), want)
    np.testing.assert_array_equal(f.bind(w=w)(x), want)


def test_no_register_is_spilled_in_the_innermost_loop():
    f = isam.compile(product("i16", "i16", "const"), on=AVX2, sizes={"M": 128, "N": 128, "K": 256})
    loops = re.split(r"^\.LBB\w+:.*$", generate(f.schedule, assembly=True).assembly, flags=re.MULTILINE)
    inner = max(loops, key=lambda t: len(re.findall("vpmaddwd|vpdpwssd", t)))
    assert len(re.findall("vpmaddwd|vpdpwssd", inner)) >= 8
    assert not re.search(r"ymm\d+.*\(%rsp\)|\(%rsp\).*ymm\d+", inner)


@pytest.mark.parametrize(("pair", "by"), [
    (("u8", "i8"), "vpdpbusd"), (("i8", "u8"), "vpdpbusd"), (("i8", "i8"), "vpdpbusd"), (("u8", "u8"), "vpdpbusd"),
    (("i16", "i16"), "vpdpwssd"),
])  # fmt: skip
def test_with_avx_vnni(pair, by):
    """Which no CPU needs to have here: code for one that has, and here with a function in place of the instruction."""
    sizes = {"M": 9, "N": 24, "K": 22}
    there = replace(load_system(AVX2), target=ALDER_LAKE)
    text = generate(compiled(product(*pair), sizes, there).schedule, assembly=True).assembly
    assert re.search(rf"\s{by}\s+.*%ymm\d+, %ymm\d+", text)
    assert "vpmaddwd" not in text
    with elsewhere():
        f = isam.compile(product(*pair), on=AVX2, sizes=sizes, cache=False)
        names = judge(pair, sizes, f=f)
        assert any(n.startswith("dot4_" if by == "vpdpbusd" else "dot2_i16") for n in names)
        judge(pair, sizes, f=f, draw=extremes)
