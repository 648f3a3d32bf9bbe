"""A kernel through every stage, and the judgement of what comes out: the schedule on the strict simulator, in residues
modulo a prime, equal to the oracle's evaluation of the kernel as it was written; where a step uses how integers wrap,
or which number is larger, in the numbers of the machine, equal to the interpreter's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np

import isam
from isam.approach.choice import Approach
from isam.codegen.simulator import Figures, residues, simulate
from isam.compiler.function import Function
from isam.compiler.job import Job
from isam.compiler.stages import new_job, run_stages
from isam.ir import oracle
from isam.ir.dtype import DTYPES
from isam.ir.interp import run
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.system.graph import System
from isam.system.load import load_system
from tests.corpus import CASES
from tests.laws.judges import random_numbers


@cache
def _named(system: str) -> System:
    return replace(load_system(system), backend="simulator")


def simulated(system: str | System) -> System:
    """The machine with the simulator as its backend, whatever its own is. One object for a name: with it is kept what
    the compiler works out once about a machine."""
    return _named(system) if isinstance(system, str) else replace(system, backend="simulator")


def compiled(kernel: Kernel, sizes: Mapping[str, int], system: System, approach: Approach | None = None,
             check: bool = False) -> Job:  # fmt: skip
    """The job after all stages."""
    return run_stages(new_job(kernel, system, sizes, approach, check=check))


def of_corpus(name: str, on: str = "toy", sizes: Mapping[str, int] | None = None) -> Job:
    """The job of a kernel of the corpus on a simulated machine, at its first sizes if none are given: kept, as several
    tests look at the same one."""
    return _of_corpus(name, on, tuple(sorted((sizes or CASES[name].small[0]).items())))


@cache
def _of_corpus(name: str, on: str, sizes: tuple[tuple[str, int], ...]) -> Job:
    return compiled(CASES[name].load(), dict(sizes), simulated(on))


@cache
def kept(kernel: Kernel, on: str, **sizes: int) -> Job:
    """The job of a kernel on a simulated machine that several tests look at."""
    return compiled(kernel, sizes, simulated(on))


@cache
def function(kernel: Kernel, on: str, **sizes: int) -> Function:
    """A kernel compiled for a machine as anybody would, which several tests look at or call."""
    return isam.compile(kernel, on=on, sizes=sizes, cache=False)


def judge(kernel: Kernel, sizes: Mapping[str, int], job: Job, seed: int = 0,
          run_time: Mapping[str, int] | None = None) -> Figures:  # fmt: skip
    """Raises ``AssertionError`` where schedule and oracle differ; ``run_time``: sizes that the schedule left open."""
    assert job.schedule is not None
    numbers = {**sizes, **(run_time or {})}
    concrete = kernel.with_sizes(numbers)
    assert job.cover is not None
    wraps = _wraps(job.cover)
    arrays = random_numbers(concrete, seed) if wraps else oracle.inputs(concrete, {}, seed)
    figures = Figures()
    got = simulate(job.schedule, arrays, None if wraps else residues(seed), run_time, figures)
    want = run(concrete, arrays) if wraps else oracle.run_modular(concrete, arrays, {}, seed)
    assert got.keys() == want.keys()
    for name, expected in want.items():
        np.testing.assert_array_equal(got[name], expected, err_msg=f"{kernel.name} {dict(numbers)}: {name}")
    return figures


TURNING = {"min-by-max", "ceil-by-floor", "floor-by-ceil"}  # laws by which a larger number becomes a smaller one


def _wraps(cover: Cover) -> bool:
    """Whether a step uses what residues have not: how integers wrap (what is widened and made narrow again, where
    nothing else is there), or that of two numbers the smaller one is larger when both are negated."""
    laws = {s.split(" ")[0] for s in cover.steps}
    whole = all(DTYPES[b.dtype].kind != "f" for b in cover.kernel.buffers)
    return bool(laws & TURNING) or "rebase" in laws or ("widen" in laws and whole)
