"""``isam system list``: what can be named after --on."""

from __future__ import annotations

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.diagnostics import IsamError


@answering("system list", systems="name, file, back end, description and, where it cannot be loaded here, why")
def list_(as_json: AsJson = False) -> Answer:
    """Lists the systems that can be named after --on, and what each is."""
    from isam.system.find import list_systems

    rows = [_row(name, str(path)) for name, path in sorted(list_systems().items())]
    width = max((len(r["name"]) for r in rows), default=0)
    lines = [f"{r['name']:{width}}  {r['description'] or r['problem']}".rstrip() for r in rows]
    return Answer("\n".join(lines), {"systems": rows})


def _row(name: str, path: str) -> dict[str, str]:
    from isam.system.load import load_system

    try:
        s = load_system(name)
    except IsamError as e:
        return {"name": name, "file": path, "backend": "", "description": "", "problem": e.diagnostics[0].message}
    variant = f" (here: {s.name})" if s.name != name else ""
    return {"name": name, "file": path, "backend": s.backend, "description": _summary(s) + variant, "problem": ""}


def _summary(s: object) -> str:
    from isam.system.graph import SEMANTICS_ONLY, System

    assert isinstance(s, System)
    moves = {m.by for m in s.moves}
    runs = sum(n not in moves for n in s.instructions)
    units = f"{len(s.units)} unit{'s' if len(s.units) != 1 else ''}"
    end = "semantics only" if s.backend == SEMANTICS_ONLY else s.backend
    return f"{len(s.memories)} memories, {units}, {runs} instructions, {len(moves)} moves; {end}"
