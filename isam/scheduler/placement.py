"""Which memories the operands of a call may be in together (SYS-3)."""

from __future__ import annotations

from itertools import product

from isam.scheduler.nests import Nest


def joint_placements(nest: Nest) -> list[tuple[str, ...]]:
    names = [u.name for u in nest.uses]
    out = []
    for option in product(*(u.homes for u in nest.uses)):
        at = dict(zip(names, option, strict=True))
        if all(
            len({at[o] for o in group if o in at}) == len([o for o in group if o in at])
            for group in nest.instruction.apart
        ):
            out.append(option)
    return out


class Labelled:
    """An option of a choice with a printed form."""

    __slots__ = ("label", "value")

    def __init__(self, value: object, label: str):
        self.value, self.label = value, label
