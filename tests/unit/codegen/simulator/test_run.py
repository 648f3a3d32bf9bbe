"""The simulator computes what the interpreter computes, to the last bit and modulo a prime."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

from isam.codegen.simulator import Figures, Simulation, SimulationFault, residues, simulate
from isam.codegen.simulator.streams import Streams
from isam.ir import interp, oracle
from isam.ir.affine import Affine
from isam.ir.text import parse_instruction
from isam.schedule.tree import Bound, Issue, Loop, Operand, Place, Seq, Slot, Tile
from tests.schedules import A_, at_home, box, loop, matmul_on_tiny, move, place

SIZES = [(4, 4, 4), (8, 12, 16), (7, 9, 5), (1, 1, 1), (3, 10, 2), (13, 4, 6)]


def arrays(m, n, k, seed=0):
    r = np.random.default_rng(seed)
    return {"A": r.normal(size=(m, k)).astype(np.float32), "B": r.normal(size=(k, n)).astype(np.float32)}


@pytest.mark.parametrize("size", SIZES)
def test_floats_equal_the_interpreter_bit_for_bit(size):
    s = matmul_on_tiny(*size)
    a = arrays(*size)
    np.testing.assert_array_equal(simulate(s, a)["C"], interp.run(s.kernel, a)["C"])


@pytest.mark.parametrize("size", SIZES)
def test_residues_equal_the_oracle(size):
    s = matmul_on_tiny(*size)
    a = oracle.inputs(s.kernel, {}, seed=5)
    np.testing.assert_array_equal(
        simulate(s, a, residues(5))["C"], oracle.run_modular(s.kernel, a, {}, seed=5)["C"]
    )  # fmt: skip


@pytest.mark.parametrize("size", [(4, 4, 4), (8, 4, 8), (5, 7, 16)])
def test_peeled_bodies_and_enter(size):
    s = matmul_on_tiny(*size, pipelined=True)
    a = arrays(*size, seed=3)
    np.testing.assert_array_equal(simulate(s, a)["C"], interp.run(s.kernel, a)["C"])


def test_figures_count_steps_and_bytes():
    figures = Figures()
    simulate(matmul_on_tiny(8, 4, 12), arrays(8, 4, 12), figures=figures)
    blocks = 2
    assert figures.calls == {"zero4": blocks, "mm4": blocks * 3, "copy": blocks * (3 * 4 + 2)}
    assert figures.steps == sum(figures.calls.values())
    assert figures.moved["sp", "rb"] == blocks * 3 * 64
    assert figures.moved["ra", "sp"] == figures.moved["sp", "dram"] == blocks * 64
    assert "bytes sp -> rb" in str(figures)


@pytest.mark.parametrize("kind", [Simulation, Streams])
def test_memories_go_with_a_simulation_that_ran_once(kind):
    """Without a search for garbage: memories of a large machine are many megabytes."""
    s, a = matmul_on_tiny(8, 4, 12), arrays(8, 4, 12)
    gc.disable()
    try:
        sim = kind(s)
        machine = weakref.ref(sim.machine)
        sim.once(a)
        assert machine() is not None
        del sim
        assert machine() is None
    finally:
        gc.enable()


def test_no_iteration_runs_nothing_at_all():
    s = matmul_on_tiny(4, 4, 4)
    bad = Seq((s.call,))
    never = loop("q", 4, 4, 1, bad, enter=bad, exit=bad)
    figures = Figures()
    simulate(replace(s, call=Seq((never, s.call))), arrays(4, 4, 4), figures=figures)
    assert figures.steps == 8


def test_bounds_round_inwards_and_first_and_last_run_once():
    s = matmul_on_tiny(4, 4, 4)
    tile = box("A", (0, 0), (4, 4))
    fetch = move(tile, at_home({"A": (16, 4)}, tile), place("sp"))
    one, two, three = Seq((fetch,)), Seq((fetch, fetch)), Seq((fetch,) * 3)
    # from max(ceil(5/2), 1) = 3 below min(floor(17/2), 9) = 8, step 2: 3, 5, 7
    odd = Loop("q", (Bound(A_(5), 2), Bound(A_(1))), (Bound(A_(17), 2), Bound(A_(9))), 2, one, first=two, last=three)
    figures = Figures()
    simulate(replace(s, call=Seq((odd, s.call))), arrays(4, 4, 4), figures=figures)
    assert figures.steps == 8 + 2 + 1 + 3


def test_a_run_time_trip_is_a_symbol():
    s = matmul_on_tiny(4, 4, 4)
    tile = box("A", (0, 0), (4, 4))
    fetch = move(tile, at_home({"A": (16, 4)}, tile), place("sp"))
    times = Loop("t", (Bound(A_(0)),), (Bound(Affine.of("T", 2, -1)),), 1, fetch)
    for t, expected in ((0, 8), (1, 9), (3, 13)):
        figures = Figures()
        simulate(replace(s, call=Seq((times, s.call))), arrays(4, 4, 4), symbols={"T": t}, figures=figures)
        assert figures.steps == expected
    with pytest.raises(SimulationFault, match="'T' has no value"):
        simulate(replace(s, call=times), arrays(4, 4, 4))


def test_bind_runs_once_and_its_slots_stay():
    """B is constant: bind puts it into a slot of home memory that every call reads."""
    s = matmul_on_tiny(4, 4, 4)
    a_, b_, *rest = s.kernel.buffers
    kernel = replace(s.kernel, buffers=(a_, replace(b_, role="const"), *rest))
    tile = box("B", (0, 0), (4, 4))
    slot = Slot("packed", "dram", 64, bound=True)
    kept = Place("dram", "packed", Affine(), (16, 4))
    pack = Seq((move(tile, at_home({"B": (16, 4)}, tile), place("sp")), move(tile, place("sp"), kept)))
    calls = list(s.call.children[0].body.children[0].body.children)
    inner = calls[1]
    fetch = list(inner.body.children)
    fetch[2] = move(tile, kept, place("sp", 64))
    calls[1] = replace(inner, body=Seq(tuple(fetch)))
    call = loop("i", 0, 4, 4, loop("j", 0, 4, 4, Seq(tuple(calls))))
    bound = replace(s, kernel=kernel, bind=pack, call=call, workspace=(slot,))
    a = arrays(4, 4, 4)
    sim = Simulation(bound)
    sim.bind({"B": a["B"]})
    for seed in (1, 2):
        x = {"A": arrays(4, 4, 4, seed)["A"]}
        expected = interp.run(kernel, {**x, "B": a["B"]})["C"]
        np.testing.assert_array_equal(sim.call(x)["C"], expected)
    assert sim.figures.steps == 2 + 2 * 8
    sim.bind({"B": a["A"]})  # bound anew: the old one is gone
    np.testing.assert_array_equal(sim.call(x)["C"], interp.run(kernel, {**x, "B": a["A"]})["C"])
    unbound = replace(bound, workspace=(replace(slot, bound=False),))
    with pytest.raises(SimulationFault, match="never written"):
        simulate(unbound, a)


def test_literals_are_there_from_the_start():
    s = matmul_on_tiny(4, 4, 4)
    slot = Slot("#f32:0.5", "dram", 4, 4, dtype="f32", literal=0.5)
    system = s.system
    scale = parse_instruction(
        "instruction halve(M, N)\n  inout C: f32[M, N]\n  in x: f32[]\n  forall i < M, j < N\n    C[i, j] *= x[]\n"
    )
    system = system.extended(scale, unit="mm")
    c = box("C", (0, 0), (4, 4))
    half = Operand("x", Tile("#f32:0.5", (), (), ()), Place("dram", "#f32:0.5", Affine(), ()), ())
    issue = Issue("mm", "halve", (("M", 4), ("N", 4)), (Operand("C", c, at_home({"C": (16, 4)}, c), (0, 1)), half), 0)
    halved = replace(s, system=system, call=Seq((s.call, issue)), workspace=(slot,))
    a = arrays(4, 4, 4)
    np.testing.assert_array_equal(simulate(halved, a)["C"], interp.run(s.kernel, a)["C"] * np.float32(0.5))


def test_moves_go_through_real_bytes_of_any_type():
    s = matmul_on_tiny(8, 8, 8)
    a = arrays(8, 8, 8)
    a["A"][0, 0] = np.nan
    a["B"][1, 1] = -np.inf
    np.testing.assert_array_equal(simulate(s, a)["C"], interp.run(s.kernel, a)["C"])
