"""``compile`` and ``explain``: kernels and machines in, callables and explanations out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isam import registry
from isam.approach.choice import Approach, Trace
from isam.approach.files import from_file, in_file, not_python
from isam.compiler.function import BoundFunction, Function
from isam.compiler.job import Job, Refused
from isam.compiler.stages import STAGES, Stage, recorded, run_stages
from isam.diagnostics import as_path, fail
from isam.ir.kernel import Kernel
from isam.ir.sizes import with_constants
from isam.runtime.cache import Cache, default
from isam.runtime.forks import gate
from isam.system.graph import System
from isam.system.load import load_system
from isam.system.names import named

if TYPE_CHECKING:
    from isam.compiler.feasible import Feasibility
    from isam.mapper.explanation import Explanation
    from isam.runtime.ranged import RangedFunction

__all__ = ["STAGES", "BoundFunction", "Function", "Job", "Refused", "Stage", "compile", "compile_range", "explain",
           "run_stages"]  # fmt: skip

MOST_THREADS = 256  # of one call: the caller and as many as the pool has


def compile(
    kernel: Kernel | str | Path,
    on: str | Path | System = "host",
    sizes: Mapping[str, int] | None = None,
    approach: Approach | type[Approach] | str | None = None,
    threads: int | None = None,
    replay: Trace | str | Path | None = None,
    require: Sequence[str] | str = (),
    check: bool = True,
    cache: bool | str | Path = True,
) -> Function:
    """The kernel as a callable for a machine.

    ``kernel``: one that was made, a text, or the path of a file. ``on``: a shipped system, a path of a description, or
    a loaded system. ``sizes``: sizes and compile-time constants by name; those not given come from the arrays at the
    first call, and every new shape is compiled once.
    ``threads``: on how many cores a call may run at once (default: ``ISAM_THREADS``, or one).
    ``approach``: who decides (default: the one the system names). ``replay``: a recorded trace, whose decisions are
    made again. ``require``: instructions that must be used. ``check`` False leaves out the proof. ``cache``: the folder
    where code is kept from one process to the next (True: the user's, or ``ISAM_CACHE``; False: none); what a callable
    tells about how its code came about is found out again when somebody asks.
    Raises ``IsamError``; :class:`Refused` when this machine cannot do it.
    """
    demanded = _names(require)
    with gate.inside():
        system = load_system(on)
        for name in demanded:
            named(system, name)  # raises; also where sizes are open, before there is an array
        if replay is not None:
            recorded(replay)  # raises; also where sizes are open
        numbers = {} if sizes is None else sizes
        return Function(_as_kernel(kernel), system, numbers, as_approach(approach), replay, _cache(cache),
                        require=demanded, check=check, threads=threads_on(system, threads))  # fmt: skip


def compile_range(
    kernel: Kernel | str | Path,
    size: str,
    least: int,
    most: int,
    on: str | Path | System = "host",
    sizes: Mapping[str, int] | None = None,
    likely: Mapping[int, float] | None = None,
    variants: int = 8,
    approach: Approach | type[Approach] | str | None = None,
    threads: int | None = None,
    require: Sequence[str] | str = (),
    check: bool = True,
    cache: bool | str | Path = True,
) -> RangedFunction:
    """The kernel as a callable for every ``size`` from ``least`` to ``most``, compiled now: no call compiles anything.

    ``size`` has to count a batch: rows of arguments, along their first dimension, that are computed each by itself.
    At most so many ``variants`` are compiled, each for some rows; a call is made of calls of those that are quickest
    together by the time predicted. ``likely``: how often single sizes are met, beside a weight of 1 that all others
    share; which variants there are is chosen for the least regret in the mean. The other ``sizes`` are numbers. All
    else as for :func:`compile`. Raises ``IsamError``: also where rows are not computed each by itself.
    """
    from isam.compiler.ranged import ranged

    demanded = _names(require)
    with gate.inside():
        system = load_system(on)
        for name in demanded:
            named(system, name)  # raises
        limits, often, count = _numbers(least, most, likely, variants)
        return ranged(_as_kernel(kernel), system, size, limits, sizes or {}, often, count, as_approach(approach),
                      _cache(cache), require=demanded, check=check, threads=threads_on(system, threads))  # fmt: skip


def _numbers(least: Any, most: Any, likely: Any, variants: Any) -> tuple[tuple[int, int], dict[int, float], int]:
    """What says a range, as Python's own numbers."""
    try:
        often = {index(n): float(w) for n, w in dict(likely or {}).items()}
        return (index(least), index(most)), often, index(variants)
    except (TypeError, ValueError):
        what = "a range is two whole numbers, of variants there is a number, likely are whole numbers with weights"
        raise fail("range-limits", what) from None


def _names(required: Any) -> tuple[str, ...]:
    """Those of instructions that must be used."""
    names: tuple[Any, ...] = (required,)
    if isinstance(required, Iterable) and not isinstance(required, str):
        names = tuple(required)
    for n in names:
        if not isinstance(n, str):
            raise fail("instruction-unknown", f"an instruction is named by a text, not {type(n).__name__}")
    return names


def as_approach(approach: Approach | type[Approach] | str | None) -> Approach | None:
    """An Approach from a name (``greedy``, ``beam:8``), a file (``mine.py:Smallest``), a class or an instance."""
    if isinstance(approach, str) and in_file(approach):
        return from_file(approach)
    if isinstance(approach, str):
        not_python(approach)
        name, colon, argument = approach.partition(":")
        found: type[Approach] = registry.load("isam.approaches", name)
        approach = found.given(argument) if colon else found
    if isinstance(approach, type):
        approach = approach()
    if approach is not None and not isinstance(approach, Approach):
        raise fail("approach-type", f"{approach!r} is no Approach", hint="derive it from isam.Approach")
    return approach

def explain(kernel: Kernel | str | Path, on: str | Path | System = "host", instruction: str | None = None,
            sizes: Mapping[str, int] | None = None, strided: bool = False) -> Feasibility | Explanation:  # fmt: skip
    """Why a kernel, or one instruction, does or does not fit a machine; what is returned prints itself, and is falsy
    where the answer is no.

    With ``instruction`` (a name; a family: ``mm4``; or some of it: ``mm4[T=f32]``): an ``Explanation``
    with its mappings, or with what came nearest and the smallest change that would do (``strided``: other coefficients
    than 1 are admitted). Without: a ``Feasibility``, the cover or the ``Uncovered`` that says for every statement left
    why not and which instruction would do; where all ``sizes`` are given, also the schedule or the ``Infeasible`` that
    says what is full.
    """
    from isam.compiler.feasible import feasibility
    from isam.ir.verify import require
    from isam.mapper import explain as compare
    from isam.mapper.nearest import closest

    text = kernel if isinstance(kernel, str) else ""
    with gate.inside():
        system = load_system(on)
        chosen, numbers = with_constants(_as_kernel(kernel), sizes or {})
        chosen = require(chosen).with_sizes(numbers)
        if instruction is None:
            return feasibility(chosen, system)
        one = closest(chosen, named(system, instruction))
        return compare(chosen, one, strided=strided, sources=(text, ""))

def _as_kernel(kernel: Any) -> Kernel:
    if isinstance(kernel, str | Path):
        from isam.ir.text import parse

        kernel = parse(kernel)
    kernel = getattr(kernel, "kernel", kernel)
    if not isinstance(kernel, Kernel):
        raise fail("compile-kernel", f"a kernel is needed, not {type(kernel).__name__}",
                   hint="a text of the language, the path of a file (pathlib.Path), or what isam.parse, isam.einsum "
                        "and isam.kernel return")  # fmt: skip
    return kernel

def _cache(chosen: bool | str | Path) -> Cache | None:
    if isinstance(chosen, bool):
        return default() if chosen else None
    return Cache(as_path(chosen, "a cache"))


def threads_on(system: System, threads: int | None) -> int:
    """How many threads are meant: what the environment says is for machines that have any."""
    text = str(threads) if threads is not None else os.environ.get("ISAM_THREADS", "1")
    of = "" if threads is not None else "the environment has ISAM_THREADS: "
    if not text.isdecimal() or not text.strip("0"):
        said = f"'{text}'" if threads is None or isinstance(threads, str) else f"{text:.60}"
        raise fail("compile-threads", f"{of}{said} is no number of threads", hint="1, or how many cores to use")
    if len(text) > 9 or int(text) > MOST_THREADS:
        raise fail("compile-threads", f"{of}{text:.20} threads are more than a call may have, {MOST_THREADS}",
                   hint="how many cores to use")  # fmt: skip
    return 1 if threads is None and system.threads is None else int(text)
