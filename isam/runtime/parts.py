"""A call that is made of calls of compiled kernels, as native code that knows nothing but addresses (``parts.ll``)."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isam.runtime.compiled import Compiled
from isam.runtime.forks import gate
from isam.runtime.signature import Array, Parameter, Signature
from isam.runtime.vectorcall import Launch, attach, callable_class

_lock = threading.Lock()
_linked: list[Any] = []  # the library, once it is there
Part = tuple[Launch, Sequence[int]]  # a kernel, and how many bytes in each argument begins


@callable_class
class Parted(Compiled):
    """A callable for arguments of fixed shapes (``parameters``), made of ``parts``; what is not as native code takes it
    goes to ``thorough``. The interpreter's lock is kept, so that no two calls use a workspace at once."""

    def __init__(self, signature: Signature, parameters: Sequence[Parameter], bound: dict[str, Array],
                 parts: Sequence[Part], thorough: Any):  # fmt: skip
        self.signature, self.thorough = signature, thorough
        words = [len(parts), len(parameters)]
        for launch, offsets in parts:
            words += [launch.call, launch.bind, launch.workspace, *offsets]
        plan = (ctypes.c_int64 * len(words))(*words)
        alive = plan, [launch for launch, _ in parts]
        launch = Launch(link_parts(), 0, ctypes.addressof(plan), False, alive)
        self._attached = attach(self, parameters, bound, launch)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.thorough(args, kwargs)

    @property
    def _taken(self) -> Signature:
        return self.signature


def link_parts() -> int:
    """The address of what carries out a plan; compiled once in a process, and never freed: plans hold it."""
    from isam.runtime.linking import link, to_object

    if not _linked:
        with gate.inside(), _lock:
            if not _linked:
                text = Path(__file__).with_suffix(".ll").read_text(encoding="utf-8")
                _linked.append(link("parts", to_object(text), {}, ("parts",)))
    return _linked[0]["parts"]
