"""Every planted fault is refused, by its kind, at the step where it happens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isam.codegen.simulator import KINDS, SimulationFault, simulate
from isam.ir.affine import Affine
from isam.ir.kernel import Sym
from isam.schedule.tree import Issue, Node, Operand, Place, Schedule, Seq, Slot
from tests.schedules import A_, J_, K_, at_home, box, loop, matmul_on_tiny, move, place

SIZE = (8, 8, 8)


def arrays(seed=0):
    r = np.random.default_rng(seed)
    return {n: r.normal(size=(8, 8)).astype(np.float32) for n in "AB"}


def rewrite(node: Node, change) -> Node:
    """Every issue replaced by what ``change`` returns: an issue, a list of them, or None to drop it."""
    if isinstance(node, Issue):
        got = change(node)
        return Seq(tuple(got)) if isinstance(got, list) else Seq() if got is None else got
    if isinstance(node, Seq):
        return Seq(tuple(rewrite(c, change) for c in node.children))
    parts = {p: getattr(node, p) for p in ("body", "enter", "first", "last", "exit")}
    return replace(node, **{p: n and rewrite(n, change) for p, n in parts.items()})


def altered(change, schedule: Schedule | None = None) -> Schedule:
    s = schedule or matmul_on_tiny(*SIZE)
    return replace(s, call=rewrite(s.call, change))


def on(which: str, /, **changes):
    """Changes every issue of an instruction; values may be functions of the issue."""
    return lambda i: replace(i, **{k: v(i) if callable(v) else v for k, v in changes.items()}) if (
        i.instruction == which) else i  # fmt: skip


def operand(name: str, change):
    """Changes one operand's place or tile by a function."""
    return lambda i: tuple(change(o) if o.name == name else o for o in i.operands)


def at(memory_from: str, memory_to: str, change):
    """Changes moves along one edge."""

    def apply(i: Issue):
        if not i.is_move or (i.operands[0].place.memory, i.operands[1].place.memory) != (memory_from, memory_to):
            return i
        return change(i)

    return apply


def moved_to(place_: Place):
    return lambda o: replace(o, place=place_)


def offset_by(n):
    return lambda o: replace(o, place=replace(o.place, offset=o.place.offset + n))


def into_ra(i: Issue) -> Issue:
    """B beside A in one register file."""
    name = "B" if i.instruction == "mm4" else "D"
    there = any(o.name == name and o.place.memory == "rb" for o in i.operands)
    return replace(i, operands=operand(name, moved_to(place("ra", 2)))(i)) if there else i


def plant():
    base = matmul_on_tiny(*SIZE)
    tile = box("A", (0, 0), (4, 4))
    yield "unit", altered(on("mm4", unit="dma"))
    yield "name", altered(on("mm4", unit="nobody"))
    yield "name", altered(on("mm4", instruction="mm5"))
    yield "edge", altered(at("dram", "sp", lambda i: replace(i, operands=operand("D", moved_to(place("ra")))(i))))
    yield "placement", altered(on("mm4", operands=operand("A", moved_to(place("sp", 0)))))
    yield "apart", altered(into_ra)
    yield "size", altered(on("mm4", sizes=(("K", 5), ("M", 4), ("N", 4))))
    yield "size", altered(on("mm4", sizes=(("M", 4), ("N", 4))))
    yield "shape", altered(on("mm4", sizes=(("K", 3), ("M", 4), ("N", 4))))
    yield "shape", altered(on("mm4", operands=operand("A", lambda o: replace(o, dims=(1, 1)))))
    yield "shape", altered(on("mm4", operands=lambda i: i.operands[:2]))
    yield "tile", altered(on("mm4", operands=operand("B", lambda o: replace(o, tile=box("B", (K_ + 5, J_), (4, 4))))))
    yield "stale", altered(on("mm4", operands=operand("B", lambda o: replace(o, tile=box("B", (J_, K_), (4, 4))))))
    yield "contract", altered(on("mm4", operands=operand("A", lambda o: replace(o, dims=(1, 0)))))
    yield "outside", altered(on("mm4", operands=operand("A", moved_to(place("ra", 8)))))
    yield "outside", altered(on("mm4", operands=operand("A", moved_to(replace(place("ra", 0), offset=A_(-4))))))
    yield "outside", altered(at("dram", "sp", lambda i: replace(i, operands=operand("S", offset_by(4 * 64))(i))))
    yield "outside", altered(at("dram", "sp", lambda i: replace(i, operands=operand("D", offset_by(16 * 1024))(i))))
    yield "misaligned", altered(at("dram", "sp", lambda i: replace(i, operands=operand("D", offset_by(8))(i))))
    yield "unwritten", altered(on("zero4", operands=operand("C", moved_to(place("ra", 3)))))
    yield "unwritten", altered(lambda i: None if i.instruction == "zero4" else i)
    yield "unwritten", altered(at("sp", "rb", lambda i: None))
    yield "stale", altered(at("dram", "sp", lambda i: i if i.operands[0].tile.buffer == "A" else replace(
        i, operands=operand("S", lambda o: replace(o, place=replace(o.place, base="A")))(i))))  # fmt: skip
    yield "unwritten", altered(at("dram", "sp", lambda i: i if i.operands[0].tile.buffer == "A" else replace(
        i, operands=operand("D", moved_to(place("sp")))(i))))  # fmt: skip
    yield "final", altered(at("sp", "dram", lambda i: None))
    yield "final", replace(base, call=Seq((base.call, zeroing())))
    yield "loop", replace(base, call=replace(loop("q", 0, 4, 4, base.call), first=base.call, last=base.call))
    yield "loop", replace(base, call=loop("i", 0, 1, 1, base.call))
    yield "loop", replace(base, call=replace(loop("q", 0, 1, 1, base.call), step=0))
    yield "name", replace(base, call=move(tile, Place("dram", "A", Affine.of("q"), (32, 4)), place("sp")))
    yield "name", replace(base, call=move(tile, Place("dram", "nowhere", A_(0), (32, 4)), place("sp")))
    yield "name", replace(base, call=move(tile, Place("dram", "T", A_(0), (32, 4)), place("sp")))
    yield "name", replace(base, call=move(box("Z", (0, 0), (4, 4)), Place("dram", "A", A_(0), (32, 4)), place("sp")))
    yield "placement", replace(base, call=move(tile, at_home({"A": (32, 4)}, tile), replace(place("sp"), cell=0)))
    yield "placement", replace(base, workspace=(Slot("w", "dram", 64),), call=move(
        tile, at_home({"A": (32, 4)}, tile), replace(place("sp"), base="w")))  # fmt: skip
    yield "capacity", replace(base, workspace=(Slot("w", "sp", 16 * 1024 + 1),))
    yield "unit", replace(base, call=replace(move(tile, at_home({"A": (32, 4)}, tile), place("sp")), unit="mm"))
    other = box("A", (4, 0), (4, 4))
    strayed = move(tile, at_home({"A": (32, 4)}, tile), place("sp"))
    strayed = replace(strayed, operands=(strayed.operands[0], replace(strayed.operands[1], tile=other)))
    yield "tile", replace(base, call=strayed)
    fetch = move(tile, at_home({"A": (32, 4)}, tile), place("sp"))
    yield "step", replace(base, call=replace(fetch, joined=True))
    yield "step", replace(base, call=Seq((fetch, replace(zeroing(), joined=True))))
    yield "step", replace(base, call=Seq((zeroing(), replace(zeroing(), joined=True))))


def zeroing() -> Issue:
    c = box("C", (0, 0), (4, 4))
    return Issue("mm", "zero4", (("M", 4), ("N", 4)), (Operand("C", c, place("ra", 1), (0, 1)),), 0)


PLANTED = list(plant())


@pytest.mark.parametrize("number", range(len(PLANTED)))
def test_planted_faults_are_refused(number):
    kind, schedule = PLANTED[number]
    with pytest.raises(SimulationFault) as caught:
        simulate(schedule, arrays())
    assert caught.value.kind == kind, str(caught.value)
    assert kind in KINDS


def test_most_kinds_are_planted():
    """Registers are planted in ``tests/unit/proof/test_registers.py``."""
    assert {k for k, _ in PLANTED} >= set(KINDS) - {"dtype", "register"}


def test_the_report_names_step_scope_and_call():
    with pytest.raises(SimulationFault) as caught:
        simulate(altered(at("sp", "rb", lambda i: None)), arrays())
    fault = caught.value
    assert fault.step == 5
    assert fault.scope == {"i": 0, "j": 0, "k": 0}
    assert "operand B: element +[0, 0] of B in rb was never written" in str(fault)
    assert "at step 5 (i = 0, j = 0, k = 0): mm4(K=4, M=4, N=4) on mm" in str(fault)


def test_a_stale_copy_is_caught_after_a_write():
    """C is copied to the scratchpad, then changed in its register: the copy must not be used again."""
    c = box("C", (0, 0), (4, 4))
    s = matmul_on_tiny(4, 4, 4)
    early, late = move(c, place("ra", 1), place("sp", 128)), move(c, place("sp", 128), at_home({"C": (16, 4)}, c))
    clear = zeroing()
    good = replace(s, call=Seq((clear, early, late)))
    assert not simulate(good, {n: a[:4, :4] for n, a in arrays().items()})["C"].any()
    bad = replace(s, call=Seq((clear, early, clear, late)))
    with pytest.raises(SimulationFault, match="not its current version") as caught:
        simulate(bad, {n: a[:4, :4] for n, a in arrays().items()})
    assert caught.value.kind == "stale"


def test_a_half_overwritten_element_is_caught():
    """Four bytes of another tile land across two elements."""
    s = matmul_on_tiny(8, 8, 8)
    tile, one = box("A", (0, 0), (4, 4)), box("B", (0, 0), (1, 1))
    machine = replace(s.system, memories={**s.system.memories, "sp": replace(s.system.memories["sp"], align=1)})
    strides = {"A": (32, 4), "B": (32, 4)}
    call = (move(tile, at_home(strides, tile), place("sp")), move(one, at_home(strides, one), place("sp", 2)),
            move(tile, place("sp"), place("ra")))  # fmt: skip
    with pytest.raises(SimulationFault) as caught:
        simulate(replace(s, system=machine, call=Seq(call)), arrays())
    assert (caught.value.kind, caught.value.step) == ("stale", 3)


def test_an_operand_of_another_type_is_refused():
    s = matmul_on_tiny(8, 8, 8)
    first, *rest = s.kernel.buffers
    kernel = replace(s.kernel, buffers=(replace(first, dtype="i32"), *rest))
    a = arrays()
    with pytest.raises(SimulationFault) as caught:
        simulate(replace(s, kernel=kernel), {"A": a["A"].astype(np.int32), "B": a["B"]})
    assert caught.value.kind == "dtype"


def test_run_time_trips_must_have_values():
    s = matmul_on_tiny(4, 4, 4)
    with pytest.raises(SimulationFault, match="needs values for T"):
        simulate(replace(s, kernel=replace(s.kernel, syms=(Sym("T"),))), arrays())


def test_registers_are_written_whole():
    """A register file that a code generator allocates: a write loses whatever else lay in the register."""
    s = matmul_on_tiny(8, 8, 8)
    memories = {**s.system.memories, "ra": replace(s.system.memories["ra"], kind="counted")}
    machine = replace(s.system, memories=memories)
    upper, lower = box("A", (0, 0), (2, 4)), box("A", (2, 0), (2, 4))
    strides = {"A": (32, 4)}
    low = replace(place("ra"), offset=A_(32))

    def fetched(tile, to, via):
        return [move(tile, at_home(strides, tile), place("sp", via)), move(tile, place("sp", via), to)]

    for calls, kind, step in (
        ([*fetched(upper, place("ra"), 0), *fetched(lower, low, 64)], "placement", 4),
        ([*fetched(upper, place("ra"), 0), *fetched(box("A", (4, 0), (1, 1)), place("ra"), 64),
          move(box("A", (1, 0), (1, 4)), replace(place("ra"), offset=A_(16)), place("sp", 128))], "unwritten", 5),
    ):  # fmt: skip
        with pytest.raises(SimulationFault) as caught:
            simulate(replace(s, system=machine, call=Seq(tuple(calls))), arrays())
        assert (caught.value.kind, caught.value.step) == (kind, step)
