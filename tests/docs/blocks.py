"""Code blocks of the documentation, executed: what the pages show is what happens.

* ``console``: lines ``$ isam ...`` run, and what they print (errors included) must be what stands below them, modulo
  numbers that depend on the hour or, where no ``--on`` names another machine, on this CPU.
* ``python``: run in order, in one namespace per page, which knows ``isam`` and ``np``.
* ``isam``: parsed and verified. * ``yaml`` with a ``system:`` and ``memories:``: loaded.
* A block that begins with ``# file: NAME`` is written to that file for the blocks after it.

Commands run in a scratch folder in which ``examples`` is that of the checkout. ``python -m tests.docs.blocks PAGE...``
writes what the commands print now into the pages.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(sorted(p.relative_to(ROOT) for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if p.is_file()))
_BLOCK = re.compile(r"^```([\w-]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\d[\d,]*(\.\d+)?(e[+-]?\d+)?")
HERE = {"run", "demo", "compile", "map", "schedule", "doctor", "bench"}  # verbs whose answers depend on this CPU
_TIMED = re.compile(r"\b(ms|us|s|Gop/s|bytes)\b|times as fast")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    start: int  # of the text, in the page
    line: int

    @property
    def file(self) -> str:
        first = self.text.partition("\n")[0]
        return first.removeprefix("# file: ") if first.startswith("# file: ") else ""

    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command with the output shown below it."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def blocks(page: Path) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [Block(m[1], m[2], m.start(2), text.count("\n", 0, m.start()) + 1) for m in _BLOCK.finditer(text)]


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder to run in, left afterwards."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def printed(command: str) -> str:
    """What an ``isam`` command prints, standard error after standard output."""
    from isam.cli import main

    words = shlex.split(command)
    assert words[0] == "isam", command
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(words[1:])
    return re.sub(r"[^\s:]*/hwdesc/", "hwdesc/", out.getvalue() + err.getvalue())


def comparable(text: str, command: str) -> str:
    """The text without what depends on the hour and, for commands on this CPU, without its numbers."""
    here = not re.search(r"--on (?!host\s|host$)\S", command) and not HERE.isdisjoint(shlex.split(command))
    lines = []
    for line in text.rstrip().splitlines():
        if here or _TIMED.search(line):
            line = _NUMBER.sub("#", re.sub(r"\(.*one thread\)|host-\w+", "HERE", line))
            line = re.sub(r"\s+", " ", re.sub(r"# (ms|us|s)\b", "# TIME", line)).strip()
        lines.append(line.rstrip())
    return "\n".join(lines)


def rewrite(page: Path) -> None:
    """Puts what the commands print now into the page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    with scratch() as folder:
        for b in blocks(page):
            if b.file:
                (folder / b.file).write_text(b.text, encoding="utf-8")
            if b.language != "console":
                continue
            new = "".join(f"$ {c}\n{printed(c) if c.startswith('isam ') else shown}" for c, shown in b.commands())
            text = text.replace(f"```console\n{b.text}```", f"```console\n{new.rstrip()}\n```", 1)
    (ROOT / page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or map(str, PAGES):
        rewrite(Path(name))
