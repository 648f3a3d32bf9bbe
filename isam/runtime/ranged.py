"""A callable for a range of batch sizes: each call is made of calls of variants, which were compiled for some sizes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from isam.classes import dataclass
from isam.diagnostics import IsamError, Loc, fail
from isam.runtime.aligned import copied, result
from isam.runtime.arguments import prepare
from isam.runtime.compiled import Compiled
from isam.runtime.entry import Entry, not_saved
from isam.runtime.parts import Parted
from isam.runtime.signature import Array, Signature
from isam.runtime.vectorcall import Launch, attach_shapes, callable_class

KNOWN = 1 << 12  # numbers of rows whose calls are remembered
QUIET = 1 << 22  # points: calls of no more take some tens of microseconds, and keep the interpreter's lock


@dataclass(frozen=True, slots=True)
class Batch:
    """``size`` counts the rows of the arguments ``rows``, along their first dimension; ``spans`` says of a number of
    rows which of them each call of a variant takes, begin and end."""

    size: str
    rows: frozenset[str]
    spans: Callable[[int], tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True)
class _Calls:
    """What a call with some number of rows is made of: variants, and which rows each takes; its outputs' names, shapes
    and element types. ``native``: all of it as one callable."""

    entries: tuple[tuple[Entry, slice], ...]
    outputs: tuple[tuple[str, tuple[int, ...], np.dtype[Any]], ...]
    native: Entry | Parted | None


def meet(written: Sequence[Array], read: Sequence[Array]) -> bool:
    """Whether something that is written may lie where something else is read or written."""
    overlap = np.may_share_memory
    return any(overlap(x, y) for n, x in enumerate(written) for y in (*written[n + 1 :], *read))


@callable_class
class RangedFunction(Compiled):
    """``fn(A, B)``, ``fn(A, B, C=out)``, ``fn.bind(B=W)`` as of any compiled kernel, for arrays of as many rows as the
    range has. May be called from several threads. ``variants``: by how many rows they take.

    Raises ``IsamError`` for arguments it cannot take, before any variant has run.
    """

    def __init__(self, signature: Signature, batch: Batch, variants: Mapping[int, Entry],
                 bound: Mapping[str, Array] | None = None):  # fmt: skip
        self.signature, self.batch, self.variants = signature, batch, dict(variants)
        self.bound = dict(bound or {})
        self.__name__, self._loc = signature.name, signature.loc
        self.spans = lru_cache(KNOWN)(batch.spans)
        self._ready = {} if bound else dict(variants)  # with what is bound, once they are called
        self._lock = threading.Lock()
        self._shapes = attach_shapes(self)
        self._given = [p for p in signature.positional if p.name not in self.bound]
        self._cut = [n for n, p in enumerate(self._given) if p.name in batch.rows]
        self._count = len(self._given)
        self._updates = [n for n, p in enumerate(self._given) if p.written]
        self._outputs = {p.name for p in signature.outputs}
        self._known: dict[int, _Calls] = {}  # by rows
        self._launches: dict[int, Launch | None] = {}  # of variants, with workspaces that all calls of this use in turn

    def parts(self, rows: int) -> tuple[int, ...]:
        """How many rows each call of a variant takes. Raises ``IsamError`` for a number that is not of the range."""
        limits = next(s for s in self.signature.sizes if s.name == self.batch.size)
        if not limits.lo <= rows <= (limits.hi or 0) or rows % limits.multiple_of:
            raise fail("range-limits", f"{rows} rows are not admitted: {self!r}", self._loc)
        return tuple([end - begin for begin, end in self.spans(rows)])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            calls = self._known[len(args[self._cut[0]])]
        except (KeyError, IndexError, TypeError):  # not met yet; what has rows is given by name; no array
            return self._thorough(args, kwargs)
        if calls.native is not None:
            return calls.native(*args, **kwargs)
        if not self._plain(args, kwargs):
            return self._thorough(args, kwargs)
        outs = kwargs or {n: result(shape, dtype) for n, shape, dtype in calls.outputs}
        first = True
        for entry, rows in calls.entries:
            some = list(args)
            for n in self._cut:
                some[n] = args[n][rows]
            try:
                entry(*some, **{name: x[rows] for name, x in outs.items()})
            except IsamError:
                if first:
                    return self._thorough(args, kwargs)  # which says what is wrong with the whole
                raise
            first = False
        if len(outs) == 1:
            return next(iter(outs.values()))
        return tuple(outs[name] for name, *_ in calls.outputs) or None

    def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether arguments are arrays of which variants check all but that they have as many rows, and that nothing is
        written where something is read."""
        if len(args) != self._count or (kwargs and kwargs.keys() != self._outputs):
            return False
        outs = list(kwargs.values())
        if any(type(x) is not np.ndarray for x in (*args, *outs)):
            return False
        if len({x.shape[:1] for x in (*[args[n] for n in self._cut], *outs)}) != 1:
            return False
        written = outs + [args[n] for n in self._updates]
        read = [x for n, x in enumerate(args) if n not in self._updates]
        return not written or not meet(written, [*read, *self.bound.values()])

    def _thorough(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Every check and copy that a call needs, for all variants at once."""
        p = prepare(self.signature, self.signature.assign(args, kwargs, self.bound), self.bound)
        rows = p.sizes[self.batch.size]
        spans = self.spans(rows)
        for begin, end in spans:
            entry = self._variant(end - begin)
            arrays = {n: a[begin:end] if n in self.batch.rows else a for n, a in p.arrays.items()}
            entry.runner.call(arrays, {**p.sizes, self.batch.size: end - begin}, entry.state)
        for caller, computed in p.back:
            caller[...] = computed
        self._know(rows, spans, p.sizes)
        results = tuple(p.results.values())
        return results[0] if len(results) == 1 else results or None

    def _know(self, rows: int, spans: Sequence[tuple[int, int]], sizes: Mapping[str, int]) -> None:
        """Calls with so many rows need not ask again which variants they are made of; those of one variant go straight
        to it."""
        if len(self.signature.sizes) > 1 or len(self._known) >= KNOWN:  # outputs differ also by a number of steps
            return
        entries = tuple((self._variant(end - begin), slice(begin, end)) for begin, end in spans)
        outputs = tuple((p.name, self.signature.shape(p, sizes), p.dtype) for p in self.signature.outputs)
        native = entries[0][0] if len(entries) == 1 else self._native(spans, sizes)
        self._known[rows] = _Calls(entries, outputs, native)
        if native is not None and self._shapes is not None:
            self._shapes.know(native)

    def _native(self, spans: Sequence[tuple[int, int]], sizes: Mapping[str, int]) -> Parted | None:
        """A callable for arguments of as many rows that is native code all through; None where a call takes so long
        that others want to run meanwhile, or a variant needs more than addresses."""
        variants = {end - begin: self._variant(end - begin) for begin, end in spans}
        points = [variants[end - begin].artifact.points for begin, end in spans]
        if self._shapes is None or any(n is None for n in points) or sum(n or 0 for n in points) > QUIET:
            return None
        with self._lock:
            for rows, entry in variants.items():
                if rows not in self._launches:
                    ready = getattr(entry.runner, "ready", None)
                    self._launches[rows] = ready(entry.state) if ready is not None else None
        fixed = [replace(p, shape=self.signature.shape(p, sizes)) for p in self.signature.parameters]
        row = [prod(p.shape[1:]) * p.dtype.itemsize if p.name in self.batch.rows and p.shape else 0 for p in fixed]
        launches = [self._launches[end - begin] for begin, end in spans]
        parts = [(launch, [begin * size for size in row])
                 for launch, (begin, _) in zip(launches, spans, strict=True) if launch is not None]  # fmt: skip
        if len(parts) < len(spans):
            return None
        return Parted(self.signature, fixed, self.bound, parts, self._thorough)

    def _variant(self, rows: int) -> Entry:
        """The variant for so many rows, with what is bound; that is done to it at its first call."""
        entry = self._ready.get(rows)
        if entry is None:
            with self._lock:
                entry = self._ready.get(rows)
                if entry is None:
                    entry = self._ready[rows] = self.variants[rows].bind(**self.bound)
        return entry

    def bind(self, **constants: Any) -> RangedFunction:
        """This kernel with ``const`` arguments fixed to what they hold now; each variant that is called packs them once
        for itself. Raises ``IsamError`` for those that have rows of the batch."""
        self.signature.check_bound(constants, self.bound)
        for name in self.batch.rows.intersection(constants):
            what = f"{self.signature.name}: '{name}' has {self.batch.size} rows, which differ from call to call"
            raise fail("bind-role", what, self._loc, "declare it as 'in'")
        p = prepare(self.signature.only(constants), constants, {})
        fixed = {n: copied(p.arrays[n], p.arrays[n].dtype) for n in constants}
        return RangedFunction(self.signature, self.batch, self.variants, {**self.bound, **fixed})

    def save(self, path: Any) -> None:
        """Raises ``IsamError``: an artifact holds one variant."""
        if self.bound:
            raise not_saved(self.__name__, self.bound)
        some = ", ".join(map(str, self.variants))
        what = f"'{self.__name__}' is compiled for {len(self.variants)} numbers of rows ({some}), an artifact holds one"
        raise fail("artifact-several", what, Loc(str(path)), "save isam.compile(kernel, sizes={...}), one for each")

    @property
    def _taken(self) -> Signature:
        return self.signature

    @property
    def _fixed(self) -> Iterable[str]:
        return self.bound

    def __repr__(self) -> str:
        s = next(s for s in self.signature.sizes if s.name == self.batch.size)
        bound = f", bound {', '.join(self.bound)}" if self.bound else ""
        return f"<{self.__name__} for {s.lo} <= {s.name} <= {s.hi}{bound}: {len(self.variants)} variants>"
