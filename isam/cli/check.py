"""``isam check``: whether files of the language are well formed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from isam.cli import given
from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.diagnostics import Diagnostic, IsamError, with_source

if TYPE_CHECKING:
    from isam.ir.kernel import Kernel

FILES = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="FILE.isam, FILE.isam:NAME, or - for standard input.")
]


@answering(
    "check", files="per file its kernels and instructions, with the number of their statements as written and in "
    "three-operand form, of one operation each, and remarks: code, message, line, column",
)  # fmt: skip
def check(files: FILES, as_json: AsJson = False) -> Answer:
    """Looks files over and says everything that is wrong with them, all at once.

    Exit code 2 when there is a fault anywhere. What is legal and still looks wrong is remarked on, with exit code 0.
    """
    faults: list[Diagnostic] = []
    notes: list[Diagnostic] = []
    rows: list[dict[str, object]] = []
    for name in files:
        try:
            row, odd = _file(name)
            rows.append(row)
            notes += odd
        except IsamError as e:
            faults.extend(e.diagnostics)
    if faults:
        raise IsamError(faults)
    said = "\n".join(d.remark for d in notes)
    return Answer("\n".join(line for r in rows for line in _lines(r)), {"files": rows}, notes=said)


def _file(name: str) -> tuple[dict[str, object], list[Diagnostic]]:
    from isam.ir.verify import verify

    bodies, odd, source = given.bodies(name)
    faults = [d for _, k in bodies for d in verify(k)]
    if faults:
        raise IsamError(with_source(faults, source.text))
    items = [{"keyword": word, "name": k.name, "sizes": [s.name for s in k.syms], "written": _written(k),
              "statements": len(k.statements)} for word, k in bodies]  # fmt: skip
    said = [{"code": d.code, "message": d.message, "line": d.loc.line, "column": d.loc.column} for d in odd]
    return {"file": source.file, "items": items, "remarks": said}, odd


def _written(k: Kernel) -> int:
    """How many statements were written: the others hold values of sub-expressions, and stand where these do."""
    return len({s.dest.loc for s in k.statements if s.dest.loc != s.loc})


def _lines(row: dict[str, object]) -> list[str]:
    items = row["items"]
    assert isinstance(items, list)
    return [f"{row['file']}: {i['keyword']} {i['name']}({', '.join(i['sizes'])}): {_counted(i['written'])}"
            + (f", {i['statements']} in three-operand form" if i["statements"] != i["written"] else "")
            for i in items]  # fmt: skip


def _counted(statements: int) -> str:
    return f"{statements} statement{'s' if statements != 1 else ''}"
