"""Sweeps over a block that ask for the next one: all of it, once or nearly so, in the iteration before; where that is
worth it, and that nothing depends on it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import isam
from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy, awaited
from isam.codegen.llvm import to_ir
from isam.cost.steps import TICK, StepCosts
from isam.diagnostics import IsamError
from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.proof.scope import check_scope
from isam.proof.violation import Findings
from isam.schedule.serial import from_json, to_json
from isam.schedule.touches import Step, Touches
from isam.schedule.tree import LINES, Bound, Issue, Loop, Node, Schedule, Seq, children, distinct
from isam.scheduler.homes import LINE
from isam.scheduler.next_block import TWICE, BlockRequests, SweptBlock, counted, runs, sweeps, swept_block
from isam.system.load import load_system
from tests.pipeline import compiled, simulated
from tests.systems.test_serpentine import CELL, NARROW
from tests.unit.scheduler.test_prefetch import PRODUCT, asking

HALF = PRODUCT.replace("in    A: f32", "in    A: bf16").replace("const B: f32", "const B: bf16").replace(
    "A[i, k] * B[k, j]", "f32(A[i, k]) * f32(B[k, j])")  # fmt: skip
SIZES = {"M": 48, "N": 1024, "K": 1536}


class Blocks(Greedy):
    """Asks for blocks wherever it may, and for nothing else."""

    def __init__(self, memory: str = "l2"):
        self.memory, self.asked = memory, list[Mapping[str, Any]]()

    def prefetch(self, choice: Choice) -> Any:
        if choice.context["sweeps"] == 1:
            return choice.options[0]
        self.asked.append(choice.context)
        return self.memory


def made(text: str, sizes: dict[str, int], approach: Greedy | None = None, on: str = "host-avx512") -> Schedule:
    """With its proof."""
    s = compiled(parse_kernel(text), sizes, simulated(on), approach, check=True).schedule
    assert s is not None
    return s


def executed(node: Node, scope: Mapping[str, int]) -> Iterator[tuple[Issue, Mapping[str, int]]]:
    """Every call, with the values of the loops around it."""
    if isinstance(node, Issue):
        yield node, scope
    elif isinstance(node, Loop):
        values = node.values(scope)
        for n, v in enumerate(values):
            part = node.first if n == 0 else node.last if n == len(values) - 1 else None
            yield from executed(part or node.body, {**scope, node.var: v})
    else:
        for c in children(node):
            yield from executed(c, scope)


def places(s: Schedule, loop: Loop, scope: Mapping[str, int]) -> tuple[set[int], list[int]]:
    """Lines that an iteration reads of what it asks for more of, and the lines that it asks for."""
    calls = [*executed(loop.body, scope)]
    bases = {o.place.base for n, _ in calls if n.prefetch for o in n.operands if o.place.base}
    read, asked = set[int](), list[int]()
    for n, at in calls:
        for o in n.operands:
            if o.place.base in bases:
                begin = o.place.offset.evaluate(at)
                dims = zip(o.place.strides, o.tile.shape, strict=True)
                apart = (range(0, stride * many, stride) for stride, many in dims if stride >= LINE)
                read |= {(begin + sum(far)) // LINE for far in product(*apart)}
                if (p := n.prefetch) is not None:
                    asked += [(begin + p.ahead.evaluate(at) + n * p.apart) // LINE for n in range(p.lines)]
    return read, asked


def around(node: Node, scope: Mapping[str, int]) -> Iterator[tuple[Loop, Mapping[str, int]]]:
    """The loops whose iterations ask for the next one's block: the innermost that move it and have a sweep inside. With
    the first values of those around."""
    for c in children(node):
        at = {**scope, node.var: node.values(scope)[0]} if isinstance(node, Loop) else scope
        inner = [*around(c, at)]
        yield from inner
        if isinstance(c, Loop) and not inner and moves(c, at) and any(swept(c.body, {**at, c.var: c.values(at)[0]})):
            yield c, at


def moves(loop: Loop, scope: Mapping[str, int]) -> bool:
    """Whether the calls in a loop that ask are somewhere else in the second iteration."""
    two = [next((o.place.offset.evaluate(at) for n, at in executed(loop.body, {**scope, loop.var: v}) if n.prefetch
                 for o in n.operands if o.place.base), None) for v in [*loop.values(scope)][:2]]  # fmt: skip
    return len({*two}) == 2


def swept(node: Node, scope: Mapping[str, int]) -> Iterator[bool]:
    for c in (node, *children(node)):
        if isinstance(c, Loop):
            asks = any(n.prefetch for n, _ in executed(c.body, {**scope, c.var: c.values(scope)[0]}))
            yield asks and not moves(c, scope)
        elif c is not node:
            yield from swept(c, scope)


TILES = HALF.replace("permits ", "permits flush, ")
GATES = """kernel gates(T, B, H)
  permits contract, reassociate
  in    x: f32[T, B, H]
  const u: f32[3, H, H]
  out   y: f32[T, 3, B, H]
  loop t < T
    forall q < 3, i < B, j < H
      y[t, q, i, j] = 0
    forall q < 3, i < B, j < H, k < H
      y[t, q, i, j] += x[t, i, k] * u[q, k, j]
"""


@pytest.mark.parametrize(("text", "sizes", "on"), [
    (PRODUCT, SIZES, "host-avx512"), (PRODUCT, {"M": 45, "N": 1000, "K": 1536}, "host-avx512"),
    (PRODUCT, {"M": 16, "N": 640, "K": 2500}, "host-avx512"), (HALF, SIZES, "host-avx512"),
    (CELL, {"T": 2, "B": 24, "H": 512}, "host-avx512"), (GATES, {"T": 2, "B": 16, "H": 512}, "host-avx512"),
    (TILES, {"M": 96, "N": 4096, "K": 512}, "host-amx"), (TILES, {"M": 96, "N": 1280, "K": 2048}, "host-amx"),
    (TILES, {"M": 230, "N": 3077, "K": 1024}, "host-amx"),
])  # fmt: skip
def test_an_iteration_asks_for_all_of_the_next_block_and_hardly_more(text, sizes, on):
    s = made(text, sizes, Blocks(), on)
    found = [*around(s.call, {})]
    assert found
    for loop, scope in found:
        first, second = [*loop.values(scope)][:2]
        _, asked = places(s, loop, {**scope, loop.var: first})
        read, _ = places(s, loop, {**scope, loop.var: second})
        assert read <= {*asked}, "what comes next is asked for"
        assert len({*asked} - read) <= len(read) * (TWICE - 1), "and little else"


def test_every_run_of_a_block_is_asked_for():
    """Gates lie apart in what is laid out: three runs side by side in an iteration of the innermost loop."""
    calls = asking(made(GATES, {"T": 2, "B": 16, "H": 512}, Blocks()))
    assert {o.tile.start[0].const for n in calls for o in n.operands if o.tile.buffer == "u"} == {0, 1, 2}


def test_the_approach_is_told_of_the_passes():
    approach = Blocks("none")
    assert not asking(made(PRODUCT, SIZES, approach))
    (told,) = [{k: v for k, v in a.items() if k[0] != "_"} for a in approach.asked]
    rows = 48 // told["sweeps"]
    columns = told["bytes"] // (4 * 1536)
    assert told["iterations"] == 1024 // columns
    assert told["whole"] == 4 * 1024 * 1536
    assert told["rate"] == pytest.approx(columns * 4 / (columns / 16 * rows / 2 / 3e9), rel=1e-2), "two sums a cycle"


@pytest.mark.parametrize(("rows", "asked"), [(8, False), (48, True), (800, False)])
def test_blocks_are_asked_for_where_few_passes_go_over_them(rows, asked):
    """26 MB of panels, which no cache holds; a single one is a stream, of a hundred one waits less than can be told."""
    assert bool(asking(made(PRODUCT, {"M": rows, "N": 2560, "K": 2560}))) == asked


@pytest.mark.parametrize(("whole", "rate", "sweeps", "yes"), [
    (3 << 18, 1e12, 2, False),  # the second cache holds it
    (8 << 20, 36e9, 2, False),  # as fast as calls hide
    (8 << 20, 72e9, 16, True),
    (8 << 20, 72e9, 33, False),  # one of so many
    (64 << 20, 36e9, 48, True),  # from memory nothing is hidden
])  # fmt: skip
def test_what_is_waited_for(whole, rate, sweeps, yes):
    """144 GB/s, and half as much, and half of that, where nothing is said."""
    assert awaited({"whole": whole, "rate": rate, "sweeps": sweeps, "laid": True}, simulated("host-avx512")) == yes


def test_of_rows_where_they_lie_nothing_is_hidden():
    """As fast as calls hide of what was laid out anew; hardware has lost track of rows."""
    rows = {"whole": 8 << 20, "rate": 36e9, "sweeps": 2}
    assert [awaited({**rows, "laid": laid}, simulated("host-avx512")) for laid in (True, False)] == [False, True]


PIXELS = """kernel pixels(H, W, C, K)
  permits contract, reassociate
  in    x: f32[H, W, C]
  const w: f32[C, K]
  out   y: f32[H, W, K]
  forall h < H, v < W, k < K
    y[h, v, k] = 0
  forall h < H, v < W, k < K, c < C
    y[h, v, k] += x[h, v, c] * w[c, k]
"""


@pytest.mark.parametrize(("on", "sizes", "asked"), [
    ("host-amx", {"H": 28, "W": 28, "C": 512, "K": 256}, True),
    ("host-amx", {"H": 14, "W": 14, "C": 512, "K": 256}, False),  # the second cache holds them
    ("host-amx", {"H": 28, "W": 28, "C": 1024, "K": 256}, False),  # of a page each: hardware keeps track
    ("host-amx", {"H": 28, "W": 28, "C": 512, "K": 512}, True),  # sixteen sweeps, each of which asks for too much
    ("host-avx512", {"H": 28, "W": 28, "C": 512, "K": 256}, False),  # the last cache is no slower than others
])  # fmt: skip
def test_short_rows_side_by_side_are_asked_for_where_they_lie(on, sizes, asked):
    """1.6 MB of pixels, of 2 KB each, 14 at a time, element by element."""
    s = made(PIXELS, sizes, on=on)
    calls = [n for n in asking(s) if n.operands[0].tile.buffer == "x"]
    assert bool(calls) == asked
    for n in calls:
        assert n.instruction == "splat"
        assert n.prefetch is not None
        assert dict(n.prefetch.ahead.terms)["c0"] < 0, "slower than what is read"


@pytest.mark.parametrize("sizes", [{"H": 28, "W": 28, "C": 512, "K": 256}, {"H": 19, "W": 27, "C": 300, "K": 100}])
def test_pixels_that_ask_are_the_same(sizes):
    rng = np.random.default_rng(7)
    x, w = (rng.normal(size=[sizes[a] for a in axes]).astype("f4") for axes in ("HWC", "CK"))
    ways = (isam.compile(PIXELS, sizes=sizes, cache=False, approach=a) for a in (Blocks("l2"), Greedy()))
    one, other = (fn(x, w) for fn in ways)
    assert np.array_equal(one, other)


def test_nobody_waits_who_does_not_know_how_fast_caches_are():
    host = simulated("host-avx512")
    unknown = {n: replace(m, bandwidth=None) if n == "l2" else m for n, m in host.memories.items()}
    assert not awaited({"whole": 64 << 20, "rate": 1e12, "sweeps": 2, "laid": True}, replace(host, memories=unknown))


def test_a_block_is_what_iterations_share_nothing_of():
    s = made(PRODUCT, SIZES)
    loop = next(n for n in distinct(s.call) if isinstance(n, Loop) and n.axis == "j")
    ((base, touches),) = [(b, t) for b, t in Touches(s).of(loop.body).items() if b.name.startswith("B.")]
    block = swept_block(base.name, touches, loop)
    assert block is not None
    assert block.size == block.step == 4 * 1536 * loop.step
    assert block.sweeps == max(map(sweeps, touches)) > 1
    farther = [t._replace(offset=t.offset + Affine.of(loop.var, 4)) for t in touches]
    assert swept_block(base.name, [*touches, *farther], loop) is None, "two ways on"
    wider = [t._replace(offset=t.offset + block.size) for t in touches]
    assert swept_block(base.name, [*touches, *wider], loop) is None, "of the next one, too"
    still = [t._replace(offset=t.offset - Affine.of(loop.var, t.offset.coefficient(loop.var))) for t in touches]
    assert swept_block(base.name, still, loop) is None, "the same again"
    once = [t._replace(inside=tuple(x for x in t.inside if x.size)) for t in touches]
    assert swept_block(base.name, once, loop) is None, "a single sweep"


def test_calls_of_a_run_lie_within_what_an_iteration_moves_on_by():
    s = made(PRODUCT, SIZES)
    loop = next(n for n in distinct(s.call) if isinstance(n, Loop) and n.axis == "j")
    (touches,) = [t for b, t in Touches(s).of(loop.body).items() if b.name.startswith("B.")]
    one, two = touches[:2]
    place = replace(two.operand.place, offset=one.operand.place.offset + 4096)
    far = two._replace(operand=replace(two.operand, place=place))
    assert [[*r] for r in runs({1: far, 2: one}, 4096)] == [[2], [1]]
    assert [[*r] for r in runs({1: far, 2: one}, 4097)] == [[2, 1]]


def test_loops_that_begin_anywhere_or_are_dealt_are_not_counted():
    s = made(PRODUCT, SIZES)
    loop = next(n for n in distinct(s.call) if isinstance(n, Loop) and n.axis == "j")
    assert counted(loop)
    assert not counted(replace(loop, lo=(*loop.lo, *loop.lo)))
    assert not counted(replace(loop, hi=(loop.hi[0]._replace(expr=Affine.of("n")),)))


def test_where_no_call_can_ask_the_loop_stays():
    s = made(PRODUCT, SIZES)
    loop = next(n for n in distinct(s.call) if isinstance(n, Loop) and n.axis == "j")
    spread = BlockRequests(loop, [], "l2")
    assert spread.made() == loop
    assert not spread.asked


def test_it_is_printed_written_down_and_read_back():
    s = made(PRODUCT, SIZES, Blocks())
    (one,) = {n.prefetch for n in asking(s)}
    assert one is not None
    assert f"prefetch +({one.ahead}) B to l2" in str(s)
    assert {n.prefetch for n in asking(from_json(to_json(s)))} == {one}
    assert to_ir(s)[0].count("call void @llvm.prefetch") == len(asking(s))


def test_a_call_of_several_rows_asks_for_some_of_those_that_lie_there():
    """Sweeps of 16 rows, one after the other so many of them, each row in whole lines and one more."""
    s = made(TILES, {"M": 96, "N": 1280, "K": 2048}, Blocks(), "host-amx")
    calls = [n for n in asking(s) if n.operands[0].tile.buffer == "A"]
    around = (n for n in distinct(s.call) if isinstance(n, Loop) and n.axis == "j" and calls[0] in [*distinct(n.body)])
    columns = min(around, key=lambda n: n.step)
    for n in calls:
        (rows,) = n.operands[0].place.strides[:1]
        assert rows == 2048 * 2 + LINE
        assert (n.prefetch.lines, n.prefetch.apart) == (-(-16 // (columns.trip or 0)), rows)
        assert f"prefetch {n.prefetch.lines} lines {rows} B apart from +({n.prefetch.ahead}) B to l2" in str(s)
    assert {n.prefetch for n in asking(from_json(to_json(s)))} == {n.prefetch for n in asking(s)}
    lines = sum(n.prefetch.lines for n in asking(s) if n.prefetch)
    assert to_ir(s)[0].count("call void @llvm.prefetch") == lines > len(calls)
    asks, plain = (StepCosts(s, {}).of(n, {}).interval for n in (calls[0], replace(calls[0], prefetch=None)))
    cycles = s.system.instructions[calls[0].instruction].cost.prefetch or 0.0
    assert (asks - plain) * TICK == pytest.approx(calls[0].prefetch.lines * cycles / 3e9, rel=1e-3)


@pytest.mark.parametrize(("step", "rows", "lines"), [
    (32, (16, 16), (2, 2)), (32, (16, 12), (2, 2)), (32, (16, 3), (2,)),  # twice as many rows as there are, and no more
    (48, (16, 16), ()),  # 2 * 4160 bytes in 48 steps of a loop
])  # fmt: skip
def test_calls_ask_for_as_many_rows_as_theirs_in_every_sweep(step, rows, lines):
    j = Loop("j", (Bound(Affine((), 0)),), (Bound(Affine((), 8 * step)),), step, Seq(()))
    requests = BlockRequests(j, [], "l2")
    found = requests._by_rows([j], SweptBlock("A", 0, 133120, 8, ()), {n: Step(4160, r) for n, r in enumerate(rows)})
    assert tuple(p.lines for p in found.values()) == lines
    assert all(p.ahead == Affine.of("j", 2 * 4160 // step) + 133120 for p in found.values())


def test_an_artifact_does_not_ask_for_less_than_a_line_or_for_thousands():
    s = made(TILES, {"M": 96, "N": 1280, "K": 2048}, Blocks(), "host-amx")
    for lines in (0, -5, LINES + 1):
        forged = json.loads(to_json(s))
        for row in forged["nodes"]:
            if row[0] == "issue" and isinstance(row[-1], list) and len(row[-1]) == 4:
                row[-1][2] = lines
        with pytest.raises(IsamError, match=f"{lines} lines are asked for"):
            from_json(json.dumps(forged))


def test_sweeps_of_which_most_would_ask_for_nothing_do_not_ask():
    """More sweeps than twice as many as rows: every one would ask for a row, most of them for none that is wanted."""
    approach = Blocks()
    assert not asking(made(TILES, {"M": 96, "N": 8192, "K": 256}, approach, "host-amx"))
    assert {a["sweeps"] for a in approach.asked} == {64}


def test_names_that_have_no_value_are_refused():
    s = made(PRODUCT, SIZES, Blocks())

    def forged(node: Node) -> Node:
        if isinstance(node, Issue):
            p = node.prefetch
            return node if p is None else replace(node, prefetch=p._replace(ahead=p.ahead + "elsewhere"))
        from isam.schedule.tree import mapped

        return mapped(node, forged)

    out = Findings()
    check_scope(s, out)
    assert not out.found
    check_scope(replace(s, call=forged(s.call)), out)
    assert "'elsewhere' has no value" in str(out.found)


@pytest.mark.parametrize("sizes", [SIZES, {"M": 45, "N": 1000, "K": 1536}])
def test_results_are_the_same(sizes):
    rng = np.random.default_rng(5)
    A, B = (rng.normal(size=(sizes[a], sizes[b])).astype("f4") for a, b in ("MK", "KN"))
    asked, plain = (isam.compile(PRODUCT, sizes=sizes, cache=False, approach=a) for a in (Blocks("l1"), Greedy()))
    assert np.array_equal(asked(A, B), plain(A, B))


def test_innermost_loops_that_do_not_move_are_no_runs():
    """Caches of a few lines: panels of part of a sum, read again by the innermost loop."""
    approach = Blocks("l1")
    sizes = {"M": 41, "N": 67, "K": 129}
    assert compiled(parse_kernel(PRODUCT), sizes, load_system(NARROW), approach, check=True).schedule is not None
    assert approach.asked


def test_calls_that_move_otherwise_than_others_do_not_ask():
    """One of two that read a panel would not move with the innermost loop."""
    s = made(PRODUCT, SIZES)
    loop = next(n for n in distinct(s.call) if isinstance(n, Loop) and n.axis == "j")
    (touches,) = [t for b, t in Touches(s).of(loop.body).items() if b.name.startswith("B.")]
    still = touches[-1]._replace(inside=tuple(x._replace(size=0) for x in touches[-1].inside))
    block = swept_block("B.b0", touches, loop)
    assert block is not None
    spread = BlockRequests(loop, [replace(block, touches=[*touches[:-1], still])], "l2")
    spread.wanted[id(still.issue)] = (block, still)
    assert spread.made() == loop
