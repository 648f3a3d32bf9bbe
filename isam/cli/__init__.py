"""The command line: one file per verb. :func:`main` is the console script ``isam``."""

from __future__ import annotations

from collections.abc import Sequence

from isam.cli.interrupts import INTERRUPTED, told, unlost


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 yes, 1 an honest no, 2 the input is wrong, 3 we are wrong, 130 it
    was interrupted."""
    try:
        with unlost():
            from isam.cli.app import run

            code = run(argv)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:  # of some interrupts the parser of the command line makes the code itself
        told()
    return code
