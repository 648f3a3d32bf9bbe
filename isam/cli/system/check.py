"""``isam system check``: whether a description is a machine."""

from __future__ import annotations

from typing import Annotated

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.cli.system.listing import summary
from isam.diagnostics import Diagnostic, IsamError

SYSTEMS = Annotated[list[str], typer.Argument(metavar="SYSTEM...", help="Names, or paths of YAML descriptions.")]


@answering("system check", systems="name and summary of each")
def check(systems: SYSTEMS, as_json: AsJson = False) -> Answer:
    """Loads descriptions and says everything that is wrong with them, with file:line:column.

    Exit code 2 when there is a fault anywhere.
    """
    from isam.system.load import load_system

    faults: list[Diagnostic] = []
    rows = []
    for name in systems:
        try:
            s = load_system(name, whole=True)
        except IsamError as e:
            faults.extend(e.diagnostics)
            continue
        rows.append({"given": name, "name": s.name, "summary": summary(s)})
    if faults:
        raise IsamError(faults)
    return Answer("\n".join(f"{r['given']}: {r['summary']}" for r in rows), {"systems": rows})
