"""Vectors across rows: turned a square at a time where neighbours are moved together, word by word elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import isam
from isam.codegen.llvm import to_ir, transposed
from isam.codegen.llvm.irtext import Function, Module
from isam.codegen.llvm.lower import Lowering
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.schedule.tree import (
    Bound,
    Issue,
    Loop,
    Node,
    Operand,
    Prefetch,
    Schedule,
    Seq,
    Serpentine,
    distinct,
    leaves,
    mapped,
)
from isam.system.features import lacking
from isam.system.load import load_system
from tests.native import run
from tests.pipeline import compiled, simulated
from tests.systems.test_groups import product

NUMPY = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "u8": np.uint8, "i8": np.int8}
_SHUFFLE = re.compile(r"(%\w+) = shufflevector <\d+ x \w+> (\S+), <\d+ x \w+> (\S+), <\d+ x i32> <([^>]*)>")


def scheduled(on: str, sizes: dict[str, int], a: str = "f32", b: str = "f32") -> Schedule:
    schedule = compiled(product(a, b, turned=True), sizes, simulated(on)).schedule
    assert schedule is not None
    return schedule


def lowering(schedule: Schedule) -> Lowering:
    return Lowering(schedule, Module())


def ir(schedule: Schedule) -> str:
    return to_ir(schedule)[0]


def found(schedule: Schedule) -> list[tuple[Loop, list[transposed.Square]]]:
    """Loops that copy rows to columns, and the squares of several of their iterations."""
    low = lowering(schedule)
    loops = [n for n in distinct(schedule.call) if isinstance(n, Loop)]
    return [(n, squares(low, several[0])) for n in loops if (several := transposed.together(low, n)) is not None]


def squares(low: Lowering, node: Node) -> list[transposed.Square]:
    """Those of all sequences within a node."""
    parts = [n for n in distinct(node) if isinstance(n, Seq)]
    return list({id(s): s for p in parts for s in transposed.squares(low, p.children).values()}.values())


@pytest.mark.parametrize("lanes", [4, 8, 16, 32])
@pytest.mark.parametrize("missing", [0, 1, 3])
def test_columns_of_a_square(lanes, missing):
    """The shuffles, carried out on the names of words, make columns of rows; log2(lanes) of them for each column."""
    fn = Function(Module(), "square", [])
    rows = [f"%r{i}" if i < lanes - missing else transposed.ZERO for i in range(lanes)]
    columns = transposed._square(fn, rows, "i32", lanes)
    values = {r: [(i, c) for c in range(lanes)] for i, r in enumerate(rows) if r != transposed.ZERO}
    values[transposed.ZERO] = [None] * lanes
    count = 0
    for line in fn.text().splitlines():
        if m := _SHUFFLE.search(line):
            both = values[m[2]] + values[m[3]]
            values[m[1]] = [both[int(i.split()[1])] for i in m[4].split(", ")]
            count += 1
    assert [values[c] for c in columns] == [
        [(r, c) if r < lanes - missing else None for r in range(lanes)] for c in range(lanes)]  # fmt: skip
    most = lanes * (lanes.bit_length() - 1)
    assert count <= most
    assert count == most if missing < 2 else count < most, "nothing is made of two rows of zeros"


@pytest.mark.parametrize("dtypes", [("f32", "f32"), ("bf16", "bf16"), ("u8", "i8")])
@pytest.mark.parametrize("sizes", [(40, 40, 40), (33, 70, 100), (24, 100, 37), (64, 16, 16), (19, 65, 68)])
def test_products_by_columns(dtypes, sizes):
    """What is computed, exactly, on whatever this CPU is."""
    f = isam.compile(product(*dtypes, turned=True), sizes=dict(zip("MNK", sizes, strict=True)))
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 7, s).astype(NUMPY[d]) for s, d in zip([sizes[::2], sizes[1:]], dtypes, strict=True))
    assert np.array_equal(f(a, b), a.astype(np.int64) @ b.astype(np.int64).T)


@pytest.mark.parametrize(("on", "dtypes", "gathers"), [
    ("host-avx512", ("f32", "f32"), False), ("host-avx512", ("bf16", "bf16"), True),
    ("host-avx512", ("u8", "i8"), True), ("host-avx512", ("u8", "u8"), True), ("host-avx2", ("f32", "f32"), False),
    ("host-neon", ("f32", "f32"), False)])  # fmt: skip
def test_both_ways_are_found(on, dtypes, gathers):
    """Words apart where they go, and groups apart where they come from: no gather, no scatter, no word alone is left of
    whole blocks."""
    schedule = scheduled(on, {"M": 64, "N": 64, "K": 64}, *dtypes)
    made = [s for _, several in found(schedule) for s in several]
    assert {s.first.reads for s in made} == {gathers}
    text = ir(schedule)
    assert "masked.gather" not in text
    assert "masked.scatter" not in text
    assert "shufflevector" in text


def test_a_rest_is_copied_as_before():
    """37 iterations are two squares of 16 and five that gather: all of 100 columns, the last block of them of four."""
    schedule = scheduled("host-avx512", {"M": 24, "N": 100, "K": 74}, "bf16", "bf16")
    assert {s.first.side.rows for _, several in found(schedule) for s in several} >= {16}
    assert "masked.gather" in ir(schedule)


def test_bytes_go_alone():
    """Shuffles of which would not pay, where no call takes groups of them."""
    assert not found(scheduled("host-generic", {"M": 64, "N": 64, "K": 64}, "u8", "u8"))


def test_fewer_iterations_than_lanes_go_alone():
    schedule = scheduled("host-avx512", {"M": 64, "N": 64, "K": 30}, "bf16", "bf16")
    assert found(schedule)
    assert "masked.gather" in ir(schedule)


def other(loop: Loop, change) -> Loop:
    return replace(loop, body=Seq(tuple(change(p) for p in leaves(loop.body))))


def in_memory(issue: Issue, change) -> Issue:
    return replace(issue, operands=tuple(change(o) if o.place.base else o for o in issue.operands))


def strided(o: Operand, dimension: int, step: int) -> Operand:
    strides = tuple(step if d == dimension else k for d, k in enumerate(o.place.strides))
    return replace(o, place=replace(o.place, strides=strides))


def elsewhere(o: Operand, base: str) -> Operand:
    return replace(o, place=replace(o.place, base=base))


def farther(o: Operand, var: str) -> Operand:
    """Twice as far on in every iteration."""
    more = Affine.of(var) * dict(o.place.offset.terms).get(var, 0)
    return replace(o, place=replace(o.place, offset=o.place.offset + more))


def test_what_is_no_such_copy():
    """Each condition, missed by itself."""
    schedule = scheduled("host-avx512", {"M": 64, "N": 64, "K": 64}, "bf16", "bf16")
    low = lowering(schedule)
    loop = found(schedule)[0][0]
    load, store = (p for p in leaves(loop.body) if isinstance(p, Issue))
    near, var = Prefetch(Affine((), 4096), "l1"), Affine.of(loop.var)

    def inner(*low: Affine) -> Loop:
        high = Bound((low[0] if low else Affine()) + 4)
        return Loop("z", tuple(map(Bound, low)), (high,), 1, Seq((load, store)))

    turned_not = {
        "back and forth": replace(loop, serpentine=Serpentine("t", 1)),
        "within one place": other(
            loop, lambda p: in_memory(p, lambda o: elsewhere(o, load.operands[0].place.base))),
        "two places": replace(loop, body=Seq((load, store, load, in_memory(store, lambda o: elsewhere(o, "other"))))),
        "asks a cache": other(loop, lambda p: replace(p, prefetch=near) if p is load else p),
        "no neighbours": other(
            loop, lambda p: in_memory(p, lambda o: farther(o, loop.var)) if p is load else p),
        "the same again": other(loop, lambda p: in_memory(p, lambda o: replace(o, place=replace(
            o.place, offset=o.place.offset.substitute({loop.var: Affine()})))) if p is load else p),
        "a load alone": replace(loop, body=load),
        "a store first": replace(loop, body=Seq((store, load))),
        "a loop inside": replace(loop, body=Seq((load, replace(loop, body=store)))),
        "another tile": other(loop, lambda p: replace(p, operands=tuple(
            replace(o, tile=o.tile._replace(buffer="A")) for o in p.operands)) if p is store else p),
        "nothing": replace(loop, body=Seq(())),
        "other lanes": other(loop, lambda p: in_memory(p, lambda o: replace(o, dims=o.dims[::-1]))
                             if p is store else p),
        "two words": other(loop, lambda p: replace(p, operands=tuple(
            replace(o, tile=o.tile._replace(shape=(1, 2, 2))) for o in p.operands))),
        "another register": other(loop, lambda p: replace(p, operands=tuple(
            replace(o, place=replace(o.place, cell=1)) if o.place.cell is not None else o for o in p.operands))
            if p is store else p),
        "groups in pieces": other(loop, lambda p: in_memory(p, lambda o: strided(o, 1, 4))),
        "a first one": replace(loop, first=loop.body),
        "something before": replace(loop, enter=load),
        "a loop that begins elsewhere every time": replace(loop, body=inner(var)),
        "a loop with two bounds": replace(loop, body=inner(Affine(), Affine())),
    }  # fmt: skip
    assert transposed.together(low, loop)
    assert transposed.together(low, replace(loop, body=inner(Affine())))
    steps = {"two places", "a load alone", "a store first", "another tile", "other lanes", "another register",
             "something before"}
    for what, changed in turned_not.items():
        got = transposed.together(low, changed)
        assert (got is not None) == (what in steps), what
        if got is not None:  # more than copies: one iteration after the other
            own = [n.instruction for n in leaves(changed.body)]
            assert [n.instruction for n in leaves(got[0])] == own * got[1], what


def test_rows_on_both_sides_are_no_columns():
    """Words that lie together where they come from and where they go."""
    schedule = scheduled("host-avx512", {"M": 64, "N": 64, "K": 64})
    loop = found(schedule)[0][0]
    store = [p for p in leaves(loop.body) if isinstance(p, Issue)][1]
    flat_rows = other(loop, lambda p: in_memory(p, lambda o: strided(o, 1, 4))
                      if p.instruction == store.instruction else p)  # fmt: skip
    assert transposed.together(lowering(schedule), loop)
    assert not transposed.together(lowering(schedule), flat_rows)


def test_squares_have_room_in_registers():
    """Four numbers of 16 bits are a word, but no register has sixteen of these."""
    schedule = scheduled("host-avx512", {"M": 64, "N": 64, "K": 64}, "bf16", "bf16")
    low, loop = lowering(schedule), found(schedule)[0][0]
    load = next(p for p in leaves(loop.body) if isinstance(p, Issue))
    assert load.operands[0].tile.shape == (16, 2)
    wide = replace(load, operands=tuple(replace(o, tile=o.tile._replace(shape=(16, 4))) for o in load.operands))
    assert transposed.across(low, load)
    assert transposed.across(low, wide) is None


@pytest.mark.parametrize(("dtypes", "how", "align"), [
    (("f32", "f32"), "store", "4"), (("bf16", "bf16"), "load", "2"), (("u8", "i8"), "load", "1")])  # fmt: skip
def test_what_is_said_of_addresses(dtypes, how, align):
    """Rows of groups lie where their elements may lie."""
    text = ir(scheduled("host-avx512", {"M": 64, "N": 64, "K": 64}, *dtypes))
    assert set(re.findall(rf"{how} <16 x i32>.*, align (\d+)", text)) == {align}


def test_registers_that_live_on_hold_the_last_word():
    """Where the copy's register is read after the loop, iterations keep their order: it holds what the last one put."""
    schedule = scheduled("host-avx512", {"M": 64, "N": 64, "K": 64}, "bf16", "bf16")
    loop = found(schedule)[0][0]
    _, store = (p for p in leaves(loop.body) if isinstance(p, Issue))
    first = {loop.var: Affine()}
    after = replace(store, operands=tuple(replace(
        o, tile=o.tile._replace(start=tuple(s.substitute(first) for s in o.tile.start)),
        place=replace(o.place, offset=o.place.offset.substitute(first))) for o in store.operands))  # fmt: skip

    def read_after(n: Node) -> Node:
        return Seq((loop, after)) if n is loop else mapped(n, read_after)

    schedule = replace(schedule, call=read_after(schedule.call))
    assert "masked.gather" not in ir(schedule)
    if not lacking(schedule.system.needs, None):
        rng = np.random.default_rng(5)
        a, b = (rng.integers(0, 7, (64, 64)).astype(np.float32) for _ in range(2))
        arrays = {"A": a.astype(ml_dtypes.bfloat16), "B": b.astype(ml_dtypes.bfloat16), "C": np.zeros_like(a)}
        b[:, :loop.step] = b[:, -loop.step:]  # the last columns, put where the first ones were
        assert np.array_equal(run(schedule, arrays)["C"], a @ b.T)


COMPUTED = {
    "read": ("X[i, j] * 3", "j, i"), "written": ("X[i, j] * Z[i, j] - W[i, j]", "j, i"),
    "both": ("X[i, j] + V[j, i]", "j, i"), "images": ("max(X[i, j] + v[j], 0)", "j, i"),
}  # fmt: skip


def turning(what: str, dtype: str = "f32") -> Kernel:
    """Columns from rows, and something computed of each element."""
    value, to = COMPUTED[what]
    return parse_kernel(f"""kernel turning(M, N)
  in  X: {dtype}[M, N]
  in  Z: {dtype}[M, N]
  in  W: {dtype}[M, N]
  in  V: {dtype}[N, M]
  in  v: {dtype}[N]
  out Y: {dtype}[N, M]
  forall i < M, j < N
    Y[{to}] = {value}
""")


def small_numbers(kernel: Kernel, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    kinds = {"f32": np.float32, "i32": np.int32, "f64": np.float64, "i16": np.int16}
    return {b.name: rng.integers(-50, 50, tuple(int(n) for n in b.shape)).astype(kinds[b.dtype])
            for b in kernel.arguments}  # fmt: skip


def expected(what: str, a: dict[str, np.ndarray]) -> np.ndarray:
    x, z, w = (a[n].T for n in "XZW")
    return {"read": lambda: x * 3, "written": lambda: x * z - w, "both": lambda: x + a["V"],
            "images": lambda: np.maximum(x + a["v"][:, None], 0)}[what]()  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "i32", "f64", "i16"])
@pytest.mark.parametrize("what", COMPUTED)
@pytest.mark.parametrize("sizes", [(64, 64), (5, 7), (16, 3), (33, 70), (17, 100), (40, 4)])
def test_what_is_computed_of_columns(what, dtype, sizes):
    """Exactly, whatever is turned, and nothing beside the arrays is touched."""
    kernel, numbers = turning(what, dtype), dict(zip("MN", sizes, strict=True))
    schedule = compiled(kernel, numbers, replace(load_system("host"), backend="simulator")).schedule
    assert schedule is not None
    arrays = small_numbers(kernel.with_sizes(numbers), 3)
    for at_end in (False, True):
        assert np.array_equal(run(schedule, arrays, at_end=at_end)["Y"], expected(what, arrays))


@pytest.mark.parametrize("on", ["host-avx512", "host-avx2"])
@pytest.mark.parametrize(("what", "reads"), [("read", True), ("written", False), ("both", True), ("images", True)])
def test_calls_across_the_same_rows_are_one_square(on, what, reads):
    schedule = compiled(turning(what), {"M": 64, "N": 64}, simulated(on)).schedule
    assert schedule is not None
    low = lowering(schedule)
    (square,) = squares(low, schedule.call)
    assert len(square.calls) == square.first.side.rows == low.lanes
    assert square.first.reads == reads
    text = to_ir(schedule)[0]
    assert text.count(f"{'load' if reads else 'store'} <{low.lanes} x i32>") == low.lanes, "every row once"
    assert "masked.gather" not in text
    assert "masked.scatter" not in text


def test_words_of_eight_bytes_are_turned():
    """Two registers for sixteen of them, eight to a line."""
    schedule = compiled(turning("read", "f64"), {"M": 64, "N": 64}, simulated("host-avx512")).schedule
    assert schedule is not None
    (square,) = squares(lowering(schedule), schedule.call)
    assert (len(square.calls), square.first.side.rows, square.first.side.word) == (8, 16, 8)


def body(what: str, sizes: int = 64) -> tuple[Lowering, list[Issue]]:
    """The calls of the innermost loop."""
    schedule = compiled(turning(what), {"M": sizes, "N": sizes}, simulated("host-avx512")).schedule
    assert schedule is not None
    (calls,) = [leaves(n.body) for n in distinct(schedule.call) if isinstance(n, Loop)
                and all(isinstance(c, Issue) for c in leaves(n.body))]  # fmt: skip
    return lowering(schedule), [c for c in calls if isinstance(c, Issue)]


def shifted(issue: Issue, by: int | Affine) -> Issue:
    return in_memory(issue, lambda o: replace(o, place=replace(o.place, offset=o.place.offset + by)))


def sizes_of(low: Lowering, calls: Sequence[Node]) -> list[int]:
    found = {id(s): s for s in transposed.squares(low, calls).values()}
    return sorted(len(s.calls) for s in found.values())


def test_squares_of_reads():
    low, calls = body("read")
    loads = [c for c in calls if transposed.across(low, c)]
    stores = [c for c in calls if c.operands[-1].place.base == "Y"]
    assert len(loads) == 16
    assert sizes_of(low, loads) == [16]
    assert sizes_of(low, loads[::-1]) == [16], "in any order"
    assert sizes_of(low, loads[:4]) == [4]
    assert not sizes_of(low, loads[:3]), "three are too few"
    assert sizes_of(low, [*loads[:4], *loads[5:9]]) == [4, 4]
    assert sizes_of(low, [*loads[:8], *loads[9:]]) == [7, 8], "the one that is missing parts them"
    assert sizes_of(low, loads + [shifted(c, 64) for c in loads]) == [16, 16], "not more than there are lanes"
    assert sizes_of(low, loads + loads) == [16], "what is there already goes alone"
    assert not sizes_of(low, [shifted(c, 4 * n) for n, c in enumerate(loads)]), "every other one"
    assert sizes_of(low, [loads[0], stores[0], *loads[1:]]) == [16], "others are written meanwhile"
    into = in_memory(stores[0], lambda o: elsewhere(o, "X"))
    assert not sizes_of(low, [loads[0], into, *loads[1:]]), "what is read is written meanwhile"
    assert sizes_of(low, [into, *loads, into]) == [16], "before and after it may be"
    loop = Loop("z", (Bound(Affine()),), (Bound(Affine((), 4)),), 1, stores[0])
    assert not sizes_of(low, [loads[0], loop, *loads[1:]]), "a loop between them"


def test_places_are_not_mixed():
    """Every other neighbour is of another array."""
    low, calls = body("read")
    loads = [c for c in calls if transposed.across(low, c)]
    theirs = [in_memory(c, lambda o: elsewhere(o, "Z")) if n % 2 else c for n, c in enumerate(loads)]
    assert not sizes_of(low, theirs)
    far = [shifted(c, Affine.of("z") * 4096) if n % 2 else c for n, c in enumerate(loads)]
    assert not sizes_of(low, far), "where that lies shows when the loops around run"
    wide = [in_memory(c, lambda o: strided(o, 0, 512)) if n % 2 else c for n, c in enumerate(loads)]
    assert not sizes_of(low, wide), "other rows"
    assert sizes_of(low, [in_memory(c, lambda o: elsewhere(o, "Z")) for c in loads] + loads) == [16, 16]


def test_squares_need_a_power_of_two(monkeypatch):
    low, calls = body("read")
    moved = {id(c): a for c in calls if (a := transposed.across(low, c))}
    loads = [c for c in calls if id(c) in moved]
    monkeypatch.setattr(transposed, "across", lambda _, c: moved.get(id(c)))
    assert transposed.squares(low, loads)
    for lanes in (12, 2):
        monkeypatch.setattr(low, "lanes", lanes)
        assert not transposed.squares(low, loads)


def test_squares_of_writes():
    low, calls = body("written")
    stores = [c for c in calls if transposed.across(low, c)]
    assert len(stores) == 16
    assert sizes_of(low, stores) == [16]
    reading = in_memory(next(c for c in calls if c.is_move and c not in stores), lambda o: elsewhere(o, "Y"))
    assert not sizes_of(low, [stores[0], reading, *stores[1:]]), "what is written is read meanwhile"
    row = stores[0].operands[1].place.strides[0]
    for writing in (shifted(stores[0], 3 * row), shifted(stores[5], 0), shifted(stores[5], 2),
                    shifted(stores[0], Affine.of("z") * 4 + 16 * row)):  # fmt: skip
        assert not sizes_of(low, [stores[0], writing, *stores[1:]]), "what is written is written meanwhile"
    assert sizes_of(low, [stores[0], shifted(stores[0], 16 * row), *stores[1:]]) == [16], "other rows"
    both = [c for pair in zip(stores, [shifted(c, 64) for c in stores], strict=True) for c in pair]
    assert sizes_of(low, both) == [16, 16], "two squares side by side"
    near = [in_memory(c, lambda o: strided(o, 0, 60)) for c in stores]
    assert not sizes_of(low, near), "rows that share words are written in order"
    assert sizes_of(low, [in_memory(c, lambda o: strided(o, 0, 64)) for c in stores]) == [16]
    assert sizes_of(low, [in_memory(c, lambda o: strided(o, 0, -64)) for c in stores]) == [16]


def test_squares_of_one_array_mix_where_reads_come_before_writes_of_the_same():
    """What is read comes first and what is written goes last, whatever stood between."""
    low, calls = body("written")
    stores = [c for c in calls if transposed.across(low, c)][:8]
    low, calls = body("read")
    places = [c.operands[1].place for c in stores]
    row = places[0].strides[0]
    loads = [c for c in calls if transposed.across(low, c)]
    same = [replace(c, operands=(replace(c.operands[0], place=p), c.operands[1]))
            for c, p in zip(loads, places, strict=False)]  # fmt: skip
    loads = [shifted(c, 16 * row) for c in same]
    assert sizes_of(low, [*stores, *loads]) == [8, 8]

    def mixed(first: list[Issue], second: list[Issue]) -> list[int]:
        return sizes_of(low, [c for pair in zip(first, second, strict=True) for c in pair])

    assert mixed(stores, loads) == [8, 8], "other rows"
    assert mixed(same, stores) == [8, 8], "in place"
    assert mixed(same[::-1], stores[::-1]) == [8, 8], "from the last one on"
    assert not mixed(stores, same), "what is written is read"
    assert mixed(same[1:], stores[:-1]) == [7, 7], "what is written was read by the call before"
    assert not mixed(same[:-1], stores[1:]), "what is read was written by the call before"


def test_rows_of_reads_may_share_words():
    """Windows of a row: every element is read once for each."""
    low, calls = body("read")
    loads = [in_memory(c, lambda o: strided(o, 0, 24)) for c in calls if transposed.across(low, c)]
    assert sizes_of(low, loads) == [16]
    few = [in_memory(c, lambda o: strided(o, 0, 8)) for c in calls if transposed.across(low, c)]
    assert not sizes_of(low, few), "what is a few words apart is loaded as whole vectors"


def test_what_is_not_moved_across_rows(monkeypatch):
    low, calls = body("read")
    load = next(c for c in calls if transposed.across(low, c))
    near = Prefetch(Affine((), 4096), "l1")
    assert transposed.across(low, replace(load, prefetch=near)) is None
    assert transposed.across(low, in_memory(load, lambda o: strided(o, 0, 4))) is None
    few = replace(load, operands=tuple(replace(o, tile=o.tile._replace(shape=(2, 1))) for o in load.operands))
    assert transposed.across(low, few) is None
    with monkeypatch.context() as filling:
        filling.setitem(vars(low.schedule.system.instructions[load.instruction]), "fill", 0)
        assert transposed.across(low, load) is None, "it fills what is beyond the rows"
    computed = next(c for c in calls if not c.is_move)
    assert transposed.across(low, computed) is None


IN_ORDER = """kernel in_order(M, K)
  in  A: f32[M, K]
  in  x: f32[K]
  out y: f32[M]
  permits contract
  forall i < M
    y[i] = 0
  forall i < M, k < K
    y[i] += A[i, k] * x[k]
"""


@pytest.mark.parametrize("sizes", [(64, 64), (256, 100), (100, 33), (17, 16), (5, 40), (300, 7)])
def test_sums_in_order_along_rows(sizes):
    """Vectors of results, rows of what is read."""
    kernel, numbers = parse_kernel(IN_ORDER), dict(zip("MK", sizes, strict=True))
    schedule = compiled(kernel, numbers, replace(load_system("host"), backend="simulator")).schedule
    assert schedule is not None
    arrays = small_numbers(kernel.with_sizes(numbers), 4)
    for at_end in (False, True):
        assert np.array_equal(run(schedule, arrays, at_end=at_end)["y"], arrays["A"] @ arrays["x"])


def test_iterations_that_copy_several_neighbours_are_fewer_at_once():
    schedule = compiled(parse_kernel(IN_ORDER), {"M": 1024, "K": 1024}, simulated("host-avx512")).schedule
    assert schedule is not None
    low = lowering(schedule)
    loops = [n for n in distinct(schedule.call) if isinstance(n, Loop)]
    ((several, times),) = [t for n in loops if (t := transposed.together(low, n))]
    assert times == 4, "of four rows each"
    assert [len(s.calls) for s in squares(low, several)] == [16]
    assert "masked.scatter" not in to_ir(schedule)[0]
