"""What may run at one time, by trying: iterations of random dealt loops, random waits between random calls."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, product

import pytest

from isam.ir.affine import Affine
from isam.proof.dealt import Dealt
from isam.proof.facts import Facts
from isam.proof.legal import Legality
from isam.proof.races import check_races
from isam.proof.sets import Isl
from isam.proof.violation import Findings
from isam.schedule.tree import Deal, Issue, Node, Place, Schedule, Seq, Wait
from isam.system.groups import Replica
from tests.unit.proof.handmade import at_home, home, loop, move, seq, tile, tiny_matmul
from tests.unit.proof.handmade_machines import lit

CORES = Replica("core", 4, ("sp", "ra", "rb"), ("mm", "dma"))
Touched = set[tuple[str, int, int, bool]]  # a buffer's element, and whether it is written


def block(choose: random.Random, names: tuple[str, ...], s: Schedule) -> Issue:
    """A move between home and scratchpad of some rows of A or C."""
    buffer, rows = choose.choice("AAC"), choose.choice((1, 1, 2))
    start = sum((Affine.of(n, choose.choice((0, 1, 1, 2, 4))) for n in names), lit(choose.choice((0, 0, 4, 8, 16))))
    t = tile(buffer, [start, choose.choice((0, 4))], [rows, 4])
    there, own = at_home(home(s.kernel, "dram", buffer), t), Place("sp", "", lit(0), (16, 4))
    return move("dma", "copy", t, there, own) if choose.random() < 0.5 else move("dma", "copy", t, own, there)


def body(choose: random.Random, names: tuple[str, ...], s: Schedule, deep: int) -> Node:
    what = choose.random()
    if not deep or what < 0.4:
        return block(choose, names, s)
    if what < 0.6:
        return seq(*(body(choose, names, s, deep - 1) for _ in range(2)))
    var, trip, step = f"v{deep}", choose.randint(1, 3), choose.choice((1, 2))
    parts = {k: body(choose, (*names, var), s, deep - 1) for k in ("first", "last") if choose.random() < 0.4}
    parts = parts if trip >= len(parts) else {}
    parts |= {k: body(choose, names, s, deep - 1) for k in ("enter", "exit") if choose.random() < 0.2}
    return loop(var, 0, trip * step, step, body(choose, (*names, var), s, deep - 1), **parts)


def touches(n: Node, env: dict[str, int]) -> Touched:
    if isinstance(n, Issue):
        out: Touched = set()
        for o in n.operands:
            if o.place.memory == "dram":
                row, column = (x.evaluate(env) for x in o.tile.start)
                out |= {(o.tile.buffer, row + r, column + c, o.name == "D")
                        for r, c in product(*map(range, o.tile.shape))}  # fmt: skip
        return out
    if isinstance(n, Seq):
        return set().union(*(touches(c, env) for c in n.children))
    values = n.values(env)
    out = touches(n.enter, env) | touches(n.exit, env) if values else set()
    for i, v in enumerate(values):
        part = n.first if i == 0 and n.first else n.last if i == len(values) - 1 and n.last else n.body
        out |= touches(part, {**env, n.var: v})
    return out


def meet(one: Touched, two: Touched) -> bool:
    written = {x[:3] for x in one if x[3]}
    return any(x[:3] in written for x in two)


@pytest.mark.parametrize("seed", range(8))
def test_dealt_iterations_that_meet_are_found(seed: int) -> None:
    s = tiny_matmul(64, 8, 8)
    s = replace(s, system=replace(s.system, replicas={"core": CORES}))
    facts, apart, met, found_apart = Facts(Legality(s), Isl()), 0, 0, 0
    for part in range(40):
        choose = random.Random(f"{seed} {part}")
        trip, step = choose.randint(2, 4), choose.choice((1, 2, 4))
        dealt = replace(loop("d", 0, trip * step, step, body(choose, ("d",), s, 3)), deal=Deal("core", 0, 1))
        out = Findings()
        Dealt(replace(s, call=dealt), facts, out).check()
        each = [touches(dealt.body, {"d": v}) for v in range(0, trip * step, step)]
        wrong = any(meet(a, b) or meet(b, a) for a, b in combinations(each, 2))
        met, apart, found_apart = met + wrong, apart + (not wrong), found_apart + (not out.found)
        assert not wrong or out.found
        assert all((v.obligation, v.kind) == (8, "deal") for v in out.found)
    assert met > 5
    assert 2 * found_apart > apart > 5


# races ---------------------------------------------------------------------------------------------------------------
def called(choose: random.Random) -> list[Issue]:
    """Calls of two units on a few places of the scratchpad, with waits."""
    out: list[Issue] = []
    for _ in range(choose.randint(2, 6)):
        unit = choose.choice(("dma", "mm"))
        t = tile("A", [0, 0], [1, choose.choice((1, 2))])
        one, two = (Place("sp", "", lit(at), (16, 4)) for at in choose.sample((0, 4, 16, 64, 128, 192), 2))
        waits = tuple(Wait(u, choose.choice((0, 0, 1, 2))) for u in ("dma", "mm") if choose.random() < 0.6)
        out.append(replace(move("dma", "copy", t, one, two), unit=unit, after=waits))
    return out


def races(calls: list[Issue]) -> bool:
    """Whether two calls that touch one byte, one of them writing, may run at once: by every pair of them."""
    before: list[set[int]] = []
    on: dict[str, list[int]] = {"dma": [], "mm": []}
    starts: dict[str, set[int]] = {"dma": set(), "mm": set()}  # finished when the last call of a unit started
    wrong = False
    for i, c in enumerate(calls):
        done = set(starts[c.unit])
        for w in c.after:
            for k in on[w.stream][: len(on[w.stream]) - w.lag]:
                done |= {k} | before[k]
        before.append(done)
        for k in range(i):
            wrong = wrong or (k not in done and clash(calls[k], c))
        on[c.unit].append(i)
        starts[c.unit] = done
    return wrong


def clash(one: Issue, two: Issue) -> bool:
    def bytes_of(n: Issue, name: str) -> set[int]:
        o = next(o for o in n.operands if o.name == name)
        return set(range(o.place.offset.const, o.place.offset.const + 4 * o.tile.shape[1]))

    (a, b), (c, d) = ((bytes_of(n, "D"), bytes_of(n, "S")) for n in (one, two))
    return bool(a & (c | d) or c & b)


@pytest.mark.parametrize("seed", range(6))
def test_races_are_those_that_no_wait_forbids(seed: int) -> None:
    s, said = tiny_matmul(), set()
    for part in range(80):
        calls = called(random.Random(f"{seed} {part}"))
        found, true = bool(check_races(replace(s, call=Seq(tuple(calls))))), races(calls)
        assert found == true, calls
        said.add(true)
    assert said == {True, False}
