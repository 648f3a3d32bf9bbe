"""What a checker finds: one violated obligation (requirements section 7), with the step that violates it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from isam.classes import dataclass
from isam.diagnostics import IsamError
from isam.schedule.tree import Issue, Operand

OBLIGATIONS: dict[int, str] = {
    0: "the check itself could be carried out",
    1: "each domain point is executed exactly once",
    2: "composed addresses equal the original accesses",
    3: "same operation, legal to reorder under the granted numerics",
    4: "reductions: initialise before, use after",
    5: "every dependence goes forward",
    6: "contracted temporaries do not escape",
    7: "every tile lies in its buffer and its memory, for all admitted sizes",
    8: "every read sees the current version, the last fresh copy is never dropped, outputs end at home",
    9: "capacity, overlap, alignment and joint placement",
    10: "moves on existing edges by allowed issuers; a unit runs only what it exposes",
    11: "the state at the end of a loop's body is that at its begin; small trips are covered",
}
# What looking at a document that nobody made may raise: values that are well-formed, and make no sense together.
NONSENSE = (IsamError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError,
            RuntimeError, StopIteration)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Violation:
    """``obligation`` (1 to 11; 0: the check could not be done), a stable ``kind``, what is wrong, the printed step."""

    obligation: int
    kind: str
    message: str
    step: str = ""

    def __str__(self) -> str:
        text = f"obligation {self.obligation} [{self.kind}]: {self.message}"
        return f"{text}\n    at {self.step}" if self.step else text


@dataclass(slots=True)
class Findings:
    """Collects violations: equal ones once, at most ``limit`` of a kind (the rest are counted)."""

    limit: int = 8
    found: list[Violation] = field(default_factory=list)
    seen: set[Violation] = field(default_factory=set)
    per_kind: dict[str, int] = field(default_factory=dict)

    def add(self, obligation: int, kind: str, message: str, step: Issue | str = "") -> None:
        n = self.per_kind.get(kind, 0)
        self.per_kind[kind] = n + 1
        if n < self.limit:
            v = Violation(obligation, kind, message, step if isinstance(step, str) else issue_text(step))
            if v not in self.seen:
                self.seen.add(v)
                self.found.append(v)

    def extend(self, violations: Iterable[Violation]) -> None:
        for v in violations:
            self.add(v.obligation, v.kind, v.message, v.step)

    def __len__(self) -> int:
        return len(self.found)


def operand_text(o: Operand) -> str:
    p, t = o.place, o.tile
    whole = len(t.start) == len(t.shape) == len(t.steps)  # else it is no tile, and is shown as it is
    tile = str(t) if whole else f"{t.buffer}{[str(x) for x in t.start]}{list(t.shape)}{list(t.steps)}"
    where = f"{p.memory}:{p.base}" if p.base else p.memory
    if p.cell is not None:
        where += f"#{p.cell}"
    off = "" if p.offset.is_constant and p.offset.const == 0 else f"+({p.offset})"
    return f"{o.name} = {tile} @ {where}{off}"


def issue_text(issue: Issue) -> str:
    """A step on one line: unit, instruction, sizes, operands with their places."""
    sizes = ", ".join(f"{n}={v}" for n, v in issue.sizes)
    return f"{issue.unit}: {issue.instruction}({sizes}) " + "; ".join(map(operand_text, issue.operands))
