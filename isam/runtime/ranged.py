"""A callable for a range of batch sizes: each call is made of calls of variants, which were compiled for some sizes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from isam.artifact import Size
from isam.classes import dataclass
from isam.diagnostics import fail
from isam.runtime.aligned import copied
from isam.runtime.arguments import prepare
from isam.runtime.compiled import Compiled
from isam.runtime.dispatch import Dispatch
from isam.runtime.entry import Entry, not_saved
from isam.runtime.forks import gate
from isam.runtime.parts import Parted, link_parts
from isam.runtime.signature import Array, Signature
from isam.runtime.vectorcall import Launch, attach_shapes, callable_class

KNOWN = 256  # numbers of rows whose calls are remembered
FEW = 64  # variants in a call that is native code all through: each takes some words of memory for every such number
QUIET = 2e-4  # predicted seconds of a call that keeps the interpreter's lock; twice to three times what it takes


@dataclass(frozen=True, slots=True)
class Batch:
    """``size`` counts the rows of the arguments ``rows``, along their first dimension; ``dispatch`` says which of them
    each call of a variant takes."""

    size: str
    rows: frozenset[str]
    dispatch: Dispatch


@callable_class
class RangedFunction(Compiled):
    """``fn(A, B)``, ``fn(A, B, C=out)``, ``fn.bind(B=W)`` as of any compiled kernel, for arrays of as many rows as the
    range has. May be called from several threads. ``variants``: by how many rows they take.

    Every argument is checked before the first variant runs. Raises ``IsamError`` for what it cannot take.
    """

    def __init__(self, signature: Signature, batch: Batch, variants: Mapping[int, Entry],
                 bound: Mapping[str, Array] | None = None):  # fmt: skip
        self.signature, self.batch, self.variants = signature, batch, dict(variants)
        self.bound = dict(bound or {})
        self.__name__, self._loc = signature.name, signature.loc
        self._spans = lru_cache(KNOWN)(batch.dispatch.spans)
        self._ready = {} if bound else dict(variants)  # with what is bound, once they are called
        self._lock = threading.Lock()
        self._shapes = attach_shapes(self)
        self._given = [p.name for p in signature.positional if p.name not in self.bound]
        self._passed = [*self._given, *(p.name for p in signature.outputs)]
        self._first = next((n for n, name in enumerate(self._given) if name in batch.rows), None)
        self._native: dict[int, Entry | Parted] = {}  # by rows
        self._launches: dict[int, Launch | None] = {}  # of variants, with workspaces that all calls of this use in turn
        if len(variants) > 1:
            link_parts()

    def spans(self, rows: int) -> tuple[tuple[int, int], ...]:
        """Which rows each call of a variant takes, begin and end. Raises ``IsamError`` for a number of rows that is not
        of the range."""
        s = self._limits
        if not isinstance(rows, int | np.integer):
            raise fail("range-limits", f"a number of rows is a whole number, not {rows!r:.60}", self._loc)
        if not s.lo <= rows <= (s.hi or 0) or rows % s.multiple_of:
            raise fail("range-limits", f"{rows} rows are not admitted: {self!r}", self._loc)
        return self._spans(rows)

    def parts(self, rows: int) -> tuple[int, ...]:
        """How many rows each call of a variant takes. Raises ``IsamError`` as :meth:`spans` does."""
        return tuple([end - begin for begin, end in self.spans(rows)])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._first is not None and len(args) > self._first:
            try:
                native = self._native.get(len(args[self._first]))
            except TypeError:  # no array
                native = None
            if native is not None:
                return native(*args, **kwargs)
        return self._thorough(args, kwargs)

    def _thorough(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Every check and copy that a call needs, for all variants at once."""
        p = prepare(self.signature, self.signature.assign(args, kwargs, self.bound), self.bound)
        rows = p.sizes[self.batch.size]
        spans = self._spans(rows)
        for begin, end in spans:  # of arrays that are as each variant wants them
            some = {n: p.arrays[n][begin:end] if n in self.batch.rows else p.arrays[n] for n in self._passed}
            self._variant(end - begin)(*[some.pop(n) for n in self._given], **some)
        for caller, computed in p.back:
            caller[...] = computed
        if rows not in self._native:
            self._know(rows, spans, p.sizes)
        results = tuple(p.results.values())
        return results[0] if len(results) == 1 else results or None

    def _know(self, rows: int, spans: Sequence[tuple[int, int]], sizes: Mapping[str, int]) -> None:
        """Calls with so many rows go straight to native code from now on, if they may: not where an output alone shows
        how many rows are meant."""
        if self._first is None or len(self._native) >= KNOWN:
            return
        native = self._variant(rows) if spans == ((0, rows),) else self._made(rows, spans, sizes)
        if native is not None and self._shapes is not None:
            self._native[rows] = native
            self._shapes.know(native)

    def _made(self, rows: int, spans: Sequence[tuple[int, int]], sizes: Mapping[str, int]) -> Parted | None:
        """A callable for arguments of as many rows that is native code all through; None where a call takes so long
        that others want to run meanwhile, or a variant needs more than addresses."""
        if self._shapes is None or len(spans) > FEW or self.batch.dispatch.seconds(rows) > QUIET:
            return None
        launches = [self._launch(end - begin) for begin, end in spans]
        fixed = [replace(p, shape=self.signature.shape(p, sizes)) for p in self.signature.parameters]
        row = [prod(p.shape[1:]) * p.dtype.itemsize if p.name in self.batch.rows and p.shape else 0 for p in fixed]
        parts = [(launch, [begin * size for size in row])
                 for launch, (begin, _) in zip(launches, spans, strict=True) if launch is not None]  # fmt: skip
        return Parted(self.signature, fixed, self.bound, parts, self._thorough) if len(parts) == len(spans) else None

    def _launch(self, rows: int) -> Launch | None:
        """What a variant needs in a call of several; None where that is more than addresses."""
        entry = self._variant(rows)
        with gate.inside(), self._lock:
            if rows not in self._launches:
                ready = getattr(entry.runner, "ready", None)
                self._launches[rows] = ready(entry.state) if ready is not None else None
            return self._launches[rows]

    def _variant(self, rows: int) -> Entry:
        """The variant for so many rows, with what is bound; that is done to it at its first call."""
        entry = self._ready.get(rows)
        if entry is None:
            with gate.inside(), self._lock:
                entry = self._ready.get(rows)
                if entry is None:
                    entry = self._ready[rows] = self.variants[rows].bind(**self.bound)
        return entry

    def bind(self, /, *placed: Any, **constants: Any) -> RangedFunction:
        """This kernel with ``const`` arguments fixed to what they hold now; each variant that is called packs them once
        for itself. Raises ``IsamError`` for those that have rows of the batch."""
        self._by_name(placed)
        self.signature.check_bound(constants, self.bound)
        for name in self.batch.rows.intersection(constants):
            what = f"{self.signature.name}: '{name}' has {self.batch.size} rows, which differ from call to call"
            raise fail("bind-role", what, self._loc, "declare it as 'in'")
        p = prepare(self.signature.only(constants), constants, {})
        fixed = {n: copied(p.arrays[n], p.arrays[n].dtype) for n in constants}
        return RangedFunction(self.signature, self.batch, self.variants, {**self.bound, **fixed})

    def save(self, path: str | Path) -> None:
        """Writes all variants as one artifact, which :func:`isam.load` runs without the compiler. Raises ``IsamError``
        when constants are bound: it holds code, not what was bound."""
        from isam.runtime.ranged_artifact import to_artifact

        if self.bound:
            raise not_saved(self.__name__, self.bound)
        to_artifact(self).save(path)

    @property
    def _taken(self) -> Signature:
        return self.signature

    @property
    def _fixed(self) -> Iterable[str]:
        return self.bound

    @property
    def _limits(self) -> Size:
        return next(s for s in self.signature.sizes if s.name == self.batch.size)

    def __repr__(self) -> str:
        s = self._limits
        bound = f", bound {', '.join(self.bound)}" if self.bound else ""
        return f"<{self.__name__} for {s.lo} <= {s.name} <= {s.hi}{bound}: {len(self.variants)} variants>"
