"""Every field of a step, a slot, a home and a loop, wrong by one and in every other way there is: what is said of each.

What is said is on record: which faults are found, under which obligation, with which words. That no wrong schedule is
accepted is shown where they are carried out (``tests/property/test_schedule_mutants.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.proof.bounds import check_bounds
from isam.proof.context import Context, loop_var, of_sizes
from isam.proof.facts import Facts
from isam.proof.flat import Replay
from isam.proof.flat_step import compile_step
from isam.proof.joined import _burst, check_joined
from isam.proof.legal import Legality
from isam.proof.points import check_form, check_loop, check_points
from isam.proof.sets import Isl
from isam.proof.violation import Findings
from isam.proof.workspace import check_workspace
from isam.schedule.tree import Bound, Issue, Loop, Node, Operand, Schedule, Seq, children, distinct
from tests.unit.proof import test_bursts, test_dealt, test_registers
from tests.unit.proof.handmade import running_sum, tiny_matmul, vec_matmul
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_instances import relu
from tests.unit.proof.test_signature import widened
from tests.unit.proof.verdicts import on_record

SOME: dict[str, Callable[[], Schedule]] = {
    "tiny": tiny_matmul, "vec": vec_matmul, "vec bound": lambda: vec_matmul(bound=True), "recurrence": running_sum,
    "slots": relu, "a number": widened, "dealt": test_dealt.good, "registers": test_registers.good,
}  # fmt: skip


def moved(x: tuple[Any, ...], d: int, by: int) -> tuple[Any, ...]:
    return (*x[:d], x[d] + by, *x[d + 1 :])


def of_operand(o: Operand, s: Schedule) -> Iterator[tuple[str, Operand]]:
    t, p = o.tile, o.place
    for d in range(len(t.shape)):
        for by in (-1, 1):
            yield f"start {d} {by}", replace(o, tile=t._replace(start=moved(t.start, d, by)))
            yield f"shape {d} {by}", replace(o, tile=t._replace(shape=moved(t.shape, d, by)))
            yield f"steps {d} {by}", replace(o, tile=t._replace(steps=moved(t.steps, d, by)))
        for by in (-p.strides[d], -1, 4, p.strides[d], -2 * p.strides[d]):
            yield f"strides {d} {by}", replace(o, place=replace(p, strides=moved(p.strides, d, by)))
    for by in (-4, -1, 1, 4, 16, 64, 1 << 20):
        yield f"offset {by}", replace(o, place=replace(p, offset=p.offset + by))
    for memory in (*s.system.memories, "none"):
        yield f"memory {memory}", replace(o, place=replace(p, memory=memory))
    for base in ("", "Q", *(b.name for b in s.cover.kernel.buffers), *(w.name for w in s.workspace)):
        yield f"base {base}", replace(o, place=replace(p, base=base))
    for cell in (None, 0, 1, 7, 8, -1):
        yield f"cell {cell}", replace(o, place=replace(p, cell=cell))
    for dims in (o.dims[::-1], o.dims[1:], (*o.dims, None), (None,) * len(o.dims), tuple(d and d - 1 for d in o.dims)):
        yield f"dims {dims}", replace(o, dims=dims)
    for buffer in (*(b.name for b in s.cover.kernel.buffers), "none"):
        yield f"buffer {buffer}", replace(o, tile=t._replace(buffer=buffer))
    yield "rank", replace(o, tile=t._replace(start=t.start[1:]))
    yield "rank of strides", replace(o, place=replace(p, strides=p.strides[1:]))
    yield "name", replace(o, name=f"{o.name}x")


def of_step(n: Issue, s: Schedule) -> Iterator[tuple[str, Issue]]:
    for i, o in enumerate(n.operands):
        for what, new in of_operand(o, s):
            yield f"{o.name} {what}", replace(n, operands=(*n.operands[:i], new, *n.operands[i + 1 :]))
    for i, (name, v) in enumerate(n.sizes):
        for new in (0, v - 1, v + 1, 2 * v, 99):
            yield f"{name} {new}", replace(n, sizes=(*n.sizes[:i], (name, new), *n.sizes[i + 1 :]))
    for i, (name, at) in enumerate(n.point):
        for by in (-1, 1, 1000):
            yield f"point {name} {by}", replace(n, point=(*n.point[:i], (name, at + by), *n.point[i + 1 :]))
        yield f"point without {name}", replace(n, point=(*n.point[:i], *n.point[i + 1 :]))
    yield from ((f"unit {u}", replace(n, unit=u)) for u in (*s.system.units, "none"))
    yield from ((f"instruction {i}", replace(n, instruction=i)) for i in (*list(s.system.instructions)[:6], "none"))
    yield from ((f"nest {k}", replace(n, nest=k)) for k in (None, -1, *range(len(s.nests) + 1)))
    yield "operands turned", replace(n, operands=n.operands[::-1])
    yield "an operand less", replace(n, operands=n.operands[1:])
    yield "a size less", replace(n, sizes=n.sizes[1:])


def steps(n: Node, vars_: tuple[Any, ...]) -> Iterator[tuple[Issue, tuple[Any, ...]]]:
    """With the variables around, outermost first."""
    if isinstance(n, Issue):
        yield n, vars_
    for c in children(n):
        own = isinstance(n, Loop) and c is not n.enter and c is not n.exit
        yield from steps(c, (*vars_, loop_var(n)) if own and isinstance(n, Loop) else vars_)


@pytest.mark.parametrize("name", SOME)
def test_every_field_of_a_step(name: str) -> None:
    s, said, seen, kept = SOME[name](), [], set[Any](), []
    lg, isl, sizes = Legality(s), Isl(), of_sizes(s.cover.kernel.syms)
    replay = Replay(s, {y.name: 2 for y in s.cover.kernel.syms}, Findings())
    for phase, tree in (("bind", s.bind), ("call", s.call)):
        replay.phase = phase
        for n, vars_ in steps(tree, ()):
            key = phase, n.instruction, tuple((o.tile.buffer, o.place.memory) for o in n.operands)
            if key in seen or len(seen) > 8:
                continue
            seen.add(key)
            ctx: Context = lg.context((*sizes.vars, *vars_))
            for what, new in [("as it is", n), *of_step(n, s)]:
                kept.append(new)  # steps are known by identity
                out = Findings()
                if lg.step(new, out):
                    for when in ("bind", "call"):
                        check_bounds(new, lg, ctx, isl, when, out)
                    compile_step(new, replay, out)
                said += [f"{n.instruction}: {what}", *map(str, out.found)]
    on_record(f"steps: {name}", said)


def test_a_step_is_judged_by_itself_however_many_are_like_it() -> None:
    """One after another that differs in the rank of its first element only: no step shares a verdict with it."""
    s = tiny_matmul()
    n = next(n for n in distinct(s.call) if isinstance(n, Issue))
    (o, *rest) = n.operands
    short = replace(n, operands=(replace(o, tile=o.tile._replace(start=o.tile.start[1:])), *rest))
    for call in (Seq((s.call, short)), Seq((short, s.call))):
        assert (7, "rank") in {(v.obligation, v.kind) for v in check_points(replace(s, call=call))}


# what stands around steps ---------------------------------------------------------------------------------------------
def workspaces(s: Schedule) -> Iterator[tuple[str, Schedule]]:
    yield "as it is", s
    for i, w in enumerate(s.workspace):

        def slot(i: int = i, w: Any = w, **to: Any) -> Schedule:
            return replace(s, workspace=(*s.workspace[:i], replace(w, **to), *s.workspace[i + 1 :]))

        for memory in (*s.system.memories, "none"):
            yield f"{w.name} in {memory}", slot(memory=memory)
        for size in (-1, 0, w.bytes - 1, w.bytes + 1, 1 << 40):
            yield f"{w.name} of {size}", slot(bytes=size)
        for align in (0, 1, 3, w.align + 1, 2 * w.align):
            yield f"{w.name} at {align}", slot(align=align)
        for called in ("A", "x", "T"):
            yield f"{w.name} called {called}", slot(name=called)
        yield f"{w.name} twice", replace(s, workspace=(*s.workspace, w))
        yield f"{w.name} gone", replace(s, workspace=(*s.workspace[:i], *s.workspace[i + 1 :]))
    for name, home in s.homes.items():

        def at(name: str = name, home: Any = home, **to: Any) -> Schedule:
            return replace(s, homes={**s.homes, name: replace(home, **to)})

        for d in range(len(home.strides)):
            for by in (-1, 1, home.strides[d]):
                yield f"{name} strides {d} {by}", at(strides=moved(home.strides, d, by))
        yield f"{name} turned", at(strides=home.strides[::-1])
        yield f"{name} without rank", at(strides=home.strides[1:])
        yield f"{name} with more rank", at(strides=(*home.strides, 4))
        for offset in (lit(4), lit(-4), Affine.of("v")):
            yield f"{name} at {offset}", at(offset=offset)
        for base in ("", "Q", *(w.name for w in s.workspace)):
            yield f"{name} in {base}", at(base=base)
        for memory in s.system.memories:
            yield f"{name} in {memory}", at(memory=memory)
        yield f"{name} nowhere", replace(s, homes={k: v for k, v in s.homes.items() if k != name})
    for m in s.system.memories.values():
        for capacity in (0, 8, 64, m.capacity // 2):
            less = {**s.system.memories, m.name: replace(m, capacity=capacity)}
            yield f"{m.name} of {capacity}", replace(s, system=replace(s.system, memories=less))


@pytest.mark.parametrize("name", ["tiny", "vec", "vec bound", "recurrence", "slots", "a number", "dealt"])
def test_every_field_of_slots_and_homes(name: str) -> None:
    said = []
    for what, s in workspaces(SOME[name]()):
        out = Findings()
        check_workspace(s, Legality(s), out)
        said += [what, *map(str, out.found)]
    on_record(f"workspace: {name}", said)


def test_loops_that_are_none() -> None:
    """A positive step, bounds with positive divisors, and an iteration for each body that runs once."""
    body = Seq()
    good = Loop("v", (Bound(lit(0)),), (Bound(lit(8)),), 4, body)
    none = (11, "form", "loop 'v' has no bounds or no positive step")

    def found(n: Loop) -> list[tuple[int, str, str]]:
        out = Findings()
        check_loop(n, out)
        s = replace(tiny_matmul(), call=Seq((tiny_matmul().call, n)))
        whole = check_form(s, Legality(s)).found
        assert {v.kind for v in out.found} <= {v.kind for v in whole}
        return [(v.obligation, v.kind, v.message) for v in out.found]

    for n, said in (
        (good, []), (replace(good, step=1), []), (replace(good, step=0), [none]), (replace(good, step=-1), [none]),
        (replace(good, lo=()), [none]), (replace(good, hi=()), [none]), (replace(good, lo=(Bound(lit(0), 0),)), [none]),
        (replace(good, hi=(Bound(lit(8), 0),)), [none]), (replace(good, hi=(Bound(lit(8)), Bound(lit(9), -1))), [none]),
        (replace(good, first=body, last=body), []), (replace(good, first=body), []),
        (replace(good, hi=(Bound(lit(4)),), first=body), []), (replace(good, hi=(Bound(lit(4)),), last=body), []),
        (replace(good, hi=(Bound(lit(4)),), first=body, last=body),
         [(11, "trip", "loop 'v' has 2 peeled bodies and a trip of 1")]),
        (replace(good, hi=(Bound(lit(0)),), last=body), [(11, "trip", "loop 'v' has 1 peeled bodies and a trip of 0")]),
        (replace(good, hi=(Bound(Affine.of("N")),), first=body),
         [(11, "trip", "loop 'v' has 1 peeled bodies and a trip of None")]),
        (replace(good, hi=(Bound(Affine.of("N")),)), []),
    ):  # fmt: skip
        assert found(n) == said


# joined calls ---------------------------------------------------------------------------------------------------------
def joined(call: Node, s: Schedule) -> list[str]:
    """Of steps that are right by themselves: others are refused before."""
    s = replace(s, call=call)
    out, lg = Findings(), Legality(s)
    if not all(lg.step(n, out) for n in distinct(call) if isinstance(n, Issue)):
        return ["refused before"]
    check_joined(s, Facts(lg, Isl()), out)
    return [str(v) for v in out.found]


def test_commands_of_several_calls() -> None:
    """A burst with every field of its second call changed; with more, fewer, or at other distances."""
    s = test_bursts.good()
    said: list[Any] = []
    burst = next(b for b in test_bursts.bursts(s) if b[0].is_move and len(b) > 2)
    head, second, *rest = burst
    assert joined(Seq(tuple(burst)), s) == []
    for what, new in of_step(second, s):
        said += [what, *joined(Seq((head, replace(new, joined=True), *rest)), s)]
    most = s.system.instructions[head.instruction].burst.most
    gap = tuple(b - a for a, b in zip(head.operands[0].tile.start, second.operands[0].tile.start, strict=True))
    far = {o.name: b.place.offset - o.place.offset for o, b in zip(head.operands, second.operands, strict=True)}
    for count in (most, most + 1):
        many = [replace(head, joined=k > 0, operands=tuple(
            replace(o, place=replace(o.place, offset=o.place.offset + far[o.name] * k), tile=o.tile._replace(
                start=tuple(x + y * k for x, y in zip(o.tile.start, gap, strict=True))))
            for o in head.operands)) for k in range(count)]  # fmt: skip
        found = joined(Seq(tuple(many)), s)
        assert bool(found) == (count > most)
        said += found
    same = tuple(replace(o, place=replace(o.place, memory=head.operands[0].place.memory)) for o in head.operands)
    said += joined(Seq((replace(head, operands=same), replace(head, operands=same, joined=True))), s)
    apart = replace(second, operands=tuple(replace(o, place=replace(o.place, offset=o.place.offset + Affine.of("zz")))
                                           for o in second.operands))  # fmt: skip
    said += joined(Seq((head, apart)), s)
    said += joined(second, s)
    said += joined(Seq((second, head)), s)
    said += joined(Loop("v", (Bound(lit(0)),), (Bound(lit(4)),), 1, second), s)
    said += joined(Seq((head, Seq(), second)), s)
    said += joined(Seq((head, replace(second, instruction="none"))), s)
    assert len(said) > 20
    on_record("joined: bursts", said)


def test_what_one_command_may_hold() -> None:
    """The calls of a burst beside each other, whatever else is wrong with them."""
    s = test_bursts.good()
    burst = next(b for b in test_bursts.bursts(s) if b[0].is_move and len(b) > 2)
    head, second, *_ = burst

    def found(first: Issue, then: Issue) -> list[str]:
        out = Findings()
        _burst(s.system, [first], then, out)
        assert {(v.obligation, v.kind) for v in out.found} <= {(10, "burst")}
        return [v.message for v in out.found]

    assert found(head, second) == []
    ins, other = head.instruction, next(i for i in s.system.instructions if i != head.instruction)
    two = f"one command holds {ins} and {{}} or two sizes of one"
    assert found(head, replace(second, instruction=other)) == [two.format(other)]
    assert found(head, replace(second, unit="none")) == [two.format(ins)]
    assert found(head, replace(second, sizes=tuple((n, v + 1) for n, v in second.sizes))) == [two.format(ins)]
    one = tuple(replace(o, place=replace(o.place, memory="sp")) for o in head.operands)
    text = f"the calls of one command of '{ins}' may read what others of it write"
    assert text in found(replace(head, operands=one), replace(second, operands=one))
    for change in ({"base": "zz"}, {"strides": (1, 2)}, {"cell": 1}, {"memory": "zz"}):
        for i, o in enumerate(second.operands):
            moved_ = replace(o, place=replace(o.place, **change))
            new = replace(second, operands=(*second.operands[:i], moved_, *second.operands[i + 1 :]))
            assert f"operand {o.name}: the calls of one command lie at other distances" in found(head, new)
    far = [replace(o, place=replace(o.place, offset=o.place.offset + Affine.of("zz"))) for o in second.operands]
    apart = replace(second, operands=tuple(far))
    out = Findings()
    _burst(s.system, [head], apart, out)
    fixed = dict(s.system.instructions[ins].burst.step)
    assert [(v.obligation, v.kind) for v in out.found] == [(10, "burst")] * len(head.operands)
    varies = "the distance between the calls of one command varies"
    assert any(v.message.endswith(varies) for v in out.found) is (len(fixed) < len(head.operands))
    cells = [replace(n, operands=tuple(replace(o, place=replace(o.place, cell=1)) for o in n.operands))
             for n in (head, second)]  # fmt: skip
    assert len(found(cells[0], cells[1])) == 2
