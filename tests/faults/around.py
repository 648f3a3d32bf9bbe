"""Faults of a schedule as a whole: places given to two tiles, slots, literals, homes, covers, the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

from isam.ir.kernel import Kernel, Literal, Recurrence
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule, Seq, Wait
from isam.system.groups import Ports
from tests.faults.calls import unlike, used

LARGE = 1 << 20  # bytes that a simulated slot may have
Made = Iterator[tuple[str, Callable[[], Schedule]]]


def each(s: Schedule, change: Callable[[Issue], Node]) -> Schedule:
    """Every step of both trees changed; shared nodes stay shared."""
    done: dict[int, Node] = {}

    def walk(n: Node) -> Node:
        got = done.get(id(n))
        if got is None:
            if isinstance(n, Seq):
                got = Seq(tuple(walk(c) for c in n.children))
            elif isinstance(n, Loop):
                parts = {p: getattr(n, p) for p in ("enter", "first", "body", "last", "exit")}
                got = replace(n, **{p: None if c is None else walk(c) for p, c in parts.items()})
            else:
                got = change(n)
            done[id(n)] = got
        return got

    return replace(s, bind=walk(s.bind), call=walk(s.call))


def operands(s: Schedule, change: Callable[[Operand], Operand]) -> Schedule:
    return each(s, lambda n: replace(n, operands=tuple(map(change, n.operands))))


def placed(s: Schedule, old: tuple, new: tuple) -> Schedule:
    """What lies in one place lies in another one, in every step."""

    def change(o: Operand) -> Operand:
        p = o.place
        if (p.memory, p.base, p.offset, p.cell) != old:
            return o
        return replace(o, place=replace(p, memory=new[0], base=new[1], offset=new[2], cell=new[3]))

    return operands(s, change)


def slots(s: Schedule) -> Made:
    """Two tiles in one place (freed too early), two slots in one."""
    for memory, places in used(s).items():
        keys = [(memory, p.base, p.offset, p.cell) for p in places if not p.base]
        for a, b in pairwise(keys):
            yield "a place that is another's too", partial(placed, s, a, b)
            yield "a place that is another's too", partial(placed, s, b, a)
        if keys and s.system.memories[memory].cells is None:
            yield "places closer together", partial(closer, s, memory)
    for a, b in pairwise([w for w in s.workspace if w.literal is None]):
        yield "two slots in one", partial(one_slot, s, a.name, b.name)
    for i, w in enumerate(s.workspace):

        def slot(new: object, i: int = i) -> Schedule:
            return replace(s, workspace=(*s.workspace[:i], new, *s.workspace[i + 1 :]))  # type: ignore[arg-type]

        if w.literal is not None:
            yield "a literal's slot holds another", partial(slot, replace(w, literal=_other(w.literal)))
            wrong = "i8" if w.dtype == "f64" else "f64"
            yield "a literal's slot of another dtype", partial(slot, replace(w, dtype=wrong))
            yield "another literal, consistently", partial(another_literal, s, w.name)
        yield "a slot aligned otherwise", partial(slot, replace(w, align=max(1, w.align // 16)))
        room = s.system.memories[w.memory].capacity
        if room <= LARGE:
            yield "a slot as large as its memory", partial(slot, replace(w, bytes=room))


def closer(s: Schedule, memory: str) -> Schedule:
    """Offsets in a memory halved."""

    def change(o: Operand) -> Operand:
        p = o.place
        if p.memory != memory or p.base:
            return o
        return replace(o, place=replace(p, offset=p.offset - (p.offset.const // 2 if p.offset.const > 0 else 0)))

    return operands(s, change)


def one_slot(s: Schedule, a: str, b: str) -> Schedule:
    """What is in slot ``b`` is in slot ``a``, which has room for the larger."""
    named = {w.name: w for w in s.workspace}
    room = max(named[a].bytes, named[b].bytes)

    def change(o: Operand) -> Operand:
        return replace(o, place=replace(o.place, base=a, memory=named[a].memory)) if o.place.base == b else o

    kept = tuple(replace(w, bytes=room) if w.name == a else w for w in s.workspace if w.name != b)
    homes = {n: replace(p, base=a, memory=named[a].memory) if p.base == b else p for n, p in s.homes.items()}
    return replace(operands(s, change), workspace=kept, homes=homes)


def _other(value: float | int | bool) -> float | int | bool:
    return not value if isinstance(value, bool) else value + 1 if value + 1 != value else 0.5


def another_literal(s: Schedule, name: str) -> Schedule:
    """The kernel as it is scheduled, its cover, tiles and slots say another number."""
    dtype, _, text = name[1:].partition(":")
    slot = next(w for w in s.workspace if w.name == name)
    assert slot.literal is not None
    value = _other(slot.literal)
    new = f"#{dtype}:{value}"

    def change(o: Operand) -> Operand:
        t = o.tile._replace(buffer=new) if o.tile.buffer == name else o.tile
        p = replace(o.place, base=new) if o.place.base == name else o.place
        return replace(o, tile=t, place=p)

    def body(items: tuple) -> tuple:
        return tuple(
            replace(it, body=body(it.body)) if isinstance(it, Recurrence)
            else replace(it, sources=tuple(
                Literal(value) if isinstance(x, Literal) and str(x.value) == text else x for x in it.sources))
            for it in items)  # fmt: skip

    def kernel(k: Kernel) -> Kernel:
        return replace(k, body=body(k.body), template=None)

    out = operands(s, change)
    workspace = tuple(replace(w, name=new, literal=value) if w.name == name else w for w in s.workspace)
    homes = {new if b == name else b: replace(p, base=new) if b == name else p for b, p in s.homes.items()}
    mappings = tuple(replace(m, operands=tuple(replace(o, buffer=new) if o.buffer == name else o for o in m.operands))
                     for m in s.cover.mappings)  # fmt: skip
    cover = replace(s.cover, kernel=kernel(s.cover.kernel), mappings=mappings)
    return replace(out, workspace=workspace, homes=homes, kernel=kernel(s.kernel), cover=cover)


def wholes(s: Schedule) -> Made:
    """Bind and call, waits of a stream, homes, buffers, mappings."""
    if s.bind != Seq():
        yield "what is bound once left out", partial(replace, s, bind=Seq())
        yield "what is bound once in every call", partial(replace, s, bind=Seq(), call=Seq((s.bind, s.call)))
        yield "what is bound once done twice", partial(replace, s, bind=Seq((s.bind, s.bind)))
    yield "the call done twice", partial(replace, s, call=Seq((s.call, s.call)))
    if isinstance(s.call, Seq) and s.call.children:
        first, *rest = s.call.children
        yield "a step of the call bound once", partial(replace, s, bind=Seq((s.bind, first)), call=Seq(tuple(rest)))
    for b in s.kernel.buffers:
        for dtype in {"f32": ("i32", "bf16"), "i32": ("f32", "i16"), "i8": ("i16",), "f64": ("f32",)}.get(b.dtype, ()):
            yield "a buffer of another dtype", partial(_typed, s, b.name, dtype)
    streams = {s.system.cluster_of(u) or u for u in s.system.units}
    if len(streams) > 1:
        for stream in sorted(streams):
            yield "nobody waits for a stream", partial(_waits, s, lambda w, x=stream: None if w.stream == x else w)
        yield "all waits end a step early", partial(_waits, s, lambda w: replace(w, lag=w.lag + 1))
    for b, p in s.homes.items():
        for d, k in enumerate(p.strides):
            strides = (*p.strides[:d], 2 * k, *p.strides[d + 1 :])
            yield "home strides", partial(_home, s, b, replace(p, strides=strides))
        for c, q in s.homes.items():
            if b < c and len(p.strides) == len(q.strides):
                yield "two homes exchanged", partial(_home, _home(s, b, q), c, p)
    for i, m in enumerate(s.cover.mappings):
        for _, other in unlike(m.instruction, s.system):
            yield "mapped to another instruction", partial(_mapped, s, i, other.name)
    for i, nest in enumerate(s.nests):
        for a, (name, extent) in enumerate(nest.axes):
            axes = (*nest.axes[:a], (name, extent + 1), *nest.axes[a + 1 :])
            new = replace(nest, axes=axes)
            yield "a nest's extent", partial(replace, s, nests=(*s.nests[:i], new, *s.nests[i + 1 :]))


def _waits(s: Schedule, change: Callable[[Wait], Wait | None]) -> Schedule:
    return each(s, lambda n: replace(n, after=tuple(v for w in n.after if (v := change(w)) is not None)))


def _typed(s: Schedule, buffer: str, dtype: str) -> Schedule:
    """The kernel as it is scheduled says another dtype of a buffer."""

    def kernel(k: Kernel) -> Kernel:
        buffers = tuple(replace(b, dtype=dtype) if b.name == buffer else b for b in k.buffers)
        return replace(k, buffers=buffers, template=None)

    return replace(s, kernel=kernel(s.kernel), cover=replace(s.cover, kernel=kernel(s.cover.kernel)))


def _home(s: Schedule, buffer: str, place: object) -> Schedule:
    return replace(s, homes={**s.homes, buffer: place})  # type: ignore[dict-item]


def _mapped(s: Schedule, which: int, name: str) -> Schedule:
    """A mapping of the cover and all its calls are of another instruction."""
    mine, other = s.cover.mappings[which].instruction, s.system.instructions[name]
    nests = {i for i, n in enumerate(s.nests) if n.mapping == which}

    def change(n: Issue) -> Issue:
        if n.nest not in nests or n.instruction != mine.name:
            return n
        known = dict(n.sizes)
        return replace(n, instruction=name, sizes=tuple((y.name, known.get(y.name, 1)) for y in other.syms))

    mapping = replace(s.cover.mappings[which], instruction=other)
    mappings = (*s.cover.mappings[:which], mapping, *s.cover.mappings[which + 1 :])
    return replace(each(s, change), cover=replace(s.cover, mappings=mappings))


def machines(s: Schedule) -> Made:
    """The machine lacks what the schedule uses."""
    system = s.system
    for n, u in system.units.items():
        for r in u.runs:
            runs = tuple(x for x in u.runs if x != r)
            if any(r == m.instruction.name for m in s.cover.mappings):
                units = {**system.units, n: replace(u, runs=runs)}
                yield "a unit that does not run it", partial(replace, s, system=replace(system, units=units))
    for g, r in system.replicas.items():
        less = replace(system, replicas={**system.replicas, g: replace(r, count=1)})
        yield "one instance", partial(replace, s, system=less)
    for n, m in system.memories.items():
        narrow = {**system.memories, n: replace(m, ports=Ports(1, 1))}
        yield "a memory of one port", partial(replace, s, system=replace(system, memories=narrow))
        if m.cells is None:
            wide = {**system.memories, n: replace(m, align=max(4, 4 * (m.align or 1)))}
            yield "a memory aligned coarser", partial(replace, s, system=replace(system, memories=wide))


