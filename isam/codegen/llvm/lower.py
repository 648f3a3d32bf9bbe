"""A schedule to LLVM IR: its two entries, and a function for every shared node that no register crosses."""

from __future__ import annotations

from isam.caches import PAGE
from isam.classes import dataclass
from isam.codegen.llvm.irtext import Function, Module, vector
from isam.codegen.llvm.lanes import lane_of, snippets_of, vector_of
from isam.codegen.llvm.share import Share
from isam.codegen.llvm.walk import Walk
from isam.ir.affine import Affine
from isam.ir.dtype import ANY
from isam.schedule.liveness import Flow, references, weight
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule, Seq, distinct

SMALLEST_FUNCTION = 12  # issues: below that a shared node is emitted in place


@dataclass(frozen=True, slots=True)
class Shared:
    """A function made of a shared node: parameters are the bases and the loop variables that it mentions."""

    name: str
    bases: tuple[str, ...]
    variables: tuple[str, ...]

    @property
    def parameters(self) -> list[str]:
        return [f"ptr noalias %b{i}" for i in range(len(self.bases))] + [
            f"i64 %n{i}" for i in range(len(self.variables))
        ]

    @property
    def places(self) -> tuple[dict[str, str], dict[str, Affine]]:
        """What bases and variables are called in the function."""
        names = {n: Affine.of(f"%n{i}") for i, n in enumerate(self.variables)}
        return {b: f"%b{i}" for i, b in enumerate(self.bases)}, names


class Lowering:
    """One schedule: what all its functions have in common."""

    def __init__(self, schedule: Schedule, module: Module):
        self.schedule, self.module = schedule, module
        self.flow = Flow(schedule)
        self.references = references(schedule.bind, schedule.call)
        self.shared: dict[int, Shared] = {}
        self.vector, self.lane = vector_of(schedule.system), lane_of(schedule.system)
        self.lanes = self.vector.count
        self.snippets = snippets_of(schedule.system)
        self.slots = {s.name: s for s in schedule.workspace}
        self.dtypes: dict[str, str] = {}  # of buffers
        self.sizes = {s.name: s.bytes for s in schedule.workspace} | {
            b.name: size for b in schedule.kernel.arguments if (size := b.bytes) is not None}  # fmt: skip
        self.bases = tuple(b.name for b in schedule.kernel.arguments) + tuple(
            s.name for s in schedule.workspace if s.literal is None)  # fmt: skip
        self.symbols = tuple(s.name for s in (*schedule.kernel.given, *schedule.kernel.follow))
        self.instances = instances(schedule)
        self.own = own_bytes(schedule)
        self.regions = 0

    def dtype(self, issue: Issue, o: Operand) -> str:
        formal, buffer = self.flow.formal(issue, o).dtype, o.tile.buffer
        if formal != ANY:
            return formal
        if buffer not in self.dtypes:
            slot = self.slots.get(buffer)
            own = slot.dtype if slot is not None else ""
            self.dtypes[buffer] = own or self.schedule.kernel.buffer(buffer).dtype
        return self.dtypes[buffer]

    def cache(self, memory: str) -> int:
        """Which cache a memory is, the nearest being 0."""
        return [m.name for m in self.schedule.system.caches].index(memory)

    def type(self, memory: str, dtype: str) -> str:
        """The type of a value in a register of ``memory``."""
        return vector(dtype, self.schedule.system.memories[memory].elements(dtype))

    def shareable(self, node: Node) -> bool:
        """Worth a function: stands in several places, is large enough and reads no register that it has not written."""
        if isinstance(node, Issue) or self.references.get(id(node), 0) < 2:
            return False
        return not self.flow.effect(node).exposed and weight(node, SMALLEST_FUNCTION) >= SMALLEST_FUNCTION

    def function(self, node: Node) -> Shared:
        """The function of a shared node, made on first use."""
        found = self.shared.get(id(node))
        if found is None:
            found = Shared(f"part{len(self.shared)}", *_free(node, self.bases))
            self.shared[id(node)] = found
            fn = Function(self.module, found.name, found.parameters, attrs="nounwind noinline")
            Walk(self, fn, *found.places).in_place(node)
        return found

    def region(self, loops: tuple[Loop, ...]) -> Shared:
        """The function ``void (ptr words, i64 instance)`` that does one instance's iterations of dealt loops; its
        parameters stand as words of 8 bytes one after the other."""
        found = Shared(f"region{self.regions}", *_free(Seq(loops), self.bases))
        self.regions += 1
        inner = Function(self.module, f"{found.name}.body", [*found.parameters, "i64 %instance"])
        share = Share(Walk(self, inner, *found.places))
        for loop in loops:
            share.dealt(loop)
        outer = Function(self.module, found.name, ["ptr %words", "i64 %instance"])
        outer.buffer()
        given = [outer.op(f"load {t}, ptr {outer.gep('%words', 8 * i)}, align 8") for i, t in enumerate(
            ["ptr"] * len(found.bases) + ["i64"] * len(found.variables))]  # fmt: skip
        own = outer.op(f"mul i64 %instance, {self.own}") if self.own else "0"
        for i, b in enumerate(found.bases):
            if self.slots.get(b) is not None and self.schedule.system.replica_of(self.slots[b].memory):
                given[i] = outer.gep(given[i], own)
        args = [f"ptr {g}" for g in given[: len(found.bases)]] + [f"i64 {g}" for g in given[len(found.bases) :]]
        outer.emit(f"call void @{inner.name}({', '.join([*args, 'i64 %instance'])})")
        return found

    def main(self, name: str, node: Node) -> None:
        """An entry of the artifact: ``void name(ptr* arguments, ptr workspace, i64* sizes)``."""
        whole = Shared(f"{name}.body", self.bases, self.symbols)
        inner = Function(self.module, whole.name, whole.parameters)
        Walk(self, inner, *whole.places).in_place(node)
        outer = Function(self.module, name, ["ptr %arguments", "ptr %workspace", "ptr %sizes"], linkage="")
        outer.buffer()
        count = len(self.schedule.kernel.arguments)
        offsets = slot_offsets(self.schedule)
        given = [outer.op(f"load ptr, ptr {outer.gep('%arguments', 8 * i)}, align 8") for i in range(count)]
        given += [outer.gep("%workspace", offsets[b]) for b in self.bases[count:]]
        kernel = self.schedule.kernel
        sizes = {s.name: outer.op(f"load i64, ptr {outer.gep('%sizes', 8 * i)}, align 8")
                 for i, s in enumerate(kernel.given)}  # fmt: skip
        sizes |= {s.name: outer.op(f"udiv i64 {sizes[s.whole[0]]}, {s.whole[1]}") for s in kernel.follow if s.whole}
        words = [f"ptr {g}" for g in given] + [f"i64 {sizes[s]}" for s in self.symbols]
        outer.emit(f"call void @{name}.body({', '.join(words)})")


def instances(schedule: Schedule) -> int:
    """Of how many instances there is a part of the workspace: all that there are of what a loop is dealt to."""
    counts = (schedule.system.replicas[n.deal.group].count for tree in (schedule.bind, schedule.call)
              for n in distinct(tree) if isinstance(n, Loop) and n.deal is not None)  # fmt: skip
    return max(counts, default=1)


def slot_offsets(schedule: Schedule) -> dict[str, int]:
    """Byte offset of every workspace slot in the one block that the caller hands over; bound ones come first, those
    that every instance has for itself last: there that of the first instance."""
    return _laid_out(schedule)[0]


def own_bytes(schedule: Schedule) -> int:
    """Bytes from what one instance has for itself to what the next has."""
    return _laid_out(schedule)[1]


def workspace_bytes(schedule: Schedule) -> int:
    """Bytes of the block, with what every instance has for itself."""
    offsets, own = _laid_out(schedule)
    ends = [offsets[s.name] + s.bytes for s in schedule.workspace if s.name in offsets]
    return max(ends, default=0) + own * (instances(schedule) - 1)


def _laid_out(schedule: Schedule) -> tuple[dict[str, int], int]:
    out: dict[str, int] = {}
    own = [s for s in schedule.workspace if schedule.system.replica_of(s.memory)]
    at, first = 0, -1
    for s in [*sorted((s for s in schedule.workspace if s not in own), key=lambda s: not s.bound), *own]:
        if s.literal is None:
            if s in own and first < 0:
                first = at = -(-at // PAGE) * PAGE  # what instances have for themselves begins on pages of its own
            align = max(64, s.align)
            at = -(-at // align) * align
            out[s.name] = at
            at += s.bytes
    return out, 0 if first < 0 else -(-(at - first) // PAGE) * PAGE


def _free(node: Node, bases: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Bases and free names (loop variables of outer loops, sizes) that addresses and bounds below ``node`` mention."""
    used: set[str] = set()

    def names(n: Node) -> set[str]:
        found = seen.get(id(n))
        if found is not None:
            return found
        out: set[str] = set()
        if isinstance(n, Issue):
            for o in n.operands:
                used.add(o.place.base)
                out.update(o.place.offset.names)
        elif isinstance(n, Seq):
            for c in n.children:
                out |= names(c)
        else:
            inside = [n.body, *(p for p in (n.first, n.last) if p is not None)]
            for p in inside:
                out |= names(p)
            out.discard(n.var)
            out |= names(n.enter) | names(n.exit)
            for b in n.lo + n.hi:
                out.update(b.expr.names)
            if n.serpentine is not None:
                out.add(n.serpentine.var)
        seen[id(n)] = out
        return out

    seen: dict[int, set[str]] = {}
    free = tuple(sorted(names(node)))
    return tuple(b for b in bases if b in used), free
