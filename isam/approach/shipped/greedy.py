"""The default Approach: at each choice point the option predicted cheapest, ties to the first."""

from __future__ import annotations

from typing import Any

from isam.approach.choice import Approach, Choice


class Greedy(Approach):
    """Takes the cheapest option where the core predicts costs, fuses where it may, evicts what costs least."""

    name = "greedy"
    why = "lowest predicted cost"

    def _cheapest(self, choice: Choice) -> Any:
        if choice.costs is None:
            return choice.options[0]
        return choice.options[min(range(len(choice.options)), key=lambda i: (choice.costs or ())[i])]

    search = mapping = cover = layout = pack = tile = tail = order = _cheapest
    device = source = place = route = variant = measure = _cheapest

    def fuse(self, choice: Choice) -> Any:
        """Fuses where a whole tile flows from one nest to the next: every dimension of some buffer that joins them is
        indexed by shared axes alone."""
        nest, group = choice.context["_nest"], choice.context["_group"]
        shared = {a for n in group for a in n.extents}
        written = {u.buffer for n in group for u in n.uses if u.writes}
        return any(
            u.buffer in written and all(a in shared for row in u.index for a in row.names if a in nest.extents)
            for u in nest.uses
        )

    def victim(self, choice: Choice) -> Any:
        """The copy whose next use lies farthest (Belady); of those never used again a clean one before a dirty one."""
        run = choice.context["_run"]

        def merit(key: Any) -> tuple[int, bool]:
            uses = run.later.get(key[1])
            return (-(uses[-1] if uses else 1 << 30), run.state.copies[key].dirty)

        return min(choice.options, key=merit)
