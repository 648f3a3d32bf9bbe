"""What ``isam.compile`` returns: a callable that compiles for the shapes it is given and tells what was decided."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from isam.approach.choice import Approach, Trace
from isam.artifact import Artifact
from isam.classes import dataclass
from isam.compiler.job import Job
from isam.compiler.keys import key_of
from isam.compiler.measured import found_before, is_measured
from isam.compiler.stages import new_job, run_stages
from isam.diagnostics import IsamError, fail
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.ir.signature import arguments_of, shown_by, sizes_of
from isam.ir.sizes import run_time, with_constants
from isam.runtime.arguments import look_over
from isam.runtime.cache import Cache
from isam.runtime.compiled import Compiled
from isam.runtime.entry import Entry, not_saved
from isam.runtime.forks import gate
from isam.runtime.signature import Parameter, Signature
from isam.runtime.vectorcall import Shapes, attach_shapes, callable_class, lend
from isam.schedule.tree import Schedule
from isam.system.graph import USUAL, System
from isam.tune.database import database


@dataclass(slots=True)
class _Made:
    """A specialisation; ``job`` is None where its code was kept from before and nobody asked how it came about."""

    sizes: dict[str, int]
    entry: Entry
    job: Job | None


@callable_class
class Function(Compiled):
    """``fn(A, B)``, ``fn(A, B, C=out)``, ``fn.bind(B=W)``: see :class:`isam.runtime.entry.Entry`.

    When sizes are open, each new combination is compiled at its first call and kept. ``mapping``, ``schedule``,
    ``trace``, ``certificate`` and ``artifact`` are those of the only specialisation, or of the one compiled last.
    """

    def __init__(
        self, kernel: Kernel, system: System, sizes: Mapping[str, int], approach: Approach | None, replay: Any = None,
        cache: Cache | None = None, **options: Any,
    ):  # fmt: skip
        self.kernel, self.sizes = with_constants(kernel, sizes)
        self.system = system
        self.__name__, self._loc = kernel.name, kernel.loc
        self._approach, self._replay = approach, replay
        self._options = options
        self._lock = threading.Lock()
        self._cache = cache if replay is None else None
        self._made: dict[tuple[tuple[str, int], ...], _Made] = {}
        self._by_shape: dict[Any, Entry] = {}
        self._follow: dict[int, bool] = {}  # by entry, all of which live as long
        self._last: _Made | None = None
        self._only: Entry | None = None
        left = run_time(self.kernel) & shown_by(self.kernel)
        self.open = tuple(s.name for s in self.kernel.given if s.name not in self.sizes and s.name not in left)
        self.signature = Signature(kernel.name, arguments_of(self.kernel.with_sizes(self.sizes)),
                                   [s for s in sizes_of(self.kernel) if s.name not in self.sizes],
                                   ((s.name, s.whole) for s in kernel.follow if s.whole), kernel.loc)  # fmt: skip
        if self.open:
            self._shapes = attach_shapes(self)
        else:
            self._only = self.specialise({})
            lend(self._only, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._only is not None:
            return self._only(*args, **kwargs)
        entry = self.entry_for(args, kwargs)
        self.meets(entry, self._shapes, entry)
        return entry(*args, **kwargs)

    def meets(self, entry: Entry, shapes: Shapes | None, called: Entry) -> None:
        """Calls that fit ``called``, the entry with what is bound, go straight to it from now on, if they may."""
        if shapes is not None and called not in shapes.entries and self._settled(entry):
            shapes.know(called)

    def _settled(self, entry: Entry) -> bool:
        """Whether its sizes are those that follow from the shapes of its inputs alone: else it depends on the outputs
        that are given which entry a call is meant for."""
        found = self._follow.get(id(entry))
        if found is None:
            found = self._follow[id(entry)] = self._follows(entry.signature.parameters)
        return found

    def _follows(self, parameters: Sequence[Parameter]) -> bool:
        shapes = {p.name: p.shape for p in parameters if p.role != "out" and p.shape is not None}
        try:
            known = self.signature.infer(shapes)
        except IsamError:
            return False
        own = self.signature.by_name
        return all(self.signature.shape(own[p.name], known) == p.shape for p in parameters)

    def entry_for(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], bound: Mapping[str, Any] | None = None
    ) -> Entry:
        """The compiled entry for arguments of these shapes, compiled now if it is the first time."""
        fixed = bound or {}
        given = {**fixed, **self.signature.assign(args, kwargs, fixed)}
        shapes = {n: tuple(getattr(v, "shape", ())) for n, v in given.items()}
        key = tuple(shapes.items())
        entry = self._by_shape.get(key)
        if entry is None:
            known = self.signature.infer(look_over(self.signature, given))
            entry = self._by_shape[key] = self.specialise({n: known[n] for n in self.open})
        return entry

    def specialise(self, sizes: Mapping[str, int]) -> Entry:
        """The entry for these values of the open sizes: compiled now, or in another process before."""
        key = tuple(sorted(sizes.items()))
        with gate.inside(), self._lock:
            if key not in self._made:
                self._last = self._made[key] = self._make({**self.sizes, **sizes})
            return self._made[key].entry

    def _make(self, sizes: dict[str, int]) -> _Made:
        job, measured, found = None, False, ""
        if self._approach is not None or self.system.approach != USUAL:
            job = self._job(sizes)  # not for the usual Approach, which need not be imported where code is kept
            measured, found = is_measured(job), found_before(job)
        cache, key = self._cache, self._key(sizes, found)
        artifact = cache.get(key) if cache is not None and key is not None else None
        made = None
        if artifact is None:
            made = run_stages(job or self._job(sizes))
            artifact = made.artifact
            assert artifact is not None
            if measured:  # under what was found for it, which may be no longer what others find
                key = self._key(sizes, artifact.text("trace.json"))
            if cache is not None and key is not None:
                cache.put(key, artifact)
        entry = Entry(artifact, self.system.functions())
        entry._loc = self._loc
        return _Made(sizes, entry, made)

    def _key(self, sizes: dict[str, int], found: str = "") -> str | None:
        """Of the code; where schedules are run beside each other, with what was ``found`` by that."""
        if self._cache is None:
            return None
        options = {**self._options, "found": found} if found else self._options
        return key_of(self.kernel, self.system, sizes, self._approach, options)

    def _job(self, sizes: dict[str, int]) -> Job:
        return new_job(self.kernel, self.system, sizes, self._approach, replay=self._replay,
                       findings=database(self._cache), **self._options)  # fmt: skip

    def bind(self, /, *placed: Any, **constants: Any) -> Entry | BoundFunction:
        """This kernel with ``const`` arguments fixed: what has to be done to them (packing) is done once."""
        self._by_name(placed)
        if self._only is not None:
            return self._only.bind(**constants)
        self.signature.check_bound(constants)
        self.signature.assign((), constants, [p.name for p in self.signature.positional if p.name not in constants])
        return BoundFunction(self, constants)

    @property
    def job(self) -> Job:
        """What the compiler did for the sizes made last; where their code was kept from before, it does it now."""
        made = self._latest
        if made.job is None:
            with gate.inside():
                made.job = run_stages(self._job(made.sizes))
        return made.job

    @property
    def _latest(self) -> _Made:
        if self._last is None:
            sizes = ", ".join(self.open)
            raise fail("not-compiled", f"'{self.kernel.name}' is not compiled yet: the sizes {sizes} are open",
                       hint="give sizes to isam.compile, or call it once")  # fmt: skip
        return self._last

    @property
    def mapping(self) -> Cover:
        assert self.job.cover is not None
        return self.job.cover

    @property
    def schedule(self) -> Schedule:
        assert self.job.schedule is not None
        return self.job.schedule

    @property
    def trace(self) -> Trace:
        return self.job.trace

    @property
    def certificate(self) -> Any:
        return self.job.certificate

    @property
    def artifact(self) -> Artifact:
        return self._latest.entry.artifact

    def report(self) -> str:
        """What was decided and why, stage by stage."""
        from isam.compiler.report import report

        return report(self.job)

    def save(self, path: str | Path) -> None:
        """Writes the artifact; :func:`isam.load` runs it without the compiler. Raises ``IsamError`` when there are
        several: those of open sizes that were called with several shapes."""
        if len(self._made) > 1:
            some = [", ".join(f"{n} = {v}" for n, v in key) for key in self._made]
            few = "; ".join(some[:3]) + ("; ..." if len(some) > 3 else "")
            what = f"'{self.kernel.name}' is compiled for {len(some)} shapes ({few}), an artifact holds one"
            raise fail("artifact-several", what, hint="save isam.compile(kernel, sizes={...}), one for each")
        self.artifact.save(path)

    @property
    def _taken(self) -> Signature:
        return self.signature

    def __repr__(self) -> str:
        open_ = f", open sizes {', '.join(self.open)}" if self.open else ""
        return f"<{self.kernel.name} on {self.system.name}{open_}>"


@callable_class
class BoundFunction(Compiled):
    """A function of open sizes with constants fixed; each specialisation binds them once."""

    def __init__(self, function: Function, constants: Mapping[str, Any]):
        self.function, self._loc = function, function.kernel.loc
        self.constants = {n: v.copy() if hasattr(v, "copy") else v for n, v in constants.items()}
        self._bound: dict[int, Entry] = {}
        self._shapes = attach_shapes(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        entry = self.function.entry_for(args, kwargs, self.constants)
        bound = self._bound.get(id(entry))
        if bound is None:
            bound = self._bound.setdefault(id(entry), entry.bind(**self.constants))
        self.function.meets(entry, self._shapes, bound)
        return bound(*args, **kwargs)

    def bind(self, /, *placed: Any, **constants: Any) -> BoundFunction:
        """With further ``const`` arguments fixed."""
        self._by_name(placed)
        self._taken.check_bound(constants, self.constants)
        return BoundFunction(self.function, {**self.constants, **constants})

    def save(self, path: str | Path) -> None:
        """Raises ``IsamError``: an artifact holds code, not constants."""
        raise not_saved(self.function.kernel.name, self.constants)

    @property
    def _taken(self) -> Signature:
        return self.function.signature

    @property
    def _fixed(self) -> Iterable[str]:
        return self.constants

    def __repr__(self) -> str:
        return f"{repr(self.function)[:-1]}, bound {', '.join(self.constants) or 'nothing'}>"
