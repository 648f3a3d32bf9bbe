"""Which axes calls may be cut along, by definition: bodies are carried out call by call, cut in every way, in every
order, and compared with what one call as large as the kernel makes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations, product

import pytest

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Kernel, Statement
from isam.ir.mapping import Mapping, OperandMap
from isam.ir.relation import TooMuch
from isam.ir.text import parse_instruction, parse_kernel
from isam.proof.calls import _Calls, _never
from isam.proof.carried import Part

OPS: dict[str, Callable[..., int]] = {
    "copy": int, "add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "max": max,
    "select": lambda old, condition, new: new if condition % 9 else old,
}  # fmt: skip
Element = tuple[str, tuple[int, ...]]
Memory = dict[Element, int]
Block = dict[str, tuple[int, int]]  # where a call begins along an axis, and how much it takes


@cache
def given(key: Element) -> int:
    """What is in an element at first: some number, the same every time."""
    return random.Random(str(key)).randrange(1, 1 << 20)


def carry_out(
    statements: Sequence[Statement], sizes: dict[str, int], place: Callable[[Access, dict[str, int]], Element],
    memory: Memory,
) -> None:  # fmt: skip
    """Statement after statement, each over its whole domain."""
    for s in statements:
        for point in product(*(range(a.extent.evaluate(sizes)) for a in s.domain.axes)):
            at = {**sizes, **dict(zip(s.domain.names, point, strict=True))}
            if all(w.evaluate(at) >= 0 for w in s.domain.where):
                dest = place(s.dest, at)
                keys = [place(x, at) if isinstance(x, Access) else x.value for x in s.sources]
                keys = [dest, *keys] if s.accumulate else keys
                memory[dest] = OPS[s.op](*(memory.get(k, given(k)) if isinstance(k, tuple) else k for k in keys))


def splits(n: int, fixed: bool) -> Iterator[list[tuple[int, int]]]:
    """So many steps in blocks, all as large but the last."""
    for block in range(n if fixed else 1, n + 1):
        yield [(at, min(block, n - at)) for at in range(0, n, block)]


def orders(calls: list[Block]) -> list[Sequence[Block]]:
    if len(calls) <= 3:
        return [*permutations(calls)]
    return [calls, calls[::-1], *(random.Random(n).sample(calls, len(calls)) for n in range(3))]


class Judge:
    """Of one mapping, at the kernel's sizes: numbers."""

    def __init__(self, kernel: Kernel, mapping: Mapping):
        self.mapping = mapping
        self.body = mapping.instruction.body
        self.part = Part(kernel, mapping, 0)
        self.calls = _Calls(kernel, mapping, self.part)
        self.extents = {n: e.evaluate({}) for n, e in self.part.extents.items()}
        self.ends = {a.name: a.extent for s in self.body.statements for a in s.domain.axes}
        self.operands = {o.operand: o for o in mapping.operands}
        self.once = self.at_once()

    def at_once(self) -> Memory:
        memory: Memory = {}
        by = self.part.statements
        carry_out(by, {}, lambda x, at: (x.buffer, tuple(r.evaluate(at) for r in x.index)), memory)
        return self.seen(memory)

    def seen(self, memory: Memory) -> Memory:
        """What calls leave that anybody else can see."""
        names = {o.buffer for o in self.mapping.operands}
        return {k: v for k, v in memory.items() if k[0] in names and v != given(k)}

    def may_be_cut(self, axis: str) -> bool:
        """Whether calls cut along an axis, and along those that have its size, make the same whatever their order, each
        with one block of every operand."""
        names = [a for a, e in self.ends.items() if a == axis or set(e.names) & set(self.ends[axis].names)]
        moves = {(x.buffer, a): {tuple(r.coefficient(a) for r in y.index) for t in self.body.statements
                                 for y in (t.dest, *t.reads) if y.buffer == x.buffer}
                 for s in self.body.statements for x in (s.dest, *s.reads) if x.buffer in self.operands
                 for a in names}  # fmt: skip
        ways = product(*(splits(self.extents[a], not self.ends[a].terms) for a in names))
        alike = (w for w in ways if len(names) == 1 or len({size for blocks in w for _, size in blocks}) == 1)
        return all(len(m) == 1 for m in moves.values()) and self.same(names, alike)

    def may_differ(self) -> bool:
        """Whether calls at different steps of the outer axes make the same whatever their order."""
        names = self.mapping.outer
        return self.same(names, [[[(at, 1) for at in range(self.extents[n])] for n in names]])

    def may_be_shortened(self) -> bool:
        """Whether of the axes that are taken whole one smaller call makes what conditions leave of them, at each step
        of the others: it goes as far as the last that is left."""
        cut, whole = (sorted(x) for x in (set(self.ends) - self.calls.whole, self.calls.whole))
        calls: list[Block] = []
        for at in product(*(range(self.extents[a]) for a in cut)):
            fixed = dict(zip(cut, at, strict=True))
            points = (dict(zip(whole, p, strict=True)) for p in product(*(range(self.extents[a]) for a in whole)))
            left = [p for p in points if all(w.evaluate(fixed | p) >= 0 for w in self.part.where)]
            if left:
                long = {a: max(p[a] for p in left) + 1 for a in whole}
                if any(long[a] != long[b] for a, b in product(whole, repeat=2) if self.ends[a] == self.ends[b]):
                    return False
                calls.append({a: (v, 1) for a, v in fixed.items()} | {a: (0, n) for a, n in long.items()})
        return self.called(calls) == self.once

    def same(self, names: Sequence[str], ways: Iterator | Sequence) -> bool:
        for way in ways:
            calls = [dict(zip(names, some, strict=True)) for some in product(*way)]
            if any(self.called(order) != self.once for order in orders(calls)):
                return False
        return True

    def called(self, calls: Sequence[Block]) -> Memory:
        memory: Memory = {}
        for number, call in enumerate(calls):
            start = {a: at for a, (at, _) in call.items()}
            sizes = {n: (call[a][1] if a in call else self.extents[a]) for a, e in self.ends.items() for n in e.names}

            def place(x: Access, at: dict[str, int], number=number, start=start) -> Element:
                o = self.operands.get(x.buffer)
                if o is None:
                    return f"{x.buffer} of call {number}", tuple(r.evaluate(at) for r in x.index)
                index = [r.evaluate(start) for r in o.index]
                for r, d in zip(x.index, o.dims, strict=True):
                    index[d] += r.evaluate(at) + sum(c * start.get(n, 0) for n, c in r.terms)
                return o.buffer, tuple(index)

            if all(w.evaluate(start) >= 0 for w in self.part.where if set(w.names) <= set(self.mapping.outer)):
                carry_out(self.body.statements, sizes, place, memory)
        return self.seen(memory)


def own(body: str) -> Instruction:
    """An instruction of these statements; ``x ?= y`` is ``y`` where 9 does not go into B, else ``x``."""
    lines = [("    " if "forall" in s else "  ") + s.rpartition(": ")[2].replace("?=", "+=") for s in body.split("; ")]
    loops = [s.rpartition(": ")[0] for s in body.split("; ")]
    text = "".join(f"  {head}\n{x}\n" if head else f"{x}\n" for head, x in zip(loops, lines, strict=True))
    kinds = {"A": "in A: f32[N]", "B": "in B: f32[N]", "S": "in S: f32", "C": "inout C: f32[N + 3]",
             "D": "inout D: f32[2 * N]", "E": "inout E: f32[N]", "F": "inout F: f32", "G": "inout G: f32",
             "X": "in X: f32[N, N]", "Y": "inout Y: f32[N, N]",
             "W": "in W: f32[N, M]", "Z": "inout Z: f32[N, M]"}  # fmt: skip
    used = [f"  {k}\n" for n, k in kinds.items() if re.search(rf"\b{n}\b", body) or (n == "B" and "?=" in body)]
    if "?=" in body:
        text += "  forall i < N\n    B[i] = B[i] * 1\n"
        used = [u.replace("in B", "inout B") for u in used]
    i = parse_instruction(f"instruction own(N == 3, M == 3)\n{''.join(used)}{text}")
    chosen = [
        replace(s, op="select", sources=(Access("B", (Affine.of("i"),)), *s.sources)) if "?=" in said else s
        for s, said in zip(i.body.statements, body.split("; "), strict=False)]  # fmt: skip
    return replace(i, body=replace(i.body, body=tuple(chosen)))


def as_itself(body: str, *where: Affine) -> Judge:
    """The instruction mapped to its own statements, of three steps each; a condition leaves out some."""
    i = own(body)
    k = replace(i.body, name="k").with_sizes({"N": 3, "M": 3})
    said = (replace(s, domain=replace(s.domain, where=(*s.domain.where, *where))) for s in k.statements)
    k = replace(k, body=tuple(said))
    operands = tuple(
        OperandMap(b.name, b.name, (Affine(),) * len(b.shape), tuple(range(len(b.shape))), (1,) * len(b.shape))
        for b in i.body.arguments)  # fmt: skip
    axes = tuple(dict.fromkeys((n, n) for s in i.body.statements for n in s.domain.names))
    return Judge(k, Mapping(i, tuple(range(len(k.statements))), operands, axes, ()))


BODIES = [
    "forall i < N: E[i] = A[i] * 2", "forall i < N: E[i] = E[i] * 2", "forall i < N: F += A[i]",
    "F = 0; forall i < N: F += A[i]", "F += S; forall i < N: E[i] = A[i] * 2",
    "forall i < N: F += A[i]; forall i < N: F += B[i]", "forall i < N: F += A[i]; forall i < N: F *= B[i]",
    "forall i < N: F += A[i]; forall i < N: G += F", "forall i < N: F += A[i]; forall i < N: E[i] += F",
    "forall i < N: C[i] += A[i]; forall i < N: C[i + 1] += B[i]",
    "forall i < N: C[i] = A[i] + B[i]; forall i < N: C[i + 1] += A[i]",
    "forall i < N: C[i + 1] = A[i] + B[i]; forall i < N: C[i] += A[i]",
    *(f"forall i < N: C[i + {p}] = A[i] * 2; forall i < N: E[i] = C[i + {q}] * 2" for p in range(4) for q in range(4)),
    "forall i < N: D[2 * i] = A[i] * 2; forall i < N: E[i] = D[2 * i] * 2",
    "forall i < N: D[2 * i] = A[i] * 2; forall i < N: D[2 * i + 1] = D[2 * i] * 2",
    "T = S * 2; forall i < N: E[i] = A[i] * T", "T = C[0] * 2; forall i < N: C[i] = A[i] * T",
    "forall i < N: U[i] = A[i] * 2; forall i < N: E[i] = U[i] * 2",
    "forall i < N: U[i] = A[i] * 2; forall i < N: E[i] = U[2 - i] * 2",
    "U[0] = S * 2; forall i < N: U[i + 1] = A[i] * 2; forall i < N: E[i] = U[i + 1] * U[0]",
    "T = S * 2; forall i < N: T += A[i]; forall i < N: E[i] = A[i] * T",
    "forall i < N: U[i] = A[i] * 2; forall i < N: U[i] += B[i]; forall i < N: E[i] = U[i] * 2",
    "forall j < M: U[j] = W[0, j] * 2; forall i < N: E[i] = U[i] * 2",
    "forall j < M: U[j] = W[0, j] * 2; forall i < N: U[i] += A[i]; forall i < N: E[i] = U[i] * 2",
    "forall i < N: U[i] = A[i] + B[i]; U[0] += S; forall i < N: E[i] = U[i] * 2",
    "forall j < M: U[j] = W[0, j] * 2; forall i < N: U[i] += A[i]; U[0] += S; forall i < N: E[i] = U[0] * 2",
    "forall i < N: U[i] = A[i] * 2; U[3] = S * 2; forall i < N: E[i] = U[i] * U[3]",
    "forall j < 7: U[j] = S * 2; forall i < N: U[i + 2] = A[i] * 3; forall i < N: E[i] = U[3 * i] * 2",
    "forall j < 7, p < 7: U[j, p] = S * 2; forall i < N: U[i, 2 * i] = A[i] * 2; forall i < N: E[i] = U[i, 0] * 2",
    "forall i < N where 1 <= i: E[i] = A[i] * 2", "forall i < N where i <= N - 2: E[i] = A[i] * 2",
    "forall i < N: E[i] = A[N - 1 - i] * 2", "forall i < N: E[i] = A[i] * A[2 - i]",
    "forall i < N: E[i] = A[i] * A[0]", "forall i < N: F ?= A[i]", "forall i < N: E[i] ?= A[i]",
    "forall i < N, j < N: Y[i, j] = X[i, j] * 2", "forall i < N, j < N: Y[i, j] = X[j, i] * 2",
    "forall i < N, j < N: E[i] += X[i, j]", "forall i < N, j < N: F += X[i, j]",
    "forall i < N, j < M: Z[i, j] = W[i, j] * 2", "forall i < N: E[i] = 0; forall i < N, j < M: E[i] += W[i, j]",
    "forall i < N: E[i] = 0; forall i < N, j < N: E[i] += X[i, j]",
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_an_axis_is_cut_where_no_order_of_calls_shows(body: str):
    j = as_itself(body)
    sized = {a for a, e in j.ends.items() if e.terms}
    assert {a for a in sized if not j.may_be_cut(a)} == j.calls.whole & sized


ROW, COLUMN, R, T = map(Affine.of, "ijRT")
LEAVING = (ROW - COLUMN, COLUMN - ROW, COLUMN - 1, 1 - COLUMN, ROW - 1, 1 - ROW, 2 - ROW - COLUMN)
BOTH = ((1 - COLUMN, COLUMN - 1), (1 - COLUMN, 1 - ROW), (1 - COLUMN, ROW - 1), (1 - ROW, ROW - COLUMN))


@pytest.mark.parametrize("body", [
    "Z[i, j] = W[i, j] * 2", "Z[i, j] = W[i, j] * W[i, 0]", "Z[i, j] = W[i, j] * W[0, 0]",
    "Z[i, j] = W[0, j] * W[i, 0]", "Z[i, j] = W[i, M - 1 - j] * 2", "Y[i, j] = X[i, j] * X[j, i]",
    "Y[i, j] = X[i, j] * X[i, 0]",
])  # fmt: skip
def test_what_a_condition_leaves_of_a_whole_axis_is_a_smaller_call(body: str):
    """Of axes of one size the checker does not find out that two conditions leave as much of each."""
    for where in (*((w,) for w in LEAVING), *(BOTH if "W" in body else ())):
        j = as_itself(f"forall i < N, j < {'M' if 'W' in body else 'N'}: {body}", *where)
        assert j.calls.guarded == {n for w in where for n in w.names}
        fits = all(a not in j.calls.whole or j.calls.shortened(a, a) for a in j.calls.guarded)
        assert fits == j.may_be_shortened(), where


def test_a_condition_that_the_instruction_has_leaves_out_nothing_more():
    assert as_itself("forall i < N where 1 <= i: E[i] = A[i] * 2").calls.guarded == set()
    j = as_itself("forall i < N where 1 <= i: E[i] = A[i] * 2", 1 - ROW)
    assert j.calls.guarded == {"i"}
    assert j.calls.shortened("i", "i")
    assert j.may_be_shortened()


ROWS = (R, R + 1, R + 2, R + 3, R * 2, R * 2 + 1, 3 - R, Affine.lift(0), Affine.lift(2))


def rowwise(body: str, rows: dict[str, Affine], sizes: str = "", *where: Affine) -> tuple[Kernel, Mapping]:
    """A body at each of three steps of ``R``: its operands lie in these rows of one buffer, or else in their own."""
    i = own(body)
    k = parse_kernel(f"kernel k({sizes})\n  inout x: f32[3, 3]\n  forall R < 3, i < 3\n    x[R, i] = x[R, i] * 2\n")
    (s,) = k.statements
    operands = tuple(
        OperandMap(b.name, "u" if b.name in rows else b.name.lower(),
                   (rows.get(b.name, R), *(Affine() for _ in b.shape)),
                   tuple(range(1, len(b.shape) + 1)), (1,) * len(b.shape))
        for b in i.body.arguments)  # fmt: skip
    k = replace(k, body=(replace(s, domain=replace(s.domain, where=where)),))
    return k, Mapping(i, (0,), operands, (("i", "i"),), ("R",))


@pytest.mark.parametrize("written", ROWS, ids=str)
def test_outer_steps_are_apart_where_no_order_of_calls_shows(written: Affine):
    for body, *where in (("forall i < N: C[i] = A[i] * 2; forall i < N: E[i] = D[i] * 2",),
                         ("forall i < N: C[i] = A[i] * 2; forall i < N: E[i] = D[i] * 2", 1 - R),
                         ("forall i < N: C[i] += A[i]; forall i < N: D[i] += B[i]",)):  # fmt: skip
        for touched in ROWS:
            j = Judge(*rowwise(body, {"C": written, "D": touched}, "", *where))
            assert j.calls.apart("R") == j.may_differ(), (body, touched)


@pytest.mark.parametrize(("sizes", "apart"), [("3 <= T", True), ("2 <= T", False), ("T", False), ("2 <= T % 2", False)])
def test_outer_steps_are_apart_at_all_sizes_of_the_kernel(sizes: str, apart: bool):
    body = "forall i < N: C[i] = A[i] * 2; forall i < N: E[i] = D[i] * 2"
    k, m = rowwise(body, {"C": R, "D": R + T}, sizes)
    assert _Calls(k, m, Part(k, m, 0)).apart("R") == apart


def test_what_takes_too_long_to_find_out_is_not_known():
    def late():
        raise TooMuch

    assert _never(late) is False
