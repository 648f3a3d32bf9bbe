"""``isam tune``: schedules of a kernel run beside each other on this CPU, the quickest kept for later."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson, Kernel, On, Require, Sizes, Threads
from isam.cli.places import apart
from isam.cli.schedule import made, write
from isam.diagnostics import fail

if TYPE_CHECKING:
    from isam.compiler.job import Job

BY = Annotated[
    str,
    typer.Option("--approach", metavar="NAME|FILE.py:CLASS", help="Who decides what is made, run and taken: one whose "
                 "`runs` are more than 1 (measured; measured:16 runs 16)."),
]  # fmt: skip
ANEW = Annotated[bool, typer.Option("--anew", help="Run them again, whatever was found before.")]
TRACE = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--trace", metavar="OUT.json", help="Write the decisions of the schedule taken, for --replay."),
]


@answering(
    "tune", kernel="its name", system="its name", sizes="name to number",
    runs="per schedule, the one decided by prediction first: what is otherwise in it; seconds of a call as predicted, "
    "and as run the best and the median; whether they are of the second round, which counts, and of the first by how "
    "much two runs of it differ there; why it takes no part, or an empty text; whether it is taken",
    ratio="seconds of the first over those of the one taken, the best of each", known="whether all of this was found "
    "before", folder="where it is kept, or null",
)  # fmt: skip
def tune(
    kernel: Kernel, on: On = "host", define: Sizes = None, approach: BY = "measured", anew: ANEW = False,
    trace: TRACE = None, require: Require = None, threads: Threads = None, as_json: AsJson = False,
) -> Answer:  # fmt: skip
    """Makes several schedules of a kernel, runs them beside each other and keeps the quickest.

    The one decided by prediction stays unless another one is quicker by more than noise. What is found is kept: with
    `--approach measured`, or `approach="measured"` from Python, the same kernel in the same sizes on the same machine
    with as many threads gets that schedule without a run. Data is random; results are compared with exact ones, or,
    where those would take too long, with those of the first schedule; constants are bound ahead.
    """
    from isam.compiler import as_approach
    from isam.compiler.measured import may_run, rows, table
    from isam.runtime.cache import default
    from isam.system.load import load_system
    from isam.tune.database import database

    apart([trace], [kernel], on, approach)
    by, system = as_approach(approach), load_system(on)
    if by is None or by.runs < 2:
        raise fail("tune-approach", f"the Approach '{approach}' runs no schedules", hint="--approach measured, or one "
                   "of yours whose 'runs' are more than 1")  # fmt: skip
    if not may_run(system):
        raise fail("tune-system", f"no code for '{system.name}' runs on this CPU: its schedules are compared by the "
                   "time predicted", hint="isam schedule --approach beam")  # fmt: skip
    kept = database(default())
    job = made(kernel, on, define, approach, None, require, threads, until="prove", findings=kept, anew=anew)
    if trace is not None:
        write(trace, job.trace.to_json())
    taken = next((r for r in job.ran if r.taken), None)
    ratio = job.ran[0].seconds / taken.seconds if taken is not None and taken.seconds else 1.0
    data = {"kernel": job.original.name, "system": job.system.name, "sizes": job.sizes, "runs": rows(job.ran),
            "ratio": ratio, "known": job.trace.replays,
            "folder": str(kept.folder) if kept and job.remembered else None}  # fmt: skip
    sizes = ", ".join(f"{n} = {v}" for n, v in job.sizes.items())
    head = f"{job.original.name} on {job.system.name}" + (f" with {sizes}" if sizes else "")
    known = ", found before (--anew runs them again)" if job.trace.replays else ""
    return Answer("\n".join([f"{head}{known}", *table(job.ran), _said(job, ratio)]), data)


def _said(job: Job, ratio: float) -> str:
    said = "the one decided by prediction is taken: none is quicker by more than noise"
    if not any(r.seconds for r in job.ran):
        said = "nothing was run: there is one schedule" if len(job.ran) < 2 else "nothing was run"
    elif not job.ran[0].taken:
        said = f"another one is taken, {ratio:.3g} times as fast as the one decided by prediction"
    elif job.ran[0].noise:
        said += f" (two runs of it differ by {job.ran[0].noise:.1%})"
    return said if job.remembered else f"{said}; not kept for later"
