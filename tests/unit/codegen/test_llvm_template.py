"""The language of emission templates: what each form turns into, and faults that name what is wrong."""

from __future__ import annotations

import pytest

from isam.codegen.llvm.irtext import Function, Module
from isam.codegen.llvm.template import Setting, expand
from isam.codegen.llvm.tiles import Addressed, constant
from isam.codegen.llvm.vectors import Lanes
from isam.diagnostics import IsamError

SNIPPETS = {"twice.f32": "x -> r\n%r = fadd $f32 %x, %x", "max.f32": "a, b -> r\n%r = fadd $f32 %a, %b",
            "same.f32": "x -> x", "quad.f32": "x -> r\n%t = use twice.f32(%x)\n%r = use twice.f32(%t)"}  # fmt: skip


def emitted(text: str, lanes: int = 4, sizes: dict[str, int] | None = None, **tiles: Addressed):
    module = Module()
    fn = Function(module, "f", [])
    names = expand(fn, text, {"A": "%a", "B": "%b"}, Setting(Lanes(lanes), SNIPPETS, sizes or {}, tiles))
    return str(module), names


def test_an_operand_assigned_again_is_a_new_value() -> None:
    text, names = emitted("%B = fadd $f32 %A, %B\n%B = fmul $f32 %B, %B")
    assert "%t1 = fadd <4 x float> %a, %b" in text
    assert "%t2 = fmul <4 x float> %t1, %t1" in text
    assert names["B"] == "%t2"


def test_snippets_nest_and_their_names_do_not_leak() -> None:
    text, names = emitted("%t = use quad.f32(%A)\n%D = fsub $f32 %t, %A")
    assert text.count("fadd") == 2
    assert names["D"] == "%t3"
    assert emitted("%D = use same.f32(%A)")[1]["D"] == "%a"


def test_a_tree_has_a_round_per_halving() -> None:
    text, _ = emitted("%D = tree max.f32(%A)", lanes=8)
    assert text.count("shufflevector") == 3
    assert "<8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3>" in text


def test_constants_sizes_and_masks() -> None:
    text, _ = emitted("%D = select <$L x i1> $mask(J), $i32 $i32(-1), $i32 $i32(0)", sizes={"J": 3})
    assert "select <4 x i1> <i1 1, i1 1, i1 1, i1 0>, <4 x i32> splat (i32 -1), <4 x i32> splat (i32 0)" in text
    assert "splat (float 0x3FB99999A0000000)" in emitted("%D = fadd $f32 %A, $f32(0.1)")[0]  # rounded to f32 first
    assert "i64 3" in emitted("%D = add i64 $J, 1", sizes={"J": 3})[0]
    assert "<i32 1, i32 -2, i32 3, i32 4>" in emitted("%D = add $i32 %A, $i32(1, -2, 3, 4)")[0]


def test_intrinsics_are_declared_once_with_their_types() -> None:
    line = "%D = call $f32 @llvm.fma.v$Lf32($f32 %A, $f32 $f32(2), $f32 splat (float 1.0))\n"
    text, _ = emitted(line + line)
    assert text.count("declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)") == 1


def test_references_are_shared_constants_and_symbols_are_remembered() -> None:
    matrix = Addressed("%p", "f32", (3, 5), (80, 4))
    text, _ = emitted("call void @blas:sgemm(ptr ref(i32 $ld(A)), ptr ref(i32 20), ptr %A)", A=matrix)
    assert text.count("private unnamed_addr constant i32 20") == 1
    assert "declare void @blas.sgemm(ptr, ptr, ptr)" in text


def test_c_functions_are_called_per_element_or_once() -> None:
    assert emitted("%D = each erf f64(%A)", sizes={"J": 3})[0].count("call double @libm.erf(") == 3
    assert emitted("%D = each erf f64(%A)")[0].count("call double @libm.erf(") == 1


def test_c_functions_are_called_behind_a_branch_for_the_lanes_that_need_it() -> None:
    line = "%D = each erf f64(%A) where %c else %B"
    text, names = emitted(f"%c = fcmp ogt $f64 %A, %B\n{line}\n%D = fneg $f64 %D", sizes={"J": 3})
    any_, rest = text.index("br i1 "), text.index("rest.t3:")
    assert any_ < text.index("call double @libm.erf(") < rest
    assert text.count("call double @libm.erf(") == 3
    assert "phi <4 x double> [ %b, %entry ], [ %t13, %any.t3 ]" in text[rest:]
    assert "!0 = !{!\"branch_weights\", i32 1, i32 2000}" in text
    assert names["D"] == "%t15"
    assert "!0" not in emitted("%D = each erf f64(%A)")[0]


@pytest.mark.parametrize(("text", "message"), [
    ("%D = fadd $f32 %A, %C", "'%C', which is no operand"),
    ("%D = use nothing.f32(%A)", "a snippet 'nothing.f32' that the description lacks"),
    ("%D = add i64 $K, 1", "'\\$K', which is no type and no size"),
    ("%D = add $i32 %A, $i32(1, 2, 3)", "gives 3 constants for 4 lanes"),
])  # fmt: skip
def test_faults_name_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(IsamError, match=message):
        emitted(text)


@pytest.mark.parametrize(("dtype", "value", "text"), [
    ("f32", 1.5, "0x3FF8000000000000"), ("f64", 0.0, "0x0000000000000000"), ("f64", -0.0, "0x8000000000000000"),
    ("f32", float("-inf"), "0xFFF0000000000000"), ("bf16", 1.0, "16256"), ("f16", 65520.0, "31744"),
    ("i8", 300, "44"), ("bool", True, "1"),
])  # fmt: skip
def test_literals_are_rounded_as_the_interpreter_rounds(dtype: str, value: float, text: str) -> None:
    assert constant(dtype, value) == text


def test_minus_zero_is_not_zero() -> None:
    from isam.codegen.llvm.tiles import splat

    fn = Function(Module(), "f", [])
    assert splat(fn, Addressed("%p", "f32", literal=0.0), 4) == "zeroinitializer"
    assert splat(fn, Addressed("%p", "f32", literal=-0.0), 4) == "splat (float 0x8000000000000000)"
