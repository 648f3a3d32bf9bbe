"""``isam demo``: one layer of ResNet-50 from its text to checked, measured native code, stage by stage."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from isam.classes import dataclass
from isam.cli import fair
from isam.cli.answer import SUBJECT, Answer, answering
from isam.cli.contest import arrays
from isam.cli.data import work_of
from isam.cli.limits import STEPS, simulated_steps
from isam.cli.options import AsJson, On
from isam.cli.progress import busy
from isam.diagnostics import InternalError, fail
from isam.tune.timing import Times, shown

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
    simulated="steps of a call where a simulator ran it, and null for the three keys below",
    isam="CPU seconds of a call: best, median", numpy="the same, with the fastest way and the library",
    speed="numpy over isam",
)  # fmt: skip
def demo(on: On = "host", size: SIZE = 56, seconds: SECONDS = 1.0, as_json: AsJson = False) -> Answer:
    """Maps, schedules, proves, compiles, runs and checks a layer of ResNet-50: 3x3, 56x56, 64 to 64 channels.

    Every element is compared with float64, within a bound derived for it; the speed is shown beside NumPy's best on one
    thread, measured in a process without the variables that steer NumPy's library. Exit code 3 when an element is
    wrong.
    """
    from importlib.resources import files

    import isam

    if not 1 <= size <= 1024 or not 0 < seconds <= 600:
        raise fail("cli-number", "--size is from 1 to 1024, --seconds above 0 and at most 600")
    text = files("isam.cli").joinpath("templates/conv.isam").read_text(encoding="utf-8")
    SUBJECT.set(text)
    sizes = SIZES | {"H": size, "W": size}
    with busy("compiling"):
        fn = isam.compile(text, on=on, sizes=sizes, threads=1, cache=False)
    steps = simulated_steps([fn.artifact], fn.kernel, {}, STEPS, "a smaller image (--size)")
    data = arrays(sizes)
    with busy("checking against float64"):
        judged = _judge(fn.bind(w=data["w"], b=data["b"])(data["x"]), data)
    if not judged.right:
        raise InternalError(f"an element is {judged.share:.3g} times its bound from float64\n{fn.kernel}")
    told = _compiled(text, sizes, fn, judged)
    if steps is not None:
        return _answer(told, {"simulated": steps, "isam": None, "numpy": None, "speed": None},
                       [f"simulated  {steps:>8} steps; times would be the simulator's, so there are none"])  # fmt: skip
    with busy("measuring"):
        times, library = _measure(fn, sizes, seconds)
    return _answer(told, *_beside(times, library, told.data["operations"]))


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


def _measure(fn: Any, sizes: dict[str, int], seconds: float) -> tuple[dict[str, Times], str]:
    """Samples of ours and of NumPy's ways, and NumPy's library: taken in a process in which nothing steers it."""
    import isam

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "layer.isamc")
        fn.save(path)
        arguments = [str(path), str(seconds), *(str(sizes[n]) for n in "HWCK")]
        try:
            told = fair.run(Path(isam.__file__).parents[1], "isam.cli.contest", arguments, stdout=subprocess.PIPE)
        except subprocess.CalledProcessError as e:
            raise InternalError(f"the measuring process ended with exit code {e.returncode}") from e
    got = json.loads(told.stdout)
    return {n: Times(tuple(s)) for n, s in got["samples"].items()}, got["blas"]


def _compiled(text: str, sizes: dict[str, int], fn: Any, judged: Judged) -> Answer:
    """All but the times."""
    from isam.schedule.text import figures

    job, shape = fn.job, figures(fn.schedule.call)
    proved, work = len(fn.certificate.data["obligations"]), work_of(fn.kernel.with_sizes(sizes), {}).operations
    data = {
        "kernel": text, "sizes": sizes, "system": fn.system.name, "mappings": [str(m) for m in fn.mapping.mappings],
        "seconds": job.seconds, "schedule": shape, "obligations": proved,
        "check": {"error": judged.error, "share": judged.share}, "operations": work,
    }  # fmt: skip
    s = {n: f"{1e3 * v:.0f} ms" for n, v in job.seconds.items()}
    size = len(fn.artifact.parts.get("object.o", b""))
    code = [f"compiled   {s['emit']:>8}  {size} bytes of native code"] if size else []
    lines = [text.rstrip(), "", f"on {fn.system.name}, " + ", ".join(f"{n} = {v}" for n, v in sizes.items()), "",
             f"mapped     {s['cover']:>8}  onto {len(fn.mapping.mappings)} instructions",
             *(f"                       {m}" for m in fn.mapping.mappings),
             f"scheduled  {s['schedule']:>8}  {shape['loops']} loops, {shape['calls']} distinct calls, "
             f"{shape['bodies']} innermost bodies",
             f"proved     {s['prove']:>8}  {proved} obligations, by a checker that shares no code with the scheduler",
             *code,
             f"checked              every element against float64; the worst is {judged.error:.1e} off, "
             f"{judged.share:.1%} of its bound"]  # fmt: skip
    return Answer("\n".join(lines), data)


def _beside(times: dict[str, Times], library: str, work: int) -> tuple[dict[str, Any], list[str]]:
    """Ours and NumPy's fastest way, as data and as lines."""
    ours = times["isam"]
    way = min((n for n in times if n != "isam"), key=lambda n: times[n].best)
    theirs = times[way]
    speed = theirs.best / ours.best
    data = {"simulated": None, "isam": {"best": ours.best, "median": ours.median}, "speed": speed,
            "numpy": {"best": theirs.best, "median": theirs.median, "way": way, "library": library}}  # fmt: skip
    return data, [f"isam       {shown(ours.best):>8}  {work / ours.best / 1e9:.0f} Gop/s",
                  f"numpy      {shown(theirs.best):>8}  {work / theirs.best / 1e9:.0f} Gop/s ({way}, one thread)",
                  f"isam is {speed:.2f} times as fast as NumPy"]  # fmt: skip


def _answer(told: Answer, data: dict[str, Any], lines: list[str]) -> Answer:
    return Answer("\n".join([told.text, *lines]), {**told.data, **data})
