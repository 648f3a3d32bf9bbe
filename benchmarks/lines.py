"""What it costs where arrays begin within a cache line.

    python -m benchmarks.lines [--shape NAME ...] [--past BYTES] [--rounds N] [--seconds S]

Each kernel is called in turns on arrays that all begin with a line; with the result 16 bytes after one, where NumPy
puts them; with all that it is given there. Constants are bound. A ratio above 1 is what the line is worth. One thread,
CPU time; results are judged first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import geometric_mean

from .data import LINE, Array, Judge, arrays_of, room
from .measure import Settings, Wrong, compiled, passed
from .shapes import BF16, DEPTHWISE, INT8, RESNET50, ROWS, SQUARES, Case, Gemm, Shape
from .timing import Call, Times, alternate, ratio

PAST = 16  # bytes after a line at which NumPy's arrays begin
SHAPES: tuple[Shape, ...] = (*SQUARES[-4:-1], *BF16[:2], *INT8[:2], *RESNET50[:2], *DEPTHWISE[:3], *ROWS[::3])
WAYS = ("line", "result", "all")


def shifted(a: Array, past: int) -> Array:
    """The same, beginning so many bytes after a line."""
    made = room(a.nbytes + past, "u1")[past:].view(a.dtype).reshape(a.shape)
    made[...] = a
    return made


def calls_of(shape: Shape, past: int, on: str = "host") -> tuple[dict[str, Call], Judge]:
    """A call per way in which arrays lie, by its name, and who judges results."""
    arrays, bound = arrays_of(shape), isinstance(shape, Gemm)
    judge = Judge.case(shape, arrays) if isinstance(shape, Case) else Judge.product(shape, *arrays.values())
    fn, _ = compiled(shape, on, bound)
    given, constants, out = passed(shape, arrays, bound)
    fast = fn.bind(**constants) if constants else fn
    far, late = tuple(shifted(a, past) for a in given), {n: shifted(a, past) for n, a in out.items()}
    return {"line": Call(fast, given, out), "result": Call(fast, given, late), "all": Call(fast, far, late)}, judge


def row(shape: Shape, past: int, settings: Settings) -> dict[str, Times]:
    """Times by way. Raises :class:`Wrong`."""
    calls, judge = calls_of(shape, past, settings.on)
    for name, call in calls.items():
        if fault := judge.wrong(call()):
            raise Wrong(f"{shape.name}, {name}: {fault}")
    return alternate(calls, settings.rounds, settings.seconds)


def line(name: str, times: dict[str, Times]) -> str:
    """Microseconds on a line, and the ratios of the other ways to that."""
    ratios = [ratio(times["line"], times[w]) for w in WAYS[1:]]
    return f"{name:32}{times['line'].least * 1e6:12.2f}" + "".join(f"{b:9.2f} ({m:.2f})" for b, m in ratios)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns the exit code, 0."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--shape", action="append", help="only shapes whose name contains this; several times")
    p.add_argument("--past", type=int, default=PAST, help=f"bytes after a line ({PAST}); {LINE}: on the next one")
    p.add_argument("--rounds", type=int, default=5, help="turns that each way gets")
    p.add_argument("--seconds", type=float, default=0.08, help="seconds per turn")
    a = p.parse_args(arguments)
    print(f"{'':32}{'us on a line':>12}{'result late':>16}{'all late':>16}")
    found: dict[str, list[float]] = {w: [] for w in WAYS[1:]}
    for shape in SHAPES:
        if not a.shape or any(s in shape.name for s in a.shape):
            times = row(shape, a.past, Settings(a.rounds, a.seconds))
            print(line(shape.name, times), flush=True)
            for w, ratios in found.items():
                ratios.append(ratio(times["line"], times[w])[0])
    if found["all"]:
        print(f"{'geometric mean':44}" + "".join(f"{geometric_mean(r):9.2f}       " for r in found.values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
