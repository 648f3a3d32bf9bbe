"""``isam check``: whether files of the language are well formed."""

from __future__ import annotations

from typing import Annotated

import typer

from isam.cli import given
from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.diagnostics import Diagnostic, IsamError, with_source

FILES = Annotated[list[str], typer.Argument(metavar="FILE...", help="Files of the language; - is standard input.")]


@answering("check", files="per file its kernels and instructions, with the number of their statements")
def check(files: FILES, as_json: AsJson = False) -> Answer:
    """Looks files over and says everything that is wrong with them, all at once.

    Exit code 2 when there is a fault anywhere.
    """
    faults: list[Diagnostic] = []
    rows: list[dict[str, object]] = []
    for name in files:
        try:
            rows.append(_file(name))
        except IsamError as e:
            faults.extend(e.diagnostics)
    if faults:
        raise IsamError(faults)
    return Answer("\n".join(line for r in rows for line in _lines(r)), {"files": rows})


def _file(name: str) -> dict[str, object]:
    from isam.ir.verify import verify

    source = given.source(name)
    module = source.module()
    bodies = [("kernel", k) for k in module.kernels] + [("instruction", i.body) for i in module.instructions]
    faults = [d for _, k in bodies for d in verify(k)]
    if faults:
        raise IsamError(with_source(faults, source.text))
    items = [{"keyword": word, "name": k.name, "sizes": [s.name for s in k.syms], "statements": len(k.statements)}
             for word, k in bodies]  # fmt: skip
    return {"file": source.file, "items": items}


def _lines(row: dict[str, object]) -> list[str]:
    items = row["items"]
    assert isinstance(items, list)
    return [f"{row['file']}: {i['keyword']} {i['name']}({', '.join(i['sizes'])}): "
            f"{i['statements']} statement{'s' if i['statements'] != 1 else ''}" for i in items]  # fmt: skip
