"""Which decisions led to a step (APP-3)."""

from __future__ import annotations

from isam.approach.choice import Decision, Trace
from isam.classes import dataclass
from isam.schedule.tree import Issue, Schedule


def decisions_behind(schedule: Schedule, step: Issue) -> list[Decision]:
    """The recorded decisions that led to a step, in the order in which they were made.

    Of a computing step: the cover and the mapping of its statements, what its nest was fused with, how much a call
    takes, how its loops were cut, who issues it. Of any step: where its tiles were fetched from, along which way,
    placed, and what made room for them. What is decided of the program as a whole (its kernel, its loops) is behind
    every step. Raises ``ValueError`` when the schedule carries no trace.
    """
    trace = schedule.trace
    if not isinstance(trace, Trace):
        raise ValueError("this schedule carries no trace of its decisions")
    asked = _Step.of(schedule, step)
    return [d for d in trace.decisions if asked.follows(d)]


@dataclass(frozen=True, slots=True)
class _Step:
    """What decisions on a step may speak of: the number of its nest and the statements of that, its instruction, its
    tiles as printed, their buffers, with the memories that these lie in, and those memories."""

    nest: int | None
    statements: frozenset[int]
    instruction: str
    tiles: frozenset[str]
    buffers: frozenset[str]
    brought: frozenset[tuple[str, str]]
    memories: frozenset[str]

    @staticmethod
    def of(schedule: Schedule, step: Issue) -> _Step:
        found = () if step.nest is None else schedule.cover.mappings[schedule.nests[step.nest].mapping].statements
        ends = [(o.tile.buffer, o.place.memory) for o in step.operands]
        return _Step(step.nest, frozenset(found), step.instruction, frozenset(str(o.tile) for o in step.operands),
                     frozenset(b for b, _ in ends), frozenset(ends), frozenset(m for _, m in ends))  # fmt: skip

    def follows(self, d: Decision) -> bool:
        """Whether the step is as it is because of this, too."""
        about = d.context
        match d.point:
            case "source":
                return (about["buffer"], about["to"]) in self.brought
            case "join":  # a move between two of the memories
                return sum((about["buffer"], memory) in self.brought for memory in about["way"]) > 1
            case "route":
                return len(self.memories) > 1 and self.memories <= set(d.label.split(" -> "))
            case "pack":
                return about["memory"] in self.memories
            case "cover" | "mapping":
                return bool(self.statements & set(about.get("statements", ())))
            case "tail" | "boxes":
                return about["nest"] == self.nest
            case "prefetch":
                return bool(self.buffers & set(about["buffers"]))
            case "stream":
                return about["buffer"] in self.buffers
            case "device":
                return about["instruction"] == self.instruction and bool(self.tiles.intersection(about["tiles"]))
            case "place":
                return bool(self.tiles.intersection(about["tiles"]))
            case "victim":
                return about["for"] in self.tiles
        return "nests" not in about or self._among(about["nests"])

    def _among(self, nests: list[object]) -> bool:
        """Whether its nest is one of these, which are numbers, or of each group the numbers."""
        of_groups = (n if isinstance(n, list | tuple) else [n] for n in nests)
        return self.nest is not None and any(self.nest in numbers for numbers in of_groups)
