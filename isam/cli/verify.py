"""``isam verify``: whether an artifact is what its certificate says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.cli.progress import counting

if TYPE_CHECKING:
    from isam.artifact import Artifact
    from isam.ir.kernel import Kernel

ARTIFACT = Annotated[
    str, typer.Argument(metavar="OUT", help="What isam compile or isam range wrote, or map --certify --json.")
]
CODE = Annotated[bool, typer.Option("--code/--no-code", help="Also emit the code again and compare it byte by byte.")]


@answering("verify", artifact="the file", holds="whether everything agrees", violations="what does not",
           obligations="what was proved again", code="same, other, or not compared")  # fmt: skip
def verify(artifact: ARTIFACT, code: CODE = True, as_json: AsJson = False) -> Answer:
    """Derives every proof again from the schedule in an artifact and compares it with the certificate.

    Exit code 1 when anything differs.
    """
    from isam.artifact import RANGE, load_artifact

    if artifact.endswith(".json"):
        return _mapping(artifact)
    a = load_artifact(artifact)
    if a.backend == RANGE:
        return _range(artifact, a, code)
    violations, same, on = _again(a, artifact, code)
    proved = [] if violations else _obligations(a.text("certificate.json"))
    return _answer(artifact, f"{a.name} on {on}", violations, same, proved)


def _answer(artifact: str, what: str, violations: list[str], code: str, proved: list[dict[str, object]]) -> Answer:
    data = {"artifact": artifact, "holds": not violations, "violations": violations, "code": code,
            "obligations": proved}  # fmt: skip
    if violations:
        return Answer(f"{artifact}: refused\n" + "\n".join(f"  {v}" for v in violations), data, yes=False)
    shown = "\n".join(f"  {o['number']:>2} {o['statement']}" for o in proved)
    return Answer(f"{artifact}: {what}, proved again\n{shown}\n  code: {code}", data)


def _again(a: Artifact, file: str, code: bool, kernel: Kernel | None = None,
           sizes: Mapping[str, int] | None = None) -> tuple[list[str], str, str]:  # fmt: skip
    """What in an artifact for one shape does not agree, whether its code does, and for which machine it is. It is to be
    of the ``kernel`` with these ``sizes``: by default of the one in it, with the sizes of its arguments."""
    from isam.approach.choice import Trace
    from isam.cli.emitted import compared, unlike
    from isam.cli.given import fixed_by
    from isam.diagnostics import fail
    from isam.ir.normal import normal_form
    from isam.ir.text import parse_kernel
    from isam.proof.certificate import verify as against
    from isam.schedule.serial import from_json

    if "certificate.json" not in a.parts:
        raise fail("artifact-part", f"{file} has no certificate: it was compiled without proof")
    schedule = from_json(a.text("schedule.json"), f"{file}/schedule.json")
    if "trace.json" in a.parts:
        Trace.reading(a.text("trace.json"), f"{file}/trace.json")
    violations = [str(v) for v in against(a.parts["certificate.json"], schedule)] or unlike(a, schedule)
    if violations:
        return violations, "not compared", schedule.system.name
    own = kernel or parse_kernel(a.text("kernel.isam"), f"{file}/kernel.isam")
    meant = normal_form(own.with_sizes(fixed_by(own, a) if sizes is None else sizes))
    if str(meant) != str(schedule.cover.original):
        violations = ["the kernel in the artifact is not the one that the schedule is for"]
    elif code:
        same, violations = compared(a, schedule)
        return violations, same, schedule.system.name
    return violations, "not compared", schedule.system.name


def _range(file: str, a: Artifact, code: bool) -> Answer:
    """A range is what it says where every variant is, of the range's kernel with so many rows, and where calls of them
    are all rows of every size."""
    from isam.cli.made_of import doubts
    from isam.diagnostics import Loc
    from isam.ir.text import parse_kernel
    from isam.runtime.ranged_artifact import VARIANT, read

    batch, variants = read(a, Loc(file))
    k = parse_kernel(a.text("kernel.isam"), f"{file}/kernel.isam")
    violations, codes, on = doubts(k, a, batch), set[str](), ""
    for rows, one in counting(list(variants.items()), "variants proved again"):
        name = f"{VARIANT}{rows}"
        found, same, on = _again(one, f"{file}/{name}", code, k, {**dict(a.given), batch.size: rows})
        violations += [f"{name}: {v}" for v in found]
        codes.add(same)
    size = next(s for s in a.sizes if s.name == batch.size)
    what = f"{a.name} on {on} for {size.lo} <= {size.name} <= {size.hi}, {len(variants)} variants"
    proved = [] if violations else _obligations(next(iter(variants.values())).text("certificate.json"))
    worst = next(c for c in ("other", "not compared", "same") if c in codes)
    return _answer(file, what, violations, worst, proved)


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
    except (OSError, ValueError, AttributeError, RecursionError) as e:
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
