"""``isam verify``: whether an artifact is what its certificate says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson

if TYPE_CHECKING:
    from isam.artifact import Artifact
    from isam.schedule.tree import Schedule

ARTIFACT = Annotated[str, typer.Argument(metavar="OUT", help="What isam compile wrote, or map --certify --json.")]
CODE = Annotated[bool, typer.Option("--code/--no-code", help="Also emit the code again and compare it byte by byte.")]


@answering("verify", artifact="the file", holds="whether everything agrees", violations="what does not",
           obligations="what was proved again", code="same, other, or not compared")  # fmt: skip
def verify(artifact: ARTIFACT, code: CODE = True, as_json: AsJson = False) -> Answer:
    """Derives every proof again from the schedule in an artifact and compares it with the certificate.

    Exit code 1 when anything differs.
    """
    from isam.approach.choice import Trace
    from isam.artifact import load_artifact
    from isam.diagnostics import fail
    from isam.proof.certificate import verify as against
    from isam.schedule.serial import from_json

    if artifact.endswith(".json"):
        return _mapping(artifact)
    a = load_artifact(artifact)
    if "certificate.json" not in a.parts:
        raise fail("artifact-part", f"{artifact} has no certificate: it was compiled without proof")
    schedule = from_json(a.text("schedule.json"), f"{artifact}/schedule.json")
    if "trace.json" in a.parts:
        Trace.reading(a.text("trace.json"), f"{artifact}/trace.json")
    violations = [str(v) for v in against(a.parts["certificate.json"], schedule)]
    if not _same_kernel(a, schedule, f"{artifact}/kernel.isam"):
        violations.append("the kernel in the artifact is not the one that the schedule is for")
    same = _code(a, schedule) if code and not violations else "not compared"
    if same == "other":
        violations.append("the code is not what the schedule gives")
    data = {"artifact": artifact, "holds": not violations, "violations": violations, "code": same,
            "obligations": [] if violations else _obligations(a.text("certificate.json"))}  # fmt: skip
    if violations:
        return Answer(f"{artifact}: refused\n" + "\n".join(f"  {v}" for v in violations), data, yes=False)
    proved = "\n".join(f"  {o['number']:>2} {o['statement']}" for o in data["obligations"])  # type: ignore[union-attr]
    return Answer(f"{artifact}: {a.name} on {schedule.system.name}, proved again\n{proved}\n  code: {same}", data)


def _mapping(path: str) -> Answer:
    """A certificate of mappings, or the answer of ``isam map --certify --json``, judged by the small checker."""
    from pathlib import Path

    from isam.diagnostics import fail
    from isam.proof.checker import refusals

    try:
        data = json.loads(Path(path).read_text())
        found = data.get("certificates", [data])
        if not isinstance(found, list):
            raise ValueError("'certificates' is not a list")
    except (OSError, ValueError, AttributeError) as e:
        raise fail("artifact-part", f"{path} is no certificate: {e}") from None
    violations = [f"certificate {n}: {why}" for n, c in enumerate(found, 1) for why in refusals(c)]
    if not found:
        violations = ["there is no certificate in it"]
    answer = {"artifact": path, "holds": not violations, "violations": violations, "code": "not compared",
              "obligations": [] if violations else found[0]["obligations"]}  # fmt: skip
    if violations:
        return Answer(f"{path}: refused\n" + "\n".join(f"  {v}" for v in violations), answer, yes=False)
    return Answer(f"{path}: {len(found)} certificate{'s' if len(found) != 1 else ''}, proved again", answer)


def _obligations(certificate: str) -> list[dict[str, object]]:
    return [{"number": o["number"], "statement": o["statement"]} for o in json.loads(certificate)["obligations"]]


def _same_kernel(a: Artifact, schedule: Schedule, file: str) -> bool:
    """Whether the artifact's text, at the sizes of its arguments, is the kernel that was scheduled."""
    from isam.cli.given import fixed_by
    from isam.ir.normal import normal_form
    from isam.ir.text import parse_kernel

    k = parse_kernel(a.text("kernel.isam"), file)
    return str(normal_form(k.with_sizes(fixed_by(k, a)))) == str(schedule.cover.original)


def _code(a: Artifact, schedule: Schedule) -> str:
    """``same`` or ``other``; ``not compared`` where this machine or this version cannot make that code."""
    from isam import registry
    from isam.diagnostics import IsamError

    try:
        again = registry.load("isam.backends", a.backend)(schedule)
    except IsamError:
        return "not compared"
    if again.needs != a.needs or again.provenance != a.provenance:
        return "not compared"
    same = again.parts.get("object.o") == a.parts.get("object.o")
    return "same" if same and (again.entry, again.bind, again.workspace) == (a.entry, a.bind, a.workspace) else "other"
