"""``isam bench``: how fast compiled kernels are beside their peers, and how long compiling takes."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson, On
from isam.cli.places import apart
from isam.cli.schedule import write
from isam.diagnostics import InternalError, did_you_mean, fail

if TYPE_CHECKING:
    from isam.system.graph import System

GROUPS = ("tiny", "square", "deepbench", "bf16", "int8", "resnet50", "depthwise", "rows", "layouts", "interleaved",
          "terms", "scans", "algebra", "blocks", "attention", "gru", "resnet50x28", "resnet50-bf16", "blocks-bf16",
          "attention-bf16", "gru-bf16", "compile")  # fmt: skip
ONLY = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--only", metavar="GROUP", help=f"Only this group ({', '.join(GROUPS)}); may be repeated."),
]
SHAPE = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--shape", metavar="TEXT", help="Only shapes whose name contains this; may be repeated."),
]
QUICK = Annotated[bool, typer.Option("--quick", help="Two shapes per group, few rounds.")]
ROUNDS = Annotated[int, typer.Option("--rounds", help="Turns that each contender gets (default 5, quick 3).")]
SECONDS = Annotated[float, typer.Option("--seconds", help="Per turn (default 0.08, quick 0.03).")]
PLOTS = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--plots", metavar="FOLDER", help="Draw ratios and, below the machine's roofs, speeds there, as SVG."),
]
SAVE = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--save", metavar="OUT.json", help="Write all figures, with the facts of the machine."),
]


@answering(
    "bench", settings="rounds, seconds per turn, system, threads", machine="facts and load of the machine",
    roofs="of one core: cycles per second, operations per second by type, bytes per second by where they lie",
    versions="of the contenders", absent="libraries that are not there", tiny="figures per product up to 64",
    square="figures per square product",
    bf16="figures per product of bf16", int8="figures per product of bytes", deepbench="figures per DeepBench product",
    resnet50="figures per convolution of ResNet-50", depthwise="figures per depthwise convolution",
    rows="figures per function of rows", layouts="figures per layout turned",
    interleaved="figures per function of elements apart from each other",
    terms="figures per sum of several products",
    scans="figures per matrix whose rows are summed up",
    algebra="figures per elimination, triangle, band, prefix sum and count",
    blocks="figures per depthwise and pointwise block",
    attention="figures per attention", gru="figures per recurrent layer",
    resnet50x28="as resnet50, 28 images", compile="seconds of cold compilations, per stage",
    weighted="ratios weighted by occurrence, in two readings", targets="what was asked for and what was measured",
    seconds="that all of it took",
    **{f"{g}-bf16": f"as {g}, in bf16" for g in ("resnet50", "blocks", "attention", "gru")},
)  # fmt: skip
def bench(
    more: typer.Context, on: On = "host", only: ONLY = None, shape: SHAPE = None, quick: QUICK = False,
    rounds: ROUNDS = 0, seconds: SECONDS = 0.0, save: SAVE = None, plots: PLOTS = None, as_json: AsJson = False,
) -> Answer:  # fmt: skip
    """Measures products, convolutions and networks' layers beside the fastest that Python can call.

    Peers: NumPy, SciPy, and where they are installed MKL, oneDNN by torch, torch itself, ONNX Runtime, OpenVINO, JAX
    (pip install 'isam[bench]'); LIBXSMM, called from C, as a reference where gcc and its headers are there. Their
    weights are bound and their data laid out beforehand; of each row the best form of the best peer counts.

    One thread, random data, contenders taking turns, every result checked against float64 within a bound per element.
    A line per shape as it is done. Exit code 1 when a target is missed.
    """
    from isam.system.load import load_system

    groups = tuple(only or GROUPS)
    unknown = [g for g in groups if g not in GROUPS]
    if unknown:
        hint = did_you_mean(unknown[0], GROUPS) or f"groups: {', '.join(GROUPS)}"
        raise fail("cli-group", f"no group '{unknown[0]}'", hint=hint)
    if rounds < 0 or not 0 <= seconds <= 60:
        raise fail("cli-number", "--rounds is not negative, --seconds is from 0 to 60", hint="0: as many as by default")
    if more.args:
        first = more.args[0]
        raise fail("cli-option", f"isam bench measures kernels of its own, not {first}",
                   hint=f"isam bench --only {first}" if first in GROUPS else f"isam run {first} --repeat 100")
    _runs_here(load_system(on))
    _some(groups, shape or [])
    _writable(save, plots)
    apart([save], [], on)
    found = _program()
    settings = found.Settings(rounds or (3 if quick else 5), seconds or (0.03 if quick else 0.08), on)
    try:
        results: dict[str, Any] = found.run(settings, groups, tuple(shape or ()), quick, as_json)
    except AssertionError as e:
        raise InternalError(f"a compiled kernel computes something else: {e}") from e
    except subprocess.CalledProcessError as e:
        raise InternalError(f"the measuring process ended with exit code {e.returncode}") from e
    if save is not None:
        write(save, json.dumps(results, indent=1))
    drawn = _drawn(results, plots, save.stem if save else "results") if plots is not None else []
    data = {g: results.get(g) for g in GROUPS} | {n: v for n, v in results.items() if n != "schema"}
    return Answer("\n".join(drawn), data, yes=all(t["reached"] for t in results["targets"]))


def _some(groups: tuple[str, ...], parts: list[str]) -> None:
    """Raises ``IsamError`` for a part of a name that no shape of the groups has: nothing would be measured."""
    if not parts:
        return
    of = {**_program("shapes").GROUPS, "compile": _program("compiling").SAMPLES}
    names = [s.name for g in groups for s in of[g]]
    for part in parts:
        if not any(part in n for n in names):
            others = [g for g in GROUPS if any(part in s.name for s in of[g])]
            hint = f"there are some in: {', '.join(others)}" if others else "such as " + ", ".join(names[:4])
            raise fail("cli-group", f"no shape of these groups has '{part[:60]}' in its name", hint=hint)


def _runs_here(system: System) -> None:
    """Raises ``IsamError`` for a machine whose code does not run on this CPU: a simulator's time is not comparable."""
    from isam.system.features import demand

    if system.backend != "llvm":
        raise fail("bench-backend", f"'{system.name}' has no code that runs here: a simulator's time says nothing "
                   "beside that of NumPy",
                   hint=f"isam schedule FILE --on {system.name} --time tells what its costs say")  # fmt: skip
    demand(system)


def _writable(save: Path | None, plots: Path | None) -> None:
    """Raises ``IsamError`` where figures and pictures cannot be written: before they take minutes to measure."""
    if save is not None and (save.is_dir() or not save.parent.is_dir()):
        what = "it is a folder" if save.is_dir() else f"there is no folder {save.parent}"
        raise fail("cli-file", f"cannot write {save}: {what}")
    if plots is not None and next(p for p in (plots, *plots.parents) if p.exists()).is_file():
        raise fail("cli-file", f"cannot write into {plots}: it is no folder")


def _drawn(results: dict[str, Any], folder: Path, name: str) -> list[str]:
    """Draws the pictures; a line for each."""
    try:
        return _program("plots").write(results, folder, name)
    except OSError as e:
        raise fail("cli-file", f"cannot write into {folder}: {e.strerror or e}") from None


def _program(part: str = "run") -> Any:
    """The benchmarks: beside the package in a checkout, inside it where it was installed."""
    import isam

    root = Path(isam.__file__).resolve().parent.parent
    if (root / "benchmarks" / "run.py").is_file() and str(root) not in sys.path:
        sys.path.append(str(root))
    for name in (f"isam.benchmarks.{part}", f"benchmarks.{part}"):
        try:
            return import_module(name)
        except ModuleNotFoundError as e:
            if e.name is None or not name.startswith(e.name):
                raise
    raise fail("cli-file", "the benchmarks are not installed", hint="run isam bench in a checkout of the sources")
