"""Options that several verbs share, each with its one meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

AsJson = Annotated[bool, typer.Option("--json", help="The answer as one JSON document with a versioned schema.")]
Kernel = Annotated[str, typer.Argument(metavar="KERNEL", help="FILE.isam, FILE.isam:NAME, or - for standard input.")]
On = Annotated[str, typer.Option("--on", metavar="SYSTEM", help="A shipped system or the path of a YAML description.")]
Sizes = Annotated[
    Optional[list[str]],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Option("-D", metavar="NAME=NUMBER", help="A size or a compile-time constant; may be repeated."),
]
Approach = Annotated[
    str,
    typer.Option("--approach", metavar="NAME|FILE.py:CLASS", help="Who decides: an Approach by its name, or a class "
                 "in a file; default: the system's."),
]  # fmt: skip
Replay = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--replay", metavar="TRACE", help="Make the decisions of a recorded trace again."),
]
Threads = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--threads", metavar="N", min=1, help="On how many cores a call may run (ISAM_THREADS, or 1)."),
]
Require = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--require", metavar="INSTRUCTION", help="An instruction that must be used; may be repeated."),
]
