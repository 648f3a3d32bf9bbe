"""Repairs are tried before they are offered: each, applied, makes the instruction fit (MAP-8)."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from isam.ir.text import parse_instruction
from isam.ir.verify import verify
from isam.mapper import explain, match
from isam.mapper.explanation import NONE
from isam.mapper.match import Matches
from isam.mapper.page import page
from isam.mapper.search import reach
from isam.system.load import load_system
from tests.corpus import CASES
from tests.unit.mapper.catalogue import instruction, instruction_names, kernel

PRODUCT = (" in B: f32[K, N]\n inout C: f32[M, N]\n forall i < M, j < N, k < K\n  C[i, j] += A[{i}, k] * B[k, j]")
SIZES = {"M": 5, "N": 6, "K": 7}


def product(a: str = "M", i: str = "i", head: str = ""):
    return kernel(f"p(M, N, K)\n in A: f32[{a}, K]\n{head}{PRODUCT.format(i=i)}").with_sizes(SIZES)


def gemm(sizes: str, out: str = "inout", start: str = ""):
    return parse_instruction(
        f"instruction g({sizes})\n  in A: f32[M, K]\n  in B: f32[K, N]\n  {out} C: f32[M, N]\n{start}"
        "  forall i < M, j < N, k < K\n    C[i, j] += A[i, k] * B[k, j]\n"
    )


def works(r) -> None:
    assert verify(r.kernel) == []
    found = match(r.kernel, r.instruction, strided=True, normalise=False)
    assert isinstance(found, Matches)
    assert r.then.startswith(r.instruction.name)


def by_currency(k, i) -> dict[str, str]:
    why = explain(k, i)
    for r in why.repairs:
        works(r)
    return {r.currency: r.change for r in why.repairs}


def shapes(k, i) -> list[str]:
    found = [r for r in explain(k, i).repairs if r.currency == "shape"]
    for r in found:
        works(r)
    return [r.change for r in found]


def test_a_strided_operand_in_three_currencies():
    found = by_currency(product("2 * M", "2 * i"), instruction("gemm"))
    assert found["program"].startswith("rewrite the kernel")
    assert found["shape"] == "declare A: f32[5, 2, 7]"
    assert found["hardware"] == "accept a strided operand: A (here A) with step 2"


WINDOW = (" in {a}: f32[{c} * {n} + {d} * R]\n in {b}: f32[R]\n inout {y}: f32[{n}]\n forall i < {n}, r < R\n"
          "  {y}[i] += {a}[{c} * i + {d} * r] * {b}[r]")  # fmt: skip


def window(steps: tuple[int, int]):
    c, d = steps
    return kernel("w(N, R)\n" + WINDOW.format(a="x", b="w", y="y", n="N", c=c, d=d)).with_sizes({"N": 5, "R": 3})


@pytest.mark.parametrize(("has", "takes", "said"), [
    ((1, 1), (2, 1), "accept A[i + r] (here x) instead of A[2*i + r]"),
    ((3, 1), (2, 1), "accept A[3*i + r] (here x) instead of A[2*i + r]"),
    ((2, 1), (1, 1), "accept A[2*i + r] (here x) instead of A[i + r]"),
    ((1, 2), (1, 1), "accept A[i + 2*r] (here x) instead of A[i + r]"),
    ((2, 3), (1, 1), None),  # two at once
])  # fmt: skip
def test_one_coefficient_of_an_index(has, takes, said):
    text = WINDOW.format(a="A", b="B", y="D", n="J", c=takes[0], d=takes[1])
    i = parse_instruction(f"instruction window(J, R)\n{text}\n")
    assert by_currency(window(has), i).get("hardware") == said


@pytest.mark.parametrize(("shape", "index", "said"), [
    ("3 * N", "3 * i", "accept A[3*j] (here x) instead of A[2*j]"),
    ("N", "i", "accept A[j] (here x) instead of A[2*j]"),
])  # fmt: skip
def test_gaps_that_an_instruction_leaves_itself(shape, index, said):
    i = parse_instruction("instruction even(1 <= J)\n  in A: f32[2 * J - 1]\n  out D: f32[J]\n  forall j < J\n"
                          "    D[j] = exp(A[2 * j])\n")  # fmt: skip
    k = kernel(f"e(N)\n in x: f32[{shape}]\n out y: f32[N]\n forall i < N\n  y[i] = exp(x[{index}])")
    assert by_currency(k, i)["hardware"] == said


def test_an_instruction_that_overwrites():
    start = "  forall i < M, j < N\n    C[i, j] = 0\n"
    found = by_currency(product(), gemm("M, N, K", "out", start))
    assert found["hardware"] == "add to C instead of overwriting it"


def test_permissions_are_a_change_of_the_program():
    k = kernel("p(M, N, K)\n in A: f32[M, K]\n in B: f32[K, N]\n inout C: f32[M, N]\n permits exact\n"
               " forall i < M, j < N, k < K\n  C[i, j] += A[i, k] * B[k, j]")  # fmt: skip
    i = gemm("M, N, K", start="  permits contract\n")
    assert by_currency(k, i)["program"] == "permit contract"


def test_sizes_that_one_call_does_not_take():
    i = parse_instruction("instruction s(N <= 4)\n  in x: f32[N]\n  out y: f32[]\n  y[] = 0\n  forall j < N\n"
                          "    y[] += x[j]\n")  # fmt: skip
    k = kernel("s(N)\n in x: f32[N]\n out y: f32[]\n y[] = 0\n forall j < N\n  y[] += x[j]").with_sizes({"N": 10})
    offered = {r.change for r in explain(k, i).repairs if r.currency == "hardware"}
    assert offered == {"accept any N (now at most 4) in one call", "add to y instead of overwriting it"}


def test_axes_padded_to_what_calls_take():
    """All that stand in the way, with what reaches further then; a sum only where zeros add nothing to it."""
    body = (" in x: f32[T + 2, C]\n in w: f32[2, C, 12]\n inout y: f32[T, 12]\n forall t < T, k < 12, r < 2, c < C\n"
            "  y[t, k] += {} * w[r, c, k]")  # fmt: skip
    k, i = kernel(f"p(T, C)\n{body.format('x[t + 2 * r, c]')}"), gemm("M == 8, N == 4, K % 4")
    assert shapes(k.with_sizes({"T": 13, "C": 8}), i)[0] == "pad t from 13 to 16 (dimension 0 of x, dimension 0 of y)"
    (both, *_) = shapes(k.with_sizes({"T": 13, "C": 5}), i)
    assert sorted(both.removeprefix("pad ").split(" and ")) == [
        "c from 5 to 8 (dimension 1 of w, dimension 1 of x, zeros in what is new)",
        "t from 13 to 16 (dimension 0 of x, dimension 0 of y)",
    ]
    largest = parse_instruction("instruction largest(N % 4)\n  in A: f32[N]\n  inout D: f32\n  forall i < N\n"
                                "    D[] max= A[i]\n")  # fmt: skip
    most = kernel("p(C)\n in x: f32[C]\n inout y: f32\n forall c < C\n  y[] max= x[c]")
    assert shapes(most.with_sizes({"C": 5}), largest) == []


def test_a_dimension_innermost_spares_a_copy():
    k = CASES["matmul_at"].load().with_sizes(CASES["matmul_at"].small[0])
    fits = explain(k, instruction("gemm"))
    assert fits
    (r,) = fits.repairs
    works(r)
    assert r.currency == "shape"
    assert "with dimension 0 of A innermost" in r.change
    assert "laid out anew" in str(fits)
    plain = CASES["matmul"].load().with_sizes(CASES["matmul"].small[0])
    assert explain(plain, instruction("gemm")).repairs == ()


def test_where_nothing_helps_it_says_so():
    k = kernel("e(N)\n in x: f32[N]\n out y: f32[N]\n forall i < N\n  y[i] = exp(x[i])")
    why = explain(k, instruction("vadd"))
    assert why.repairs == ()
    assert NONE in str(why)


@pytest.mark.parametrize("name", ["config_ex_nn", "config_st_none"])
def test_an_instruction_that_only_sets_registers_carries_nothing_out(name):
    k, i = product(), load_system("gemmini").instructions[name]
    why = explain(k, i)
    assert (why.reason.need, why.repairs) == ("nothing: it does nothing", ())
    assert NONE in str(why)
    found = reach(k, i)
    assert not found
    assert found.near[0].need == why.reason.need


@pytest.mark.parametrize(("name", "least"), [
    ("conv2d", 4), ("depthwise_conv2d/stride=2", 2), ("softmax", 7), ("sepconv", 3), ("gemv", 3), ("layer_norm", 3),
    ("ger", 1),
])  # fmt: skip
def test_every_repair_offered_works(name, least):
    k, offered = CASES[name].load().with_sizes(CASES[name].small[0]), 0
    for i in instruction_names():
        why = explain(k, instruction(i))
        for r in why.repairs:
            works(r)
        offered += len(why.repairs)
        Page().feed(page(why))
    assert offered >= least


class Page(HTMLParser):
    """Every element is closed in order, nothing is fetched."""

    EMPTY = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        assert not {"src", "href"} & {name for name, _ in attrs}
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_page_shows_both_texts_and_the_matrices():
    why = explain(product("2 * M", "2 * i"), instruction("gemm"))
    text = page(why)
    assert "Access matrices" in text
    assert "class='m bad'>2<" in text
    assert text.count("<mark>") == 2
    assert "declare A: f32[5, 2, 7]" in text
    hostile = kernel("p(N)\n in x: f32[N]\n out y: f32[N]\n forall i < N\n  y[i] = max(x[i], 0)")
    assert "<script" not in page(explain(hostile, instruction("vadd")))
