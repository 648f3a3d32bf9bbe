"""The certificate: what was proved of a schedule, by what method, and of which schedule exactly.

A certificate is worth only what :func:`verify` makes of it: everything in it is derived again from the schedule and
compared, so that whatever was tampered with shows, the seal included. Schema ``isam.certificate/2``.

What the walk over the tree cannot show, though it may hold, is executed step by step where that is finite and short
enough: no size is open, and no instance works beside another (ADR 21). The certificate says which method showed what.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Any

from isam.classes import dataclass
from isam.diagnostics import InternalError
from isam.proof.chain import check_chain
from isam.proof.facts import Facts
from isam.proof.filled import with_boxes
from isam.proof.legal import Legality
from isam.proof.points import check_form, check_points
from isam.proof.sets import Isl
from isam.proof.tree import check_tree
from isam.proof.violation import NONSENSE, OBLIGATIONS, Findings, Violation
from isam.proof.waits import check_waits
from isam.room import roomy
from isam.schedule.sharing import shared
from isam.schedule.tree import Issue, Loop, Schedule, distinct
from isam.system.graph import System

SCHEMA = "isam.certificate/2"
TRIP, STEPS, POINTS = 3, 20_000, 1_000_000  # of what is executed where the tree does not show everything
EXECUTED = "every step executed on an empty machine, which holds elements and versions instead of values"
# What the tree may fail to show of a schedule that is right, and an execution of every step shows.
SHOWN = frozenset({(1, "coverage"), (3, "budget"), (3, "reassociate"), (5, "budget"), (5, "order"), (7, "address"),
                   (7, "bounds"), (8, "final"), (8, "stale"), (11, "closed")})  # fmt: skip
METHODS: dict[int, str] = {
    1: "images of the steps as families of boxes over the loop variables; counted or by isl where boxes do not meet",
    2: "affine identity of every operand's tile with the kernel's access at the step's point",
    3: "unification of the instruction's dataflow with the statements'; terms in order unless reassociation is granted",
    4: "conflicting earlier instances are contained in what has been done, on the tree",
    5: "conflicting earlier instances are contained in what has been done, on the tree",
    6: "no statement outside an instruction's region touches a temporary inlined in it",
    7: "bounds of affine starts over the loop variables; isl where they do not suffice",
    8: "facts (which tile lies where, current) followed through the tree, loops by induction; of two calls that may "
       "meet, so many of the first one's stream lie between that the second one's wait is for it",
    9: "slots, cells, addresses and joint placement of every distinct step",
    10: "edges, issuers and units of every distinct step",
    11: "the facts assumed at the begin of a body hold at its end; loops that may not run change nothing",
}


class ProofError(InternalError):
    """The schedule is not proved. ``violations``: what could not be shown of it. ``executed``: what the slow judge met
    when it executed every step; empty where it met nothing, None where there are too many steps for it."""

    def __init__(self, schedule: Schedule, violations: list[Violation], executed: tuple[Violation, ...] | None):
        self.violations = tuple(violations)
        self.executed = executed
        self.shown = f"the kernel:\n{schedule.cover.original}"
        name, n = f"the schedule of '{schedule.kernel.name}'", len(violations)
        many = f"{n} obligation{'s' if n != 1 else ''}"
        if self.executed:
            said = f"{name} is wrong: it violates {many}"
            found = [*violations, "executed step by step:", *self.executed]
        elif self.executed is None:
            said, found = f"{name} is not proved: {many} not shown, and too many steps to execute them all", violations
        else:
            said = f"{name} is not proved: {many} not shown, though executing every step meets nothing wrong"
            found = violations
        super().__init__("\n".join([said, *map(str, found)]))


def _many(schedule: Schedule, trips: Mapping[str, int]) -> bool:
    """Whether the slow judge would not come to an end of the steps. What cannot be counted, it refuses at once."""
    from isam.schedule.steps import steps

    try:
        return sum(steps(t, trips, STEPS) for t in (schedule.bind, schedule.call)) > STEPS
    except (LookupError, ArithmeticError, ValueError):
        return False


def executed(schedule: Schedule) -> tuple[Violation, ...] | None:
    """What the slow judge finds with small run-time trips; None where it would take too long."""
    from isam.proof.flat import check_flat

    kernel = schedule.cover.kernel
    trips = {s.name: s.lo + TRIP * s.multiple_of - s.lo % s.multiple_of for s in kernel.given}
    trips |= {s.whole[0]: max(trips[s.whole[0]], s.whole[1] + 1) for s in kernel.follow if s.whole}
    trips = kernel.sizes({s.name: min(trips[s.name], s.hi or trips[s.name]) for s in kernel.given})
    boxes = (prod(max(1, e.evaluate(trips)) for _, e in n.axes) for n in schedule.nests)
    if sum(boxes) > POINTS or _many(schedule, trips):
        return None
    found = tuple(check_flat(schedule, trips, STEPS))
    return None if any(v.kind in ("budget", "sizes") for v in found) else found


def shown(schedule: Schedule, violations: Sequence[Violation], lg: Legality) -> set[int]:
    """The obligations that executing every step shows although ``violations`` were found of the tree; none where one
    of those is left. ``lg`` knows the schedule, whose every step must be legal by itself."""
    if schedule.cover.kernel.syms or any((v.obligation, v.kind) not in SHOWN for v in violations):
        return set()
    nodes = [n for t in (schedule.bind, schedule.call) for n in distinct(t)]
    beside = any(isinstance(n, Loop) and n.deal is not None for n in nodes)
    alone = not beside and not len(check_form(lg.schedule, lg)) and executed(schedule) == ()
    return {v.obligation for v in violations} if alone else set()


def waited(schedule: Schedule, isl: Isl, lg: Legality) -> list[Violation]:
    """Calls that may start too early, as far as the tree shows; none where it does not show that they do not, but no
    call does when they are followed one by one."""
    out = Findings()
    isl.refill()
    check_waits(schedule, Facts(lg, isl, False), out)
    if not len(out) or schedule.cover.kernel.syms:
        return out.found
    from isam.proof.races import check_races
    from isam.schedule.steps import steps

    followed = sum(steps(tree, {}, STEPS) for tree in (schedule.bind, schedule.call)) <= STEPS
    return [] if followed and not check_races(schedule, {}, 1) else out.found


@dataclass(frozen=True)
class Certificate:
    """``data``: the document, JSON values only, the same for the same schedule. ``spent``: on the proof, seconds and
    questions to isl; None of one that was read."""

    data: Mapping[str, Any] = field(default_factory=dict)
    spent: tuple[float, int] | None = field(default=None, compare=False)

    def to_json(self) -> str:
        return json.dumps(self.data, indent=1, ensure_ascii=False)

    @staticmethod
    def from_json(text: str | bytes) -> Certificate:
        """Raises ``ValueError`` when the text is no JSON object."""
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError("a certificate is a JSON object")
        return Certificate(data)

    def __str__(self) -> str:
        f, k = self.data["figures"], self.data["kernel"]
        lines = [
            f"proved: {len(self.data['obligations'])} obligations of '{k['name']}' on {self.data['system']['name']}"
        ]
        spent = f", {self.spent[1]} isl questions, {self.spent[0]:.3f} s" if self.spent is not None else ""
        lines += [f"  {f['steps']} distinct steps, {f['loops']} loops{spent}"]
        lines += [f"  {o['number']:2} {o['statement']}: {o['method']}" for o in self.data["obligations"]]
        return "\n".join(lines)


def prove(schedule: Schedule) -> Certificate:
    """Proves obligations 1 to 11. Raises :class:`ProofError` with everything that is wrong."""
    certificate, violations = examine(schedule)
    if violations:
        raise ProofError(schedule, violations, executed(schedule))
    return certificate


@roomy
def examine(schedule: Schedule) -> tuple[Certificate, list[Violation]]:
    """The certificate that the schedule would have, and what speaks against it."""
    from isam.schedule.serial import used_system

    start = time.perf_counter()
    whole, machine = schedule_hash(schedule), system_hash(used_system(schedule))
    schedule = shared(schedule)
    told = with_boxes(schedule)
    isl, lg = Isl(), Legality(told)
    violations = check_points(told, isl, lg)
    isl.refill()  # for the walk with states
    violations += [v for v in check_tree(told, isl, lg) if v not in violations]
    ran = shown(schedule, violations, lg) if violations else set()
    violations = [] if ran else violations
    violations += [] if violations else waited(told, isl, lg)
    chain, broken = check_chain(schedule.cover)
    violations += broken
    nodes = [n for t in (schedule.bind, schedule.call) for n in distinct(t)]
    kernel, original = schedule.cover.kernel, schedule.cover.original
    bodies = {id(p) for n in nodes if isinstance(n, Loop) for p in (n.first, n.body, n.last) if p is not None}
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "isam": _version(),
        "kernel": {
            "name": original.name,
            "text": str(original),
            "hash": digest(str(original)),
            "rewritten": str(kernel),
            "rewritten_hash": digest(str(kernel)),
            "steps": list(schedule.cover.steps),
        },
        "chain": chain,
        "system": {"name": schedule.system.name, "hash": machine},
        "schedule": {"hash": whole},
        "obligations": [
            {"number": n, "statement": OBLIGATIONS[n], "method": EXECUTED if n in ran else m, "verdict": "proved"}
            for n, m in METHODS.items()
        ],
        "figures": {
            "steps": sum(isinstance(n, Issue) for n in nodes),
            "loops": sum(isinstance(n, Loop) for n in nodes),
            "bodies": len(bodies),
            "slots": len(schedule.workspace),
        },
    }
    data["seal"] = seal(data)
    return Certificate(data, (time.perf_counter() - start, isl.queries)), violations


def verify(certificate: Certificate | Mapping[str, Any] | str | bytes, schedule: Schedule) -> list[Violation]:
    """Checks a certificate against a schedule, deriving everything again; an empty list means it holds. A schedule that
    was read may be anybody's: what cannot even be derived of it is a violation."""
    try:
        given = _document(certificate)
    except (ValueError, TypeError, RecursionError) as e:
        return [Violation(0, "certificate", f"this is no certificate: {e}")]
    try:
        fresh, violations = examine(schedule)
    except NONSENSE as e:
        return [Violation(0, "schedule", f"the schedule makes no sense: {type(e).__name__}: {_short(str(e))}")]
    if given.get("seal") != seal({k: v for k, v in given.items() if k != "seal"}):
        violations.append(Violation(0, "certificate", "the seal does not fit the certificate"))
    expected = json.loads(fresh.to_json())
    violations += _differences(given, expected, "")
    return violations


def _document(certificate: Certificate | Mapping[str, Any] | str | bytes) -> dict[str, Any]:
    if isinstance(certificate, (str, bytes)):
        certificate = Certificate.from_json(certificate)
    data = certificate.data if isinstance(certificate, Certificate) else certificate
    return json.loads(json.dumps(dict(data), allow_nan=False))


def _differences(given: Any, expected: Any, path: str) -> list[Violation]:
    """Every place where two documents differ."""
    if isinstance(given, dict) and isinstance(expected, dict):
        out = [Violation(0, "certificate", f"{path}/{k} is missing") for k in expected if k not in given]
        out += [Violation(0, "certificate", f"{path}/{k} does not belong there") for k in given if k not in expected]
        for k in expected:
            if k in given:
                out += _differences(given[k], expected[k], f"{path}/{k}")
        return out
    if isinstance(given, list) and isinstance(expected, list) and len(given) == len(expected):
        return [
            v for i, (a, b) in enumerate(zip(given, expected, strict=True)) for v in _differences(a, b, f"{path}/{i}")
        ]
    if type(given) is type(expected) and given == expected:
        return []
    return [Violation(0, "certificate", f"{path} says {_short(given)}, the schedule gives {_short(expected)}")]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


# hashes --------------------------------------------------------------------------------------------------------------
def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def seal(data: Mapping[str, Any]) -> str:
    """A hash of the whole document without its seal."""
    return digest(json.dumps(data, sort_keys=True, ensure_ascii=False))


def schedule_hash(schedule: Schedule) -> str:
    """A hash of the schedule with the part of the machine it uses; equal for a schedule read back from its JSON."""
    from isam.schedule.serial import to_json

    return digest(to_json(schedule))


def system_hash(system: System) -> str:
    from isam.schedule.serial import written

    return digest(json.dumps(written(system), sort_keys=True))


def _version() -> str:
    import isam

    return isam.__version__
