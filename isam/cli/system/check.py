"""``isam system check``: whether a description is a machine."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.cli.system.listing import summary
from isam.diagnostics import Diagnostic, IsamError

SYSTEMS = Annotated[list[str], typer.Argument(metavar="SYSTEM...", help="Names, or paths of YAML descriptions.")]


@answering("system check", systems="name and summary of each, and remarks: code, message, file, line")
def check(systems: SYSTEMS, as_json: AsJson = False) -> Answer:
    """Loads descriptions and says everything that is wrong with them, with file:line:column.

    Exit code 2 when there is a fault anywhere. What is legal and still looks wrong is remarked on, with exit code 0.
    """
    from isam.system.load import load_system
    from isam.system.remarks import remarks

    faults: list[Diagnostic] = []
    rows: list[dict[str, Any]] = []
    notes: list[Diagnostic] = []
    for name in systems:
        try:
            s = load_system(name, whole=True)
        except IsamError as e:
            faults.extend(e.diagnostics)
            continue
        odd = remarks(s)
        notes += odd
        rows.append({"given": name, "name": s.name, "summary": summary(s), "remarks": [
            {"code": d.code, "message": d.message, "file": d.loc.file, "line": d.loc.line} for d in odd]})
    if faults:
        raise IsamError(faults)
    said = "\n".join(d.remark for d in notes)
    return Answer("\n".join(f"{r['given']}: {r['summary']}" for r in rows), {"systems": rows}, notes=said)
