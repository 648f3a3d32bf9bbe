"""``isam demo``: one layer of ResNet-50 from its text to checked, measured native code, stage by stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from isam.cli.answer import SUBJECT, Answer, answering
from isam.cli.data import operations
from isam.cli.options import AsJson, On
from isam.cli.progress import busy
from isam.cli.timing import Times, alternate, shown
from isam.diagnostics import InternalError, fail

SIZES = {"H": 56, "W": 56, "C": 64, "K": 64}
SIZE = Annotated[int, typer.Option("--size", help="Height and width of the image (56 in ResNet-50).")]
SECONDS = Annotated[float, typer.Option("--seconds", help="How long to measure.")]


@dataclass(frozen=True, slots=True)
class Judged:
    """The worst element: how far it is from float64, and how far it may be."""

    error: float
    share: float  # of its bound

    @property
    def right(self) -> bool:
        return self.share <= 1.0


@answering(
    "demo", kernel="its text", sizes="name to number", system="the system's name", mappings="one line each",
    seconds="per stage of the compiler", schedule="distinct loops, calls and bodies",
    obligations="how many were proved",
    check="worst error, and its share of the bound of its element", operations="of one call",
    isam="seconds of a call: best, median", numpy="the same, with the way that was fastest", speed="numpy over isam",
)  # fmt: skip
def demo(on: On = "host", size: SIZE = 56, seconds: SECONDS = 1.0, as_json: AsJson = False) -> Answer:
    """Maps, schedules, proves, compiles, runs and checks a layer of ResNet-50: 3x3, 56x56, 64 to 64 channels.

    Every element is compared with float64, within a bound derived for it; the speed is shown beside NumPy's best on one
    thread. Exit code 3 when an element is wrong.
    """
    from importlib.resources import files

    import isam

    if not 1 <= size <= 1024 or not 0 < seconds <= 600:
        raise fail("cli-number", "--size is from 1 to 1024, --seconds above 0 and at most 600")
    text = files("isam.cli").joinpath("templates/conv.isam").read_text(encoding="utf-8")
    SUBJECT.set(text)
    sizes = SIZES | {"H": size, "W": size}
    with busy("compiling"):
        fn = isam.compile(text, on=on, sizes=sizes)
    arrays = _arrays(sizes)
    with busy("checking against float64"):
        judged = _judge(fn.bind(w=arrays["w"], b=arrays["b"])(arrays["x"]), arrays)
    if not judged.right:
        raise InternalError(f"an element is {judged.share:.3g} times its bound from float64\n{fn.kernel}")
    with busy("measuring"):
        ours, theirs, way = _measure(fn, arrays, seconds if fn.artifact.backend != "simulator" else 0.0)
    return _answer(text, sizes, fn, judged, ours, theirs, way)


def _arrays(sizes: dict[str, int]) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    h, w, c, k = (sizes[n] for n in "HWCK")
    weights = rng.standard_normal((3, 3, c, k), dtype=np.float32) * np.float32((9 * c) ** -0.5)
    return {"x": rng.standard_normal((h, w, c), dtype=np.float32), "w": weights,
            "b": rng.standard_normal(k, dtype=np.float32)}  # fmt: skip


def _judge(y: Any, arrays: dict[str, Any]) -> Judged:
    """Against float64, each element within the bound that holds for any order of its sum."""
    import numpy as np

    from isam.ir.bounds import products

    wide = {n: a.astype(np.float64) for n, a in arrays.items()}
    exact = np.maximum(_windows(wide["x"]) @ wide["w"].reshape(-1, y.shape[-1]) + wide["b"], 0)
    size = _windows(abs(wide["x"])) @ abs(wide["w"]).reshape(-1, y.shape[-1]) + abs(wide["b"])
    _, bound = products(exact, size, arrays["w"].size // y.shape[-1] + 1)
    error = abs(y.reshape(exact.shape) - exact)
    share = np.where(np.isnan(error), np.inf, error) / bound
    return Judged(float(np.nanmax(error, initial=0.0)), float(share.max(initial=0.0)))


def _windows(x: Any) -> Any:
    """The padded image as a matrix: a row per output point, a column per weight (im2col)."""
    import numpy as np

    h, w, c = x.shape
    padded = np.zeros((h + 2, w + 2, c), x.dtype)
    padded[1:-1, 1:-1] = x
    view = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
    return view.transpose(0, 1, 3, 4, 2).reshape(h * w, 9 * c)


def _ways(arrays: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Three good ways to compute the layer with NumPy, everything allocated beforehand."""
    import numpy as np

    x, w, b = arrays["x"], arrays["w"], arrays["b"]
    (h, v, c), k = x.shape, w.shape[-1]
    padded = np.zeros((h + 2, v + 2, c), np.float32)
    columns = np.empty((h, v, 3, 3, c), np.float32)
    flat, y, part = w.reshape(-1, k), np.empty((h * v, k), np.float32), np.empty((h, v, k), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1)).transpose(0, 1, 3, 4, 2)

    def finish(out: Any) -> Any:
        np.add(out, b, out=out)
        return np.maximum(out, 0, out=out)

    def im2col() -> Any:
        padded[1:-1, 1:-1] = x
        np.copyto(columns, windows)
        return finish(np.matmul(columns.reshape(h * v, -1), flat, out=y))

    def rows() -> Any:
        padded[1:-1, 1:-1] = x
        for r in range(3):
            for s in range(3):
                columns[:, :, r, s] = padded[r : r + h, s : s + v]
        return finish(np.matmul(columns.reshape(h * v, -1), flat, out=y))

    def nine() -> Any:
        padded[1:-1, 1:-1] = x
        out = y.reshape(h, v, k)
        for r in range(3):
            for s in range(3):
                first = r == 0 and s == 0
                np.matmul(padded[r : r + h, s : s + v], w[r, s], out=out if first else part)
                if not first:
                    out += part
        return finish(out)

    return {"im2col and matmul": im2col, "im2col by slices and matmul": rows, "nine matmuls": nine}


def _measure(fn: Any, arrays: dict[str, Any], seconds: float) -> tuple[Times, Times, str]:
    """Our times, NumPy's, and which of NumPy's ways was fastest; all on one thread, taking turns."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    bound, x = fn.bind(w=arrays["w"], b=arrays["b"]), arrays["x"]
    y = np.empty((*x.shape[:2], arrays["b"].size), np.float32)
    with threadpool_limits(1):
        ways = _ways(arrays)
        times = alternate({"isam": lambda: bound(x, y=y), **ways}, seconds, least=5 if seconds else 1)
    best = min(ways, key=lambda n: times[n].best)
    return times["isam"], times[best], best


def _answer(text: str, sizes: dict[str, int], fn: Any, judged: Judged, ours: Times, theirs: Times, way: str) -> Answer:
    from isam.schedule.text import figures

    work, job = operations(fn.kernel.with_sizes(sizes), {}), fn.job
    shape, speed = figures(fn.schedule.call), theirs.best / ours.best
    proved = len(fn.certificate.data["obligations"])
    data = {
        "kernel": text, "sizes": sizes, "system": fn.system.name, "mappings": [str(m) for m in fn.mapping.mappings],
        "seconds": job.seconds, "schedule": shape, "obligations": proved,
        "check": {"error": judged.error, "share": judged.share}, "operations": work,
        "isam": {"best": ours.best, "median": ours.median},
        "numpy": {"best": theirs.best, "median": theirs.median, "way": way}, "speed": speed,
    }  # fmt: skip
    s = {n: f"{1e3 * v:.0f} ms" for n, v in job.seconds.items()}
    lines = [text.rstrip(), "", f"on {fn.system.name}, " + ", ".join(f"{n} = {v}" for n, v in sizes.items()), ""]
    lines += [f"mapped     {s['cover']:>8}  onto {len(fn.mapping.mappings)} instructions"]
    lines += [f"                       {m}" for m in fn.mapping.mappings]
    lines += [f"scheduled  {s['schedule']:>8}  {shape['loops']} loops, {shape['calls']} distinct calls, "
              f"{shape['bodies']} innermost bodies",
              f"proved     {s['prove']:>8}  {proved} obligations, by a checker that shares no code with the scheduler",
              f"compiled   {s['emit']:>8}  {len(fn.artifact.parts.get('object.o', b''))} bytes of native code",
              f"checked              every element against float64; the worst is {judged.error:.1e} off, "
              f"{judged.share:.1%} of its bound",
              f"isam       {_ms(ours)}  {work / ours.best / 1e9:.0f} Gop/s",
              f"numpy      {_ms(theirs)}  {work / theirs.best / 1e9:.0f} Gop/s ({way}, one thread)",
              f"isam is {speed:.2f} times as fast as NumPy"]  # fmt: skip
    return Answer("\n".join(lines), data)


def _ms(t: Times) -> str:
    return f"{shown(t.best):>8}"
