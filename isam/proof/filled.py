"""Moves that fill: for the proof, a call of one has an operand more, the box that it writes before it copies.

What lies in the box afterwards is a buffer of its own that no statement reads. So whatever the box meets is
overwritten, and what is copied lies in it, the last to be written there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Buffer, Domain, Kernel, Statement
from isam.schedule.tree import Issue, Loop, Node, Operand, Place, Schedule, Seq, Tile, distinct

BOX = " box"  # what follows the name of the operand that is filled; no name of a description has a blank in it
Made = tuple[Operand, Buffer]


def in_its_box(one: str, other: str) -> bool:
    """Whether one operand is the box of the other."""
    return one + BOX == other or other + BOX == one


def moves(ins: Instruction) -> bool:
    """Whether an instruction is a move, also where it is told with its box; its first statement is the copy then."""
    return ins.is_move or any(b.name.endswith(BOX) for b in ins.body.arguments)


def with_boxes(schedule: Schedule) -> Schedule:
    """The schedule with the boxes that moves fill as operands; itself where none does."""
    system = schedule.system
    nodes = [n for t in (schedule.bind, schedule.call) for n in distinct(t)]
    used = (system.instructions.get(n.instruction) for n in nodes if isinstance(n, Issue) and n.is_move)
    filling = {i.name: i for i in used if i is not None and i.fill is not None}
    if not filling:
        return schedule
    made = _Boxes(filling, schedule)
    bind, call = made.node(schedule.bind), made.node(schedule.call)

    def besides(kernel: Kernel) -> Kernel:
        return replace(kernel, buffers=(*kernel.buffers, *made.buffers.values()), template=None)

    instructions = {**system.instructions, **{n: _told(i) for n, i in made.filling.items()}}
    return replace(schedule, kernel=besides(schedule.kernel), bind=bind, call=call,
                   system=replace(system, instructions=instructions),
                   cover=replace(schedule.cover, kernel=besides(schedule.cover.kernel)))  # fmt: skip


def _told(i: Instruction) -> Instruction:
    """The instruction with its box and what is copied into it as two operands."""
    fill, copy = i.fill, i.copied
    assert fill is not None
    assert copy is not None
    name = fill.operand
    own = i.operand(name)
    index = tuple(Affine.of(row.terms[0][0]) for row in copy.dest.index)
    part = replace(own, shape=fill.part)
    box = replace(own, name=name + BOX)
    copied = replace(copy, dest=replace(copy.dest, index=index))
    first = i.body.statements[0]
    filled = Statement(Domain(first.domain.axes), Access(box.name, first.dest.index), "copy", first.sources)
    body = replace(i.body, buffers=tuple(x for b in i.body.buffers for x in ((box, part) if b.name == name else (b,))),
                   body=(copied, filled), template=None)  # fmt: skip
    contract = i.contract(name)
    return replace(i, body=body, operands={**i.operands, name: replace(contract, align=1), box.name: contract})


class _Boxes:
    def __init__(self, filling: Mapping[str, Instruction], schedule: Schedule):
        self.filling, self.kernel = filling, schedule.cover.kernel
        self.schedule = schedule
        self.buffers: dict[str, Buffer] = {}
        self.done: dict[int, Node] = {}

    def node(self, n: Node) -> Node:
        got = self.done.get(id(n))
        if got is None:
            got = self.done[id(n)] = self._issue(n) if isinstance(n, Issue) else self._inner(n)
        return got

    def _inner(self, n: Node) -> Node:
        if isinstance(n, Seq):
            return Seq(tuple(map(self.node, n.children)))
        assert isinstance(n, Loop)
        first, last = (None if p is None else self.node(p) for p in (n.first, n.last))
        return replace(n, enter=self.node(n.enter), first=first, body=self.node(n.body), last=last,
                       exit=self.node(n.exit))  # fmt: skip

    def _issue(self, n: Issue) -> Issue:
        """A call as it stands where it is none that could be told: what it lacks is found there."""
        ins = self.filling.get(n.instruction)
        if ins is None or not n.is_move:
            return n
        assert ins.fill is not None
        out: list[Operand] = []
        for o in n.operands:
            box = self._box(ins, o, dict(n.sizes)) if o.name == ins.fill.operand else None
            out += [o] if box is None else [box, o]
        return replace(n, operands=tuple(out))

    def _box(self, ins: Instruction, o: Operand, sizes: dict[str, int]) -> Operand | None:
        """The box of an operand: its first element lies as many elements before the tile as are filled there."""
        fill = ins.fill
        assert fill is not None
        known = {s.name for s in ins.syms} <= sizes.keys() and len(o.dims) == len(fill.box)
        rank = len(o.place.strides)
        if not known or len(o.tile.steps) != rank or any(d is not None and not 0 <= d < rank for d in o.dims):
            return None
        buffer = self.kernel.by_name.get(o.tile.buffer)
        dtype = buffer.dtype if buffer is not None else self.schedule.dtype(o.tile.buffer)
        strides: list[int] = []
        for need, d in zip(ins.contract(o.name).strides, o.dims, strict=True):
            if need is not None:
                strides.append(need * size_of(dtype))
            elif d is not None:
                strides.append(o.place.strides[d] * o.tile.steps[d])
            else:
                return None
        shape = tuple(int(e.substitute(sizes)) for e in fill.box)
        ahead = sum(n * k for n, k in zip(fill.at, strides, strict=True))
        name = f"{dtype}{list(shape)}{BOX}"
        self.buffers[name] = Buffer(name, tuple(Affine((), n) for n in shape), dtype, "temp")
        tile = Tile(name, tuple(Affine() for _ in shape), shape, tuple(1 for _ in shape))
        place = Place(o.place.memory, o.place.base, o.place.offset - ahead, tuple(strides), o.place.cell)
        return Operand(o.name + BOX, tile, place, tuple(range(len(shape))))
