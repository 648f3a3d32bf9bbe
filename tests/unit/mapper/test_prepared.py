"""What is prepared of kernels and instructions (:mod:`isam.mapper.dataflow`), against what it is said to be."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Statement, Sym
from isam.ir.text import parse_instruction
from isam.mapper.dataflow import Form, Pattern, flow_of, forms, pattern_of
from isam.mapper.match import normal, probe
from tests.pairs.instructions import drawn, invented
from tests.unit.mapper.catalogue import instruction, instruction_names, kernel, named


def some(part: int) -> list[Instruction]:
    if not part:
        return [instruction(n) for n in instruction_names()]
    rng = random.Random(part)
    return [*(invented(rng) for _ in range(30)), *(drawn(rng) for _ in range(10))]


def plans(part: int) -> list[Pattern]:
    return [pattern_of(i, body) for i in some(part) for body in {id(b): b for b in (i.body, normal(i.body))}.values()]


@pytest.mark.parametrize("part", range(4))
def test_an_access_by_rows_and_by_columns(part: int) -> None:
    for pattern in plans(part):
        for node in (*pattern.flow.nodes, *flow_of(pattern.body).nodes):
            assert [node.names[node.axes.index(a)] for a in node.axes] == list(node.statement.domain.names)
            number = dict(zip(node.names, node.axes, strict=True))
            written = [a for a in (node.statement.dest, *node.statement.sources) if isinstance(a, Access)]
            assert [f.access for f in forms(node)] == written
            for f in forms(node):
                check_form(f, number)


def check_form(f: Form, number: dict[str, int]) -> None:
    assert (f.rank, f.buffer) == (len(f.access.index), f.access.buffer)
    for r, row in enumerate(f.access.index):
        assert dict(f.rows[r]) == {number[n]: c for n, c in row.terms if n in number}
        assert list(f.rows[r]) == sorted(f.rows[r])
        assert f.rests[r] == row.substitute(dict.fromkeys(number, 0))
    for a, col in enumerate(f.cols):
        assert dict(col) == {r: dict(row)[a] for r, row in enumerate(f.rows) if a in dict(row)}
        assert f.signs[a] == tuple(sorted(dict(col).values()))


@pytest.mark.parametrize("part", range(4))
def test_what_a_plan_knows_of_its_buffers(part: int) -> None:
    for pattern in plans(part):
        ways: dict[str, set[object]] = {}
        for n in pattern.flow.nodes:
            for f in forms(n):
                ways.setdefault(f.buffer, set()).add((f.rows, f.rests))
        assert pattern.loose == {t for t in pattern.temps if len(ways.get(t, ())) == 1}
        assert pattern.temps == {b.name for b in pattern.body.buffers if b.role == "temp"}
        sizes = {s.name for s in pattern.body.syms}
        used = [r for n in pattern.flow.nodes for f in forms(n) for r in f.access.index]
        used += [w for n in pattern.flow.nodes for w in n.statement.domain.where]
        assert pattern.fixing == {n for r in used for n in r.names} & sizes


@pytest.mark.parametrize("part", range(4))
def test_every_axis_has_one_number_and_one_extent(part: int) -> None:
    for pattern in plans(part):
        used = {a for n in pattern.flow.nodes for a in n.axes}
        assert used == set(range(len(pattern.axis_names)))
        assert len(set(pattern.axis_names)) == len(used)
        for n in pattern.flow.nodes:
            assert len(set(n.axes)) == len(n.names)
            for a, axis in zip(n.axes, n.statement.domain.axes, strict=True):
                assert (pattern.extents[a], n.extents[a]) == (axis.extent, axis.extent)
        for one, two in combinations(pattern.flow.nodes, 2):  # the same name and extent is the same axis
            for (x, a), (y, b) in product(*(zip(n.statement.domain.axes, n.axes, strict=True) for n in (one, two))):
                if (x.name, x.extent) == (y.name, y.extent):
                    assert a == b


@pytest.mark.parametrize("part", range(4))
def test_what_follows_directly_on_a_buffer(part: int) -> None:
    for pattern in plans(part):
        nodes = pattern.flow.nodes
        want: dict[int, set[tuple[int, str]]] = {n.index: set() for n in nodes}
        for b, writers in pattern.flow.writers.items():
            marks = [w.index for w in writers]
            touching = pattern.flow.touching(b)
            assert touching == {n.index for n in nodes if b in n.reads() | {n.dest.buffer}}
            for i, j in product(range(len(nodes)), repeat=2):
                between = any(min(i, j) < m < max(i, j) for m in marks)
                assert pattern.flow.undisturbed(b, i, j) == (not between)
                plain = not any(w.statement.accumulate for w in writers)
                if plain and i < j and i in marks and j in touching and not between:
                    want[i].add((j, b))
                    want[j].add((i, b))
        assert {i: set(steps) for i, steps in pattern.steps.items()} == want


@pytest.mark.parametrize("part", range(4))
def test_statements_are_matched_from_the_tightest_one_along_the_buffers(part: int) -> None:
    for pattern in plans(part):
        nodes, done = pattern.flow.nodes, list(pattern.order[:1])
        assert sorted(pattern.order) == list(range(len(nodes)))
        if not nodes:
            continue
        assert done[0] == min(range(len(nodes)), key=lambda i: (-len(nodes[i].axes), -len(forms(nodes[i])), i))
        for i in pattern.order[1:]:
            near = {f.buffer for d in done for f in forms(nodes[d])}
            left = [x for x in range(len(nodes)) if x not in done]
            assert i == next((x for x in left if near & {f.buffer for f in forms(nodes[x])}), left[0])
            done.append(i)


def test_a_chain_in_place_is_followed_statement_by_statement() -> None:
    """Any order of any of the twelve would be tried else."""
    k = kernel("k(N)\n inout d: f32[N]" + "\n forall i < N\n  d[i] = exp(d[i])" * 12)
    i = parse_instruction("instruction i(N)\n  inout D: f32[N]\n" + "  forall i < N\n    D[i] = exp(D[i])\n" * 6)
    found = probe(k, i)
    assert len(found) == 7
    assert found.pairs <= 12 * 6 + 12 * 6  # a statement and its axis


def test_the_pattern_of_a_body_is_not_that_of_its_normal_form() -> None:
    text = "instruction i(N)\n  in A: f32[N]\n  out D: f32[N]\n  forall i < N\n    t[i] = A[i]\n    D[i] = exp(t[i])\n"
    for first in (True, False):
        i = parse_instruction(text)
        bodies = [i.body, normal(i.body)][:: 1 if first else -1]
        assert [len(b.statements) for b in bodies] == ([2, 1] if first else [1, 2])
        assert [pattern_of(i, b).body for b in bodies] == bodies
        assert pattern_of(i).body is i.body
    i = parse_instruction(text)
    assert (pattern_of(i).body, pattern_of(i, normal(i.body)).body) == (i.body, normal(i.body))
    assert pattern_of(i) is pattern_of(i, i.body)


X, J, K, L, N, M = (Affine.of(n) for n in "ijklNM")


def body(*statements: tuple[Access, ...], extents: dict[int, Affine] = {}) -> Kernel:  # noqa: B006
    """Sums of accesses; an axis is a small letter, of N steps where nothing else is said of its statement."""
    made = []
    for n, (dest, *sources) in enumerate(statements):
        used = sorted({x for a in (dest, *sources) for r in a.index for x in r.names if x.islower()})
        domain = Domain(tuple(Axis(x, extents.get(n, N)) for x in used))
        made.append(Statement(domain, dest, "add" if len(sources) > 1 else "exp", tuple(sources)))
    names = {a.buffer: len(a.index) for s in statements for a in s}
    buffers = tuple(Buffer(b, (N,) * rank, "f32", "inout") for b, rank in names.items())
    return Kernel("k", (Sym("N"), Sym("M")), buffers, tuple(made))


def at(buffer: str, *rows: Affine) -> Access:
    return Access(buffer, rows)


A, ZERO = at("A"), Affine()
JOINED = [  # (body, axes that are one axis)
    (body((at("T", X), A), (at("D", J), at("T", J))), "0i1j"),
    (body((at("T", X), A), (at("D", K, J), at("T", J))), "0i1j"),
    (body((at("T", X), A), (at("D", X), at("T", X))), "0i1i"),
    (body((at("T", X), A), (at("D", X), at("T", X)), extents={1: M}), ""),
    (body((at("T", X), A), (at("D", J), at("T", J)), extents={1: M}), ""),
    (body((at("T", X), A), (at("D", J), at("T", J + 1))), ""),
    (body((at("T", X * 2), A), (at("D", J), at("T", J * 2))), "0i1j"),
    (body((at("T", X * 2), A), (at("D", J), at("T", J))), ""),
    (body((at("T", X + K), A), (at("D", J, L), at("T", J + L))), ""),
    (body((at("T", X), A), (at("D", J, L), at("T", J + L))), ""),
    (body((at("T", X, K), A), (at("D", J), at("T", J, ZERO))), "0i1j"),
    (body((at("T", X, ZERO), A), (at("D", J), at("T", J, ZERO))), "0i1j"),
    (body((at("T", X), A), (at("D", J), at("T", N))), ""),
    (body((at("T", N), A), (at("D", J), at("T", J))), ""),
    (body((at("T", X), A), (at("D", J, K), at("T", J), at("T", K))), "0i1j"),  # never two of one statement
    (body((at("T", X), A), (at("D", J, X), at("T", J))), "0i1i"),  # i is i already
    (body((at("T", J, X), A), (at("D", J), at("T", X, J))), "0i1i 0j1j"),
    (body((at("T", X), A), (at("U", J), at("T", J)), (at("D", K), at("U", K))), "0i1j2k"),
    (body((at("T", X), A), (at("U", J), A), (at("D", K), at("T", K), at("U", K))), "0i1j2k"),
    (body((at("T", X), A), (at("U", J), at("T", J)), (at("D", K), at("U", K), at("T", K))), "0i1j2k"),
    (body((at("T", X), A), (at("U", J), at("T", J)), (at("D", K, L), at("U", K), at("T", L))), "0i1j2l"),
    (body((at("T", X), A), (at("U", J), at("B", J)), (at("D", J, K), at("T", J), at("U", J))), "0i1j2j"),
]


@pytest.mark.parametrize("n", range(len(JOINED)))
def test_two_names_of_one_axis(n: int) -> None:
    k, want = JOINED[n]
    pattern = pattern_of(Instruction("i", k), k)
    one: dict[int, list[str]] = {}
    for node in pattern.flow.nodes:
        for name, c in zip(node.names, node.axes, strict=True):
            one.setdefault(c, []).append(f"{node.index}{name}")
    assert " ".join(sorted("".join(w) for w in one.values() if len(w) > 1)) == want
    assert len(set(pattern.axis_names)) == len(pattern.axis_names)


def test_the_budget_is_how_many_pairs_are_tried() -> None:
    k, i = named("conv"), instruction("gemm")
    found = probe(k, i)
    assert found.complete
    need = found.pairs
    assert probe(k, i, budget=need).complete
    for less in (need - 1, 1, 0):
        short = probe(k, i, budget=less)
        assert not short.complete
        assert short.pairs == less + 1
