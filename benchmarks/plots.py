"""``python -m benchmarks.plots RESULTS.json FOLDER``: pictures of results, ratio per shape and roofline, as SVG."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import ratios, roofline
from .saved import read

NO_ROOFS = "No roofline: these results have no roofs of their machine (those of `python -m benchmarks.run` now have)."


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: writes the pictures and says which."""
    p = argparse.ArgumentParser(prog="python -m benchmarks.plots", description=__doc__)
    p.add_argument("results", type=Path, help="what python -m benchmarks.run --out or isam bench --save has written")
    p.add_argument("folder", type=Path, help="where the pictures go")
    a = p.parse_args(arguments)
    results = read(a.results)
    for line in write(results, a.folder, a.results.stem):
        sys.stdout.write(f"{line}\n")
    return 0


def write(results: dict[str, Any], folder: Path, name: str) -> list[str]:
    """Writes what there is to be seen into files that begin with ``name``; a line per file, and why one is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    said = []
    for kind, picture in pictures(results).items():
        path = folder / f"{name}-{kind}.svg"
        path.write_text(picture, encoding="utf-8")
        said.append(f"wrote {path}")
    return said if drawn(results) else [*said, NO_ROOFS]


def pictures(results: dict[str, Any]) -> dict[str, str]:
    """The text of each picture, by its kind."""
    made = {"ratios": ratios.picture(results)}
    return made | {"roofline": roofline.picture(results)} if drawn(results) else made


def drawn(results: dict[str, Any]) -> bool:
    """Whether there is a roofline: the roofs of the machine were measured with the results."""
    return bool(results.get("roofs"))


def links(results: dict[str, Any], name: str) -> str:
    """The pictures as Markdown, for a page in ``docs``."""
    shown = f"![Ratio per shape](drawings/{name}-ratios.svg)\n"
    more = f"![Roofline](drawings/{name}-roofline.svg)\n\n{roofline.CAPTION}\n" if drawn(results) else f"{NO_ROOFS}\n"
    return f"{shown}\n{more}"


if __name__ == "__main__":
    raise SystemExit(main())
