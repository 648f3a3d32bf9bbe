"""Tile products (AMX): what is scheduled, emitted and computed, their instructions carried out as the manual says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import pytest

import isam
from isam.codegen.llvm import generate, to_ir
from isam.codegen.llvm.irtext import Function, Module
from isam.codegen.llvm.rows import Rows, put, source, target, top
from isam.codegen.llvm.tiles import Addressed
from isam.diagnostics import IsamError
from isam.ir.text import parse_kernel
from isam.system.load import load_system
from tests.elsewhere import elsewhere
from tests.emulated.products import TEXT
from tests.native_cases import Case, fault
from tests.pipeline import compiled


def product(a: str, b: str, c: str) -> str:
    return TEXT.format(a=a, b=b, c=c)


@pytest.mark.parametrize(("a", "b", "c", "sizes", "by"), [
    ("i8", "i8", "i32", (33, 18, 68), "tile_dot4_ss"), ("u8", "u8", "i32", (17, 16, 72), "tile_dot4_uu"),
    ("i8", "u8", "i32", (16, 32, 128), "tile_dot4_su"), ("u8", "i8", "i32", (2, 5, 132), "tile_dot4_us"),
    ("bf16", "bf16", "f32", (20, 33, 38), "tile_dot2_bf16"),
])  # fmt: skip
def test_products_by_tiles_between_guard_pages(a: str, b: str, c: str, sizes: tuple[int, int, int],
                                                           by: str) -> None:  # fmt: skip
    """Of all signs, with rows, columns and groups left over: proved, and as the interpreter computes them."""
    kernel, known = parse_kernel(product(a, b, c)), dict(zip("MNK", sizes, strict=True))
    with elsewhere(), mock.patch.object(isam, "compile", partial(isam.compile, require=[by])):
        assert fault(Case(3, kernel, known, "moderate", False, False), "host-amx", check=True) is None


def test_one_configuration_and_blocks_of_four_tiles() -> None:
    """Nothing else than tiles in the inner loop: two of each factor for four products; the same beside the copy of rows
    for the first columns."""
    job = compiled(parse_kernel(product("u8", "i8", "i32")), {"M": 512, "N": 512, "K": 512},
                   load_system("sapphire-rapids"), check=True)  # fmt: skip
    code = generate(job.schedule, assembly=True)
    assert {"amx-tile", "amx-int8"} <= set(code.needs)
    lines = code.assembly.splitlines()
    assert sum("ldtilecfg" in x for x in lines) == 1
    used = [m[1] for x in lines if (m := re.match(r"\s+(tdp\w+|tile\w+)\s", x))]
    loads = used.count("tileloadd") + used.count("tileloaddt1")
    assert (used.count("tdpbusd"), loads, used.count("tilestored")) == (8, 8, 8)


def test_instances_configure_their_own_tiles() -> None:
    """Nobody knows what an instance's registers hold where it begins, nor the others' behind it."""
    job = compiled(parse_kernel(product("u8", "i8", "i32")), {"M": 512, "N": 512, "K": 512},
                   load_system("sapphire-rapids").threaded(2), check=True)  # fmt: skip
    assert job.certificate is not None
    parts = re.split(r"\n(?=define)", to_ir(job.schedule)[0])
    tiles = [p for p in parts if p.startswith("define") and "@llvm.x86.tdpbusd" in p]
    assert tiles
    assert all(p.startswith("define internal void @region") and "ldtilecfg" in p for p in tiles)


def emitted(how: Callable[..., Any], at: Addressed) -> tuple[Any, str]:
    fn = Function(Module(), "f", ["ptr %p"])
    return how(fn, at, Rows(16, 64)), fn.text()


def test_rows_that_fill_a_register_are_loaded_where_they_lie() -> None:
    whole = Addressed("%p", "i8", (16, 16, 4), (200, 4, 1))
    for how in (source, target):
        assert emitted(how, whole)[0] == ("%p", "200")
    assert "masked" not in emitted(lambda *x: put(x[0], "%q", *x[1:]), whole)[1]


@pytest.mark.parametrize("at", [
    Addressed("%p", "i8", (16, 63), (200, 1)), Addressed("%p", "i8", (15, 64), (200, 1)),
    Addressed("%p", "bf16", (16, 15, 2), (64, 4, 2)), Addressed("%p", "i32", (1, 16), (0, 4)),
])  # fmt: skip
def test_others_go_through_a_copy(at: Addressed) -> None:
    (pointer, step), text = emitted(source, at)
    assert (pointer != "%p", step) == (True, "64")
    assert text.count("@llvm.masked.load") == at.shape[0]
    assert text.count("store <64 x i8>") == 16
    assert emitted(target, at)[0][1] == "64"
    assert emitted(lambda *x: put(x[0], "%q", *x[1:]), at)[1].count("@llvm.masked.store") == at.shape[0]


def test_rows_below_an_operand_may_be_anything_of_its_buffer() -> None:
    """Loaded where they lie, if all of them lie in the buffer; one row is loaded again and again."""
    few = Addressed("%p", "i8", (12, 64), (200, 1), None, ("%b", 4096))
    (pointer, step), text = emitted(top, few)
    assert "getelementptr i8, ptr %p, i64 3064" in text
    assert "getelementptr i8, ptr %b, i64 4096" in text
    assert f"{pointer} = phi ptr [ %p, %entry ]" in text
    assert f"{step} = phi i64 [ 200, %entry ]" in text
    assert emitted(top, replace(few, shape=(1, 64)))[0] == ("%p", "0")


@pytest.mark.parametrize(("at", "said"), [
    (Addressed("%p", "i8", (17, 64), (64, 1)), "does not fit 16 rows of 64 B"),
    (Addressed("%p", "i8", (16, 65), (65, 1)), "does not fit"),
    (Addressed("%p", "i8", (16, 64), (64, 2)), "does not lie in one piece"),
    (Addressed("%p", "i8", (), ()), "does not fit"),
    (Addressed("%p", "i32", (16, 16), (64, 4), 0), "does not fit"),
])  # fmt: skip
def test_what_no_register_takes_is_refused(at: Addressed, said: str) -> None:
    for how in (source, target):
        with pytest.raises(IsamError, match=said) as e:
            emitted(how, at)
        assert e.value.diagnostics[0].code == "emission-rows"
