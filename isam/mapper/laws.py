"""The laws that a search may use, read when a mismatch first asks for one.

A kernel that fits as it stands asks for none, and does not pay for importing them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from isam.classes import dataclass

if TYPE_CHECKING:
    from isam.transforms.law import Transform


@dataclass(frozen=True, eq=False)
class Laws(Sequence["Transform"]):
    """Laws in the order in which steps are offered. ``read`` gives them: it is called once, when they are needed."""

    read: Callable[[], Iterable[Transform]]

    @staticmethod
    def of(laws: Sequence[Transform]) -> Laws:
        return laws if isinstance(laws, Laws) else Laws(lambda: laws)

    @cached_property
    def _all(self) -> tuple[Transform, ...]:
        return tuple(self.read())

    @cached_property
    def _by_kind(self) -> dict[str, list[Transform]]:
        out: dict[str, list[Transform]] = {}
        for t in self:
            for kind in t.kinds:
                out.setdefault(kind, []).append(t)
        return out

    def __getitem__(self, at: Any) -> Any:
        return self._all[at]

    def __len__(self) -> int:
        return len(self._all)

    def answering(self, kind: str) -> Sequence[Transform]:
        """Those that may answer a mismatch of this kind."""
        return self._by_kind.get(kind, ())

    @cached_property
    def paying(self) -> Sequence[Transform]:
        """Those that may make a kernel cheaper which can be carried out as it stands."""
        return tuple(t for t in self if t.pays)

    @cached_property
    def tried(self) -> Laws:
        """Those that a search tries, where a mismatch asks or blindly."""
        from isam.transforms.law import ALWAYS, ON_DEMAND

        return Laws(lambda: (t for t in self if t.tried in (ALWAYS, ON_DEMAND)))

    @cached_property
    def guessed(self) -> Laws:
        """Those that a search tries blindly, too."""
        from isam.transforms.law import ALWAYS

        return Laws(lambda: (t for t in self if t.tried == ALWAYS))


def _shipped() -> Sequence[Transform]:
    from isam.transforms import ALL

    return ALL


SHIPPED = Laws(_shipped)
