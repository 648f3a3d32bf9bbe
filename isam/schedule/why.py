"""Which decisions led to a step (APP-3)."""

from __future__ import annotations

from isam.approach.choice import Decision, Trace
from isam.schedule.tree import Issue, Schedule


def decisions_behind(schedule: Schedule, step: Issue) -> list[Decision]:
    """The recorded decisions that led to a step, in the order in which they were made.

    Of a computing step: the cover and the mapping of its statements, what its nest was fused with, how its loops were
    cut. Of any step: where its tiles were fetched from, placed, and what made room for them. Raises ``ValueError`` when
    the schedule carries no trace.
    """
    trace = schedule.trace
    if not isinstance(trace, Trace):
        raise ValueError("this schedule carries no trace of its decisions")
    tiles = {str(o.tile) for o in step.operands}
    brought = {(o.tile.buffer, o.place.memory) for o in step.operands}
    nest = step.nest
    statements = set() if nest is None else set(schedule.cover.mappings[schedule.nests[nest].mapping].statements)
    return [d for d in trace.decisions if _concerns(d, nest, statements, tiles, brought)]


def _concerns(
    d: Decision, nest: int | None, statements: set[int], tiles: set[str], brought: set[tuple[str, str]]
) -> bool:
    """``brought``: buffers of which tiles are operands, with the memories that these lie in."""
    about = d.context
    if d.point == "source":
        return (about["buffer"], about["to"]) in brought
    if d.point == "join":  # a move between two of the memories
        return sum((about["buffer"], memory) in brought for memory in about["way"]) > 1
    if d.point in ("cover", "mapping"):
        return bool(statements & set(about.get("statements", ())))
    if "nests" in about:
        of_groups = (n if isinstance(n, list | tuple) else [n] for n in about["nests"])
        return nest is not None and any(nest in numbers for numbers in of_groups)
    named = {about.get("tile"), about.get("for"), *about.get("tiles", ())}
    return bool(named & tiles)
