"""The blocks that random kernels are made of: one method per sort of block. See :mod:`tests.random_kernels`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Buffer, Domain, Item, Literal, Recurrence, Source, Statement

T = TypeVar("T")
FUNCTIONS = ("exp", "tanh", "sigmoid", "erf", "sin", "cos", "abs", "neg")
NARROW = (("i8", "i32"), ("bf16", "f32"), ("f32", "f64"), ("u8", "i32"), ("i16", "i32"))
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 11, 13)
START = {"add": 0, "mul": 1, "max": float("-inf"), "min": float("inf")}
BLOCKS = (
    "elementwise", "reduction", "product", "product", "product", "narrow", "padded", "chain", "inplace", "partial",
    "choice", "triangle",
)  # fmt: skip


def floating(dtype: str) -> bool:
    """Whether functions and infinities make sense."""
    return dtype[0] == "f" or dtype == "bf16"


class Chooser(Protocol):
    """Where choices come from."""

    def integer(self, lo: int, hi: int) -> int: ...


class Seeded:
    """Choices of a seeded generator."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)

    def integer(self, lo: int, hi: int) -> int:
        return int(self.rng.integers(lo, hi + 1))


@dataclass(frozen=True)
class Options:
    """What the generator may use. ``points``: limit on the points of one statement at the sizes drawn; ``narrow``:
    dtypes of factors and of their sum."""

    dtypes: tuple[str, ...] = ("f32", "f32", "f32", "i32", "f64")
    blocks: tuple[str, ...] = BLOCKS
    most_blocks: int = 4
    loops: bool = True
    functions: tuple[str, ...] = FUNCTIONS
    points: int = 4000
    sizes: tuple[int, ...] = SIZES
    narrow: tuple[tuple[str | tuple[str, str], str], ...] = NARROW
    whole: bool = False  # whole numbers are divided, too


@dataclass
class Blocks:
    """One kernel in the making."""

    choose: Chooser
    options: Options
    extents: list[Affine] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    body: list[Item] = field(default_factory=list)
    readable: list[str] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)  # buffers whose role is settled
    implicit: set[str] = field(default_factory=set)  # temporaries left undeclared
    counter: Any = None  # the axis of the recurrent loop we are in

    # choices ------------------------------------------------------------------------------------------------------
    def pick(self, options: Sequence[T]) -> T:
        return options[self.choose.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.choose.integer(1, 100) <= percent

    def name(self, prefix: str) -> str:
        return f"{prefix}{len(self.buffers)}"

    def axes(self, least: int, most: int) -> tuple[Axis, ...]:
        names = "ijklmn"
        return tuple(Axis(names[k], self.pick(self.extents)) for k in range(self.choose.integer(least, most)))

    # sources ------------------------------------------------------------------------------------------------------
    def row(self, axes: tuple[Axis, ...]) -> tuple[Affine, Affine]:
        """A random affine row, never negative on the box, and one more than its largest value."""
        kind = self.choose.integer(1, 10)
        a = self.pick(axes)
        if kind <= 6:
            return Affine.of(a.name), a.extent
        if kind == 7:
            return a.extent - 1 - a.name, a.extent
        c, offset = self.choose.integer(1, 3), self.choose.integer(0, 2)
        row, top = Affine.of(a.name, c, offset), c * (a.extent - 1) + offset
        b = self.pick(axes)
        if kind >= 9 and b != a:
            d = self.choose.integer(1, 2)
            return row + d * Affine.of(b.name), top + d * (b.extent - 1) + 1
        return row, top + 1

    def fresh(self, axes: tuple[Axis, ...], dtype: str) -> Access:
        """A new input, as large as needed."""
        rows = [self.row(axes) for _ in range(self.choose.integer(0 if self.chance(10) else 1, 3))] if axes else []
        if self.counter is not None and self.chance(60):
            rows.insert(0, (Affine.of(self.counter.name), self.counter.extent))
        name = self.name("x")
        role = "const" if self.chance(30) else "in"
        self.buffers[name] = Buffer(name, tuple(d for _, d in rows), dtype, role)
        self.fixed.add(name)
        self.readable.append(name)
        return Access(name, tuple(r for r, _ in rows))

    def existing(self, axes: tuple[Axis, ...], dtype: str) -> Access | None:
        """An access to something readable, every dimension walked by an axis of the same extent."""
        fitting = [n for n in self.readable if self.buffers[n].dtype == dtype
                   and all(any(a.extent == d for a in axes) for d in self.buffers[n].shape)]  # fmt: skip
        if not fitting:
            return None
        name = self.pick(fitting)
        rows: list[Affine] = []
        for d in self.buffers[name].shape:
            unused = [a for a in axes if a.extent == d and Affine.of(a.name) not in rows]
            a = self.pick(unused or [a for a in axes if a.extent == d])
            rows.append(d - 1 - a.name if self.chance(10) else Affine.of(a.name))
        return Access(name, tuple(rows))

    def source(self, axes: tuple[Axis, ...], dtype: str, literals: int = 15) -> Source:
        if self.chance(literals):
            whole = (0, 1, 2, 3 if dtype[0] == "u" else -3)
            return Literal(self.pick(whole if dtype[0] in "iu" else (0, 1, 0.5, -2.0, 0.1)))
        known = self.existing(axes, dtype) if self.chance(55) else None
        return known or self.fresh(axes, dtype)

    # destinations -------------------------------------------------------------------------------------------------
    def target(self, axes: tuple[Axis, ...], dtype: str) -> Access:
        """A new buffer with one dimension per axis, in random order."""
        left, order = list(axes), []
        while left:
            order.append(left.pop(self.choose.integer(0, len(left) - 1)))
        name = self.name("y")
        self.buffers[name] = Buffer(name, tuple(a.extent for a in order), dtype, "temp")
        return Access(name, tuple(Affine.of(a.name) for a in order))

    def temporary(self, axes: tuple[Axis, ...], dtype: str) -> Access:
        """An undeclared one over all axes, as the parser makes for a part of an expression."""
        name = self.name("t")
        self.buffers[name] = Buffer(name, tuple(a.extent for a in axes), dtype, "temp", False)
        self.implicit.add(name)
        return Access(name, tuple(Affine.of(a.name) for a in axes))

    def put(self, domain: Domain, dest: Access, op: str, *sources: Source, accumulate: bool = False) -> None:
        self.body.append(Statement(domain, dest, op, sources, accumulate))

    def done(self, dest: Access) -> None:
        if dest.buffer not in self.readable:
            self.readable.append(dest.buffer)

    # blocks -------------------------------------------------------------------------------------------------------
    def operation(self, domain: Domain, dest: Access, dtype: str) -> None:
        """``dest = f(...)`` or ``a op b`` with at least one access."""
        axes = domain.axes
        if floating(dtype) and self.chance(30):
            self.put(domain, dest, self.pick(self.options.functions), self.source(axes, dtype, 0))
            return
        op = self.pick(
            ("add", "sub", "mul", "max", "min", "copy") + (("div",) if floating(dtype) or self.options.whole else ())
        )
        first = self.source(axes, dtype, 0)
        if op == "copy":
            self.put(domain, dest, op, first)
            return
        pair = [first, self.source(axes, dtype)]
        self.put(domain, dest, op, *(reversed(pair) if self.chance(30) else pair))

    def elementwise(self) -> None:
        dtype, axes = self.pick(self.options.dtypes), self.axes(0 if self.chance(5) else 1, 3)
        dest = self.target(axes, dtype)
        self.operation(Domain(axes), dest, dtype)
        self.done(dest)

    def start(self, axes: tuple[Axis, ...], dtype: str, op: str) -> Access:
        """What a reduction accumulates into: initialised here, or an ``inout``."""
        dest = self.target(axes, dtype)
        if self.chance(15) and self.counter is None:
            self.buffers[dest.buffer] = replace(self.buffers[dest.buffer], role="inout")
            self.fixed.add(dest.buffer)
        elif self.chance(25):
            self.put(Domain(axes), dest, "copy", self.fresh(axes, dtype))
        else:
            value = START[op]
            if not floating(dtype) and op in ("max", "min"):
                value = 100 if op == "min" else 0 if dtype[0] == "u" else -100
            self.put(Domain(axes), dest, "copy", Literal(value))
        return dest

    def split(self, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        """The axes that a reduction keeps."""
        return tuple(a for a in axes if self.chance(60))

    def reduction(self) -> None:
        dtype, axes = self.pick(self.options.dtypes), self.axes(1, 3)
        op = self.pick(("add", "add", "max", "min", "mul"))
        dest = self.start(self.split(axes), dtype, op)
        self.put(Domain(axes), dest, op, self.source(axes, dtype, 0), accumulate=True)
        self.done(dest)

    def product(self, where: tuple[Affine, ...] = (), axes: tuple[Axis, ...] = (), first: Access | None = None) -> None:
        """``dest += a * b`` or ``dest += a * b * c``."""
        dtype = self.buffers[first.buffer].dtype if first else self.pick(self.options.dtypes)
        axes = axes or self.axes(2, 4)
        dest = self.start(self.split(axes), dtype, "add")
        domain = Domain(axes, where)
        total: Source = first or self.source(axes, dtype, 0)
        for _ in range(2 if self.chance(20) else 1):
            part = self.temporary(axes, dtype)
            self.put(domain, part, "mul", total, self.source(axes, dtype, 5))
            total = part
        self.put(domain, dest, "add", total, accumulate=True)
        self.done(dest)

    def narrow(self) -> None:
        """A product of operands in narrower dtypes than the sum."""
        small, dtype = self.pick(self.options.narrow)
        axes = self.axes(2, 4)
        dest = self.start(self.split(axes), dtype, "add")
        parts = []
        for factor in (small, small) if isinstance(small, str) else small:
            parts.append(self.temporary(axes, dtype))
            self.put(Domain(axes), parts[-1], "cast", self.source(axes, factor, 0))
        term = self.temporary(axes, dtype)
        self.put(Domain(axes), term, "mul", *parts)
        self.put(Domain(axes), dest, "add", term, accumulate=True)
        self.done(dest)

    def padded(self) -> None:
        """A sliding window that leaves its input at both ends, cut off by a condition."""
        axes = self.axes(1, 2)
        taps = Axis("r", Affine((), self.pick((2, 3))))
        slide = axes[0]
        row = Affine.of(slide.name, 1, -1) + "r"
        name, dtype = self.name("x"), self.pick(self.options.dtypes)
        self.buffers[name] = Buffer(name, (slide.extent, *(a.extent for a in axes[1:])), dtype, "in")
        self.fixed.add(name)
        self.readable.append(name)
        first = Access(name, (row, *(Affine.of(a.name) for a in axes[1:])))
        self.product((row, slide.extent - 1 - row), (*axes, taps), first)

    def triangle(self) -> None:
        axes = self.axes(2, 3)
        a, b = axes[0].name, axes[1].name
        self.product((self.pick((Affine.of(a) - b, Affine.of(b) - a - 1, Affine.of(a) + b - 2)),), axes)

    def again(self) -> tuple[tuple[Axis, ...], Access] | None:
        """A result so far and axes that walk it."""
        made = [n for n in self.readable if n not in self.fixed and self.buffers[n].dtype != "bool"]
        if not made:
            return None
        b = self.buffers[self.pick(made)]
        axes = tuple(Axis("ijklmn"[k], d) for k, d in enumerate(b.shape))
        return axes, Access(b.name, tuple(Affine.of(a.name) for a in axes))

    def chain(self) -> None:
        """A new value per element of a result."""
        if (found := self.again()) is None:
            return self.elementwise()
        axes, source = found
        dtype = self.buffers[source.buffer].dtype
        dest = self.target(axes, dtype)
        if floating(dtype) and self.chance(50):
            self.put(Domain(axes), dest, self.pick(self.options.functions), source)
        else:
            self.put(Domain(axes), dest, self.pick(("add", "mul", "sub", "max")), source, self.source(axes, dtype))
        return self.done(dest)

    def inplace(self) -> None:
        """A result changed where it lies (bias, relu)."""
        if (found := self.again()) is None:
            return self.elementwise()
        axes, dest = found
        dtype = self.buffers[dest.buffer].dtype
        op = self.pick(("add", "mul", "max", "min"))
        if self.chance(50):
            other = Literal(0) if op in ("max", "min") else self.fresh(axes, dtype)
            self.put(Domain(axes), dest, op, dest, other)
        else:
            self.put(Domain(axes), dest, op, self.fresh(axes, dtype), accumulate=True)
        return None

    def partial(self) -> None:
        """A zeroed buffer, of which a strided or conditional part is assigned."""
        dtype, axes = self.pick(self.options.dtypes), self.axes(1, 2)
        rows, shape = [], []
        for a in axes:
            c, offset = self.choose.integer(1, 2), self.choose.integer(0, 2)
            rows.append(Affine.of(a.name, c, offset))
            shape.append(c * (a.extent - 1) + offset + 1 + self.choose.integer(0, 2))
        name = self.name("y")
        self.buffers[name] = Buffer(name, tuple(shape), dtype, "temp")
        whole = tuple(Axis("pq"[k], d) for k, d in enumerate(shape))
        self.put(Domain(whole), Access(name, tuple(Affine.of(a.name) for a in whole)), "copy", Literal(0))
        where = (Affine.of(axes[0].name) - axes[1].name,) if len(axes) > 1 and self.chance(40) else ()
        self.put(Domain(axes, where), Access(name, tuple(rows)), "copy", self.source(axes, dtype, 0))
        self.readable.append(name)

    def choice(self) -> None:
        """A comparison and what it selects."""
        dtype, axes = self.pick(self.options.dtypes), self.axes(1, 2)
        a, b = self.source(axes, dtype, 0), self.source(axes, dtype)
        if self.chance(50):
            a, b = b, a
        condition = self.temporary(axes, "bool")
        dest = self.target(axes, dtype)
        self.put(Domain(axes), condition, self.pick(("lt", "le", "gt", "ge")), a, b)
        self.put(Domain(axes), dest, "copy", self.source(axes, dtype))
        self.put(Domain(axes), dest, "select", condition, self.source(axes, dtype), accumulate=True)
        self.done(dest)

    def converted(self) -> None:
        """A value in another dtype: wrapped, cut off, rounded or saturated."""
        small, dtype = self.pick(self.options.dtypes), self.pick(self.options.dtypes)
        axes = self.axes(1, 2)
        source, dest = self.source(axes, small, 0), self.target(axes, dtype)
        op = "copy" if small == dtype else "cast" if floating(dtype) else self.pick(("cast", "cast_sat"))
        self.put(Domain(axes), dest, op, source)
        self.done(dest)

    def loop(self) -> None:
        """A state carried over time: ``h = f(sum of h * u + x[t])``, and what it was at each step."""
        t, n, m = Axis("t", Affine.of("T")), Axis("i", self.pick(self.extents)), Axis("j", self.pick(self.extents))
        before, self.body, self.counter = self.body, [], t
        h, u, x, ys = self.name("h"), self.name("h") + "u", self.name("h") + "x", self.name("h") + "y"
        self.buffers |= {
            h: Buffer(h, (m.extent, n.extent), "f32", "inout"), u: Buffer(u, (n.extent, n.extent), "f32", "const"),
            x: Buffer(x, (t.extent, m.extent, n.extent), "f32", "in"),
            ys: Buffer(ys, (t.extent, m.extent, n.extent), "f32", "out"),
        }  # fmt: skip
        self.fixed |= {h, u, x, ys}
        k = Axis("k", n.extent)
        own, every = Domain((m, n)), Domain((m, n, k))
        here = Access(h, (Affine.of("j"), Affine.of("i")))
        now = (Affine.of("t"), Affine.of("j"), Affine.of("i"))
        total = self.temporary((m, n), "f32")
        self.put(own, total, "copy", Access(x, now) if self.chance(50) else Literal(0))
        part = self.temporary((m, n, k), "f32")
        state, weights = (Affine.of("j"), Affine.of("k")), (Affine.of("k"), Affine.of("i"))
        self.put(every, part, "mul", Access(h, state), Access(u, weights))
        self.put(every, total, "add", part, accumulate=True)
        self.put(own, here, self.pick(("tanh", "sigmoid", "sin")), total)
        if self.chance(50):
            self.put(own, here, "mul", here, self.fresh((m, n), "f32"))
        self.put(own, Access(ys, now), "copy", here)
        self.body, self.counter = [*before, Recurrence(t, tuple(self.body))], None
