"""``isam compile``: a kernel as a file that runs without the compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import Approach, AsJson, Kernel, On, Replay, Require, Sizes, Threads
from isam.cli.places import apart
from isam.cli.schedule import made

OUT = Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="Where to write the artifact.")]


@answering(
    "compile", output="the file written", bytes="its size", kernel="its name", system="its name",
    parts="what is in it, with sizes", seconds="per stage",
)  # fmt: skip
def compile_(
    kernel: Kernel, output: OUT, on: On = "host", define: Sizes = None, approach: Approach = "",
    replay: Replay = None, require: Require = None, threads: Threads = None, as_json: AsJson = False,
) -> Answer:  # fmt: skip
    """Maps, schedules, proves and emits a kernel; the artifact holds the code, the schedule and the certificate."""
    from isam.artifact import as_place
    from isam.compiler.report import report

    as_place(output)
    apart([output], [kernel, replay], on, approach)
    job = made(kernel, on, define, approach, replay, require, threads)
    job.artifact.save(output)
    size = output.stat().st_size
    parts = {n: len(b) for n, b in sorted(job.artifact.parts.items())}
    data = {"output": str(output), "bytes": size, "kernel": job.original.name, "system": job.system.name,
            "parts": parts, "seconds": job.seconds}  # fmt: skip
    return Answer(report(job) + f"\nwrote {output}: {size} bytes, {', '.join(parts)}\n", data)
