"""The table of verbs, and how one is run."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from isam.cli import (
    bench,
    cache,
    check,
    code,
    compile,
    demo,
    doctor,
    explain,
    map,
    print,
    range_,
    run_,
    schedule,
    system,
    tune,
    verify,
)  # fmt: skip
from isam.cli.answer import TRACEBACK
from isam.cli.usage import refused

USAGE: type[Exception] = typer.BadParameter.__mro__[1]  # UsageError, of the parser that typer brings

app = typer.Typer(
    name="isam", add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
    suggest_commands=False, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        from isam import __version__

        typer.echo(f"isam {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The version, and nothing else.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Before the verb: where in isam something was raised, not a message.")
    ] = False,
) -> None:
    """Maps tensor kernels onto the instructions of a machine, schedules them, proves the result and runs it.

    Results go to standard output, diagnostics to standard error. Exit codes: 0 yes, 1 an honest no, 2 the input is
    wrong, 3 isam is wrong, 130 it was interrupted.
    """
    TRACEBACK.set(traceback)


for name, verb in {
    "check": check.check,
    "print": print.print_,
    "map": map.map_,
    "explain": explain.explain,
    "schedule": schedule.schedule,
    "compile": compile.compile_,
    "run": run_.run,
    "tune": tune.tune,
    "range": range_.range_,
    "verify": verify.verify,
    "bench": bench.bench,
    "demo": demo.demo,
    "doctor": doctor.doctor,
    "cache": cache.cache,
    "code": code.code,
}.items():
    app.command(name, context_settings={"allow_extra_args": name == "bench"})(verb)  # bench says what takes files
app.add_typer(system.app, name="system")


def run(argv: Sequence[str] | None = None) -> int:
    """One command; the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):  # names of files need not be text
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(args=arguments, prog_name="isam", standalone_mode=False)
    except typer.Abort as e:  # what the parser makes of an interrupt
        raise KeyboardInterrupt from e
    except USAGE as e:
        return refused(e, typer.main.get_command(app), arguments)
    except SystemExit as e:
        if e.code is None or isinstance(e.code, int):
            return e.code or 0
        sys.stderr.write(f"{e.code}\n")
        return 2
    return code if isinstance(code, int) else 0
