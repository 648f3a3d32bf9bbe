"""The flat checker between its steps: homes, what is forgotten and emptied, the end, what the compiled walk is told."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from isam.ir.affine import Affine
from isam.proof import flat_program
from isam.proof import flat_walk as w
from isam.proof.dealt import local
from isam.proof.flat import Replay, check_flat, replayed
from isam.proof.flat_program import Program
from isam.proof.flat_step import compile_step
from isam.proof.flat_table import Table
from isam.proof.violation import Findings, issue_text
from isam.schedule.tree import Issue, Loop, Place, Schedule, Seq, Slot, distinct
from tests.unit.proof import test_dealt, test_registers
from tests.unit.proof.handmade import at_home, move, running_sum, seq, tile, tiny_matmul, vec_matmul
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_flat_shapes import finder, units_of
from tests.unit.proof.test_flat_tables import replace_permits


def replay(s: Schedule, **edits: Any) -> Replay:
    r = Replay(s, {}, Findings())
    r.phase = "call"
    for name, e in edits.items():
        r.legality.buffers[name] = r.legality.buffers[name]._replace(**e)
    return r


# homes ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("offset", [-64, -16, 0, 16, 48, 64, 4096])
def test_a_buffer_lies_at_home_where_its_home_holds_it(offset: int) -> None:
    """All of it, current, or nothing at all."""
    s = tiny_matmul(16, 16, 16)
    r = replay(s)
    region = r.space.regions["dram", "A"]
    region.bytes += 48  # there is room behind it
    home = replace(s.homes["A"], offset=lit(offset))
    r.legality.buffers["A"] = r.legality.buffers["A"]._replace(home=home)
    r.space.current[:] = range(len(r.space.current))
    before = r.space.token.copy()
    r.space.put_home("A", r.out)
    fits = 0 <= offset <= 48
    assert [(v.obligation, v.kind) for v in r.out.found] == ([] if fits else [(9, "home")])
    first, n = region.origin + offset // region.group, 16 * 16 * 4 // region.group
    want = before.copy()
    if fits:
        want[first : first + n] = [r.space.origin["A"] + e for e in range(n)]
        assert r.space.version[first : first + n].tolist() == [r.space.origin["A"] + e for e in range(n)]
    assert r.space.token.tolist() == want.tolist()
    assert (r.space.home_tokens("A") is not None) is fits


def test_no_buffer_lies_where_no_home_is_known() -> None:
    s = tiny_matmul()
    for home in (None, replace(s.homes["A"], offset=Affine.of("q")), replace(s.homes["A"], base="nowhere")):
        r = replay(s, A={"home": home})
        r.space.put_home("A", r.out)
        assert [v.message for v in r.out.found] == ["the buffer 'A' has no place at home"]


# the end --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("role", "where"), [*product(("in", "const", "inout", "out", "temp"), range(3))])
def test_what_is_at_home_after_the_call(role: str, where: int) -> None:
    """Of an output every element that was written, of what goes in and out every one: there, and current."""
    for written, here, current in product((False, True), repeat=3):
        r = replay(tiny_matmul(), A={"role": role}, B={"role": "in"}, C={"role": "in"})
        for i, count in r.done.items():
            count[...] = r._masks(i) if r.kernel.statements[i].domain.where else 1
        for name in "ABC":
            r.space.put_home(name, r.out)
        a, _, e = r.space.home_tokens("A") or ((), (), ())
        at = 3 * where
        r.space.current[e[at]] += 2 * written
        r.space.version[a[at]] = r.space.current[e[at]] - (not current)
        r.space.token[a[at]] += not here
        r._end()
        bad = (not here or not current) and (role == "inout" or (role == "out" and written))
        want = r.space.unflat("A", int(e[at]) - r.space.origin["A"])
        text = f"element {want} of 'A' is not current at home after the call ({r.space.units.wide['A']} such)"
        assert [(v.obligation, v.kind, v.message) for v in r.out.found] == ([(8, "final", text)] if bad else [])


def test_every_point_is_executed_once() -> None:
    r = replay(tiny_matmul(), A={"role": "in"}, B={"role": "in"}, C={"role": "in"})
    for i, count in r.done.items():
        for p, n in product(np.ndindex(count.shape), (0, 1, 2, 255)):
            for other in r.done.values():
                other[...] = 1
            count[p] = n
            r.out = Findings()
            r._end()
            at, cells = tuple(x * c for x, c in zip(p, r.space.units.cells[i], strict=True)), r.space.units.cells[i]
            text = f"statement {i} at {at} is executed {n} times, not 1 ({int(np.prod(cells))} such points)"
            assert [v.message for v in r.out.found] == ([] if n == 1 else [text])


def test_what_a_slot_keeps_from_bind_to_call() -> None:
    """What is bound and constant; everything else is forgotten."""
    s = vec_matmul(4, 16, 10, bound=True)
    for bound in (True, False):
        r = replay(replace(s, workspace=tuple(replace(w, bound=bound and w.bound) for w in s.workspace)))
        r.space.token[:] = 7
        r._forget()
        kept = {w.name for w in s.workspace if w.bound and bound}
        kept |= {b.name for b in r.legality.buffers.values() if b.role in ("const", "literal")}
        assert kept
        for (_, base), region in r.space.regions.items():
            assert set(r.space.token[region.tokens].tolist()) <= {7 if base in kept else -1}


# loops that are dealt out ---------------------------------------------------------------------------------------------
def test_instances_begin_and_end_with_nothing() -> None:
    """Before every iteration, and behind the last, nothing lies in what belongs to an instance, but in slots."""
    s = test_dealt.good()
    n = next(x for x in distinct(s.call) if isinstance(x, Loop) and x.deal is not None)
    r = replay(s)
    own = {k for k in r.space.regions if k[0] in local(s, n.deal) and not k[1]}
    assert own
    held = [r.space.regions[k].tokens for k in own]
    seen: list[bool] = []

    def note(part: Any, env: dict[str, int]) -> None:
        empty = all((r.space.token[t] == -1).all() for t in held)
        if part is n.exit or n.var in env:
            seen.append(empty)
        for t in held:
            r.space.token[t] = 5

    r.node = note  # type: ignore[method-assign]
    r.loop(n, {})
    assert len(seen) > 2
    assert all(seen)


# whatever is wrong ----------------------------------------------------------------------------------------------------
def malformed(n: Issue) -> list[tuple[str, Issue]]:
    """The kind of what is wrong, and the step."""
    o = n.operands[-1]
    t, p = o.tile, o.place
    one = t._replace(start=t.start[:1], shape=t.shape[:1], steps=(1,))
    some = [("rank", replace(o, tile=one)), ("rank", replace(o, tile=t._replace(start=()))),
            ("rank", replace(o, place=replace(p, strides=(4,)))), ("buffer", replace(o, tile=t._replace(buffer="Q"))),
            ("memory", replace(o, place=replace(p, memory="Q"))), ("cell", replace(o, place=replace(p, cell=3))),
            ("base", replace(o, place=replace(p, base="Q"))), ("dims", replace(o, dims=())),
            ("shape", replace(o, tile=t._replace(shape=(0, 4)))), ("shape", replace(o, tile=t._replace(steps=(0, 1)))),
            ("operands", replace(o, name="Q"))]  # fmt: skip
    steps = [(kind, replace(n, operands=(*n.operands[:-1], x))) for kind, x in some]
    return [*steps, ("operands", replace(n, operands=n.operands[:1])), ("instruction", replace(n, instruction="Q")),
            ("unit", replace(n, unit="Q")), ("sizes", replace(n, sizes=())), ("nest", replace(n, nest=99))]  # fmt: skip


def test_steps_that_are_none_are_refused_each_for_its_reason() -> None:
    """By themselves, where nothing else names their memory, and behind all others."""
    s = tiny_matmul()
    there = Place("sp", "", lit(0), (64, 4))
    step = move("dma", "copy", tile("A", [0, 0], [2, 4]), s.homes["A"], there)
    assert not replayed(replace(s, call=Seq((s.call, step)))).found
    for kind, wrong in malformed(step):
        for call in (wrong, Seq((s.call, wrong))):
            found = check_flat(replace(s, call=call))
            assert kind in {v.kind for v in found if v.step == issue_text(wrong)}, kind


@pytest.mark.parametrize("slot", [Slot("W", "nowhere", 0), Slot("W", "nowhere", 64), Slot("W", "sp", 1 << 40)])
def test_slots_that_are_nowhere_or_do_not_fit_are_refused(slot: Slot) -> None:
    s = tiny_matmul()
    assert not check_flat(s)
    assert {v.obligation for v in check_flat(replace(s, workspace=(slot,)))} == {9}


@pytest.mark.parametrize("kind", ["home", "cells"])
def test_places_with_names_or_in_cells_need_not_be_aligned(kind: str) -> None:
    """Of a memory with names, its alignment is that of what is named; a cell is where it is."""
    s = tiny_matmul(12, 4, 20)
    memories = {n: replace(m, align=128) if getattr(m, kind) else m for n, m in s.system.memories.items()}
    assert memories != s.system.memories
    assert not check_flat(replace(s, system=replace(s.system, memories=memories)))


# the compiled walk ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [None, (8, 32), (64, 8), (1, 64), (64, 1)])
def test_a_command_is_judged_once_for_what_is_held_before_it(shape: tuple[int, int] | None) -> None:
    """However large the table is in which that is remembered."""
    s, asked = test_registers.good(), []

    class Wide(Program):
        def __init__(self, r: Replay):
            super().__init__(r)
            self.after = self.after if shape is None else np.full(shape, -1, np.int64)

        def _command(self, calls: Any, group: int, before: int) -> None:
            asked.append((before, group))
            super()._command(calls, group, before)

    with pytest.MonkeyPatch.context() as m:
        m.setattr("isam.proof.flat.Program", Wide)
        assert not replayed(s, compiled=True).found
    assert len(set(asked)) == len(asked) > 3
    assert len({before for before, _ in asked}) > 1


def test_marks_and_ranks_go_on_from_bind_to_call() -> None:
    """A second program takes over what the first has counted."""
    r = Replay(replace_permits(tiny_matmul()), {}, Findings())
    r.phase = "call"
    first = Table(r).numbers
    assert first.seen.size > 1
    first.seen[:-1] = np.arange(first.seen.size - 1)
    first.done[:-1] = np.arange(first.done.size - 1) % 7
    again = Table(r).numbers
    assert again.seen.tolist() == first.seen.tolist()
    assert again.done[:-1].tolist() == first.done[:-1].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_terms_that_do_not_follow_each_other_are_left_alone(seed: int) -> None:
    """A box of ordered axes goes into the table where its terms are neighbours in the order of all."""
    choose, said = random.Random(seed), set()
    s = replace_permits(tiny_matmul())
    r = Replay(s, {}, Findings(), compiled=True)
    r.phase = "call"
    with pytest.MonkeyPatch.context() as m:
        m.setattr(flat_program, "walk", lambda: None)
        t = Program(r).table
    issue = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.nest == 1)
    step = compile_step(issue, r, Findings())
    assert step is not None
    (e,) = step.shape.effects
    assert e.ordered is not None
    for _ in range(40):
        full = [choose.randint(1, 4) for _ in range(choose.randint(1, 3))]
        lengths = [choose.randint(1, n) for n in full]
        ordered = tuple((0, n, f) for n, f in zip(lengths, full, strict=True))
        ranks = sorted(sum(x * int(np.prod(full[k + 1 :])) for k, x in enumerate(p))
                       for p in product(*map(range, lengths)))  # fmt: skip
        row = t._effect(replace(e, ordered=ordered), step.shape.accesses[e.accesses], 5, 0)
        assert (row is not None) is (ranks == [*range(len(ranks))])
        if row is not None:
            at = row[w.EFFECT - 2]
            assert row[w.EFFECT - 3] == len(full)
            assert t.words.array[at : at + 3 * len(full)].tolist() == [x for o in ordered for x in o]
        said.add(row is None)
    assert said == {True, False}


def test_every_read_whose_order_is_prescribed_is_in_the_table() -> None:
    """Also those of statements of which a step writes nothing: they stand in the loops of those it writes."""
    s, seen = running_sum(), 0
    r = Replay(s, {"T": 3}, Findings())
    r.phase = "call"
    t = Table(r)
    for issue in (n for n in distinct(s.call) if isinstance(n, Issue)):
        step = compile_step(issue, r, Findings())
        assert step is not None
        odd = [replace(e, statement=99, outer=tuple(row + 1 for row in e.outer)) for e in step.shape.effects]
        each = [step.shape] + [replace(step.shape, effects=x) for x in
                               ([*odd, *step.shape.effects], [*step.shape.effects, *odd]) if odd]  # fmt: skip
        for shape, a in ((x, a) for x in each for a in x.accesses):
            for j, _ in enumerate(r.kernel.statements):
                own = [e for e in shape.effects if e.statement == j] or shape.effects
                rows = own[0].outer if own else ()
                times = t._times(j)
                ranges: list[tuple[int, int]] = []
                one = replace(shape, accesses=[replace(a, readers=(j,))])
                made = t._readers(one, [7], ranges)
                name = a.operand.tile.buffer
                there = (j, name) in t.numbers.before and len(rows) == len(times)
                assert len(made) == there
                if there:
                    first = t.numbers.before[j, name][0] - r.space.origin[name]
                    assert made[0][:3] == [7, first, len(times)]
                    assert ranges == [(row, n - 1) for row, n in zip(rows, times, strict=True)]
                    seen += bool(times) and j not in [e.statement for e in shape.effects]
    assert seen


@pytest.mark.parametrize("budget", [0, 1, 5])
def test_what_is_not_executed_is_not_accepted(budget: int) -> None:
    for compiled in (False, True):
        done = replayed(tiny_matmul(), budget=budget, compiled=compiled)
        text = f"more than {budget} steps: replay with smaller trips or a larger budget"
        assert [(v.obligation, v.kind, v.message) for v in done.found] == [(0, "budget", text)]
        assert done.steps == budget


# groups ---------------------------------------------------------------------------------------------------------------
def test_elements_that_are_not_written_alike_are_no_group() -> None:
    """Wherever in a row one of them has been written once more than the others."""
    s = tiny_matmul(16, 16, 16)
    f = finder(s, {})
    some = [(name, a) for of in f.prescribed.before.values() for name, a in of.items()]
    some += [(f.kernel.statements[i].dest.buffer, a) for (i, _), a in f.prescribed.adds.items()]
    assert {name for name, _ in some} == {"C"}
    base = f.find().wide
    assert base["C"] > 1
    for name, a in some:
        for at in (0, 1, base["C"] - 1, a.size - 1):
            a[at] += 1
            assert f.find().wide == {**base, name: 1}
            a[at] -= 1
    assert f.find().wide == base


def test_groups_of_homes_and_odd_bytes() -> None:
    base = tiny_matmul(16, 16, 16)
    whole = units_of()
    for strides, wide in (((64, 4), whole.wide["A"]), ((64, 8), 1), ((4,), 1), ((4, 64), 1), ((), 1)):
        f = finder(base, {})
        f.legality.buffers["A"] = f.legality.buffers["A"]._replace(home=replace(base.homes["A"], strides=strides))
        assert f.wide(f.operands([], SimpleNamespace()))["A"] == (16 if wide > 1 else 1)  # type: ignore[arg-type]
    f = finder(base, {})
    f.legality.buffers["A"] = f.legality.buffers["A"]._replace(home=None)
    assert f.wide([])["A"] == 16
    del f.prescribed.shapes["A"]
    assert f.wide([])["A"] == 1
    t = tile("A", [0, 0], [2, 4])
    odd = move("dma", "copy", t, at_home(base.homes["A"], t), Place("sp", "", lit(513), (64, 4)))
    assert units_of(call=seq(odd, base.call)).group["sp", ""] == (1, 16)
