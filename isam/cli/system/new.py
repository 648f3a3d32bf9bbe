"""``isam system new``: a small machine to start from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Optional

import typer

from isam.cli.answer import Answer, answering
from isam.cli.interrupts import held
from isam.cli.options import AsJson
from isam.cli.places import apart
from isam.diagnostics import fail
from isam.system.find import ENDINGS

NAME = Annotated[str, typer.Argument(metavar="NAME", help="What the machine is called.")]
OUT = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("-o", "--output", metavar="FILE.yaml", help="Write it there; an existing file is left alone."),
]


@answering("system new", name="the system's name", file="where it was written, or null", text="the description")
def new(name: NAME, output: OUT = None, as_json: AsJson = False) -> Answer:
    """Prints, or writes, the commented description of a small machine that works; edit it into yours."""
    from importlib.resources import files

    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]{0,60}", name) or name.endswith(ENDINGS):
        raise fail("cli-usage", f"'{name[:60]}' is no name of a system", hint=_hint(name))
    text = files("isam.cli").joinpath("templates/system.yaml").read_text(encoding="utf-8").replace("NAME", name, 1)
    if output is None:
        return Answer(text, {"name": name, "file": None, "text": text})
    apart([output], [])
    write_new(output, text)
    lines = f"wrote {output}\n  isam system check {output}\n  isam run matmul.isam --on {output} -D M=8,N=8,K=8 --check"
    return Answer(lines, {"name": name, "file": str(output), "text": text})


def _hint(name: str) -> str:
    stem = Path(name).stem
    file = Path(name).suffix in ENDINGS and stem
    named = "first a letter or _, then letters, digits, _, - and ."
    return f"to write a file: `isam system new {stem} -o {name}`" if file else named


def write_new(path: Path, text: str) -> None:
    """A file that was not there. Raises ``IsamError`` where there is one, or none can be written."""
    try:
        with held(), open(path, "x", encoding="utf-8") as f:
            f.write(text)
    except OSError as e:
        raise fail("cli-file", f"cannot write {path}: {e.strerror or e}") from None
