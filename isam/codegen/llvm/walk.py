"""The schedule tree to LLVM IR. Knows Loop, Seq and Issue and the emission templates of the description, nothing else.

Registers (counted memories) are SSA values: the walk tracks which value each cell holds, a loop carries the cells that
its body reads before it writes them. A node that stands in several places and has no live register at its boundary
becomes a function; everything else is emitted in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.codegen.llvm import tiles, transposed, woven
from isam.codegen.llvm.address import Addresses
from isam.codegen.llvm.irtext import Function
from isam.codegen.llvm.narrow import fitted, lanes_of_call
from isam.codegen.llvm.share import regions
from isam.codegen.llvm.template import Setting, expand
from isam.diagnostics import InternalError, fail
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.fills import begin
from isam.schedule.liveness import NOTHING, Cell
from isam.schedule.tree import Bound, Issue, Loop, Node, Operand, Prefetch, Seq, Serpentine

if TYPE_CHECKING:
    from isam.codegen.llvm.lower import Lowering


FORK = "isam.fork"  # void (void (ptr, i64) *function, ptr words, i64 instances)


@dataclass(frozen=True, slots=True)
class Value:
    """What a cell holds: an SSA value of ``dtype``; ``splat``: the same scalar in all lanes."""

    ssa: str
    dtype: str
    splat: bool


class Walk:
    """Emits nodes into one function. ``env``: loop variables and sizes as expressions over the function's values."""

    def __init__(self, lowering: Lowering, fn: Function, bases: dict[str, str], env: dict[str, Affine]):
        self.low, self.fn, self.bases, self.env = lowering, fn, bases, env
        self.addresses = Addresses(fn)
        self.cells: dict[Cell, Value] = {}
        self.labels = 0

    def emit(self, node: Node, live: frozenset[Cell]) -> None:
        """Emits ``node``, or a call of its function; ``live``: cells whose values matter after it."""
        if self.low.shareable(node) and not self.low.flow.effect(node).writes & live:
            self._call(node)
        else:
            self.in_place(node, live)

    def in_place(self, node: Node, live: frozenset[Cell] = NOTHING) -> None:
        if isinstance(node, Issue):
            self._issue(node)
        elif isinstance(node, Seq):
            self._sequence(node, live)
        elif node.deal is not None:
            self._region((node,))
        else:
            self._loop(node, live)

    def _sequence(self, node: Seq, live: frozenset[Cell]) -> None:
        after = [live] * len(node.children)
        if not all(isinstance(c, Issue) for c in node.children):
            for i in range(len(node.children) - 1, 0, -1):
                after[i - 1] = self.low.flow.effect(node.children[i]).before(after[i])
        at, weaves = 0, woven.weaves(self.low, node.children)
        turns = transposed.squares(self.low, node.children)
        squares = {i: s for i, s in turns.items() if weaves.keys().isdisjoint(s.calls)}
        for part in regions(node.children):
            if isinstance(part, tuple):
                self._region(part)
                at += len(part)
                continue
            if at in squares:
                self._transposed(squares[at], at)
            elif at in weaves:
                self._woven(weaves[at], at)
            else:
                self.emit(part, after[at])
            at += 1

    def _region(self, loops: tuple[Loop, ...]) -> None:
        """Hands dealt loops to whoever runs instances side by side."""
        low, fn = self.low, self.fn
        if any(low.flow.effect(n).exposed for n in loops):
            raise InternalError("a loop that is dealt out reads registers from outside")
        shared = low.region(loops)
        words = fn.op(f"alloca [{len(shared.bases) + len(shared.variables)} x i64], align 8", fn.entry)
        given = [("ptr", self.bases[b]) for b in shared.bases]
        given += [("i64", self.addresses.value(self.env[n])) for n in shared.variables]
        for i, (type_, value) in enumerate(given):
            fn.emit(f"store {type_} {value}, ptr {fn.gep(words, 8 * i)}, align 8")
        low.module.externals[FORK] = f"isam:fork/{low.instances}"
        fn.do(f"call void @{FORK}(ptr @{shared.name}, ptr {words}, i64 {low.instances})")
        for n in loops:
            for c in low.flow.effect(n).writes:
                self.cells.pop(c, None)

    def _call(self, node: Node) -> None:
        shared = self.low.function(node)
        args = [f"ptr {self.bases[b]}" for b in shared.bases]
        args += [f"i64 {self.addresses.value(self.env[n])}" for n in shared.variables]
        self.fn.emit(f"call void @{shared.name}({', '.join(args)})")
        for c in self.low.flow.effect(node).writes:
            self.cells.pop(c, None)

    # loops

    def _loop(self, node: Loop, live: frozenset[Cell]) -> None:
        trip = node.trip
        if trip == 0:
            return
        outer = self.env.get(node.var)
        if trip is None:
            self._guarded(node, live)
        else:
            self._iterations(node, self._resolved(node.lo[0].expr) if len(node.lo) == 1 and node.lo[0].div == 1
                             else Affine((), node.static[0]), trip, live)  # fmt: skip  # type: ignore[index]
        self._leave(node.var, outer)

    def _iterations(self, node: Loop, lo: Affine, trip: int, live: frozenset[Cell]) -> None:
        """A loop with a known number of iterations: the peeled ones and lonely ones in place, the others as a loop."""
        flow = self.low.flow
        ending = flow.effect(node.exit).before(live)
        inside = ending | flow.effect(node.body).exposed
        for p in (node.first, node.last):
            inside |= flow.effect(p).exposed if p is not None else NOTHING
        self.emit(node.enter, inside)
        first, last = int(node.first is not None), int(node.last is not None)
        if node.first is not None:
            self._at(node, lo, node.first, inside)
        middle = trip - first - last
        begin, end = lo + first * node.step, lo + (first + middle) * node.step
        if middle > 1:
            begin = self._squares(node, begin, middle, inside)
            middle = (end - begin).const // node.step
        if middle == 1:
            self._at(node, begin, node.body, inside)
        elif middle > 1:
            self._repeat(node, self.addresses.value(begin), self.addresses.value(end), inside)
        if node.last is not None:
            self._at(node, lo + (trip - 1) * node.step, node.last, ending)
        self.emit(node.exit, live)

    def _at(self, node: Loop, value: Affine, part: Node, live: frozenset[Cell]) -> None:
        self.env[node.var] = value
        self.emit(part, live)

    def _squares(self, node: Loop, begin: Affine, trips: int, live: frozenset[Cell]) -> Affine:
        """Iterations that turn rows into columns, several at once; where those that are left begin."""
        writes = self.low.flow.effect(node.body).writes
        found = transposed.together(self.low, node, bool(writes & live))
        if found is None or trips < found[1]:
            return begin
        several, times = found
        end = begin + trips // times * times * node.step
        bounds = self.addresses.value(begin), self.addresses.value(end)
        self._rounds(node, *bounds, node.step * times, partial(self.in_place, several))
        for c in writes - live:
            self.cells.pop(c, None)
        return end

    def _leave(self, var: str, outer: Affine | None) -> None:
        """A variable is again what it was outside its loop."""
        if outer is None:
            self.env.pop(var, None)
        else:
            self.env[var] = outer

    def _repeat(self, node: Loop, low: str, high: str, live: frozenset[Cell]) -> None:
        """The loop's own body for all values from ``low`` to below ``high``."""
        self._rounds(node, low, high, node.step, partial(self.emit, node.body, live))

    def _rounds(self, node: Loop, low: str, high: str, step: int, body: Callable[[], None]) -> None:
        """``for var = low; ...; var += step`` while below ``high``, at least once; registers are carried by phis."""
        fn, effect = self.fn, self.low.flow.effect(node.body)
        carried = sorted(c for c in effect.writes & effect.exposed if c in self.cells)
        self.labels += 1
        tag = f"{self.labels}"
        back = None if node.serpentine is None else self._back(node.serpentine, low, high, step)
        before, var = fn.block, f"%i{tag}"
        fn.emit(f"br label %loop{tag}")
        fn.label(f"loop{tag}")
        phis = fn.buffer()
        entering = {c: self.cells[c] for c in carried}
        for c in carried:
            v = entering[c]
            self.cells[c] = Value(fn.fresh(), v.dtype, v.splat)
        names = {c: self.cells[c].ssa for c in carried}
        value = var if back is None else fn.op(f"add i64 {back[0]}, {fn.op(f'mul i64 {back[1]}, {var}')}")
        self.env[node.var] = Affine.of(value)
        self.addresses.push(fn.buffer(), value)
        body()
        self.addresses.pop()
        following = fn.op(f"add nsw i64 {var}, {step}")
        again = fn.op(f"icmp slt i64 {following}, {high}")
        fn.emit(f"{var} = phi i64 [ {low}, %{before} ], [ {following}, %{fn.block} ]", phis)
        for c in carried:
            v, new = entering[c], self.cells[c]
            if new.dtype != v.dtype:
                raise InternalError(f"cell {c} enters a loop as {v.dtype} and comes round as {new.dtype}")
            if v.splat and not new.splat:
                raise InternalError(f"cell {c} enters a loop as a scalar and comes round as a vector")
            fn.emit(f"{names[c]} = phi {self.low.type(c[0], v.dtype)} [ {v.ssa}, %{before} ], "
                    f"[ {new.ssa}, %{fn.block} ]", phis)  # fmt: skip
        fn.emit(f"br i1 {again}, label %loop{tag}, label %done{tag}")
        fn.label(f"done{tag}")

    def _back(self, serpentine: Serpentine, low: str, high: str, step: int) -> tuple[str, str]:
        """``(a, b)``: what counts upwards is ``v`` where the loop's variable is ``a + b * v``, from its last value down
        where the loop goes backwards."""
        fn, number = self.fn, self.addresses.value(self.env[serpentine.var])
        if serpentine.period > 1:  # rounded down, below 0 too
            less = fn.op(f"icmp slt i64 {fn.op(f'srem i64 {number}, {serpentine.period}')}, 0")
            number = fn.op(f"sdiv i64 {number}, {serpentine.period}")
            number = fn.op(f"sub i64 {number}, {fn.op(f'zext i1 {less} to i64')}")
        odd = fn.op(f"trunc i64 {number} to i1")
        ends = fn.op(f"add i64 {low}, {fn.op(f'sub i64 {high}, {step}')}")
        return fn.op(f"select i1 {odd}, i64 {ends}, i64 0"), fn.op(f"select i1 {odd}, i64 -1, i64 1")

    def _guarded(self, node: Loop, live: frozenset[Cell]) -> None:
        """A loop whose number of iterations shows at run time: nothing runs when there is none."""
        if node.first is not None or node.last is not None:
            raise InternalError("a loop with a run-time trip has peeled bodies")
        fn = self.fn
        low, high = self._bound(node.lo, True), self._bound(node.hi, False)
        self.labels += 1
        tag = f"{self.labels}"
        some = fn.op(f"icmp slt i64 {low}, {high}")
        skipping, before = fn.block, dict(self.cells)
        fn.emit(f"br i1 {some}, label %some{tag}, label %none{tag}")
        fn.label(f"some{tag}")
        self.addresses.push(fn.buffer())
        flow = self.low.flow
        inside = flow.effect(node.exit).before(live) | flow.effect(node.body).exposed
        self.emit(node.enter, inside)
        self._repeat(node, low, high, inside)
        self.emit(node.exit, live)
        self.addresses.pop()
        leaving = fn.block
        fn.emit(f"br label %none{tag}")
        fn.label(f"none{tag}")
        self._merge(before, skipping, leaving)

    def _merge(self, before: dict[Cell, Value], skipping: str, leaving: str) -> None:
        after, self.cells = self.cells, {}
        for c, old in before.items():
            new = after.get(c)
            if new == old:
                self.cells[c] = old
            elif new is not None and new.dtype == old.dtype:
                type_ = self.low.type(c[0], old.dtype)
                ssa = self.fn.op(f"phi {type_} [ {old.ssa}, %{skipping} ], [ {new.ssa}, %{leaving} ]")
                self.cells[c] = Value(ssa, old.dtype, old.splat and new.splat)

    def _bound(self, bounds: tuple[Bound, ...], lower: bool) -> str:
        """The largest of the lower bounds (rounded up) or the smallest of the upper ones (rounded down)."""
        out = ""
        for b in bounds:
            x = self.addresses.value(self._resolved(b.expr))
            if b.div != 1:
                x = self._divided(x, b.div, lower)
            which = "smax" if lower else "smin"
            out = self.fn.op(f"call i64 @llvm.{which}.i64(i64 {out}, i64 {x})") if out else x
        return out

    def _divided(self, x: str, by: int, up: bool) -> str:
        """Division of a number of any sign, rounded up or down."""
        fn = self.fn
        q = fn.op(f"sdiv i64 {x}, {by}")
        r = fn.op(f"srem i64 {x}, {by}")
        off = fn.op(f"icmp {'sgt' if up else 'slt'} i64 {r}, 0")
        return fn.op(f"{'add' if up else 'sub'} i64 {q}, {fn.op(f'zext i1 {off} to i64')}")

    def _resolved(self, e: Affine) -> Affine:
        return e.substitute(self.env)

    # issues

    def _issue(self, issue: Issue) -> None:
        low = self.low
        instruction = low.schedule.system.instructions[issue.instruction]
        template = instruction.emission.get("llvm")
        if not isinstance(template, str):
            raise fail("emission-missing", f"'{issue.instruction}' has no LLVM template", instruction.loc,
                       "give it 'emission: {llvm: ...}' or compile for the simulator")  # fmt: skip
        values: dict[str, str] = {}
        written: list[tuple[str, Cell, str, bool]] = []
        addressed: dict[str, tiles.Addressed] = {}
        asked: dict[str, list[str]] = {}
        sizes = dict(issue.sizes)
        lanes = lanes_of_call(instruction, sizes, low.lanes)
        for o in issue.operands:
            cell, formal, dtype = low.flow.cell(o), low.flow.formal(issue, o), low.dtype(issue, o)
            if cell is None and o.place.cell is not None:
                values[o.name] = str(self._number(o))
                continue
            if cell is None:
                begins = begin(instruction, issue, o, size_of(dtype))
                addressed[o.name] = self._addressed(o, dtype, begins)
                if issue.prefetch is not None and addressed[o.name].literal is None:
                    asked[o.name] = self._asked(o, begins, issue.prefetch)
                values[o.name] = addressed[o.name].pointer
                continue
            if formal.role != "out":
                values[o.name] = fitted(self.fn, self._read(cell, o, dtype), dtype, low.lanes, lanes)
            if formal.role in ("out", "inout"):
                written.append((o.name, cell, dtype, not formal.shape))
        cache = 0 if issue.prefetch is None else low.cache(issue.prefetch.memory)
        setting = Setting(replace(low.vector, count=lanes), low.snippets, sizes, addressed, low.lane, asked, cache)
        names = expand(self.fn, template, values, setting)
        for name, cell, dtype, splat in written:
            self.cells[cell] = Value(fitted(self.fn, names[name], dtype, lanes, low.lanes), dtype, splat)

    def _asked(self, operand: Operand, begins: int, prefetch: Prefetch) -> list[str]:
        """Addresses that a cache is asked for, ``begins`` bytes from where the operand lies."""
        base, offset = self.bases[operand.place.base], operand.place.offset + begins + prefetch.ahead
        lines = (self._resolved(offset + n * prefetch.apart) for n in range(prefetch.lines))
        return [self.addresses.pointer(base, line) for line in lines]

    def _transposed(self, square: transposed.Square, at: int) -> None:
        """A call of a square: what it reads comes with the first, what it writes goes with the last."""
        fn, lanes, call = self.fn, self.low.vector, square.calls[at]
        words, own = lanes.type(call.side.element), self.low.type(call.cell[0], call.dtype)
        place = square.first.side.operand.place
        if call.reads:
            if not square.values:
                square.read(fn, self.addresses.pointer(self.bases[place.base], self._resolved(place.offset)), lanes)
            self.cells[call.cell] = Value(fn.op(f"bitcast {words} {square.values[at]} to {own}"), call.dtype, False)
            return
        value = self._read(call.cell, call.register, call.dtype)
        square.values[at] = fn.op(f"bitcast {own} {value} to {words}")
        if len(square.values) == len(square.calls):
            square.write(fn, self.addresses.pointer(self.bases[place.base], self._resolved(place.offset)), lanes)

    def _woven(self, weave: woven.Weave, at: int) -> None:
        """A call of a weave, which is written with the last of them."""
        call, place = weave.calls[at], weave.first.side.operand.place
        weave.values[at] = self._read(call.cell, call.register, call.dtype)
        if len(weave.values) == len(weave.calls):
            weave.write(self.fn, self.addresses.pointer(self.bases[place.base], self._resolved(place.offset)))

    def _number(self, o: Operand) -> int:
        """The register that a template names by its number."""
        if o.place.offset != Affine() or o.place.cell is None:
            raise fail("emission-cell", f"'{o.name}' ({o.tile}) begins within a cell of '{o.place.memory}'",
                       hint="a template can name whole cells")  # fmt: skip
        return o.place.cell

    def _addressed(self, o: Operand, dtype: str, begins: int) -> tiles.Addressed:
        """``begins``: so many bytes from where its tile lies."""
        place, tile = o.place, o.tile
        slot = self.low.slots.get(place.base)
        if slot is not None and slot.literal is not None:
            rank = len(o.dims)
            pointer = self.low.module.constant(f"{tiles.ELEMENT[dtype]} {tiles.constant(dtype, slot.literal)}")
            return tiles.Addressed(pointer, dtype, (1,) * rank, (0,) * rank, slot.literal)
        offset = self._resolved(place.offset + begins)
        pointer = self.addresses.pointer(self.bases[place.base], offset)
        shape = tuple(1 if d is None else tile.shape[d] for d in o.dims)
        steps = tuple(0 if d is None else place.strides[d] * tile.steps[d] for d in o.dims)
        size = self.low.sizes.get(place.base)
        inside = (self.bases[place.base], size) if size else None
        beside = tiles.whole_steps(offset, steps[0], size_of(dtype), size) if len(steps) == 1 and size else (0, 0)
        return tiles.Addressed(pointer, dtype, shape, steps, None, inside, beside)

    def _read(self, cell: Cell, o: Operand, dtype: str) -> str:
        value = self.cells.get(cell)
        if value is None:
            raise InternalError(f"operand '{o.name}' reads cell {cell}, which holds nothing here ({o.tile})")
        if value.dtype != dtype:
            raise InternalError(f"operand '{o.name}' reads {dtype} from cell {cell}, which holds {value.dtype}")
        if self.low.schedule.system.memories[cell[0]].lane:
            if o.place.offset.const:
                raise InternalError(f"operand '{o.name}' reads a part of the groups in cell {cell} ({o.tile})")
            return value.ssa
        lane = 0 if value.splat else o.place.offset.const // size_of(dtype)
        if o.dims and not lane:
            return value.ssa
        if value.splat:
            return value.ssa
        return tiles.shifted(self.fn, value.ssa, dtype, self.low.lanes, lane, not o.dims)
