"""What it is worth that the sums of a convolution go over the image alone.

    python -m benchmarks.inside [--shape NAME ...] [--on SYSTEM] [--rounds N] [--seconds S]

A padded image is copied into zeros, with which 18 % of all products of 7 x 7 pixels and 3 x 3 taps are made. With a
condition in the place of the padding (``where 0 <= h + r - pad < ...``, ``convolution_inside`` in ``kernels.isam``)
they are not. Both kernels of each padded layer of ResNet-50 are compiled, judged, and called in turns: a ratio above 1
is what the condition is worth. One thread, CPU time.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import isam

from .data import Judge, arrays_of
from .kernels import kernel_of, sources
from .measure import Settings, Wrong, passed
from .shapes import RESNET50, Convolution
from .timing import Call, Times, alternate, clock, ratio

WAYS = ("padded", "inside")


def row(shape: Convolution, settings: Settings) -> tuple[dict[str, Times], dict[str, float]]:
    """Times of a call and seconds of compiling, padded and inside. Raises :class:`Wrong`."""
    padded, sizes = kernel_of(shape)
    kernels = dict(zip(WAYS, (padded, sources()["convolution_inside"]), strict=True))
    arrays = arrays_of(shape)
    judge = Judge.product(shape, *arrays.values())
    given, constants, _ = passed(shape, arrays, False)
    calls, compiled = dict[str, Call](), dict[str, float]()
    for way, kernel in kernels.items():
        fn, compiled[way] = _compiled(kernel, sizes, settings.on)
        calls[way] = Call(fn.bind(**constants), given, {})
        if fault := judge.wrong(calls[way]()):
            raise Wrong(f"{shape.name}, {way}: {fault}")
    return alternate(calls, settings.rounds, settings.seconds), compiled


def _compiled(kernel: Any, sizes: dict[str, int], on: str) -> tuple[Any, float]:
    """The function, and the fewest seconds that compiling it took of two times."""
    taken = list[float]()
    for _ in range(2):
        begun = clock()
        fn = isam.compile(kernel, on=on, sizes=sizes, cache=False)
        taken.append(clock() - begun)
    return fn, min(taken)


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns the exit code, 0."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--shape", action="append", help="only shapes whose name contains this; several times")
    p.add_argument("--on", default="host", help="the machine to compile for")
    p.add_argument("--rounds", type=int, default=5, help="turns that each of both gets")
    p.add_argument("--seconds", type=float, default=0.05, help="seconds per turn")
    a = p.parse_args(arguments)
    print(f"{'GFLOP/s':28}{WAYS[0]:>9}{WAYS[1]:>9}{'ratio':>8}{'(median)':>10}{'compiled in ms':>24}")
    for shape in (s for s in RESNET50 if s.pad and any(n in s.name for n in a.shape or [""])):
        times, compiled = row(shape, Settings(a.rounds, a.seconds, a.on))
        best, median = ratio(times["inside"], times["padded"])
        speeds = "".join(f"{shape.flops / times[w].least / 1e9:9.1f}" for w in WAYS)
        took = " and ".join(f"{compiled[w] * 1e3:.0f}" for w in WAYS)
        print(f"{shape.name:28}{speeds}{best:8.2f}{f'({median:.2f})':>10}{took:>24}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
