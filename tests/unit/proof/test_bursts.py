"""Commands that carry out several calls, and memories with rows: forged ones are refused (obligations 9, 10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from benchmarks.gemmini import PRODUCT, counted, executed, scheduled
from isam.codegen.simulator import SimulationFault, simulate
from isam.cost.timeline import TICK, timeline
from isam.ir import oracle
from isam.ir.affine import Affine
from isam.ir.instruction import Burst
from isam.proof.context import Var
from isam.proof.facts import Facts
from isam.proof.joined import check_joined
from isam.proof.legal import Legality
from isam.proof.progressions import progressions
from isam.proof.sets import Isl
from isam.proof.state import Fact
from isam.proof.tree import check_tree
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Issue, Node, Operand, Place, Schedule, Seq, distinct
from isam.system.graph import System
from tests.unit.proof.test_dealt import edited

Change = Callable[[list[Issue]], list[Issue]]


@cache
def good() -> Schedule:
    return scheduled(PRODUCT, {"M": 32, "N": 64, "K": 128})


def bursts(schedule: Schedule) -> list[list[Issue]]:
    out: list[list[Issue]] = []
    for seq in (n for n in distinct(schedule.call) if isinstance(n, Seq)):
        for c in seq.children:
            if isinstance(c, Issue) and c.joined:
                out[-1].append(c)
            elif isinstance(c, Issue):
                out.append([c])
    return [b for b in out if len(b) > 1]


def changed(change: Change) -> Schedule:
    """Every burst of moves changed."""

    def edit(n: Node) -> Node:
        if not isinstance(n, Seq):
            return n
        runs: list[list[Node]] = []
        for c in n.children:
            if isinstance(c, Issue) and c.joined:
                runs[-1].append(c)
            else:
                runs.append([c])
        return Seq(tuple(c for r in runs for c in (change(r) if len(r) == 4 else r)))  # type: ignore[arg-type]

    return edited(good(), edit)


def moved(issue: Issue, operand: str, by: int) -> Issue:
    def one(o: Operand) -> Operand:
        return replace(o, place=replace(o.place, offset=o.place.offset + by)) if o.name == operand else o

    return replace(issue, operands=tuple(map(one, issue.operands)))


def test_what_lies_side_by_side_comes_by_one_command() -> None:
    found = bursts(good())
    assert max(len(b) for b in found) == 4
    assert check_tree(good()) == []
    for b in found:
        starts = [i.operands[0].place.offset for i in b]
        assert [s - starts[0] for s in starts] == [Affine((), 16 * n) for n in range(len(b))]


def placed(issue: Issue, change: Callable[[Place], Place]) -> Issue:
    """Its last operand elsewhere."""
    *others, o = issue.operands
    return replace(issue, operands=(*others, replace(o, place=change(o.place))))


def test_calls_of_one_command_lie_alike() -> None:
    """Judged by its calls alone: other strides, bases and cells at the same distances."""
    s = good()
    facts = Facts(Legality(s), Isl())
    some = [b for b in bursts(s) if len(b) == 4]
    assert some

    def found(calls: list[Issue]) -> list[str]:
        out = Findings()
        check_joined(replace(s, bind=Seq(), call=Seq(tuple(calls))), facts, out)
        return [v.message for v in out.found if v.kind == "burst"]

    for b in some[:3]:
        assert found(b) == []
        for change in (lambda p: replace(p, strides=(p.strides[0] + 1, *p.strides[1:])),
                       lambda p: replace(p, base=p.base + "x"), lambda p: replace(p, cell=0)):  # fmt: skip
            assert any("lie at other distances" in why for why in found([*b[:-1], placed(b[-1], change)]))
        elsewhere = next(m for m in s.system.memories if m not in {o.place.memory for o in b[0].operands})
        assert found([*b[:-1], placed(b[-1], lambda p, m=elsewhere: replace(p, memory=m))])


FORGED: dict[str, Change] = {
    "one too many": lambda b: [*b, replace(b[-1], joined=True)],
    "another size": lambda b: [*b[:-1], replace(b[-1], sizes=(("M", 16), ("N", 8)))],
    "another unit": lambda b: [*b[:-1], replace(b[-1], unit="store")],
    "another order": lambda b: [replace(c, joined=n > 0) for n, c in enumerate((b[0], b[2], b[1], b[3]))],
    "other distances in the scratchpad": lambda b: [*b[:-1], moved(b[-1], "D", 16)],
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_burst_is_refused(name: str) -> None:
    assert {v.obligation for v in check_tree(changed(FORGED[name]))} & {2 if name == "another size" else 10}


def test_a_gap_is_refused_because_the_distance_is_fixed() -> None:
    found = check_tree(changed(lambda b: [b[0], b[2]]))
    assert any(v.kind == "burst" and "distances" in str(v) for v in found)


def smaller(system: System, most: int) -> System:
    ins = system.instructions["mvin_i8"]
    table = {n: system.instructions[n] for n in system.instructions}
    return replace(system, instructions={**table, "mvin_i8": replace(ins, burst=Burst(most))})


def test_the_description_says_how_many() -> None:
    good_one = good()
    assert any(v.kind == "burst" for v in check_tree(replace(good_one, system=smaller(good_one.system, 3))))


def test_a_burst_is_set_up_once() -> None:
    """Commands take 40 cycles and a cycle for 16 bytes."""
    work = timeline(good()).units["load"]
    told = counted(good())
    configured = sum(n for i, n in executed(good().call, 1) if i.unit == "load" and i.configures)
    assert (work.calls, told.fills) == (told.commands + configured, 8)
    assert round(work.busy * TICK * 1e9) == (told.commands - 8) * 40 + told.bytes // 16 + 8 * 16 + configured


def test_rows_are_kept() -> None:
    """An operand of 16 x 16 bytes that lies in 128 bytes a row, or along the wrong dimension."""
    for strides in ((8, 1), (1, 16)):

        def edit(n: Node, strides: tuple[int, int] = strides) -> Node:
            if not isinstance(n, Issue) or not n.instruction.startswith("compute"):
                return n
            a = next(o for o in n.operands if o.name == "A")
            forged = replace(a, place=replace(a.place, strides=strides))
            return replace(n, operands=tuple(forged if o is a else o for o in n.operands))

        forged = edited(good(), edit)
        assert any(v.kind == "row" for v in check_tree(forged))
        with pytest.raises(SimulationFault, match=r"row by row|stride"):
            simulate(forged, oracle.inputs(good().kernel, {}, 0))


def fact(start: int, offset: int, width: int = 16) -> Fact:
    side = (Affine((), start), Affine((), start + width))
    return Fact("A", ("spad", ""), None, Affine((), offset), (16, 1), 1, ((Affine(), Affine((), 16)), side))


def test_facts_at_equal_distances_are_one() -> None:
    ((_, made),) = progressions([fact(16 * n, 2048 * n) for n in (2, 0, 1, 3)])
    (v,) = made.over
    assert (v.step, v.hi[0].expr.const, made.offset.coefficient(v.name)) == (16, 48, 128)


def test_facts_at_equal_distances_are_one_wherever_else_the_same_elements_lie() -> None:
    """Random machine 92974: two tiles, each in two places, were told as two that do not belong together."""
    twice = [fact(16 * n, at + 2048 * n) for at in (0, 300) for n in range(3)]
    told = {(f.offset.const, s.over[0].hi[0].expr.const, s.offset.coefficient("~0")) for f, s in progressions(twice)}
    assert {(0, 32, 128), (300, 32, 128)} <= told


def test_a_narrower_tile_at_the_end_belongs_to_the_others_as_far_as_it_goes() -> None:
    """Random machine 94052: of three tiles the last one was half as wide."""
    made = progressions([fact(0, 0), fact(16, 2048), fact(32, 4096, 5)])
    told = {(s.over[0].hi[0].expr.const, (s.box[1][1] - s.box[1][0]).const) for _, s in made}
    assert told == {(16, 16), (32, 5)}


def quantified(first: int, last: int, step: int, off: int = 0) -> Fact:
    """Tiles of a loop from ``first`` to ``last``, ``off`` elements on; 128 bytes for 16 elements."""
    v = Var("c", (Bound(Affine((), first)),), (Bound(Affine((), last)),), step, Affine((), first))
    side = (Affine.of("c", 1, off), Affine.of("c", 1, off + 16))
    box = ((Affine(), Affine((), 16)), side)
    return Fact("A", ("spad", ""), None, Affine.of("c", 8, 8 * off), (16, 1), 1, box, (v,))


@pytest.mark.parametrize(
    ("tiles", "alone", "wide"),
    [
        ([quantified(16, 48, 16)], fact(64, 512, 3), {(16, 64, 3)}),
        ([quantified(16, 48, 16)], fact(64, 513, 3), set()),
        ([quantified(16, 48, 16)], fact(80, 640, 3), set()),
        ([quantified(16, 48, 16)], fact(0, 0), {(0, 48, 16)}),
        ([quantified(16, 48, 32), quantified(16, 48, 32, 16)], fact(80, 640, 3), {(16, 64, 16), (16, 80, 3)}),
    ],
    ids=("the rest", "elsewhere", "not the next", "before", "several in a turn"),
)
def test_a_tile_beyond_the_loop_belongs_to_those_of_the_loop(
    tiles: list[Fact], alone: Fact, wide: set[tuple[int, int, int]]
) -> None:
    """Random machine 106719: the last, narrower tile of a row was moved after the loop that moves the others."""
    told = set()
    for _, s in progressions([*tiles, alone]):
        (v,) = s.over
        (lo, hi), at = s.box[1], s.starts[1]
        first, last = v.lo[0].expr.const + at, v.hi[0].expr.const + at
        assert s.offset.coefficient(v.name) == 8
        assert s.base + 8 * v.lo[0].expr.const == 8 * first
        told.add((first, last, (hi - lo).const))
    assert told == wide


def test_facts_that_are_apart_in_two_dimensions_are_none() -> None:
    sides = [((Affine((), n), Affine((), n + 1)), (Affine((), 16 * n), Affine((), 16 * n + 16))) for n in range(3)]
    diagonal = [Fact("A", ("spad", ""), None, Affine((), 48 * n), (16, 1), 1, box) for n, box in enumerate(sides)]
    assert progressions(diagonal) == []


@pytest.mark.parametrize("offsets", [(0, 2048, 4096, 6145), (0, 2048), (5, 5, 5), (0, 2049, 4098)])
def test_facts_at_other_distances_are_not(offsets: tuple[int, ...]) -> None:
    """Of four, three; of two in a step of 24, two; a step that is no multiple of the distance: none."""
    made = progressions([fact(16 * n, o) for n, o in enumerate(offsets)])
    sizes = [s.over[0].hi[0].expr.const // 16 + 1 for _, s in made]
    assert sizes == {(0, 2048, 4096, 6145): [3], (0, 2048): [2], (5, 5, 5): [3], (0, 2049, 4098): []}[offsets]
