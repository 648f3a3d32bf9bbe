"""The box that a move fills, as an operand: where it lies, for every way in which the tile may lie in it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from isam.ir.instruction import OperandContract
from isam.ir.text import parse_instruction
from isam.proof.filled import BOX, in_its_box, moves, with_boxes
from isam.schedule.tree import Issue, Node, Operand, Place, Schedule, Seq, Tile
from tests.unit.proof.handmade import loop, seq, tiny_matmul
from tests.unit.proof.handmade_machines import V, lit

PAD = parse_instruction("""instruction pad(R, C)
  in S: any[R, C]
  out D: any[7, 6]
  forall i < 7, j < 6
    D[i, j] = 0
  forall r < R, c < C
    D[r + 2, c + 1] = S[r, c]
""")
TOLD = """kernel pad(R, C)
  permits nothing
  in  S: any[R, C]
  out D box: any[7, 6]
  out D: any[R, C]
  forall r < R, c < C
    D[r, c] = S[r, c]
  forall i < 7, j < 6
    D box[i, j] = 0
"""
Stride = int | None


def schedule(call: Node, strides: tuple[Stride, ...] = (None, 1), align: int = 32) -> Schedule:
    s = tiny_matmul()
    pad = replace(PAD, operands={"D": OperandContract(("sp",), strides, align)})
    return replace(s, call=call, system=replace(s.system, instructions={**s.system.instructions, "pad": pad}))


def call(strides: tuple[int, ...] = (16, 4), steps: tuple[int, ...] = (1, 1), dims: tuple[Stride, ...] = (0, 1),
         buffer: str = "A", name: str = "pad", sizes: str = "RC") -> Issue:  # fmt: skip
    rank = len(strides)
    t = Tile(buffer, (V("m"),) * rank, (3, 2)[:rank], steps)
    ops = [Operand(n, t, Place("sp", b, V("m", 8) + 96, strides), dims) for n, b in (("S", ""), ("D", "d"))]
    return Issue("dma", name, tuple((n, 3) for n in sizes), tuple(ops))


def boxes(n: Node) -> list[Operand]:
    assert isinstance(n, Issue)
    assert [o.name for o in n.operands] in (["S", "D"], ["S", "D box", "D"])
    return [o for o in n.operands if o.name == "D" + BOX]


@pytest.mark.parametrize("needs", list(product((None, 1, 8), repeat=2)))
def test_where_the_box_lies(needs: tuple[Stride, ...]) -> None:
    """So that the tile lies in it where the instruction puts what it copies: at the rows and columns that it says."""
    for strides, steps, dims in product(
        ((16, 4), (4, 32), (0, -8)), ((1, 1), (2, 1), (1, 3)), product((0, 1, None), repeat=2)
    ):
        made = with_boxes(schedule(n := call(strides, steps, dims), needs))
        want = [4 * k if k is not None else None if d is None else strides[d] * steps[d]
                for k, d in zip(needs, dims, strict=True)]  # fmt: skip
        found = boxes(made.call)
        if None in want:
            assert made.call == n
            continue
        ((o,), rows, columns) = found, *(k or 0 for k in want)
        assert o.place == Place("sp", "d", V("m", 8) + 96 - 2 * rows - columns, (rows, columns))
        assert (o.tile.start, o.tile.shape, o.tile.steps, o.dims) == ((lit(0), lit(0)), (7, 6), (1, 1), (0, 1))
        b = made.cover.kernel.buffer(o.tile.buffer)
        assert made.kernel.buffer(o.tile.buffer) == b
        assert (b.shape, b.dtype, b.role) == ((lit(7), lit(6)), "f32", "temp")


def test_a_number_is_filled_around() -> None:
    """The tile has no dimensions; the strides of the box are the instruction's."""
    (o,) = boxes(with_boxes(schedule(call((), (), (None, None)), (8, 1))).call)
    assert o.place == Place("sp", "d", V("m", 8) + 96 - 2 * 32 - 4, (32, 4))


def test_what_is_no_such_call_stays_as_it_is() -> None:
    """What is wrong with it is told by others: dimensions that the tile does not have, a size that is not given; and
    other instructions, or what does not move."""
    wrong = [call(dims=d) for d in ((0, 2), (2, 1), (-1, 0), (0, -1), (0,), (0, 1, 1))]
    wrong += [call(steps=(1,)), call(steps=(1, 1, 1)), call(sizes="R"), call(sizes=""), call(sizes="C")]
    wrong += [call(name="copy"), call(name="none"), replace(call(), nest=0), replace(call(), operands=())]
    for n in wrong:
        assert with_boxes(schedule(seq(n, call()))).call.children[0] == n  # type: ignore[union-attr]
    none = schedule(seq(*wrong[-4:]))
    assert with_boxes(none) is none


def test_boxes_of_one_form_are_one_buffer() -> None:
    """The types are those of the tiles: of a buffer, or of the number that is moved."""
    made = with_boxes(schedule(seq(call(), call(dims=(1, 0)), call(buffer="#f64:0"), call(buffer="B")), (1, 1)))
    assert isinstance(made.call, Seq)
    one, two, other, three = (boxes(n)[0] for n in made.call.children)
    assert one.tile == two.tile == three.tile != other.tile
    own = [b for b in made.cover.kernel.buffers if b.name.endswith(BOX)]
    assert [(b.name, b.dtype) for b in own] == [(one.tile.buffer, "f32"), (other.tile.buffer, "f64")]
    assert other.place.strides == (8, 8)
    renamed = replace(made.kernel, buffers=tuple(replace(b, dtype="f16") for b in made.kernel.buffers))
    again = with_boxes(
        replace(schedule(call(), (1, 1)), kernel=renamed)
    )  # the cover's buffers are those that are moved
    assert boxes(again.call)[0].place.strides == (4, 4)


def test_every_part_of_a_loop_has_its_boxes() -> None:
    """What is one node stays one."""
    body, others = (
        seq(call()),
        {p: call(buffer=b) for p, b in zip(("first", "last", "enter", "exit"), "ABCA", strict=True)},
    )
    made = with_boxes(
        replace(schedule(seq(loop("m", 0, 8, 1, body, **others), body, loop("m", 0, 8, 1, body))), bind=body)
    )
    assert isinstance(made.call, Seq)
    n, again, plain = made.call.children
    assert made.bind is again is n.body is plain.body  # type: ignore[union-attr]
    assert plain.first is plain.last is None  # type: ignore[union-attr]
    for p, old in others.items():
        (box,) = boxes(getattr(n, p))
        assert [o for o in getattr(n, p).operands if o is not box] == list(old.operands)


def test_the_instruction_with_its_box() -> None:
    """Filled first, then copied into: told as the copy of a tile of its own form, and the filling of the box. What must
    be aligned is the box."""
    made = with_boxes(schedule(call(), (8, 1))).system.instructions["pad"]
    assert moves(made)
    assert moves(PAD)
    assert not moves(tiny_matmul().system.instructions["mm4"])
    assert str(made.body) == TOLD
    assert made.operands["D"] == OperandContract(("sp",), (8, 1), 1)
    assert made.operands["D box"] == OperandContract(("sp",), (8, 1), 32)
    assert in_its_box("D", "D box")
    assert in_its_box("D box", "D")
    assert not in_its_box("D", "D")
    assert not in_its_box("S", "D box")
