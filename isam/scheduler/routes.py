"""On which way elements come from one memory to another: decided once, for plans and for the dry run."""

from __future__ import annotations

from isam.approach.choice import Choice, Trace
from isam.scheduler.edges import along_path
from isam.scheduler.move import paths
from isam.system.graph import System

Ways = dict[tuple[str, str, str], tuple[str, ...] | None]  # by the two memories and the type of elements


class Routes:
    """Those of a schedule that is made. ``trace`` is asked; what it answers holds from then on."""

    def __init__(self, system: System, trace: Trace):
        self.system, self.trace = system, trace
        self._known: Ways = {}

    def of(self, source: str, target: str, dtype: str) -> tuple[str, ...] | None:
        """The way between two memories that elements of a type take, at least one edge; None: no moves lead there."""
        key = (source, target, dtype)
        if key not in self._known:
            options = paths(self.system, source, target, dtype)
            if len(options) > 1:
                costs = [along_path(self.system, p.memories, dtype) for p in options]
                context = {"from": source, "to": target, "dtype": dtype}
                options = (self.trace.choose(Choice("route", options, context, costs)),)
            self._known[key] = options[0].memories if options else None
        return self._known[key]

    def decided(self) -> Ways:
        """Those that somebody asked for, in the order in which they were."""
        return dict(self._known)
