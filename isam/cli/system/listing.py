"""``isam system list``: what can be named after --on."""

from __future__ import annotations

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.diagnostics import IsamError, Loc
from isam.system.graph import SEMANTICS_ONLY, System


@answering(
    "system list", systems="name, file, back end, description and, where it cannot be loaded here, why",
    families="distinct descriptions of instructions, moves excluded", with_back_end="of them, those that run",
)  # fmt: skip
def list_(as_json: AsJson = False) -> Answer:
    """Lists the systems that can be named after --on, and what each is; counts the descriptions of instructions.

    A family counts once, however many members it has, and so does an instruction that several systems share.
    """
    from isam.system.find import list_systems

    described: dict[Loc, bool] = {}
    rows = [_row(name, str(path), described) for name, path in sorted(list_systems().items())]
    width = max((len(r["name"]) for r in rows), default=0)
    lines = [f"{r['name']:{width}}  {r['description'] or r['problem']}".rstrip() for r in rows]
    runs = sum(described.values())
    lines.append(f"{len(described)} distinct instructions, each family once; {runs} with a back end")
    return Answer("\n".join(lines), {"systems": rows, "families": len(described), "with_back_end": runs})


def _row(name: str, path: str, described: dict[Loc, bool]) -> dict[str, str]:
    """``described``: gets the place of every instruction's description, and whether some system runs it."""
    from isam.system.load import load_system

    try:
        s = load_system(name)
    except IsamError as e:
        return {"name": name, "file": path, "backend": "", "description": "", "problem": e.diagnostics[0].message}
    for i in s.compute:
        described[i.loc] = described.get(i.loc, False) or s.backend != SEMANTICS_ONLY
    variant = f" (here: {s.name})" if s.name != name else ""
    return {"name": name, "file": path, "backend": s.backend, "description": summary(s) + variant, "problem": ""}


def summary(s: System) -> str:
    """Counts, in one line."""
    families = len({i.loc for i in s.compute})
    end = "semantics only" if s.backend == SEMANTICS_ONLY else s.backend
    return (f"{_many(len(s.memories), 'memory')}, {_many(len(s.units), 'unit')}, "
            f"{_many(len(s.compute), 'instruction')} in {_many(families, 'family')}, "
            f"{_many(len({m.by for m in s.moves}), 'move')}; {end}")  # fmt: skip


def _many(n: int, what: str) -> str:
    return f"{n} {what if n == 1 else what[:-1] + 'ies' if what.endswith('y') else what + 's'}"
