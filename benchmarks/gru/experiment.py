"""One size: ISAM's schedules, with more and more of what ISAM does, and the library's kernels called one by one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.compiler.job import Job
from isam.compiler.stages import new_job, run_stages
from isam.cost.floor import floor
from isam.cost.timeline import timeline
from isam.ir.text import parse
from isam.proof import prove
from isam.system.graph import System

from .library import Kernels, callers

GRU = parse(Path(__file__).with_name("gru.isam").read_text(encoding="utf-8"))
STEPS = 128
HIDDEN = (512, 1024, 1536, 2048, 2560, 2816)
BATCH = (1, 16, 32, 64)
ANY = (1, 31, 128, 500)  # steps with which a schedule for any number of them is timed
CYCLES = 4.0  # to set up a move of a tile to or from a register file
RATE = 128.0  # bytes of it per cycle


class Moving(Greedy):
    """A mapping's price has the moves of its operands' tiles in it, which on this machine cost more than the calls."""

    def mapping(self, choice: Choice) -> Any:
        costs = choice.costs or ()

        def price(i: int) -> float:
            m = choice.options[i]
            calls = costs[i] / (1.0 + (m.instruction.cost.issue or 0.0))
            return costs[i] + CYCLES * calls * len(m.operands) + choice.context["bytes"][i] / RATE

        best = min(map(price, range(len(choice.options))))
        near = [o for i, o in enumerate(choice.options) if price(i) <= 1.02 * best]
        kernel, chosen = choice.context["_kernel"], choice.context["_chosen"]
        theirs = {(o.buffer, o.dims) for m in chosen for o in m.operands}
        temps = {b.name for b in kernel.buffers if b.role == "temp"}
        return min(near, key=lambda m: sum(o.buffer in temps and (o.buffer, o.dims) not in theirs for o in m.operands))


class Staying(Moving):
    """Nothing leaves the loop."""

    def variant(self, choice: Choice) -> Any:
        return choice.options[0]


class Fused(Staying):
    """Nor does anything stay in near memory from one step to the next."""

    def pack(self, choice: Choice) -> Any:
        return choice.options[0]


class Apart(Fused):
    """Nor does anything flow from one call to another but through main memory: every nest has loops of its own."""

    def fuse(self, choice: Choice) -> Any:
        return False


WAYS = {"apart": Apart, "fused": Fused, "staying": Staying, "all": Moving}


def measured(hidden: int, batch: int, system: System, kernels: Kernels, steps: int = STEPS,
             apart: bool = True) -> dict[str, Any]:  # fmt: skip
    """One row of the table. ``apart``: with the schedule in which every nest has loops of its own."""
    row: dict[str, Any] = {"hidden": hidden, "batch": batch, "steps": steps, "isam": {}}
    for name, approach in WAYS.items():
        if name == "apart" and not apart:
            continue
        job, cpu = scheduled(hidden, batch, system, approach(), steps)
        schedule = job.schedule
        assert schedule is not None
        t = timeline(schedule)
        row["isam"][name] = {
            "seconds": t.seconds, "bytes": sum(w.bytes for e, w in t.edges.items() if "hbm" in e),
            "slots": sum(w.bytes for w in schedule.workspace if w.memory != system.home),
            "steps": list(job.cover.steps) if job.cover is not None else [],
            "busy": {u: round(t.utilisation(u), 4) for u in ("mx0", "vec", "ld") if t.units[u].calls}, "cpu": cpu,
        }  # fmt: skip
        if name == "all":
            bound = floor(schedule)
            row |= {"least": bound.seconds, "bound by": bound.name}
    found = callers(steps, batch, hidden, kernels)
    row["library"] = [{"caller": c.caller, "launches": c.launches, "seconds": c.seconds, "elementwise": c.elementwise,
                       "bytes": c.bytes} for c in found]  # fmt: skip
    row["ratio"] = found[0].seconds / row["isam"]["all"]["seconds"]
    return row


def scheduled(hidden: int, batch: int, system: System, approach: Moving, steps: int) -> tuple[Job, dict[str, float]]:
    """A proved schedule, and the CPU seconds to make and to prove it."""
    sizes = {"T": steps, "B": batch, "X": hidden, "H": hidden}
    start = time.process_time()
    job = run_stages(new_job(GRU, system, sizes, approach), "schedule")
    middle = time.process_time()
    assert job.schedule is not None
    prove(job.schedule)
    return job, {"schedule": round(middle - start, 2), "prove": round(time.process_time() - middle, 2)}


def unknown(hidden: int, batch: int, system: System) -> dict[str, Any]:
    """One row of the table of schedules for any number of steps: as the loop is written, and as it is taken; both are
    proved. Seconds by number of steps."""
    row: dict[str, Any] = {"hidden": hidden, "batch": batch}
    for name, approach in (("written", Staying()), ("taken", Moving())):
        job = run_stages(new_job(GRU, system, {"B": batch, "X": hidden, "H": hidden}, approach), "schedule")
        schedule = job.schedule
        assert schedule is not None
        assert job.cover is not None
        prove(schedule)
        row[name] = {"steps": list(job.cover.steps),
                     "seconds": {str(n): timeline(schedule, {"T": n}).seconds for n in ANY}}  # fmt: skip
    return row


def split(row: dict[str, Any]) -> dict[str, float]:
    """Seconds that the caller who calls gate by gate in every step takes longer, by what makes the difference: one
    after the other, each with those before it. ``launches``: one schedule with everything still apart. ``caller``: what
    the library's best caller gains over that one, by gates side by side and input products for all steps at once."""
    at = {n: w["seconds"] for n, w in row["isam"].items()}
    plainly = one_by_one(row)
    apart = at.get("apart", at["fused"])  # where that was not made, both differences are one
    return {"launches": plainly - apart, "fusion": apart - at["fused"],
            "staying": at["fused"] - at["staying"], "hoisting": at["staying"] - at["all"],
            "in all": plainly - at["all"], "caller": plainly - row["library"][0]["seconds"]}  # fmt: skip


def one_by_one(row: dict[str, Any]) -> float:
    """Seconds of the caller who calls gate by gate in every step."""
    return max(c["seconds"] for c in row["library"] if c["caller"] == "gate by gate, inputs step by step")
