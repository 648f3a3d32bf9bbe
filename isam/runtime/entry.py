"""A compiled kernel as a Python callable: checks what it is given, runs it, returns the outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from isam import registry
from isam.artifact import RANGE, Artifact, load_artifact
from isam.diagnostics import IsamError, Loc, fail
from isam.runtime.aligned import copied
from isam.runtime.arguments import Prepared, prepare
from isam.runtime.compiled import Compiled
from isam.runtime.forks import gate
from isam.runtime.handed import refuse_unknown
from isam.runtime.signature import Array, Signature
from isam.runtime.vectorcall import attach, callable_class

if TYPE_CHECKING:
    from isam.runtime.ranged import RangedFunction


class Runner(Protocol):
    """What executes the artifacts of one backend (registered in the group ``isam.runners``)."""

    def bind(self, constants: dict[str, Array], sizes: Mapping[str, int]) -> Any:
        """Runs the bind part; what it returns is handed to every ``call``."""
        ...

    def call(self, arrays: Mapping[str, Array], sizes: Mapping[str, int], state: Any) -> None:
        """Runs on checked arrays, in place. ``state`` None: nothing is bound, bind work is done here."""
        ...


@callable_class
class Entry(Compiled):
    """``entry(A, B)`` returns the output (several: a tuple in declared order; none: None); ``entry(A, B, C=out)``
    writes in place and returns ``out``; ``inout`` arrays are updated in place.

    May be called from several threads. Raises ``IsamError`` for arguments it cannot take.
    """

    def __init__(self, artifact: Artifact, functions: Mapping[str, Callable[..., Any]] | None = None,
                 runner: Runner | None = None, state: Any = None, bound: dict[str, Array] | None = None):  # fmt: skip
        self.artifact = artifact
        self.signature = Signature.of(artifact)
        self.state, self.bound = state, bound or {}
        self.__name__ = artifact.name
        with gate.inside():
            self.runner: Runner = runner or registry.load("isam.runners", artifact.backend)(artifact, functions or {})
            ready = getattr(self.runner, "ready", None)
            launch = ready(state) if ready is not None and self.signature.static else None
            self._attached = attach(self, self.signature.parameters, self.bound, launch)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        p = self.prepare(args, kwargs)
        self.runner.call(p.arrays, p.sizes, self.state)
        for caller, computed in p.back:
            caller[...] = computed
        results = tuple(p.results.values())
        return results[0] if len(results) == 1 else results or None

    def prepare(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Prepared:
        """Every check and copy that a call needs, without running it."""
        given = self.signature.assign(args, kwargs, self.bound)
        return prepare(self.signature, given, self.bound)

    def bind(self, /, *placed: Any, **constants: Any) -> Entry:
        """This kernel with some ``const`` arguments fixed to what they hold now; the others are passed per call.

        With all constants given, packing them is done here, once; else it stays part of each call.
        """
        self._by_name(placed)
        self.signature.check_bound(constants, self.bound)
        p = prepare(self.signature.only(constants), constants, {})
        fixed = {**self.bound, **{n: copied(p.arrays[n], p.arrays[n].dtype) for n in constants}}
        missing = [q.name for q in self.signature.parameters if q.role == "const" and q.name not in fixed]
        state = None if missing else self.runner.bind(fixed, p.sizes)
        entry = Entry(self.artifact, runner=self.runner, state=state, bound=fixed)
        entry._loc = self._loc
        return entry

    def save(self, path: str | Path) -> None:
        """Writes the artifact. Raises ``IsamError`` when constants are bound: it holds code, not what was bound."""
        if self.bound:
            raise not_saved(self.__name__, self.bound)
        self.artifact.save(path)

    @property
    def _taken(self) -> Signature:
        return self.signature

    @property
    def _fixed(self) -> Iterable[str]:
        return self.bound

    def __repr__(self) -> str:
        args = ", ".join(p.name for p in self.signature.positional if p.name not in self.bound)
        return f"<{self.artifact.name}({args}) for {self.artifact.backend}>"


def not_saved(name: str, bound: Iterable[str]) -> IsamError:
    """The refusal to save what has bound constants."""
    constants = ", ".join(f"{n}=..." for n in bound)
    return fail("artifact-bound", f"'{name}' has bound constants, an artifact holds none",
                hint=f"save what was compiled, before bind; then isam.load(FILE).bind({constants})")  # fmt: skip


def load(path: str | Path, functions: Mapping[str, Any] | None = None) -> Entry | RangedFunction:
    """The compiled kernel in ``path``, ready to be called, for one shape or for a range of batch sizes; the compiler is
    not needed. ``functions``: those that it calls, by the names of their instructions: what ``isam.instruction``
    returned, for a C function also a ctypes function or an address. Raises ``IsamError``: unreadable, damaged, of
    another version, not for this CPU; functions that are missing, that it does not call, or that cannot be called in
    its place."""
    loc = Loc(str(path))
    artifact = load_artifact(path)
    if functions is not None:
        refuse_unknown(artifact, functions, loc)
    return entry_of(artifact, loc, functions)


def entry_of(artifact: Artifact, loc: Loc, functions: Mapping[str, Any] | None = None) -> Entry | RangedFunction:
    """What is in an artifact, ready to be called. Raises ``IsamError`` as :func:`load` does."""
    if artifact.backend == RANGE:
        from isam.runtime.ranged_artifact import from_artifact

        return from_artifact(artifact, loc, functions)
    entry = Entry(artifact, functions)
    entry._loc = loc
    return entry
