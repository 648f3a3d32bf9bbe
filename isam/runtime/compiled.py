"""What every compiled kernel says to the rest of Python: how it is called, that copies share it, that it is saved and
never pickled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from isam.diagnostics import NOWHERE, Diagnostic, IsamError, Loc

if TYPE_CHECKING:
    from isam.runtime.signature import Signature

C = TypeVar("C", bound="Compiled")


class NotPickled(IsamError, TypeError):
    """Also a ``TypeError``: what Python says of all that cannot be pickled, and what those who try expect."""


class _Shown:
    """``inspect.signature`` of an instance; of the class it is that of ``__init__``."""

    def __get__(self, compiled: Compiled | None, owner: Any = None) -> Any:
        if compiled is None:
            raise AttributeError("__signature__")
        return compiled._taken.shown(compiled._fixed)


class Compiled:
    """Derived classes say what they take (``_taken``), which of it is bound (``_fixed``) and where they come from."""

    __signature__ = _Shown()
    _loc: Loc = NOWHERE

    @property
    def _taken(self) -> Signature:
        raise NotImplementedError

    @property
    def _fixed(self) -> Iterable[str]:
        return ()

    def _by_name(self, placed: tuple[Any, ...]) -> None:
        """Raises ``IsamError`` for constants that are to be bound by their places."""
        if placed:
            left = [p.name for p in self._taken.parameters if p.role == "const" and p.name not in self._fixed]
            what = f"{self._taken.name}: constants are given by name, {len(placed)} without one"
            hint = f"bind({', '.join(f'{n}=...' for n in left)})" if left else "there are none that are not bound"
            raise IsamError(Diagnostic("bind-role", what, self._loc, hint))

    def __copy__(self: C) -> C:
        return self

    def __deepcopy__(self: C, seen: Any) -> C:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raises ``IsamError``: whoever reads a pickle runs what is in it; an artifact is checked before it runs."""
        bound = ", ".join(f"{n}=..." for n in self._fixed)
        name = self._taken.name
        hint = (f"save what was compiled, before bind; then isam.load(FILE).bind({bound})" if bound else
                f"write it with {name}.save(FILE); isam.load(FILE) reads it, in any process")  # fmt: skip
        raise NotPickled(Diagnostic("not-pickled", f"the compiled kernel '{name}' is not pickled", self._loc, hint))
