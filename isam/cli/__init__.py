"""The command line: one file per verb. :func:`main` is the console script ``isam``."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 yes, 1 an honest no, 2 the input is wrong, 3 we are wrong."""
    from isam.cli.app import run

    return run(argv)
