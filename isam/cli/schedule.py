"""``isam schedule``: what runs once, what runs per call, what lies where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from isam.approach import SCHEMA as TRACED
from isam.cli import given
from isam.cli.answer import Answer, answering
from isam.cli.interrupts import held
from isam.cli.options import Approach, AsJson, Kernel, On, Replay, Require, Sizes, Threads
from isam.cli.places import apart
from isam.cli.progress import schedules
from isam.diagnostics import fail
from isam.schedule import SCHEMA as TREE

TRACE = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--trace", metavar="OUT.json", help="Write the recorded decisions, for --replay."),
]
FULL = Annotated[bool, typer.Option("--full", help="Every call on its own line, with addresses.")]
TIME = Annotated[bool, typer.Option("--time", help="With the calls in time, as the description's costs have it.")]
PERFETTO = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--perfetto", metavar="OUT.json", help="Write the calls in time as a trace for ui.perfetto.dev."),
]
HTML = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--html", metavar="OUT.html", help="Write the calls in time as one page that fetches nothing."),
]
DECISIONS = Annotated[bool, typer.Option("--decisions", help="With the decisions and their reasons.")]


@answering(
    "schedule", kernel="its name", system="its name", figures="distinct loops, calls and bodies of bind and call",
    schedule=f"the exact schedule ({TREE})", trace=f"the decisions ({TRACED})",
    seconds="per stage", proved="obligations proved",
    time="seconds, floor, calls; per unit and edge: busy and share; per unit and cluster: stalls by cause",
)  # fmt: skip
def schedule(
    kernel: Kernel, on: On = "host", define: Sizes = None, trace: TRACE = None, full: FULL = False,
    decisions: DECISIONS = False, in_time: TIME = False, perfetto: PERFETTO = None, html: HTML = None,
    approach: Approach = "", replay: Replay = None, require: Require = None, threads: Threads = None,
    as_json: AsJson = False,
) -> Answer:  # fmt: skip
    """Schedules a kernel on a machine, proves the schedule and draws it.

    Exit code 1, with the report, when the machine cannot do it.
    """
    from isam.compiler.crowded import settled
    from isam.schedule.serial import to_json
    from isam.schedule.text import figures, print_schedule

    apart([trace, perfetto, html], [kernel, replay], on, approach)
    job = made(kernel, on, define, approach, replay, require, threads, until="prove")
    settled(job)
    assert job.schedule is not None
    if trace is not None:
        write(trace, job.trace.to_json())
    data = {
        "kernel": job.original.name, "system": job.system.name,
        "figures": {"bind": figures(job.schedule.bind), "call": figures(job.schedule.call)},
        "schedule": json.loads(to_json(job.schedule)) if as_json else None,
        "trace": json.loads(job.trace.to_json()) if as_json else None,
        "seconds": job.seconds, "proved": [o["number"] for o in job.certificate.data["obligations"]],
    }  # fmt: skip
    if perfetto is not None:
        from isam.cost.perfetto import trace as events

        write(perfetto, events(job.schedule, _trips(job.schedule)))
    if html is not None:
        from isam.cost.page import page

        write(html, page(job.schedule, _trips(job.schedule)))
    text = print_schedule(job.schedule, full)
    if in_time or as_json:
        from isam.cost.report import report

        told = report(job.schedule, _trips(job.schedule))
        data["time"], text = told.data, text + (f"\n{told}\n" if in_time else "")
    if decisions:
        text += f"\ndecisions\n{job.trace}\n"
    return Answer(text, data)


def _trips(schedule: Any) -> dict[str, int]:
    """Run-time trips are taken to be as small as they may be, but two at least."""
    return {s.name: max(2, s.lo) for s in schedule.kernel.given}


def made(kernel: str, on: str, define: list[str] | None, approach: str, replay: Path | None,
         require: list[str] | None, threads: int | None = None, until: str = "", **options: Any) -> Any:  # fmt: skip
    """The job after the stage ``until`` (default: all). Sizes must be given, run-time trips excepted. ``options``: more
    of :class:`isam.compiler.job.Job`."""
    from isam.compiler import as_approach, threads_on
    from isam.compiler.stages import new_job, run_stages
    from isam.ir.signature import shown_by
    from isam.ir.sizes import run_time
    from isam.runtime.cache import default
    from isam.system.load import load_system
    from isam.tune.database import database

    k, _ = given.kernel(kernel)
    k, sizes = given.with_numbers(k, given.sizes(define))
    given.need_sizes(k, sizes, free=run_time(k) if until else run_time(k) & shown_by(k))  # code is to be called
    system = load_system(on)
    options = {"findings": database(default()), **options}
    job = new_job(k, system, sizes, as_approach(approach or None), replay=replay, require=tuple(require or ()),
                  threads=threads_on(system, threads), **options)  # fmt: skip
    with schedules():
        return run_stages(job, until)


def write(path: Path, text: str) -> None:
    """Writes a result. Raises ``IsamError`` when that fails."""
    try:
        with held():
            path.write_text(text + "\n", encoding="utf-8")
    except OSError as e:
        raise fail("cli-file", f"cannot write {path}: {e.strerror or e}") from None
