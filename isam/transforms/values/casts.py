"""Cast motion: across copies and extrema, into and out of products, one cast for two; operations in a wider dtype."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from isam.classes import dataclass
from isam.ir.dtype import DTYPES, DType
from isam.ir.kernel import Access, Buffer, Kernel, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import fresh, made_by, names_in, read_as, readers, splice, within_step, writers
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform

DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
LEAST = {"f64": -1074, "f32": -149, "f16": -24, "bf16": -133}  # the exponent of the least positive number
MOST = {"f64": 1024, "f32": 128, "f16": 16, "bf16": 128}  # numbers stay below two to this power


def holds(wide: str, narrow: str) -> bool:
    """Is every number of dtype ``narrow`` one of dtype ``wide``?"""
    a, b = DTYPES[narrow], DTYPES[wide]
    if a.name == b.name:
        return True
    if "b" in (a.kind, b.kind):
        return False
    if a.kind == "f":
        ranges = b.kind == "f" and LEAST[b.name] <= LEAST[a.name] and MOST[b.name] >= MOST[a.name]
        return ranges and DIGITS[b.name] >= DIGITS[a.name]
    return _room(b) >= _room(a) and (b.kind == "f" or a.kind == "u" or b.kind == "i")


def _room(d: DType) -> int:
    """Binary digits of a whole number that certainly fits, its sign apart."""
    return DIGITS[d.name] if d.kind == "f" else d.bits - (d.kind == "i")


def holds_products(wide: str, narrow: str) -> bool:
    """Is every product of two numbers of dtype ``narrow`` one of dtype ``wide``? (An infinity stays one.)"""
    a, b = DTYPES[narrow], DTYPES[wide]
    if "b" in (a.kind, b.kind):
        return False
    if a.kind == "f":
        fits = b.kind == "f" and DIGITS[b.name] >= 2 * DIGITS[a.name]
        return fits and LEAST[b.name] <= 2 * LEAST[a.name] and MOST[b.name] >= 2 * MOST[a.name]
    if b.kind == "f":
        return DIGITS[b.name] >= 2 * _room(a) + (a.kind == "i")
    return (a.kind == "u" or b.kind == "i") and _room(b) >= 2 * _room(a) + (a.kind == "i")


@dataclass(frozen=True)
class PushCast(Transform):
    """A cast that loses nothing, of the result of an operation that commutes with it, is applied to the operands."""

    law: str = "cast-over-extrema"  # type: ignore[misc]
    equation: str = "t = max(a, b); y = f32(t)  =>  y = max(f32(a), f32(b))"  # type: ignore[misc]
    ops: tuple[str, ...] = ("max", "min", "copy")
    exact: Callable[[Kernel, Statement, str, str], bool] = lambda _, __, wide, narrow: holds(wide, narrow)

    judge = "interpreter"
    kinds = frozenset({"dtype", "operation", "escapes"})
    grows = True
    wants = frozenset({"cast"})
    removes = frozenset({"cast", "cast_sat"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(inner=i, cast=j)
            for j, s in enumerate(kernel.statements)
            if s.op == "cast"
            for i in made_by(kernel, j, s.sources[0])
            if kernel.statements[i].op in self.ops and self._exact(kernel, i, j)
        )

    def _exact(self, kernel: Kernel, i: int, j: int) -> bool:
        wide, narrow = (kernel.buffer(kernel.statements[n].dest.buffer).dtype for n in (j, i))
        return self.exact(kernel, kernel.statements[i], wide, narrow)

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, j = site["inner"], site["cast"]
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        inner, cast = kernel.statements[i], kernel.statements[j]
        taken, wide = names_in(kernel), kernel.buffer(cast.dest.buffer)
        lines: list[tuple[Statement, tuple[int, ...]]] = []
        made: list[Buffer] = []

        def widened(x: Source) -> Source:
            if not isinstance(x, Access):
                return x
            name = fresh(taken, "w")
            taken.add(name)
            buffer, at = within_step(kernel, cast, name, wide.dtype)
            made.append(buffer)
            lines.append((replace(cast, dest=at, sources=(x,)), (j,)))
            return at

        x = cast.sources[0]
        assert isinstance(x, Access)
        values = read_as(inner.dest, x)
        sources = tuple(widened(y.substitute(values)) for y in inner.sources)
        lines.append((replace(cast, op=inner.op, sources=sources), (i, j)))
        only = readers(kernel, inner.dest.buffer) == (j,)
        parts = {j: tuple(lines)} | ({i: ()} if only else {})
        new, origin = splice(kernel, parts, buffers=(*kernel.buffers, *made))
        return Rewrite(new, Correspondence(origin, buffers=((inner.dest.buffer, ()),) if only else ()))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction works in the wider dtype, or a cast stands where it wants none."""
        return _at_either(self, kernel, mismatch)


class JoinCasts(Transform):
    """Two casts are one when the first loses nothing."""

    law = "join-casts"
    equation = "t = i16(a); y = i32(t)  =>  y = i32(a)   (every value of a is one of t)"
    judge = "interpreter"
    kinds = frozenset({"dtype", "operation", "escapes"})
    removes = frozenset({"cast", "cast_sat"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(inner=i, cast=j)
            for j, s in enumerate(kernel.statements)
            if s.op in ("cast", "cast_sat")
            for i in made_by(kernel, j, s.sources[0])
            if _lossless(kernel, kernel.statements[i])
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, j = site["inner"], site["cast"]
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        inner, cast = kernel.statements[i], kernel.statements[j]
        x = cast.sources[0]
        assert isinstance(x, Access)
        values = read_as(inner.dest, x)
        direct = replace(cast, sources=(inner.sources[0].substitute(values),))
        only = readers(kernel, inner.dest.buffer) == (j,)
        new, origin = splice(kernel, {j: ((direct, (i, j)),)} | ({i: ()} if only else {}))
        return Rewrite(new, Correspondence(origin, buffers=((inner.dest.buffer, ()),) if only else ()))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """One of the two casts is in question."""
        return _at_either(self, kernel, mismatch)


def _at_either(law: Transform, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
    """The sites of a law of which one of the two statements is in question."""
    at = mismatch.about("statement")
    return tuple(s for s in law.sites(kernel) if law.answers(mismatch) and at in (s["inner"], s["cast"]))


def _lossless(kernel: Kernel, s: Statement) -> bool:
    x = s.sources[0]
    if s.op not in ("cast", "cast_sat") or not isinstance(x, Access):
        return False
    return holds(kernel.buffer(s.dest.buffer).dtype, kernel.buffer(x.buffer).dtype)


def _products(kernel: Kernel, s: Statement, wide: str, narrow: str) -> bool:
    """Both factors are casts of numbers so short that their product is exact in the narrow dtype already. (Zero times a
    negative integer is 0; of floats it is -0.)"""
    own = [_short(kernel, x) for x in s.sources]
    turns = "f" == DTYPES[wide].kind != DTYPES[narrow].kind and "i" in {DTYPES[d].kind for d in own if d is not None}
    if turns and s.sources[0] != s.sources[1]:
        return False
    return holds(wide, narrow) and all(d is not None and holds_products(narrow, d) for d in own) and len(set(own)) == 1


def _short(kernel: Kernel, x: Source) -> str | None:
    """The dtype of which a factor is a cast that loses nothing."""
    if not isinstance(x, Access):
        return None
    made = writers(kernel, x.buffer)
    s = kernel.statements[made[0]] if len(made) == 1 else None
    if s is None or not _lossless(kernel, s):
        return None
    y = s.sources[0]
    assert isinstance(y, Access)
    return kernel.buffer(y.buffer).dtype


CASTS: tuple[Transform, ...] = (
    PushCast(),
    PushCast(
        "cast-over-product", "t = i16(a) * i16(b); y = i32(t)  =>  y = i32(i16(a)) * i32(i16(b))   (a, b: i8)",
        ("mul",), _products,
    ),
    JoinCasts(),
)  # fmt: skip
