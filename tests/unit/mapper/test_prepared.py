"""What is prepared of kernels and instructions (:mod:`isam.mapper.dataflow`), against what it is said to be."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest

from isam.ir.instruction import Instruction
from isam.ir.kernel import Access
from isam.ir.text import parse_instruction
from isam.mapper.dataflow import Form, Plan, flow_of, forms, plan_of
from isam.mapper.match import normal, probe
from tests.pairs.instructions import drawn, invented
from tests.unit.mapper.catalogue import instruction, instruction_names, kernel


def some(part: int) -> list[Instruction]:
    if not part:
        return [instruction(n) for n in instruction_names()]
    rng = random.Random(part)
    return [*(invented(rng) for _ in range(30)), *(drawn(rng) for _ in range(10))]


def plans(part: int) -> list[Plan]:
    return [plan_of(i, body) for i in some(part) for body in {id(b): b for b in (i.body, normal(i.body))}.values()]


@pytest.mark.parametrize("part", range(4))
def test_an_access_by_rows_and_by_columns(part: int) -> None:
    for plan in plans(part):
        for node in (*plan.flow.nodes, *flow_of(plan.body).nodes):
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
        assert f.rests[r] == row.substitute({n: 0 for n in number})
    for a, col in enumerate(f.cols):
        assert dict(col) == {r: dict(row)[a] for r, row in enumerate(f.rows) if a in dict(row)}
        assert f.signs[a] == tuple(sorted(dict(col).values()))


@pytest.mark.parametrize("part", range(4))
def test_what_a_plan_knows_of_its_buffers(part: int) -> None:
    for plan in plans(part):
        ways: dict[str, set[object]] = {}
        for n in plan.flow.nodes:
            for f in forms(n):
                ways.setdefault(f.buffer, set()).add((f.rows, f.rests))
        assert plan.loose == {t for t in plan.temps if len(ways.get(t, ())) == 1}
        assert plan.temps == {b.name for b in plan.body.buffers if b.role == "temp"}
        sizes = {s.name for s in plan.body.syms}
        used = [r for n in plan.flow.nodes for f in forms(n) for r in f.access.index]
        used += [w for n in plan.flow.nodes for w in n.statement.domain.where]
        assert plan.fixing == {n for r in used for n in r.names} & sizes


@pytest.mark.parametrize("part", range(4))
def test_every_axis_has_one_number_and_one_extent(part: int) -> None:
    for plan in plans(part):
        used = {a for n in plan.flow.nodes for a in n.axes}
        assert used == set(range(len(plan.axis_names)))
        assert len(set(plan.axis_names)) == len(used)
        for n in plan.flow.nodes:
            assert len(set(n.axes)) == len(n.names)
            for a, axis in zip(n.axes, n.statement.domain.axes, strict=True):
                assert (plan.extents[a], n.extents[a]) == (axis.extent, axis.extent)
        for one, two in combinations(plan.flow.nodes, 2):  # the same name and extent is the same axis
            for (x, a), (y, b) in product(*(zip(n.statement.domain.axes, n.axes, strict=True) for n in (one, two))):
                if (x.name, x.extent) == (y.name, y.extent):
                    assert a == b


@pytest.mark.parametrize("part", range(4))
def test_what_follows_directly_on_a_buffer(part: int) -> None:
    for plan in plans(part):
        nodes = plan.flow.nodes
        want: dict[int, set[tuple[int, str]]] = {n.index: set() for n in nodes}
        for b, writers in plan.flow.writers.items():
            marks = [w.index for w in writers]
            touching = plan.flow.touching(b)
            assert touching == {n.index for n in nodes if b in n.reads() | {n.dest.buffer}}
            for i, j in product(range(len(nodes)), repeat=2):
                between = any(min(i, j) < m < max(i, j) for m in marks)
                assert plan.flow.undisturbed(b, i, j) == (not between)
                plain = not any(w.statement.accumulate for w in writers)
                if plain and i < j and i in marks and j in touching and not between:
                    want[i].add((j, b))
                    want[j].add((i, b))
        assert {i: set(steps) for i, steps in plan.steps.items()} == want


@pytest.mark.parametrize("part", range(4))
def test_statements_are_matched_from_the_tightest_one_along_the_buffers(part: int) -> None:
    for plan in plans(part):
        nodes, done = plan.flow.nodes, list(plan.order[:1])
        assert sorted(plan.order) == list(range(len(nodes)))
        if not nodes:
            continue
        assert done[0] == min(range(len(nodes)), key=lambda i: (-len(nodes[i].axes), -len(forms(nodes[i])), i))
        for i in plan.order[1:]:
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
