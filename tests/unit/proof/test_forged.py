"""Wrong schedules made by hand, of kinds that an altered step or loop alone does not make: both judges refuse them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from isam.ir.instruction import Instruction, OperandContract
from isam.ir.kernel import Literal, Statement
from isam.ir.mapping import Cover
from isam.ir.text import parse_kernel
from isam.proof.certificate import examine
from isam.proof.flat import check_flat
from isam.proof.points import check_points
from isam.proof.tree import check_tree
from isam.schedule.serial import from_json, to_json
from isam.schedule.tree import Issue, Loop, Nest, Node, Operand, Place, Schedule, Seq, Slot, Wait
from tests.pipeline import compiled, simulated
from tests.unit.proof.handmade import (
    at_home,
    ended,
    home,
    loop,
    mapping_of,
    move,
    op,
    running_sum,
    seq,
    tile,
    tiny_matmul,
    vec_matmul,
)
from tests.unit.proof.handmade_machines import V, acc, buf, dom, kern, lit, sizes, vec
from tests.unit.proof.test_mutants import KINDS
from tests.unit.proof.verdicts import on_record, verdicts

PARTS = ("enter", "first", "body", "last", "exit")


def steps(n: Node, change: Callable[[Issue], Node]) -> Node:
    """The tree with every step changed."""
    if isinstance(n, Seq):
        return Seq(tuple(steps(c, change) for c in n.children))
    if isinstance(n, Loop):
        return replace(n, **{p: steps(c, change) for p in PARTS if (c := getattr(n, p)) is not None})
    return change(n)


def at_zero(name: str) -> Callable[[Issue], Issue]:
    """Names nothing but 0 where a step named a variable."""

    def operand(o: Operand) -> Operand:
        start = tuple(e.substitute({name: 0}) for e in o.tile.start)
        place = replace(o.place, offset=o.place.offset.substitute({name: 0}))
        return replace(o, tile=o.tile._replace(start=start), place=place)

    def change(i: Issue) -> Issue:
        point = tuple((n, e.substitute({name: 0})) for n, e in i.point)
        return replace(i, operands=tuple(map(operand, i.operands)), point=point)

    return change


def shadowed() -> Schedule:
    """A's first rows are brought in iteration 0 of ``m``; a loop that is called ``m`` too takes them for the next."""
    s = tiny_matmul(8, 8, 4)
    columns = s.call.body
    a_near, a, b_near, b, product = columns.body.body.children
    inner = loop("p", 0, 4, 4, seq(b_near, b, product), enter=columns.body.enter, exit=columns.body.exit)
    later = loop("m", 4, 8, 4, Seq(), first=replace(columns, body=inner))
    second = steps(loop("m", 0, 4, 4, seq(a_near, a, later)), at_zero("p"))
    return replace(s, call=seq(loop("m", 0, 4, 4, columns), second))


def drifting() -> Schedule:
    """A's tile lies a cell lower in the second block of columns, where C's is."""
    s = tiny_matmul()

    def operand(o: Operand) -> Operand:
        moved = o.tile.buffer == "A" and o.place.memory == "ra"
        return replace(o, place=replace(o.place, offset=V("n", -16))) if moved else o

    return replace(s, call=steps(s.call, lambda i: replace(i, operands=tuple(map(operand, i.operands)))))


def pointless() -> Schedule:
    """All products but one do not say which term they add."""
    s, seen = vec_matmul(), []

    def change(i: Issue) -> Issue:
        seen.append(i) if i.instruction == "fma" else None
        return replace(i, point=i.point[:2]) if i in seen[1:] else i

    return replace(s, call=steps(s.call, change))


def size_taken() -> Schedule:
    """A loop over nothing that is named as a size of the kernel."""
    s = running_sum()
    return replace(s, call=seq(s.call, loop("T", 0, 1, 1, Seq())))


def liberties() -> Schedule:
    """The product takes leave to contract, which the kernel does not give."""
    s = tiny_matmul()
    name = "mm4"
    own = replace(s.system.instructions[name], body=replace(s.system.instructions[name].body,
                                                            permits=frozenset({"finite"})))  # fmt: skip
    mappings = tuple(replace(m, instruction=own) if m.instruction.name == name else m for m in s.cover.mappings)
    system = replace(s.system, instructions={**s.system.instructions, name: own})
    return replace(s, system=system, cover=replace(s.cover, mappings=mappings))


def both(turned: bool, late: bool, shared: bool = False) -> Schedule:
    """``P = max(X, 0); Q = min(E, 0)`` in one call of four elements each. ``turned``: the kernel reads what P becomes
    before it is written. ``late``: Q is P's element too, and what P became is stored. ``shared``: P lies where E is."""
    s, d, one = vec(), dom(j="N"), OperandContract(("v",))
    names = ("X", "E", "Q", "P")
    source = "P" if turned else "E"
    body = kern("two", [buf("X", "in", "N"), buf("E", "in", "N"), buf("Q", "out", "N"), buf("P", "out", "N")], [
        Statement(d, acc("P", "j"), "max", (acc("X", "j"), Literal(0))),
        Statement(d, acc("Q", "j"), "min", (acc(source, "j"), Literal(0)))], sizes(N=4))  # fmt: skip
    two = Instruction("two", body, dict.fromkeys(names, one))
    unit = replace(s.units["cpu"], runs=(*s.units["cpu"].runs, "two"))
    s = replace(s, instructions={**s.instructions, "two": two}, units={"cpu": unit})
    first = Statement(dom(i=4), acc("y", "i"), "max", (acc("x", "i"), Literal(0)))
    then = Statement(dom(i=4), acc("y" if late else "z", "i"), "min", (acc("y" if turned else "e", "i"), Literal(0)))
    buffers = [buf("x", "in", 4), buf("e", "in", 4), buf("y", "inout", 4), buf("z", "out", 4)]
    k = kern("k", buffers, [then, first] if turned else [first, then])
    played = {"X": "x", "E": "e", "P": "y", "Q": "y" if late else "z"}
    m = mapping_of(s, "two", (0, 1), [(o, acc(b, "i")) for o, b in played.items()], {"j": "i"}, ())
    homes = {b.name: home(k, "ram", b.name) for b in buffers}
    at = {o: Place("v", "", lit(0), (4,), n) for n, o in enumerate(names)}
    at["P"] = at["E"] if shared else at["P"]
    tiles = {o: tile(b, [0], [4]) for o, b in played.items()}
    size, dims = (("M", 1), ("N", 4)), (None, 0)
    loads = [Issue("cpu", "vmove", size, (op("S", tiles[o], homes[played[o]], dims), op("D", tiles[o], at[o], dims)))
             for o in names[: 3 if shared else 4]]  # fmt: skip
    work = Issue("cpu", "two", (("N", 4),), tuple(op(o, tiles[o], at[o]) for o in names), 0, (("i", lit(0)),))
    stores = [Issue("cpu", "vmove", size, (op("S", tiles[o], at[o], dims), op("D", tiles[o], homes[played[o]], dims)))
              for o in (("P",) if late else ("Q", "P"))]  # fmt: skip
    return Schedule(k, s, Cover(k, k, (m,)), (Nest(0, (("i", lit(4)),)),), Seq(), seq(*loads, work, *stores), (), homes)


def outside(memory: str, by: int, tail: bool = False) -> Schedule:
    """Every place in a memory (or the packed panel) lies so many bytes further on. ``tail``: the last body apart."""
    s = vec_matmul() if memory == "P" else ended(True) if tail else tiny_matmul()

    def operand(o: Operand) -> Operand:
        moved = o.place.base == "P" if memory == "P" else o.place.memory == memory
        return replace(o, place=replace(o.place, offset=o.place.offset + by)) if moved else o

    return replace(s, call=steps(s.call, lambda i: replace(i, operands=tuple(map(operand, i.operands)))))


def begun(done: bool) -> Schedule:
    """The first iteration of the loop over K does nothing: its product comes before the loop, or is forgotten."""
    s = tiny_matmul()
    inner = s.call.body.body
    before = seq(inner.enter, steps(inner.body, at_zero("p"))) if done else inner.enter
    return replace(s, call=replace(s.call, body=replace(s.call.body, body=replace(inner, enter=before, first=Seq()))))


def one_element(brought: bool, bound: bool = False) -> Schedule:
    """``y = max(x, 0)`` of one element each, the first that there is; it is brought to its cell, or is not. ``bound``:
    x is a constant that is put in a slot beforehand."""
    s = tiny_matmul().system
    k = kern("one", [buf("x", "const" if bound else "in", 1, 1), buf("y", "out", 1, 1)], [
        Statement(dom(i=1, j=1), acc("y", "i", "j"), "max", (acc("x", "i", "j"), Literal(0)))])  # fmt: skip
    homes = {b: home(k, "dram", b) for b in "xy"}
    x, y = tile("x", [0, 0], [1, 1]), tile("y", [0, 0], [1, 1])
    near, ra, rb = (Place(m, "", lit(0), (4, 4), c) for m, c in (("sp", None), ("ra", 0), ("ra", 1)))
    m = mapping_of(s, "relu4", (0,), [("X", acc("x", "i", "j")), ("Y", acc("y", "i", "j"))], {"i": "i", "j": "j"}, ())
    point = (("i", lit(0)), ("j", lit(0)))
    work = Issue("mm", "relu4", (("M", 1), ("N", 1)), (op("X", x, ra), op("Y", y, rb)), 0, point)
    steps = [move("dma", "copy", x, homes["x"], near), move("dma", "copy", x, near, ra), work,
             move("dma", "copy", y, rb, near), move("dma", "copy", y, near, homes["y"])]  # fmt: skip
    nest = Nest(0, (("i", lit(1)), ("j", lit(1))))
    slot = Place("dram", "W", lit(0), (4, 4))
    put, take = move("dma", "copy", x, near, slot), move("dma", "copy", x, slot, near)
    bind = seq(*steps[:brought], put) if bound else Seq()
    call = [take, *steps[1:]] if bound else steps[0 if brought else 2 :]
    slots = (Slot("W", "dram", 4, bound=True),) if bound else ()
    return Schedule(k, s, Cover(k, k, (m,)), (nest,), bind, seq(*call), slots, homes)


def partial(iteration: int) -> Schedule:
    """Every iteration over K keeps what the sum is so far; what is stored in the end is that of one of them."""
    s = tiny_matmul()
    columns = s.call.body
    inner, t = columns.body, tile("C", ["m", "n"], [4, 4])
    so_far, stored = (Place("sp", "", e, (16, 4)) for e in (V("p", 16) + 1024, lit(1024 + 64 * iteration)))
    keep = move("dma", "copy", t, Place("ra", "", lit(0), (16, 4), 0), so_far)
    store = move("dma", "copy", t, stored, at_home(s.homes["C"], t))
    inner = replace(inner, body=seq(*inner.body.children, keep), exit=store)
    return replace(s, call=replace(s.call, body=replace(columns, body=inner)))


def unended(part: str) -> Schedule:
    """The last iteration does only part of what the others do: it stores C, or adds a product."""
    s = ended(False)
    inner = s.call.body.body
    last = inner.last.children[1] if part == "store" else inner.last.children[0]
    return replace(s, call=replace(s.call, body=replace(s.call.body, body=replace(inner, last=last))))


FORGED: dict[str, tuple[Callable[[], Schedule], str]] = {
    "a scratchpad that is too small": (lambda: outside("sp", 16384 - 128), "address"),
    "a scratchpad, before its begin": (lambda: outside("sp", -16), "address"),
    "a panel that is too small": (lambda: outside("P", 16), "address"),
    "the last body beyond the scratchpad": (lambda: outside("sp", 16384 - 128, True), "address"),
    "a first iteration that does nothing": (lambda: begun(False), "coverage"),
    "an element that nobody brings": (lambda: one_element(False), "stale"),
    "a constant that nobody brings": (lambda: one_element(False, True), "stale"),
    "the sum of the first iteration": (lambda: partial(0), "stale"),
    "the sum of all iterations but one": (lambda: partial(1), "stale"),
    "a last body that only stores": (lambda: unended("store"), "coverage"),
    "a last body that stores nothing": (lambda: unended("product"), "final"),
    "a result where another operand is": (lambda: both(False, False, True), "alias"),
    "one name for two loops": (shadowed, "scope"),
    "a loop named as a size": (size_taken, "scope"),
    "a bound that has no value": (lambda: bounded("zz"), "scope"),
    "a cell that is another's in time": (drifting, "cell"),
    "points that lack an axis": (pointless, "point"),
    "numerics that are not granted": (liberties, "numerics"),
    "what a call computes read too soon": (lambda: both(True, False), "operation"),
    "elements that a call writes twice": (lambda: both(False, True), "alias"),
}


def bounded(name: str) -> Schedule:
    s = tiny_matmul()
    return replace(s, call=seq(s.call, loop("q", 0, V(name), 1, Seq())))


@pytest.mark.parametrize("what", FORGED)
def test_both_judges_refuse_it(what: str) -> None:
    make, kind = FORGED[what]
    s = make()
    points = check_points(s)
    for found in (points or check_tree(s), points if kind == "coverage" else check_tree(s)):
        assert kind in {v.kind for v in found}, found
    found = check_flat(s, {y.name: 2 for y in s.cover.kernel.syms})
    assert found
    assert all(v.kind in KINDS[v.obligation].split() for v in (*found, *check_tree(s)))
    on_record(f"forged: {what}", verdicts(s, {y.name: 2 for y in s.cover.kernel.syms}))


@pytest.mark.parametrize("name", ["^1", "~1", "", "m'", "x.0~"])
def test_a_loop_has_a_name_that_no_proof_uses(name: str) -> None:
    s = tiny_matmul()
    assert "scope" in {v.kind for v in check_points(replace(s, call=seq(s.call, loop(name, 0, 1, 1, Seq()))))}


STEPS = """kernel steps(T, N)
  in    x: f32[T, N]
  inout h: f32[N]
  loop t < T
    forall j < N
      h[j] += x[t, j]
"""


@pytest.mark.parametrize("name", ["^1", "^core", "~1", "m'"])
@pytest.mark.parametrize("own", ["T", "j"])
def test_sizes_and_axes_have_names_that_no_proof_uses(name: str, own: str) -> None:
    """The number of steps is open: a size of the document is a variable of the proof."""
    s = compiled(parse_kernel(STEPS), {"N": 20}, simulated("toy"), check=True).schedule
    assert s is not None
    assert s.cover.kernel.syms
    renamed = from_json(to_json(s).replace(f'"{own}"', json.dumps(name)))
    assert check_points(s) == []
    assert "scope" in {v.kind for v in check_points(renamed)}
    assert "scope" in {v.kind for v in examine(renamed)[1]}


def test_what_it_is_made_from_is_right() -> None:
    for one in (one_element(True), one_element(True, True)):
        assert check_points(one) == check_tree(one) == check_flat(one) == []
    assert check_points(partial(2)) == check_tree(partial(2)) == check_flat(partial(2)) == []
    assert check_points(begun(True)) == check_tree(begun(True)) == check_flat(begun(True)) == []
    s = both(False, False)
    k = replace(s.kernel, buffers=tuple(replace(b, role="out") if b.name == "y" else b for b in s.kernel.buffers))
    s = replace(s, kernel=k, cover=replace(s.cover, kernel=k, original=k))
    assert check_points(s) == check_tree(s) == check_flat(s) == []


@pytest.mark.parametrize("wait", [Wait("nobody", 0), Wait("dma", -1), Wait("dma", 0, every=True)])
def test_a_wait_for_what_is_not_there(wait: Wait) -> None:
    """A stream that the machine does not have, a call that is not given yet, instances of what is there once."""
    s = tiny_matmul()

    def told(w: Wait) -> Schedule:
        return replace(s, call=steps(s.call, lambda i: replace(i, after=(w,)) if i.unit == "mm" else i))

    assert check_points(told(Wait("dma", 0))) == check_flat(told(Wait("dma", 0))) == []
    for judge in (check_points, check_flat):
        assert {(v.obligation, v.kind) for v in judge(told(wait))} >= {(10, "wait")}
