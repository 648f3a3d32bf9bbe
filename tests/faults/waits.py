"""Faults in waits: what one stream may do while another is at work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from isam.schedule.tree import Issue, Node, Schedule, Wait


def waits(n: Issue, s: Schedule) -> Iterator[tuple[str, Node]]:
    after = n.after
    if len(after) > 1:
        yield "no waits", replace(n, after=())
    streams = {s.system.cluster_of(u) or u for u in s.system.units}
    for i, w in enumerate(after):

        def other(new: Wait, i: int = i) -> Issue:
            return replace(n, after=(*after[:i], new, *after[i + 1 :]))

        yield "a wait left out", replace(n, after=(*after[:i], *after[i + 1 :]))
        yield "a wait that ends a step early", other(replace(w, lag=w.lag + 1))
        yield "a wait that ends early", other(replace(w, lag=w.lag + 3))
        if w.lag:
            yield "a wait that is longer", other(replace(w, lag=w.lag - 1))
        yield "a wait for all instances or one", other(replace(w, every=not w.every))
        for stream in sorted(streams - {w.stream})[:2]:
            yield "a wait for another stream", other(replace(w, stream=stream))
    yield "in one step with the call before, or not", replace(n, joined=not n.joined)
