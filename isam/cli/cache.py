"""``isam cache``: the code kept from one process to the next."""

from __future__ import annotations

from typing import Annotated

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson

CLEAR = Annotated[bool, typer.Option("--clear", help="Remove all code.")]
CLEAR_MEASURED = Annotated[bool, typer.Option("--clear-measured", help="Remove what `isam tune` found.")]


@answering("cache", folder="where it is, or null", entries="how many kernels are kept", bytes="what they take",
           limit="bytes beyond which those used longest ago make room", cleared="how many were removed",
           measured="of how many kernels it is kept which schedule was quickest")  # fmt: skip
def cache(clear: CLEAR = False, clear_measured: CLEAR_MEASURED = False, as_json: AsJson = False) -> Answer:
    """Where `isam.compile` keeps code, and how much of it; ISAM_CACHE names another folder, or says off.

    `isam run` uses it, too: a kernel that was run before is not compiled again. `isam map`, `isam schedule` and
    `isam compile` work anew: they are asked how code comes about. What `isam tune` found is kept beside, and used by
    all of them.
    """
    from isam.runtime.cache import default
    from isam.tune.database import database

    found = default()
    findings = database(found)
    if found is None or findings is None:
        keys = ("folder", "entries", "bytes", "limit", "cleared", "measured")
        return Answer("nothing is kept (ISAM_CACHE)", dict.fromkeys(keys))
    forgotten = findings.clear() if clear_measured else 0
    cleared = forgotten + (found.clear() if clear else 0)
    kept = [p.stat().st_size for p in found.entries()]
    measured = len(findings.entries())
    text = f"{found.folder}: {len(kept)} kernels, {sum(kept)} bytes of {found.limit}"
    text += f", {measured} measured" if measured else ""
    data = {"folder": str(found.folder), "entries": len(kept), "bytes": sum(kept), "limit": found.limit,
            "cleared": cleared, "measured": measured}  # fmt: skip
    return Answer(f"{text}, {cleared} removed" if clear or clear_measured else text, data)
