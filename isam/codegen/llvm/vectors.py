"""Elements of memory in the lanes of a vector: side by side, or a few apart.

Elements a few apart are loaded with all that lies between them, as whole vectors, and brought together by shuffles;
where masks are for all, they are stored under ones that leave alone what lies between them. Nothing before the first
of them or behind the last is touched, but what is known to be of the same buffer: the last vector that is loaded ends
there, over what the one before it has. Where a buffer consists of whole steps these are loaded whole, so that vectors
begin where lines do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isam.classes import dataclass
from isam.codegen.llvm.irtext import SUFFIX, Function, mask
from isam.diagnostics import InternalError
from isam.system.graph import ALL, LOADS

Part = tuple[str, dict[int, int]]  # a vector, and for lanes of a result those of its own that they become

WIDE = 4  # bytes of the shortest elements that are loaded under masks where only wide ones are (AVX)


@dataclass(frozen=True, slots=True)
class Lanes:
    """A vector: elements, and which of them machines load and store in one go, as a memory's ``masks`` says."""

    count: int
    masks: str = ""

    @property
    def any(self) -> bool:
        """Whether some of the elements are loaded, stored, gathered and scattered under a mask, whatever they are."""
        return self.masks == ALL

    def loads(self, element: str) -> bool:
        """Whether some elements of an LLVM type that lie together are loaded under a mask."""
        return self.any or (self.masks == LOADS and _bytes(element) >= WIDE)

    def type(self, element: str) -> str:
        return f"<{self.count} x {element}>"


@dataclass(frozen=True, slots=True)
class Spaced:
    """``count`` elements of an LLVM type and ``size`` bytes, ``step`` elements from one to the next, in the first of
    ``of``. ``beside``: so many elements before the first and behind the last may be read as well."""

    element: str
    size: int
    count: int
    step: int
    of: Lanes
    beside: tuple[int, int] = (0, 0)

    @property
    def lanes(self) -> int:
        return self.of.count

    @property
    def type(self) -> str:
        return self.of.type(self.element)

    @property
    def length(self) -> int:
        """Elements from the first that may be read to the last."""
        return (self.count - 1) * self.step + 1 + sum(self.beside)

    def lane(self, n: int) -> int | None:
        """The lane that gets the n-th of them."""
        lane, between = divmod(n - self.beside[0], self.step)
        return lane if not between and 0 <= lane < self.count else None

    @property
    def pieces(self) -> int:
        """Vectors that reach over all of them."""
        return -(-self.length // self.lanes)


def spaced(
    element: str, size: int, count: int, step: int, lanes: Lanes, beside: tuple[int, int] = (0, 0)
) -> Spaced | None:
    """Elements so many bytes apart, and ``beside`` them others that may be read, where at least two of them lie in each
    vector; else None."""
    if count < 2 or step % size or step < 2 * size:
        return None
    found = Spaced(element, size, count, step // size, lanes, (beside[0] // size, beside[1] // size))
    short = found.length < lanes.count and not lanes.any
    return None if short or 2 * found.pieces > count else found


def row(fn: Function, pointer: str, element: str, count: int, lanes: Lanes, align: int) -> str:
    """So many elements that lie together, of an LLVM type, in the first lanes, the others zero."""
    n, v = lanes.count, lanes.type(element)
    if count == n:
        return fn.op(f"load {v}, ptr {pointer}, align {align}")
    if not lanes.loads(element) or (count & (count - 1) == 0 and not lanes.any):
        return _by_powers(fn, pointer, element, count, n, align)
    return fn.op(f"call {v} @llvm.masked.load.v{n}{SUFFIX[element]}.p0(ptr align {align} {pointer}, "
                 f"<{n} x i1> {mask(count, n)}, {v} zeroinitializer)")  # fmt: skip


def put_row(fn: Function, value: str, pointer: str, element: str, count: int, lanes: Lanes, align: int) -> None:
    """The first lanes to so many elements that lie together."""
    put(fn, value, pointer, element, range(count), lanes, align)


def _by_powers(fn: Function, pointer: str, element: str, count: int, lanes: int, align: int) -> str:
    """So many elements in vectors as short as they are, one behind the other in the first lanes, the others zero."""
    v, out = f"<{lanes} x {element}>", "zeroinitializer"
    for first, n in _powers(count):
        one = fn.op(f"load <{n} x {element}>, ptr {fn.gep(pointer, first * _bytes(element))}, align {align}")
        order = ", ".join(f"i32 {min(i, n)}" for i in range(lanes))
        long = fn.op(f"shufflevector <{n} x {element}> {one}, <{n} x {element}> zeroinitializer, "
                     f"<{lanes} x i32> <{order}>")  # fmt: skip
        own = [lanes + i - first if first <= i < first + n else i for i in range(lanes)]
        out = shuffled(fn, out, long, v, own) if first else long
    return out


def _bytes(element: str) -> int:
    """The size of an LLVM type in memory."""
    return int(SUFFIX[element][1:]) // 8


def _powers(count: int) -> Iterator[tuple[int, int]]:
    """So many lanes as vectors of powers of two, the longest first: where each begins, and its lanes."""
    first = 0
    while left := count - first:
        n = 1 << (left.bit_length() - 1)
        yield first, n
        first += n


def put(fn: Function, value: str, pointer: str, element: str, some: Sequence[int], lanes: Lanes, align: int) -> None:
    """Some of the lanes, each to its place behind the pointer: the first ones, or any where masks are for all."""
    n, v = lanes.count, lanes.type(element)
    if len(some) == n:
        fn.emit(f"store {v} {value}, ptr {pointer}, align {align}")
        return
    if not lanes.any:
        if list(some) != list(range(len(some))):
            raise InternalError(f"lanes {list(some)} of {n} are stored without a mask")
        for first, m in _powers(len(some)):
            part = shuffled(fn, value, "poison", v, range(first, first + m))
            fn.emit(f"store <{m} x {element}> {part}, ptr {fn.gep(pointer, first * _bytes(element))}, align {align}")
        return
    bits = ", ".join(f"i1 {int(i in some)}" for i in range(n))
    fn.do(f"call void @llvm.masked.store.v{n}{SUFFIX[element]}.p0({v} {value}, ptr align {align} {pointer}, "
          f"<{n} x i1> <{bits}>)")  # fmt: skip


def together(fn: Function, pointer: str, at: Spaced) -> str:
    """Elements apart from each other in the first lanes, the others zero."""
    begins = [min(k * at.lanes, max(0, at.length - at.lanes)) for k in range(at.pieces)]
    parts: list[Part] = []
    for k, begin in enumerate(begins):
        spot = fn.gep(pointer, (begin - at.beside[0]) * at.size)
        value = row(fn, spot, at.element, min(at.length, at.lanes), at.of, at.size)
        own = range(k * at.lanes, min((k + 1) * at.lanes, at.length))
        parts.append((value, {lane: n - begin for n in own if (lane := at.lane(n)) is not None}))
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [_joined(fn, at, a, b) for a, b in pairs] + parts[len(parts) & ~1 :]
    value, lanes = parts[0]
    if at.pieces == 1:
        value = shuffled(fn, value, "poison", at.type, [lanes.get(i) for i in range(at.lanes)])
    if at.count == at.lanes:
        return value
    return fn.op(f"select <{at.lanes} x i1> {mask(at.count, at.lanes)}, {at.type} {value}, {at.type} zeroinitializer")


def _joined(fn: Function, at: Spaced, one: Part, two: Part) -> Part:
    """What two vectors have of the result, in its lanes there."""
    order = one[1] | {i: at.lanes + n for i, n in two[1].items()}
    value = shuffled(fn, one[0], two[0], at.type, [order.get(i) for i in range(at.lanes)])
    return value, {i: i for i in order}


def put_apart(fn: Function, value: str, pointer: str, at: Spaced) -> None:
    """The first lanes to elements apart from each other."""
    for k in range(at.pieces):
        own = range(k * at.lanes, min((k + 1) * at.lanes, at.length))
        lanes = {n - own.start: lane for n in own if (lane := at.lane(n)) is not None}
        if len(lanes) == 1:  # LLVM 22 stores 32 bits for a single truncated 16-bit lane under a mask
            ((n, lane),) = lanes.items()
            x, spot = fn.op(f"extractelement {at.type} {value}, i64 {lane}"), fn.gep(pointer, (own.start + n) * at.size)
            fn.emit(f"store {at.element} {x}, ptr {spot}, align {at.size}")
            continue
        part = shuffled(fn, value, "poison", at.type, [lanes.get(i) for i in range(at.lanes)])
        put(fn, part, fn.gep(pointer, own.start * at.size), at.element, list(lanes), at.of, at.size)


def woven(fn: Function, values: Sequence[str], at: Spaced) -> list[str]:
    """Vectors with an element of each of some in turn, first those of their first lanes."""
    many, lanes = len(values), at.lanes
    if many > 2 and many % 2 == 0:
        halves = zip(woven(fn, values[::2], at), woven(fn, values[1::2], at), strict=True)
        return [x for pair in halves for x in woven(fn, pair, at)]
    out: list[str] = []
    for k in range(many):
        own = range(k * lanes, (k + 1) * lanes)
        parts = [(v, {n - own.start: n // many for n in own if n % many == p}) for p, v in enumerate(values)]
        while len(parts) > 1:
            parts[:2] = [_joined(fn, at, *parts[:2])]
        out.append(parts[0][0])
    return out


def shuffled(fn: Function, one: str, two: str, type_: str, order: Sequence[int | None]) -> str:
    """Lanes of two vectors, those of the second one counted on behind those of the first; None: any."""
    text = ", ".join("i32 poison" if n is None else f"i32 {n}" for n in order)
    return fn.op(f"shufflevector {type_} {one}, {type_} {two}, <{len(order)} x i32> <{text}>")
