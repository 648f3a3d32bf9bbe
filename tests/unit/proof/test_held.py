"""What registers hold, where elements of run-time sizes are touched, what must be aligned: by trying."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Access
from isam.proof.bounds import _address
from isam.proof.boxes import Box
from isam.proof.context import Context, Var
from isam.proof.geometry import CACHED, resolve
from isam.proof.legal import Legality
from isam.proof.points import check_points
from isam.proof.preimage import preimage, touched
from isam.proof.registers import Registers, _need, at_start
from isam.proof.sets import Isl
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Operand, Place, Schedule, Seq, Slot, Tile, Wait, distinct
from isam.system.groups import Replica
from tests.unit.proof.handmade import loop, seq, tiny_matmul
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.verdicts import on_record

V = Affine.of


# registers ------------------------------------------------------------------------------------------------------------
def machine() -> Any:
    """Commands ``set VALUE`` and ``need VALUE`` of a register; unit ``own`` is one of every instance of a core."""
    ins = {f"set {v}": SimpleNamespace(name=f"set {v}", sets={"r": v}, requires={}) for v in (0, 1)}
    ins |= {f"need {v}": SimpleNamespace(name=f"need {v}", sets={}, requires={"r": v}) for v in (0, 1)}
    core = SimpleNamespace(units=("own",))
    return SimpleNamespace(instructions=ins, cluster_of=lambda u: None, stream_of=lambda u: u, replicas={"core": core},
                           state={"r": SimpleNamespace(holds=lambda v: v in (0, 1))})  # fmt: skip


def commanding(choose: random.Random, deep: int, value: int) -> Node:
    """Mostly what is needed is what was set before."""
    what = choose.random()
    if not deep or what < 0.3:
        many = [(choose.choice(("need", "need", "set")), value if choose.random() < 0.75 else 1 - value)
                for _ in range(choose.randint(1, 2))]  # fmt: skip
        return seq(*(Issue(choose.choice(("u", "u", "u", "own")), f"{k} {v}", (), ()) for k, v in many))
    if what < 0.6:
        first = seq(Issue("u", f"set {value}", (), ())) if choose.random() < 0.5 else Seq()
        return seq(first, *(commanding(choose, deep - 1, value) for _ in range(2)))
    hi = choose.choice((lit(0), lit(1), lit(2), lit(3), V("T")))
    n = Loop(f"v{deep}", (Bound(lit(0)),), (Bound(hi),), 1, commanding(choose, deep - 1, value))
    if hi == lit(2) and choose.random() < 0.3:
        return replace(n, deal=Deal("core", 0, 1))
    for part in ("enter", "exit", "first", "last"):
        if choose.random() < 0.3 and (part in ("enter", "exit") or (hi.const > 1 and not hi.terms)):
            n = replace(n, **{part: commanding(choose, deep - 1, value)})
    return n


def missing(n: Node, env: dict[str, int], held: dict[str, Any], own: bool = True) -> bool:
    """Whether some command does not find what it needs, set by its own stream."""
    if isinstance(n, Issue):
        kind, value = n.instruction.split(" ")
        if kind == "set":
            held["r"] = int(value), n.unit
            return False
        return held.get("r") not in ((int(value), n.unit), (int(value), ""))
    if isinstance(n, Seq):
        return sum(missing(c, env, held) for c in n.children) > 0
    found, values = [], n.values(env)
    for at, v in enumerate(values):
        if n.deal is not None and held.get("r", (0, ""))[1] == "own":
            held.pop("r")  # of another instance
        part = n.first if at == 0 and n.first else n.last if v == values[-1] and n.last else n.body
        found += [missing(n.enter, env, held)] if at == 0 else []
        found.append(missing(part, {**env, n.var: v}, held))
    if values and n.deal is not None and held.get("r", (0, ""))[1] == "own":
        held.pop("r")
    return any([*found, missing(n.exit, env, held) if values else False])


@pytest.mark.parametrize("seed", range(3))
def test_registers_hold_what_is_needed(seed: int) -> None:
    """Whatever the run-time trips; how often it is seen, on record."""
    said, count = list[object](), Counter[tuple[bool, bool]]()
    for part in range(150):
        choose, out = random.Random(f"{seed} {part}"), Findings()
        tree = commanding(choose, 3, choose.choice((0, 1)))
        begin: dict[str, Any] = choose.choice(({}, {"r": (0, "")}, {"r": (1, "")}))
        walk: Any = Registers(SimpleNamespace(system=machine()))  # type: ignore[arg-type]
        after = walk.run(tree, dict(begin), out)
        ends = [dict(begin) for _ in range(4)]
        wrong = [missing(tree, {"T": n}, end) for n, end in enumerate(ends)]
        assert out.found or not any(wrong), part
        assert out.found or all(end.get(r) == v for end in ends for r, v in after.items())
        count[not out.found, not any(wrong)] += 1
        said.append((len(out.found), sorted(after.items())))
    assert count[True, True] > 20
    assert count[False, False] > 20
    on_record(f"held: registers {seed}", said)


def test_what_no_command_sets_is_known_at_the_start() -> None:
    """And a command that the machine does not have needs nothing."""
    system = machine()
    system.state = {n: SimpleNamespace(name=n, reset=v) for n, v in (("r", 1), ("q", 0), ("p", None))}
    for command, known in (("set 0", {"q": (0, "")}), ("need 0", {"r": (1, ""), "q": (0, "")}),
                           ("none", {"r": (1, ""), "q": (0, "")})):  # fmt: skip
        s: Any = SimpleNamespace(system=system, bind=Seq(), call=seq(Issue("u", command, (), ())))
        s.called = partial(Schedule.called, s)
        assert at_start(s) == known
        s.bind, s.call = s.call, s.bind
        assert at_start(s) == known
    out = Findings()
    assert Registers(s).run(Issue("u", "none", (), ()), {}, out) == {}
    assert not out.found


def test_calls_of_one_command_are_as_far_apart_as_a_register_says() -> None:
    def call(at: Affine | int) -> Issue:
        o = Operand("S", Tile("A", (lit(0),), (1,), (1,)), Place("sp", "", lit(at), (4,)), (0,))
        return Issue("u", "take", (), (o,))

    for places, need in (((0, 16, 32), 16), ((0, 16, 48), "one distance"), ((0, 16, 48, 56), "one distance"),
                         ((0,), None), ((0, V("v")), "one distance"), ((V("v"), V("v") + 8), 8)):  # fmt: skip
        calls = [call(at) for at in places]
        assert _need("distance S", calls[0], calls) == need
    assert _need("other", calls[0], calls) == "other"


# sizes ----------------------------------------------------------------------------------------------------------------
def points(b: Box, env: dict[str, int]) -> set[tuple[int, ...]]:
    return set(product(*(range(lo.evaluate(env), hi.evaluate(env)) for lo, hi in b)))


@pytest.mark.parametrize("seed", range(4))
def test_no_instance_is_missing_for_any_size(seed: int) -> None:
    choose, said, names = random.Random(seed), list[object](), ("i", "j")
    ctx = Context((Var("N", (Bound(lit(1)),), (Bound(lit(7)),), 1, Affine()),))
    for _ in range(80):
        rows = tuple(Affine.from_terms({**{n: choose.choice((-2, -1, 0, 1, 1, 2, 3)) for n in names},
                                        "N": choose.choice((0, 0, 1, -1))}, choose.randint(-2, 2))
                     for _ in names)  # fmt: skip
        sides = V("N") + choose.choice((0, 2)), choose.choice((lit(4), V("N")))
        access, domain = Access("x", rows), tuple((lit(0), hi) for hi in sides)
        wanted = tuple((lo := V("N", choose.choice((0, 0, 1, 2))) + choose.randint(-2, 3),
                        lo + choose.choice((lit(1), lit(3), V("N"), V("N", 2)))) for _ in rows)  # fmt: skip
        found = preimage(access, wanted, names, domain, ctx)
        around = touched(access, domain, names)
        for n in range(1, 8):
            every = points(domain, {"N": n})
            at = {p: tuple(r.evaluate({"N": n, **dict(zip(names, p, strict=True))}) for r in rows) for p in every}
            some = {p for p, e in at.items() if e in points(wanted, {"N": n})}
            assert some <= points(found, {"N": n}) <= every
            assert set(at.values()) <= points(around, {"N": n})
        said.append(found)
    on_record(f"held: sizes {seed}", said)


# places ---------------------------------------------------------------------------------------------------------------
def test_what_must_be_aligned() -> None:
    """As the instruction asks, and the memory where it has no cells and the caller does not choose the address."""
    s = tiny_matmul()
    for home, cells, base, asked in product((True, False), (None, 8), ("", "A", "slot"), (1, 4, 32)):
        m = replace(s.system.memories["sp"], home=home, align=16, cells=cells, cell=64 if cells else None)
        system = replace(s.system, memories={**s.system.memories, "sp": m})
        made = replace(s, system=system, workspace=(Slot("slot", "sp", 256),))
        issue = next(n for n in distinct(s.call) if isinstance(n, Issue))
        for at in (0, 2, 4, 8, 16, 24, 32):
            tile, out = Tile("C", (lit(0), lit(0)), (1, 1), (1, 1)), Findings()
            o = Operand("C", tile, Place("sp", base, lit(at), (16, 4)), (0, 1))
            _address(o, Legality(made), Context(), Isl(), issue, out, asked)
            need = max(asked, 16 if cells is None and not (base and home) else 1)
            assert [v.kind for v in out.found] == (["align"] if at % need else [])


def test_a_cached_memory_is_the_one_behind_it() -> None:
    def of(**behind: str) -> Any:
        kinds = {n: SimpleNamespace(kind=CACHED if b else "managed", of=b) for n, b in behind.items()}
        return SimpleNamespace(memories=kinds)

    chain = of(l1="l2", l2="ram", ram="", sp="")
    assert [resolve(chain, m) for m in ("l1", "l2", "ram", "sp", "none")] == ["ram", "ram", "ram", "sp", "none"]
    assert resolve(of(a="b", b="a"), "a") in ("a", "b")


def test_waits_for_all_instances_are_for_what_has_instances() -> None:
    s = tiny_matmul()
    system = replace(s.system, replicas={"core": Replica("core", 2, ("ra", "rb"), ("mm",))})
    issue = next(n for n in distinct(s.call) if isinstance(n, Issue))
    for wait, right in ((Wait("mm", 0, True), True), (Wait("dma", 0, True), False), (Wait("mm", 1), True),
                        (Wait("dma", 0), True), (Wait("mm", -1), False), (Wait("none", 0), False)):  # fmt: skip
        out = Findings()
        Legality(replace(s, system=system)).step(replace(issue, after=(wait,)), out)
        assert [v.kind for v in out.found if v.kind == "wait"] == ([] if right else ["wait"])


@pytest.mark.parametrize("alone", [False, True])
def test_tiles_leave_their_buffers_wherever_the_step_stands(alone: bool) -> None:
    s = tiny_matmul()
    moves = [n for n in distinct(s.call) if isinstance(n, Issue) and n.is_move]
    operands = []
    for o in moves[0].operands:
        far = replace(o, tile=o.tile._replace(start=(o.tile.start[0] + 8, o.tile.start[1])))
        by = 8 * o.place.strides[0] if o.place.base else 0
        operands.append(replace(far, place=replace(o.place, offset=o.place.offset + by)))
    issue = replace(moves[0], operands=tuple(operands))
    body: Node = issue if alone else seq(issue)
    around = loop("m", 0, 4, 4, loop("p", 0, 4, 4, body))
    found = {(v.obligation, v.kind) for v in check_points(replace(s, call=seq(s.call, around)))}
    assert found == {(7, "bounds")}
