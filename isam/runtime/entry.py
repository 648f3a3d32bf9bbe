"""A compiled kernel as a Python callable: checks what it is given, runs it, returns the outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from isam import registry
from isam.artifact import Artifact, load_artifact
from isam.runtime.arguments import PLAIN, WRITEABLE, Prepared, address, prepare
from isam.runtime.signature import Array, Parameter, Signature

WRITTEN = PLAIN | WRITEABLE


class Runner(Protocol):
    """What executes the artifacts of one backend (registered in the group ``isam.runners``)."""

    def bind(self, constants: dict[str, Array], sizes: Mapping[str, int]) -> Any:
        """Runs the bind part; what it returns is handed to every ``call``."""
        ...

    def call(self, arrays: Mapping[str, Array], sizes: Mapping[str, int], state: Any) -> None:
        """Runs on checked arrays, in place. ``state`` None: nothing is bound, bind work is done here."""
        ...


class Entry:
    """``entry(A, B)`` returns the output (several: a tuple in declared order; none: None); ``entry(A, B, C=out)``
    writes in place and returns ``out``; ``inout`` arrays are updated in place.

    May be called from several threads. Raises ``IsamError`` for arguments it cannot take.
    """

    def __init__(self, artifact: Artifact, functions: Mapping[str, Callable[..., Any]] | None = None,
                 runner: Runner | None = None, state: Any = None, bound: dict[str, Array] | None = None):  # fmt: skip
        self.artifact = artifact
        self.signature = Signature.of(artifact)
        self.runner: Runner = runner or registry.load("isam.runners", artifact.backend)(artifact, functions or {})
        self.state, self.bound = state, bound or {}
        self.__name__ = artifact.name
        self._launch = getattr(self.runner, "launch", None) if self.signature.static else None
        self._quick = _Quick(self.signature, self.bound) if self._launch is not None else None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        quick = self._quick
        if quick is not None:
            got = quick.pointers(args, kwargs)
            if got is not None:
                self._launch(got[0], {}, self.state)  # type: ignore[misc]
                return got[1]
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

    def bind(self, **constants: Any) -> Entry:
        """This kernel with some ``const`` arguments fixed to what they hold now; the others are passed per call.

        With all constants given, packing them is done here, once; else it stays part of each call.
        """
        self.signature.check_bound(constants, self.bound)
        p = prepare(self.signature.only(constants), constants, {})
        fixed = {**self.bound, **{n: p.arrays[n].copy() for n in constants}}
        missing = [q.name for q in self.signature.parameters if q.role == "const" and q.name not in fixed]
        state = None if missing else self.runner.bind(fixed, p.sizes)
        return Entry(self.artifact, runner=self.runner, state=state, bound=fixed)

    def __repr__(self) -> str:
        args = ", ".join(p.name for p in self.signature.positional if p.name not in self.bound)
        return f"<{self.artifact.name}({args}) for {self.artifact.backend}>"


def load(path: str | Path, functions: Mapping[str, Callable[..., Any]] | None = None) -> Entry:
    """The compiled kernel in ``path``, ready to be called; the compiler is not needed. ``functions``: Python functions
    that it calls, by name. Raises ``IsamError``: unreadable, damaged, of another version, not for this CPU."""
    return Entry(load_artifact(path), functions)


class _Quick:
    """The fast way through the checks, for arrays that need no copy; anything unusual goes the thorough way."""

    def __init__(self, signature: Signature, bound: dict[str, Array]):
        order = {p.name: k for k, p in enumerate(signature.parameters)}
        wanted = [p for p in signature.positional if p.name not in bound]
        self.specs = tuple((order[p.name], p.dtype, p.shape, _flags(p)) for p in wanted)
        self.makes = tuple((p.name, order[p.name], p.shape or (), p.dtype, _extent(p)) for p in signature.outputs)
        self.template = [0] * len(order)
        for name, a in bound.items():
            self.template[order[name]] = address(a)
        self.count = len(self.specs)
        written = {order[p.name] for p in wanted if p.written}
        self.written = tuple((k, _extent(p)) for k, p in enumerate(signature.parameters) if k in written)
        self.others = tuple((order[p.name], _extent(p)) for p in wanted)

    def pointers(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[int], Any] | None:
        """Addresses in declared order and what to return; None: not for the fast way."""
        if len(args) != self.count:
            return None
        out = self.template.copy()
        for a, (k, dtype, shape, flags) in zip(args, self.specs, strict=True):
            if type(a) is not np.ndarray or a.dtype is not dtype or a.shape != shape or a.flags.num & flags != flags:
                return None
            out[k] = address(a)
        for w, n in self.written:
            for k, m in self.others:
                if k != w and out[w] < out[k] + m and out[k] < out[w] + n:
                    return None
        made = self._outputs(out, kwargs)
        if made is None:
            return None
        return out, made[0] if len(made) == 1 else tuple(made) if made else None

    def _outputs(self, out: list[int], kwargs: dict[str, Any]) -> list[Array] | None:
        """New arrays, or those given for outputs when they lie apart from everything else."""
        made: list[Array] = []
        left = len(kwargs)
        for name, k, shape, dtype, n in self.makes:
            array = kwargs.get(name) if kwargs else None
            if array is None:
                array = np.empty(shape, dtype)
                out[k] = address(array)
            else:
                left -= 1
                if type(array) is not np.ndarray or array.dtype is not dtype or array.shape != shape:
                    return None
                start = address(array)
                if array.flags.num & WRITTEN != WRITTEN:
                    return None
                for other, m in self.others:
                    if start < out[other] + m and out[other] < start + n:
                        return None
                for earlier in made:
                    if start < address(earlier) + earlier.nbytes and address(earlier) < start + n:
                        return None
                out[k] = start
            made.append(array)
        return None if left else made


def _flags(p: Parameter) -> int:
    return WRITTEN if p.written else PLAIN


def _extent(p: Parameter) -> int:
    return prod(p.shape or ()) * p.dtype.itemsize
