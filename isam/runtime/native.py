"""Runs native code: links the object bytes of an artifact into this process and calls its two functions.

Both have the signature ``void f(ptr *arguments, ptr workspace, i64 *sizes)``: one pointer per kernel argument in
declared order, a workspace (page-aligned) whose first ``bound`` bytes belong to ``bind``, and the run-time sizes in
the artifact's order. Each thread has its own workspace; what was bound is copied into it once.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from isam.artifact import Artifact
from isam.caches import PAGE
from isam.diagnostics import fail
from isam.runtime.aligned import copied
from isam.runtime.external import Externals
from isam.runtime.handed import all_called, declarations
from isam.runtime.layout import address
from isam.runtime.linking import features, link
from isam.runtime.signature import Array
from isam.runtime.vectorcall import Launch

LONG = 1 << 16  # points: calls of more take microseconds, and let go of the interpreter's lock


Room = tuple[Array, int]  # memory, and the address of its first page


class State:
    """What one binding keeps: the constants, the bound part of the workspace, and a workspace per thread (``room``
    there, while no call has it)."""

    __slots__ = ("constants", "local", "master")

    def __init__(self, constants: dict[str, Array], master: bytes):
        self.constants, self.master = constants, master
        self.local = threading.local()


class Runner:
    """The code of one artifact, ready to be called. Raises ``IsamError`` when this machine cannot run it."""

    def __init__(self, artifact: Artifact, functions: Mapping[str, Callable[..., Any]] | None = None):
        self.artifact = artifact
        self.names = tuple(a.name for a in artifact.arguments)
        self.sizes = tuple(s.name for s in artifact.sizes)
        self.guarded = bool(all_called(artifact))
        self.externals = Externals(functions or {}, self.guarded, declarations(artifact))
        self._link(artifact)
        self.pack = ctypes.c_void_p * len(self.names)
        self.unbound = State({}, b"")

    def _link(self, artifact: Artifact) -> None:
        check_features(artifact)
        symbols = self.externals.addresses(artifact.externals)
        wanted = [n for n in (artifact.entry, artifact.bind) if n]
        try:
            self.linked = link(artifact.name, artifact.parts["object.o"], symbols, wanted)
        except RuntimeError as e:
            raise fail("artifact-damaged", f"the object code of '{artifact.name}' cannot be linked: {e}") from None
        form = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self.entry = form(self.linked[artifact.entry])
        self.binder = form(self.linked[artifact.bind]) if artifact.bind else None

    def bind(self, constants: dict[str, Array], sizes: Mapping[str, int]) -> State:
        """Runs the bind part once; the constants are kept as they are now."""
        kept = {n: copied(a, a.dtype) for n, a in constants.items()}
        room, start = allocate(self.artifact.workspace)
        if self.binder is not None:
            pointers = [address(kept[n]) if n in kept else 0 for n in self.names]
            self.binder(self.pack(*pointers), start, self._sizes(sizes))
            self._check()
        offset = start - address(room)
        return State(kept, bytes(room[offset : offset + self.artifact.bound]))

    def ready(self, state: State | None) -> Launch | None:
        """What calls on arrays of fixed shapes need; None where they need more than addresses."""
        if self.guarded or self.sizes:
            return None
        room, start = self._workspace(state)
        points = self.artifact.points
        return Launch(self.linked[self.artifact.entry],
                      self.linked[self.artifact.bind] if state is None and self.artifact.bind else 0,
                      start, points is None or points >= LONG, (self, room))  # fmt: skip

    def call(self, arrays: Mapping[str, Array], sizes: Mapping[str, int], state: State | None) -> None:
        """One call on checked arrays, in place. It has its workspace to itself, though a signal's handler, or what is
        finalised, calls the same kernel in between; and holds it, though the thread's own memory goes meanwhile."""
        pointers = [address(arrays[n]) for n in self.names]
        local = (self.unbound if state is None else state).local
        room: Room | None = getattr(local, "room", None)
        local.room = None
        if room is None:
            room = self._workspace(state)
        packed = self.pack(*pointers)
        run_time = self._sizes(sizes) if self.sizes else None
        try:
            if state is None and self.binder is not None:
                self.binder(packed, room[1], run_time)
            self.entry(packed, room[1], run_time)
        finally:
            local.room = room
        if self.guarded:
            self._check()

    def _check(self) -> None:
        self.externals.check()

    def _workspace(self, state: State | None) -> Room:
        """A new one, with what is bound."""
        room, start = allocate(self.artifact.workspace)
        if state is not None and state.master:
            offset = start - address(room)
            room[offset : offset + len(state.master)] = np.frombuffer(state.master, np.uint8)
        return room, start

    def _sizes(self, sizes: Mapping[str, int]) -> Any:
        return (ctypes.c_int64 * max(1, len(self.sizes)))(*[sizes.get(n, 0) for n in self.sizes])


def allocate(size: int) -> Room:
    """Room for ``size`` bytes and the address of its first page-aligned byte."""
    room = np.empty(size + PAGE, np.uint8)
    return room, -(-address(room) // PAGE) * PAGE


def check_features(artifact: Artifact) -> None:
    """The code's CPU features are there (without them it would end the process)."""
    missing = [n for n in artifact.needs if n not in features()]
    if missing:
        what = f"'{artifact.name}' was compiled for a CPU with {', '.join(missing)}, which this one does not have"
        raise fail("artifact-features", what,
                   hint="compile the kernel again on this machine, or take the artifact to such a CPU")  # fmt: skip
