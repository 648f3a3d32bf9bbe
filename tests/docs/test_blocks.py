"""Every code block of README and docs does what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

import isam
from isam.ir.text import parse_file
from isam.ir.verify import verify
from isam.system.load import load_system
from tests.docs.blocks import PAGES, ROOT, blocks, comparable, printed, scratch

RUNNABLE = [p for p in PAGES if any(b.language in ("console", "python", "isam", "yaml") for b in blocks(p))]


@pytest.mark.parametrize("page", RUNNABLE, ids=str)
def test_page(page: Path) -> None:
    space: dict[str, object] = {"__name__": "page", "isam": isam, "np": np}
    with scratch() as folder:
        for b in blocks(page):
            where = f"{page}:{b.line}"
            if b.file:
                (folder / b.file).write_text(b.text, encoding="utf-8")
            if b.language == "console":
                for command, shown in b.commands():
                    got = printed(command)
                    assert comparable(got, command) == comparable(shown, command), f"{where}: {command}\n{got}"
            elif b.language == "python":
                script = folder / f"block{b.line}.py"  # a file: functions under @isam.kernel are read from their source
                script.write_text(b.text, encoding="utf-8")
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(b.text, str(script), "exec"), space)
            elif b.language == "isam":
                m = parse_file(b.text, where)
                assert not [d for k in [*m.kernels, *(i.body for i in m.instructions)] for d in verify(k)]
            elif b.language == "yaml" and b.file:
                load_system(folder / b.file)


def test_every_link_of_the_pages_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)", (ROOT / page).read_text(encoding="utf-8")):
            if "://" not in target:
                assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_nothing_on_this_machine_stands_in_the_pages() -> None:
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.])/(home|root|work|tmp|Users)/", text), page
