"""Schedule trees built by hand: loops that carry registers, peeled and shared bodies, run-time trips, packed panels."""

from __future__ import annotations

import re

import numpy as np
import pytest

from isam.codegen.llvm import generate, to_ir
from isam.codegen.llvm.lanes import lanes_of
from isam.diagnostics import InternalError, IsamError
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.kernel import Buffer, Kernel, Sym
from isam.ir.mapping import Cover
from isam.schedule.tree import Bound, Issue, Loop, Node, Operand, Place, Schedule, Seq, Slot, Tile
from isam.system.load import load_system
from tests.native import run

HOST = load_system("host")
L = lanes_of(HOST)
A, V = Affine.lift, Affine.of


def buffer(name: str, role: str, *shape: int | str, dtype: str = "f32") -> Buffer:
    return Buffer(name, tuple(map(A, shape)), dtype, role)


class Trees:
    """Issues on the buffers of one kernel; ``homes``: bases and byte strides."""

    def __init__(self, *buffers: Buffer, sizes: dict[str, int] | None = None, slots: tuple[Slot, ...] = ()):
        self.buffers = {b.name: b for b in buffers}
        self.strides: dict[str, tuple[int, ...]] = {}
        for b in buffers:
            out, n = [], size_of(b.dtype)
            for d in reversed(b.shape):
                out.append(n)
                n *= d.substitute(sizes or {"T": 64}).const
            self.strides[b.name] = tuple(reversed(out))
        self.slots = slots

    def at(self, name: str, start: tuple[Affine | int, ...], dim: int | None = None, count: int = 1, step: int = 1):
        rank = len(start)
        index = tuple(map(A, start))
        strides = self.strides[name]
        offset = Affine()
        for s, k in zip(index, strides, strict=True):
            offset = offset + s * k
        shape = tuple(count if d == dim else 1 for d in range(rank))
        steps = tuple(step if d == dim else 1 for d in range(rank))
        dims = () if dim is None else (dim,)
        return Tile(name, index, shape, steps), Place("ram", name, offset, strides), dims

    def move(self, by: str, here, cell: int) -> Issue:
        tile, place, dims = here
        size = size_of(self.buffers[tile.buffer].dtype)
        reg = Place("v", "", Affine(), (size,) * len(tile.start), cell)
        s, d = Operand("S", tile, place, dims), Operand("D", tile, reg, dims)
        if by.startswith("store"):
            s, d = Operand("S", tile, reg, dims), Operand("D", tile, place, dims)
        return Issue("core", by, tuple(("J", tile.shape[i]) for i in dims), (s, d))

    def op(self, name: str, count: int | None = L, offsets: dict[str, int] | None = None, **cells: int) -> Issue:
        """An instruction on register operands; their tiles are beside the point here."""
        formal = HOST.instructions[name]
        operands = []
        for o, cell in cells.items():
            b = formal.operand(o)
            rank, size = len(b.shape), size_of(b.dtype)
            tile = Tile(o, (Affine(),) * rank, (count or 1,) * rank, (1,) * rank)
            place = Place("v", "", A((offsets or {}).get(o, 0)), (size,) * rank, cell)
            operands.append(Operand(o, tile, place, tuple(range(rank))))
        return Issue("core", name, (("J", count),) if count and formal.syms else (), tuple(operands), 0)

    def schedule(self, call: Node, bind: Node | None = None, syms: tuple[Sym, ...] = ()) -> Schedule:
        kernel = Kernel("hand", syms, tuple(self.buffers.values()), ())
        homes = {n: Place("ram", n, Affine(), s) for n, s in self.strides.items()}
        return Schedule(kernel, HOST, Cover(kernel, kernel, ()), (), bind or Seq(), call, self.slots, homes)


def loop(var: str, lo: int | Affine, hi: int | Affine, step: int, *body: Node, **parts: Node) -> Loop:
    return Loop(var, (Bound(A(lo)),), (Bound(A(hi)),), step, Seq(body), **parts)


@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("n", [1, L - 1, L, L + 1, 3 * L + 2])
def test_add_with_a_tail_touches_nothing_else(n: int, at_end: bool) -> None:
    t = Trees(buffer("A", "in", n), buffer("B", "in", n), buffer("D", "out", n))

    def block(i: Affine | int, count: int) -> list[Node]:
        return [t.move("load", t.at("A", (i,), 0, count), 0), t.move("load", t.at("B", (i,), 0, count), 1),
                t.op("add_vv_f32", count, A=0, B=1, D=2), t.move("store", t.at("D", (i,), 0, count), 2)]  # fmt: skip

    full = n - n % L
    parts: list[Node] = [loop("i", 0, full, L, *block(V("i"), L))] if full else []
    parts += block(full, n % L) if n % L else []
    rng = np.random.default_rng(n)
    a, b = rng.integers(-99, 99, (2, n)).astype(np.float32)
    got = run(t.schedule(Seq(tuple(parts))), {"A": a, "B": b, "D": np.full(n, 7, np.float32)}, at_end=at_end)
    assert np.array_equal(got["D"], a + b)
    assert np.array_equal(got["A"], a)


def rows(outside: bool) -> Schedule:
    """y += sum over t < T of x[t]: the accumulator lives in a register; ``outside``: also when T = 0."""
    t = Trees(buffer("x", "in", "T", L), buffer("y", "inout", L))
    enter, leave = t.move("load", t.at("y", (0,), 0, L), 1), t.move("store", t.at("y", (0,), 0, L), 1)
    body = (t.move("load", t.at("x", (V("t"), 0), 1, L), 0), t.op("acc_add_v_f32", A=0, D=1))
    hi = (Bound(V("T")),)
    if outside:
        call = Seq((enter, Loop("t", (Bound(A(0)),), hi, 1, Seq(body)), leave))
    else:
        call = Seq((Loop("t", (Bound(A(0)),), hi, 1, Seq(body), enter=enter, exit=leave),))
    return t.schedule(call, syms=(Sym("T"),))


@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 8])
def test_a_run_time_trip_carries_its_register(steps: int, outside: bool) -> None:
    rng = np.random.default_rng(steps)
    x, y = rng.integers(-99, 99, (steps, L)).astype(np.float32), rng.integers(-99, 99, L).astype(np.float32)
    schedule = rows(outside)
    got = run(schedule, {"x": x, "y": y}, {"T": steps})
    assert np.array_equal(got["y"], y + x.sum(0))


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_first_and_last_bodies_run_once(n: int) -> None:
    """d[i] = 1 in the first iteration, 2 between, 3 in the last; a trip of one has only a first body."""
    t = Trees(buffer("c", "in", 3, dtype="i32"), buffer("d", "inout", n, dtype="i32"))

    def put(k: int) -> Seq:
        return Seq((t.move("splat", t.at("c", (k,)), 0), t.move("store_scalar", t.at("d", (V("i"),)), 0)))

    parts = {"first": put(0)} | ({"last": put(2)} if n > 1 else {})
    call = loop("i", 0, n, 1, put(1), **parts)
    got = run(t.schedule(Seq((call,))), {"c": np.array([1, 2, 3], np.int32), "d": np.zeros(n, np.int32)})
    want = [1] + [2] * (n - 2) + [3] * (n > 1)
    assert got["d"].tolist() == want[:n]


@pytest.mark.parametrize("n", [1, 4, 9])
def test_bounds_are_the_tightest_and_divide_towards_the_loop(n: int) -> None:
    """For every i: d[i, j] += 1 for max(ceil((i - 3) / 2), ceil((1 - i) / 3), 0) <= j < min(floor((i + 5) / 2), n)."""
    t = Trees(buffer("one", "in", dtype="i32"), buffer("d", "inout", n, n, dtype="i32"))
    spot = t.at("d", (V("i"), V("j")))
    body = Seq((t.move("splat", t.at("one", ()), 0), t.move("splat", spot, 1), t.op("acc_add_ss_i32", None, A=0, D=1),
                t.move("store_scalar", spot, 1)))  # fmt: skip
    lo = (Bound(V("i") - 3, 2), Bound(1 - V("i"), 3), Bound(A(0)))
    inner = Loop("j", lo, (Bound(V("i") + 5, 2), Bound(A(n))), 1, body)
    got = run(t.schedule(loop("i", 0, n, 1, inner)), {"one": np.array(1, np.int32), "d": np.zeros((n, n), np.int32)})
    want = np.zeros((n, n), np.int32)
    for i in range(n):
        want[i, max(-(-(i - 3) // 2), -(-(1 - i) // 3), 0) : min((i + 5) // 2, n)] += 1
    assert np.array_equal(got["d"], want)


def product(m: int, n: int, k: int, rows_: int) -> Schedule:
    """C = A B: B packed into panels of L columns when constants are bound, blocks of ``rows_`` x L in registers, the
    k-blocks of 8 start from zero in the first and from memory afterwards; the ragged right edge is a sibling loop."""
    panels = -(-n // L)
    t = Trees(buffer("A", "in", m, k), buffer("B", "const", k, n), buffer("C", "out", m, n),
              slots=(Slot("scratch", "ram", 100), Slot("P", "ram", panels * k * L * 4, bound=True)))  # fmt: skip
    full = n - n % L
    edges = ([(0, full, L)] if full else []) + ([(full, n, n % L)] if n % L else [])

    def packed(i: Affine, j: Affine, w: int):
        tile, _, dims = t.at("B", (i, j), 1, w)
        return tile, Place("ram", "P", i * (L * 4) + j * (k * 4), (L * 4, 4)), dims

    pack = [loop("j", lo, hi, L, loop("k", 0, k, 1,
                 t.move("load", t.at("B", (V("k"), V("j")), 1, w), 0),
                 t.move("store", packed(V("k"), V("j"), w), 0))) for lo, hi, w in edges]  # fmt: skip

    def corner(r: int, w: int):
        return t.at("C", (V("i") + r, V("j")), 1, w)

    def body(h: int, w: int, new: bool) -> Seq:
        start = [t.op("sub_vv_f32", w, A=10, B=10, D=r) if new else t.move("load", corner(r, w), r) for r in range(h)]
        if new:
            start.insert(0, t.move("load", packed(V("k"), V("j"), w), 10))
        inner = [t.move("load", packed(V("q"), V("j"), w), 8)]
        for r in range(h):
            inner += [t.move("splat", t.at("A", (V("i") + r, V("q"))), 9), t.op("fma_sv_f32", w, A=9, B=8, C=r)]
        stop = (Bound(V("k") + 8), Bound(A(k)))
        finish = [t.move("store", corner(r, w), r) for r in range(h)]
        return Seq((*start, Loop("q", (Bound(V("k")),), stop, 1, Seq(tuple(inner))), *finish))

    def block(h: int) -> Seq:
        return Seq(tuple(
            loop("k", 0, k, 8, loop("j", lo, hi, L, body(h, w, False)), first=loop("j", lo, hi, L, body(h, w, True)))
            for lo, hi, w in edges))  # fmt: skip

    cut = m - m % rows_
    shared = block(rows_)
    half = cut // 2 // rows_ * rows_
    calls = [loop("i", lo, hi, rows_, shared) for lo, hi in ((0, half), (half, cut)) if lo < hi]
    if m % rows_:
        calls.append(loop("i", cut, m, m % rows_, block(m % rows_)))
    return t.schedule(Seq(tuple(calls)), Seq(tuple(pack)))


@pytest.mark.parametrize(("m", "n", "k"), [(8, 2 * L, 16), (13, 3 * L + 1, 19), (5, L - 1, 8), (22, L, 3)])
def test_a_packed_register_blocked_product(m: int, n: int, k: int) -> None:
    schedule = product(m, n, k, 4)
    rng = np.random.default_rng(m * n * k)
    a, b = rng.integers(-9, 9, (m, k)).astype(np.float32), rng.integers(-9, 9, (k, n)).astype(np.float32)
    code = generate(schedule)
    assert code.bound < code.workspace  # what bind fills comes first
    got = run(schedule, {"A": a, "B": b, "C": np.full((m, n), np.nan, np.float32)}, code=code)
    assert np.array_equal(got["C"], a @ b)


def test_a_body_in_two_places_is_one_function() -> None:
    text, _ = to_ir(product(16, 2 * L, 16, 4))
    assert len(re.findall(r"define internal void @part\d+", text)) == 1
    assert text.count("call void @part0(") == 2
    once, _ = to_ir(product(4, 2 * L, 16, 4))
    assert "@part" not in once


def test_a_shared_body_with_a_live_register_stays_in_place() -> None:
    t = Trees(buffer("x", "in", 40, L), buffer("y", "inout", L))
    step = Seq(tuple(i for r in range(8) for i in (t.move("load", t.at("x", (V("t") + r, 0), 1, L), 0),
                                                   t.op("acc_add_v_f32", A=0, D=1))))  # fmt: skip
    one, two = loop("t", 0, 16, 8, step), loop("t", 16, 40, 8, step)
    call = Seq((t.move("load", t.at("y", (0,), 0, L), 1), one, two, t.move("store", t.at("y", (0,), 0, L), 1)))
    schedule = t.schedule(call)
    assert "@part" not in to_ir(schedule)[0]
    rng = np.random.default_rng(1)
    x, y = rng.integers(-99, 99, (40, L)).astype(np.float32), np.arange(L, dtype=np.float32)
    assert np.array_equal(run(schedule, {"x": x, "y": y})["y"], y + x.sum(0))


def test_addresses_of_the_inner_loop_are_displacements() -> None:
    """Per iteration one product per operand, however many accesses: the rest are constants."""
    text, _ = to_ir(product(8, L, 64, 4))
    inner = next(b for b in re.split(r"\nloop\d+:", text)[1:] if "fmuladd" in b)
    assert inner.count("@llvm.fmuladd") == 4
    assert inner.count("= mul i64") == 2  # one for A, one for B


@pytest.mark.parametrize("step", [2, 3, -1])
def test_elements_apart_from_each_other(step: int) -> None:
    n = 4 * L
    t = Trees(buffer("A", "in", n), buffer("D", "inout", n))
    start = n - 1 if step < 0 else 1
    count = L - 1
    call = Seq((t.move("load_strided", t.at("A", (start,), 0, count, step), 0),
                t.move("store_strided", t.at("D", (start,), 0, count, step), 0)))  # fmt: skip
    a, d = np.arange(n, dtype=np.float32), np.full(n, -1, np.float32)
    got = run(t.schedule(call), {"A": a, "D": d})["D"]
    index = start + step * np.arange(count)
    d[index] = a[index]
    assert np.array_equal(got, d)


def test_part_of_a_register_is_read_at_its_lane() -> None:
    t = Trees(buffer("A", "in", L), buffer("D", "out", L), buffer("s", "out"))
    call = Seq((t.move("load", t.at("A", (0,), 0, L), 0), t.op("copy_f32", None, {"A": 8}, A=0, D=1),
                t.op("copy_v_f32", 2, {"A": 4}, A=0, D=2), t.move("store_scalar", t.at("s", ()), 1),
                t.move("store", t.at("D", (0,), 0, 2), 2)))  # fmt: skip
    a = np.arange(L, dtype=np.float32) + 5
    got = run(t.schedule(call), {"A": a, "D": np.zeros(L, np.float32), "s": np.array(0, np.float32)})
    assert got["s"] == a[2]
    assert np.array_equal(got["D"][:3], [a[1], a[2], 0])


def test_faults_of_a_schedule_are_found_before_llvm_sees_it() -> None:
    t = Trees(buffer("A", "in", L), buffer("D", "out", L, dtype="i32"))
    store, load = t.move("store", t.at("D", (0,), 0, L), 3), t.move("load", t.at("A", (0,), 0, L), 3)
    with pytest.raises(InternalError, match="holds nothing"):
        to_ir(t.schedule(Seq((store,))))
    with pytest.raises(InternalError, match="reads i32 from cell"):
        to_ir(t.schedule(Seq((load, store))))


def test_a_cpu_without_the_features_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    schedule = rows(True)
    lame = replace(schedule, system=replace(schedule.system, needs=("avx2", "warp-drive")))
    with pytest.raises(IsamError, match="lacks warp-drive"):
        generate(lame)
