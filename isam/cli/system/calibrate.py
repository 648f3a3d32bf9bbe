"""``isam system calibrate``: what instructions take on this CPU, beside what the description says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.cli.places import apart
from isam.cli.progress import counting
from isam.cli.system.new import write_new
from isam.cli.system.trial import ONLY, SYSTEM
from isam.diagnostics import NOWHERE, IsamError, fail

if TYPE_CHECKING:
    from isam.system.graph import System
    from isam.tune.calibrate import Calibration, Measured, Stream

SHOWN = 20  # rows of instructions, those that are furthest off
OFF = 1.5  # times as long, or short, as the description says
OUT = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("-o", "--output", metavar="FILE.yaml",
                 help="Write a description there that extends this one with what was measured."),
]  # fmt: skip


@answering(
    "system calibrate", system="its name", clock="cycles per second of this CPU's clock, while it computes",
    instructions="name to issue and latency in cycles, measured and stated (null: not told, not stated)",
    streams="move, nearest memory that holds what is gone over, bytes of that, bytes per cycle",
    rates="type of the first factor to operations per second of the quickest instruction that adds products up; "
    "none of a type whose quickest has operands elsewhere than in registers",
    peaks="kernel to operations per second that compiled code reaches, products whose operands lie in caches",
    refused="name to why an instruction could not be measured", file="where the description was written, or null",
)  # fmt: skip
def calibrate(system: SYSTEM = "host", instruction: ONLY = "*", output: OUT = None, as_json: AsJson = False) -> Answer:
    """Repeats every instruction between registers on random data, and moves over memory; compares with the description.

    Issue: cycles until the next call can begin; latency: until a call that waits for the result. Shown are the
    instructions that are furthest from what the description says in one of the two, with `--json` all of them. Numbers
    that repeated calls would make denormal or infinite are taken anew for each call.
    """
    from isam.system.load import load_system
    from isam.tune.calibrate import Calibration
    from isam.tune.roofs import rates

    apart([output], [])
    if output is not None and output.exists():
        raise fail("cli-file", f"cannot write {output}: it is there already", hint="name another file, or remove it")
    s = load_system(system)
    c = Calibration(s)
    chosen = [i for i in c.runnable() if fnmatch(i.name, instruction)]
    if not chosen:
        raise fail("calibrate-none", f"no instruction between registers of '{s.name}' is called '{instruction}'",
                   hint="isam system show lists them")  # fmt: skip
    found, refused = [], {}
    for i in counting(chosen, "instructions"):
        try:
            found.append(c.measure(i))
        except (RuntimeError, KeyError) as e:  # code that LLVM does not make for this CPU
            refused[i.name] = (str(e).splitlines() or [type(e).__name__])[0]
    streams, peaks = list(c.streams()), _peaks(s) if instruction == "*" else {}
    most = rates(c, found) if instruction == "*" else {}
    if output is not None:
        write_new(output, _description(s, c, found, streams, _base(s, output)))
    data = {
        "system": s.name, "clock": c.clock, "refused": refused, "file": None if output is None else str(output),
        "instructions": {m.name: {"issue": m.issue, "latency": m.latency, "stated_issue": m.stated_issue,
                                  "stated_latency": m.stated_latency} for m in found},
        "streams": [[x.name, x.memory, x.size, x.rate] for x in streams], "rates": most,
        "peaks": peaks,
    }  # fmt: skip
    return Answer("\n".join(_lines(s, c, found, streams, most, peaks, refused, output)), data)


PRODUCTS = {"f32": ("f32", "f32", "f32"), "f64": ("f64", "f64", "f64"), "bf16": ("bf16", "bf16", "f32"),
            "u8": ("u8", "i8", "i32")}  # by what instructions multiply: both factors and the sum


def _peaks(s: System) -> dict[str, float]:
    """What compiled products reach whose operands lie in caches, in operations per second; of narrow types where an
    instruction multiplies them, wherever its operands lie."""
    import numpy as np

    import isam
    from isam.ir.dtype import numpy_dtype
    from isam.tune.roofs import multiplied
    from isam.tune.timing import alternate

    m, n, k = 96, 192, 256
    out, can = {}, multiplied(s)
    for dtype, (left, right, total) in PRODUCTS.items():
        if dtype not in can:
            continue
        rng = np.random.default_rng(1)
        a, b = (rng.uniform(1, 100, shape).astype(numpy_dtype(t)) for t, shape in ((left, (m, k)), (right, (k, n))))
        fn = isam.compile(f"""kernel product(M, N, K)
  in    a: {left}[M, K]
  const b: {right}[K, N]
  out   c: {total}[M, N]
  permits reassociate, contract, flush
  forall i < M, j < N
    c[i, j] = 0
  forall i < M, j < N, k < K
    c[i, j] += {total}(a[i, k]) * {total}(b[k, j])
""", on=s, sizes={"M": m, "N": n, "K": k}).bind(b=b)
        times = alternate({"": lambda fn=fn, a=a: fn(a)}, 0.05)
        out[f"product {m}x{n}x{k} {dtype}"] = 2 * m * n * k / times[""].best
    return out


def _lines(s: System, c: Calibration, found: list[Measured], streams: list[Stream], rates: dict[str, float],
           peaks: dict[str, float], refused: dict[str, str], output: Path | None) -> Iterable[str]:  # fmt: skip
    yield f"{s.name}: clock {c.clock / 1e9:.2f} GHz, {len(found)} instructions in {len(c.known)} kinds of code"
    if rates:
        yield "  at most, Gop/s: " + ", ".join(f"{dtype} {rate / 1e9:.0f}" for dtype, rate in rates.items())
    yield from (f"  {name}: {rate / 1e9:.0f} Gop/s" for name, rate in peaks.items())
    yield from (f"  {x.name} over {x.size >> 10} KiB ({x.memory}): {x.rate:.1f} B/cycle, "
                f"{x.rate * c.clock / 1e9:.0f} GB/s" for x in streams)
    far = sorted((m for m in found if _off(m) > OFF), key=_off, reverse=True)
    yield f"{len(far)} instructions take more than {OFF} times as long or short as described{_which(far)}"
    if far:
        yield f"  {'instruction':<24} {'issue':>8} {'stated':>8} {'latency':>8} {'stated':>8}"
    yield from (f"  {m.name:<24} {m.issue:8.2f} {_number(m.stated_issue)} {_number(m.latency)} "
                f"{_number(m.stated_latency)}" for m in far[:SHOWN])  # fmt: skip
    yield from [f"  and {len(far) - SHOWN} more (--json)"] if len(far) > SHOWN else []
    yield from (f"  not measured: {n}: {why}" for n, why in refused.items())
    yield from [f"wrote {output}"] if output is not None else []


def _off(m: Measured) -> float:
    """How many times as long or short as stated the interval or the latency is, whichever is further off."""
    return max(_apart(m.issue, m.stated_issue, 1e-3), _apart(m.latency, m.stated_latency, 1.0))


def _which(far: list[Measured]) -> str:
    """How many of them are so in issue, and how many in latency."""
    issue = sum(_apart(m.issue, m.stated_issue, 1e-3) > OFF for m in far)
    latency = sum(_apart(m.latency, m.stated_latency, 1.0) > OFF for m in far)
    return f": {issue} in issue, {latency} in latency" if far else ", in issue or latency"


def _apart(measured: float | None, stated: float | None, least: float) -> float:
    """What is less than ``least`` counts as that: a copy that needs no code has no latency at all."""
    if measured is None or not stated:
        return 1.0
    return max(measured / stated, stated / max(measured, least))


def _number(x: float | None) -> str:
    return f"{x:8.2f}" if x is not None else f"{'-':>8}"


def _base(s: System, output: Path) -> str:
    """How the description there names the system: by its name, where that leads to it, else by the path from there."""
    from isam.system.files import sibling
    from isam.system.source import Scalar

    try:
        if output.stem != s.name and sibling(output, Scalar(s.name, NOWHERE)).samefile(s.source):
            return s.name
    except IsamError:  # there is none of this name
        pass
    return json.dumps(os.path.relpath(s.source, output.parent))


def _description(s: System, c: Calibration, found: list[Measured], streams: list[Stream], base: str) -> str:
    """A description that extends the system, called ``base`` there, by what was measured."""
    lines = ["isam: 1", f"system: {s.name}-measured", f'description: "{s.name} with costs measured on one machine."',
             f"extends: {base}", "units:"]  # fmt: skip
    lines += [f"  {u}: {{clock: {c.clock / 1e9:.2f} GHz}}" for u in s.units]
    loads = {x.memory: x.rate for x in streams if x.name == "load" and s.memories[x.memory].kind == "cached"}
    rates = {n: rate * c.clock / 1e9 for n, rate in loads.items()}
    lines += ["memories:"] if rates else []
    lines += [f"  {n}: {{bandwidth: {rate:.1f} GB/s}}" for n, rate in rates.items()]
    lines += ["instructions:"]
    near = {x.name: x for x in reversed(streams)}  # the smallest last: what is nearest counts
    for n, x in near.items():
        asks = s.instructions[n].cost.prefetch  # stated, not measured: costs are replaced whole
        more = "" if asks is None else f", prefetch: {asks:g} cycles"
        lines.append(f"  {n}: {{cost: {{issue: {c.part / x.rate:.2f} cycles, bandwidth: {x.rate:.1f} B/cycle{more}}}}}")
    for m in found:
        latency = m.latency if m.latency is not None else m.stated_latency
        more = f", latency: {max(latency, m.issue):.2f} cycles" if latency is not None else ""
        forms: dict[str, list[str]] = {}
        for f in m.narrow:
            forms.setdefault(f.size, []).append(f"{f.most}: {f.issue:.2f} cycles")
        some = ", ".join(f"{size}: {{{', '.join(costs)}}}" for size, costs in forms.items())
        more += f", narrow: {{{some}}}" if some else ""
        lines.append(f"  {m.name}: {{cost: {{issue: {m.issue:.2f} cycles{more}}}}}")
    return "\n".join(lines) + "\n"
