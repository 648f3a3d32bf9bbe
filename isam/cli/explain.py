"""``isam explain``: why an instruction, or a machine, does or does not fit a kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from isam.cli import given
from isam.cli.answer import Answer, answering
from isam.cli.map import demand_one, named, plain
from isam.cli.onward import asked_by
from isam.cli.options import AsJson, Kernel, On, Sizes
from isam.cli.places import apart
from isam.cli.progress import schedules
from isam.cli.schedule import write
from isam.system.graph import SEMANTICS_ONLY

ONE = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--instruction", "-i", help="Explain this instruction alone."),
]
HTML = Annotated[str, typer.Option("--html", metavar="FILE", help="Writes the report as one page, too.")]
STRIDED = Annotated[bool, typer.Option("--strided", help="With --instruction: other coefficients than 1 are admitted.")]


@answering(
    "explain", kernel="its name", on="the system's name", fits="whether every statement is carried out",
    scheduled="whether the machine holds and moves what that needs; null: not asked, as sizes are open or it has no "
    "back end",
    mappings="how, where it fits", near="with --instruction: what was met on the way, deepest first",
    repairs="with --instruction: currency (program, shape, hardware), change, size, then (the mapping after it), steps",
    grants="permissions that the kernel does not give, and what they are worth", report="what is printed otherwise",
)  # fmt: skip
def explain(
    kernel: Kernel, on: On = "host", instruction: ONE = None, define: Sizes = None, strided: STRIDED = False,
    html: HTML = "", as_json: AsJson = False,
) -> Answer:  # fmt: skip
    """Says what stands in the way: which access depends on what, in both files, and the smallest change that would do.

    Changes of the program, of shapes and layouts, of the hardware, each tried. Exit code 1 when it does not fit.

    Where all sizes are given, also whether there is a schedule: exit code 1, with what is full, when the machine cannot
    hold or move what the instructions need. Where some are open exit code 0 says that the instructions suffice.
    """
    from isam.compiler.feasible import feasibility
    from isam.system.load import load_system

    if instruction is None:
        demand_one(strided)
    apart([html], [kernel], on)
    k, source = given.kernel(kernel)
    k = given.sized(k, given.sizes(define))
    system = load_system(on)
    data: dict[str, Any] = {"kernel": k.name, "on": system.name, "fits": True, "mappings": [], "near": []}
    data |= {"repairs": [], "scheduled": None, "grants": []}
    if instruction is not None:
        from isam.mapper.explanation import explain as compare

        found = compare(k, named(system, instruction, k), strided=strided, sources=(source.text, ""))
        told = json.loads(found.to_json())
        data |= {"fits": bool(found), "mappings": [plain(m) for m in found.mappings]}
        data |= {"near": told["near"], "repairs": told["repairs"], "report": str(found)}
        return Answer(str(found), data, yes=bool(found), notes=_written(html, found))
    with schedules():
        answer = feasibility(k, system)
    report = str(answer)
    if answer.fits and answer.left and system.backend != SEMANTICS_ONLY:
        report += f"\n{asked_by(answer.left, kernel, on, define)}"
    data |= {"fits": answer.fits, "scheduled": answer.scheduled, "report": report}
    data |= {"mappings": [plain(m) for m in answer.mappings], "grants": list(map(str, answer.grants))}
    page = (k.name, system.name, report) if answer.fits else answer.no
    return Answer(report, data, yes=bool(answer), notes=_written(html, page))


def _written(path: str, answer: Any) -> str:
    """Writes the page of an answer, if one is asked for; says so."""
    if not path:
        return ""
    from isam.mapper import page
    from isam.mapper.explanation import Explanation
    from isam.mapper.uncovered import Uncovered

    if isinstance(answer, Explanation):
        text = page.page(answer)
    else:
        text = page.refusal(answer) if isinstance(answer, Uncovered) else page.told(*answer)
    write(Path(path), text)
    return f"wrote {path}"
