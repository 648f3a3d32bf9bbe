"""What schedules for simulated machines are worth, against what they were worth before.

    python -m benchmarks.simulated [MACHINE]... [--only KERNEL] [--json] [--record]

Kernels of ``simulated.isam`` on the shipped machines that are simulated, and on two that somebody new might describe
(``machines``): each is compiled with a certificate, and its predicted seconds stand beside what no schedule beats.
Where a machine has no instructions for a kernel, it says so. ``--record`` writes what is compared with afterwards.
Exit code: 0, or 1 where a schedule takes longer than the one on record by more than the margin, or is none any more.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from isam.compiler.stages import new_job, run_stages
from isam.cost.floor import floor
from isam.cost.report import duration
from isam.cost.timeline import timeline
from isam.diagnostics import IsamError
from isam.ir.kernel import Kernel
from isam.ir.text import parse_file
from isam.system.graph import System
from isam.system.load import load_system

from .timing import clock

SCHEMA = "isam.simulated/1"
HERE = Path(__file__).parent
RESULTS = HERE / "results" / "simulated.json"
MARGIN = 1.02  # predictions are the same on every computer: this is for what is as good
OWN = ("dsp", "dsp_mesh")  # described beside this file
MACHINES = ("gemmini", "pe_array", "systolic", "dual", "casestudy", "toy", "toy_pair", "toy_grid", "tpu_v1_like", *OWN)
SIZES: dict[str, tuple[tuple[int, ...], ...]] = {
    "product": ((256, 256, 256), (100, 72, 200)),
    "product_i8": ((256, 256, 256), (100, 72, 200)),
    "product_bf16": ((256, 256, 256),),
    "dense": ((128, 256, 256),),
    "dense_i8": ((128, 256, 256),),
    "gated": ((64, 64, 128),),
    "softmax": ((64, 512),),
    "layer_norm": ((64, 256),),
    "attention": ((128, 64),),
    "convolution": ((14, 14, 32, 32),),
    "convolution_i8": ((14, 14, 32, 32),),
    "depthwise": ((14, 14, 64),),
    "decayed": ((64, 4, 256),),
    "decayed_rows": ((64, 1024),),
    "rnn": ((32, 16, 64),),
    "gru": ((16, 16, 32, 64),),
    "heat": ((64, 4096),),
}


@dataclass(frozen=True)
class Row:
    """A kernel on a machine: ``seconds`` predicted, None where there is no schedule, and then ``why``; what no schedule
    beats, and which resource says so."""

    machine: str
    kernel: str
    sizes: tuple[int, ...]
    seconds: float | None
    floor: float = 0.0
    bound: str = ""
    why: str = ""

    @property
    def name(self) -> str:
        return f"{self.kernel} {'x'.join(map(str, self.sizes))} on {self.machine}"

    def __str__(self) -> str:
        if self.seconds is None:
            return self.why
        far = f"{self.seconds / self.floor:8.2f}" if self.floor else "       -"
        return f"{duration(self.seconds):>9}{far}  {self.bound}"


@cache
def kernels() -> dict[str, Kernel]:
    return {k.name: k for k in parse_file(HERE / "simulated.isam").kernels}


@cache
def machine(name: str) -> System:
    return load_system(str(HERE / "machines" / f"{name}.yaml") if name in OWN else name)


def measured(on: str, kernel: str, sizes: tuple[int, ...]) -> Row:
    """Scheduled, proved and timed, or why it is not."""
    k = kernels()[kernel]
    job = new_job(k, machine(on), dict(zip((s.name for s in k.given), sizes, strict=True)), None)
    try:
        run_stages(job, "prove")
    except IsamError as e:
        return Row(on, kernel, sizes, None, why=e.diagnostics[0].code)
    assert job.schedule is not None
    assert job.certificate is not None
    least = floor(job.schedule)
    return Row(on, kernel, sizes, rounded(timeline(job.schedule).seconds), rounded(least.seconds), least.name)


def rounded(seconds: float) -> float:
    return float(f"{seconds:.9g}")


def worse(now: Iterable[Row], before: Iterable[Row]) -> list[str]:
    """What got worse, in words."""
    was, out = {r.name: r for r in before}, list[str]()
    for r in now:
        old = was.get(r.name)
        if old is None or old.seconds is None:
            continue
        if r.seconds is None:
            out.append(f"{r.name}: {r.why}, before {duration(old.seconds)}")
        elif r.seconds > MARGIN * old.seconds:
            out.append(f"{r.name}: {duration(r.seconds)}, before {duration(old.seconds)},"
                       f" {r.seconds / old.seconds:.2f} times as long")  # fmt: skip
    return out


def recorded() -> list[Row]:
    """What is on record. Raises ``ValueError`` where that is of another schema."""
    if not RESULTS.exists():
        return []
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    if kept["schema"] != SCHEMA:
        raise ValueError(f"{RESULTS} holds no results of schema {SCHEMA}: {kept['schema']!r}")
    return [Row(**{**r, "sizes": tuple(r["sizes"])}) for r in kept["rows"]]


def line(r: Row, old: Row | None) -> str:
    """A row of the table; how it was, where it was otherwise by more than the margin."""
    label, was = f"{r.machine:12} {r.kernel:15}{'x'.join(map(str, r.sizes)):14}", ""
    if old is None:
        was = "new"
    elif old.seconds is None or r.seconds is None:
        was = f"before {old.why or duration(old.seconds or 0)}" if (old.seconds is None) != (r.seconds is None) else ""
    elif not 1 / MARGIN <= r.seconds / old.seconds <= MARGIN:
        was = f"{old.seconds / r.seconds:.2f} times as fast as before"
    return f"{label}{r!s:45}{was}".rstrip()


def document(rows: Iterable[Row]) -> dict[str, Any]:
    return {"schema": SCHEMA, "margin": MARGIN, "rows": [asdict(r) for r in rows]}


def main(arguments: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("machines", nargs="*", metavar="MACHINE", help=f"only these ({', '.join(MACHINES)})")
    p.add_argument("--only", action="append", metavar="KERNEL", help=f"only this kernel ({', '.join(SIZES)})")
    p.add_argument("--json", action="store_true", help="the results as JSON")
    p.add_argument("--record", action="store_true", help="write the results, of what was computed")
    a = p.parse_args(arguments)
    for given, known in ((a.machines, MACHINES), (a.only or (), SIZES)):
        if unknown := [n for n in given if n not in known]:
            p.error(f"{', '.join(unknown)}: none of {', '.join(known)}")
    before, begin = recorded(), clock()
    was, rows = {r.name: r for r in before}, list[Row]()
    for on in a.machines or MACHINES:
        for kernel in a.only or SIZES:
            for sizes in SIZES[kernel]:
                rows.append(measured(on, kernel, sizes))
                if not a.json:
                    print(line(rows[-1], was.get(rows[-1].name)), flush=True)
    print(json.dumps(document(rows), indent=1) if a.json else f"{clock() - begin:.0f} s")
    over = worse(rows, before)
    print("\n".join(over), file=sys.stderr, end="\n" if over else "")
    if a.record:
        kept = {**was, **{r.name: r for r in rows}}
        order = {Row(m, k, s, None).name: None for m in MACHINES for k in SIZES for s in SIZES[k]}
        RESULTS.write_text(json.dumps(document(kept[n] for n in order if n in kept), indent=1) + "\n", encoding="utf-8")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
