"""One product: ISAM's schedule and the library's in time, and what no schedule can beat."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from isam.approach.choice import Approach
from isam.approach.shipped.greedy import Greedy
from isam.approach.shipped.strategies import BestFirst
from isam.compiler.job import Refused
from isam.compiler.stages import new_job, run_stages
from isam.cost.floor import floor
from isam.cost.timeline import Timeline, timeline
from isam.diagnostics import IsamError
from isam.ir.instruction import Cost
from isam.proof import prove
from isam.schedule.tree import Schedule
from isam.system.graph import System

from .problem import PRODUCT
from .sizes import LARGE, Size
from .tilings import best

TRIES = 8  # schedules of which the quickest is taken, as the library's is of its tilings
CLASSES = (("library ahead", 0.0), ("about equal", 0.90), ("equal", 0.98), ("ISAM ahead", 1.02))  # from which ratio on
LIMITS = {"large": 1.15, "all": 1.5, "own": 0.95}  # median distances to the bound; least ratio on the library's sizes


def without_traffic(schedule: Schedule) -> Schedule:
    """The schedule where main memory is at hand: a box takes a cycle, whatever its size, and shares no link."""
    system = schedule.system
    box = replace(system.instructions["box"], cost=Cost(issue=1))
    return replace(schedule, system=replace(system, instructions={**system.instructions, "box": box}, links={}))


def kind(ratio: float) -> str:
    """The paper's class of a ratio: the library's time over ISAM's."""
    return [name for name, least in CLASSES if ratio >= least][-1]


def scheduled(size: Size, system: System, approach: Approach | None = None) -> tuple[Schedule | str, dict[str, float]]:
    """ISAM's proved schedule (or why there is none), and the CPU seconds to schedule and to prove it."""
    job = new_job(PRODUCT, system, dict(zip("MNK", size, strict=True)), approach)
    start = time.process_time()
    try:
        run_stages(job, "schedule")
        middle = time.process_time()
        assert job.schedule is not None
        prove(job.schedule)
    except (Refused, IsamError) as e:
        return str(e).splitlines()[0], {}
    return job.schedule, {"schedule": middle - start, "prove": time.process_time() - middle}


def figures(schedule: Schedule, whole: Timeline | None = None) -> dict[str, Any]:
    """Seconds with and without main memory's traffic; the share of the time in which units and issuers were busy; the
    share of the pairs' steps in which both units had a call."""
    t = whole or timeline(schedule)
    steps = t.clusters["pair"].calls
    return {"seconds": t.seconds, "inside": timeline(without_traffic(schedule)).seconds,
            "busy": {u: round(t.utilisation(u), 4) for u in t.units if t.units[u].calls},
            "both": min(t.units[u].calls for u in ("mx0", "mx1")) / steps if steps else 0.0,
            "link": round(t.links["hbm"].busy / t.ticks, 4)}  # fmt: skip


def measured(name: str, size: Size, system: System) -> dict[str, Any]:
    """One row of the table."""
    part, theirs, time_of_theirs = best(*size, system)
    row: dict[str, Any] = {"set": name, "size": list(size), "tiling": part.tiling.name, "padded": list(part.size),
                           "library": figures(theirs, time_of_theirs)}  # fmt: skip
    first, row["cpu"] = scheduled(size, system, Greedy())
    patient = BestFirst()
    patient.tries = TRIES
    mine, search = scheduled(size, system, patient)
    if isinstance(mine, str) or isinstance(first, str):
        return {**row, "refused": mine}
    row["first"], row["cpu"]["search"] = timeline(first).seconds, search["schedule"]
    bound = floor(mine)
    row |= {"least": bound.seconds, "inside": bound.of("compute"), "bound by": bound.name, "isam": figures(mine)}
    row["ratio"] = row["library"]["seconds"] / row["isam"]["seconds"]
    row["ratio inside"] = row["library"]["inside"] / row["isam"]["inside"]
    return row


def far(row: dict[str, Any], who: str) -> float:
    """How many times the bound."""
    return row[who]["seconds"] / row["least"]


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the issue asks about: distances, ratios in four classes, both units busy, time to compile."""
    done = [r for r in rows if "isam" in r]
    judged = [r for r in done if r["set"] != "own"]
    large = [r for r in done if 2 * r["size"][0] * r["size"][1] * r["size"][2] >= LARGE]
    own = [r["ratio"] for r in done if r["set"] == "own"]
    out: dict[str, Any] = {"sizes": len(rows), "refused": len(rows) - len(done)}
    for who in ("isam", "library"):
        out[who] = {"large, median": _median([far(r, who) for r in large]), "large": len(large),
                    "large, worst": max((far(r, who) for r in large), default=0.0),
                    "all, median": _median([far(r, who) for r in done])}  # fmt: skip
    for key in ("ratio", "ratio inside"):
        out[key] = {c: sum(kind(r[key]) == c for r in judged) for c, _ in CLASSES}
    out["own, least ratio"], out["own, median ratio"] = min(own, default=0.0), _median(own)
    out["both"] = _median([r["isam"]["both"] for r in done])
    cpu = {k: [r["cpu"][k] for r in done] for k in ("schedule", "prove", "search")}
    out["first, median"] = _median([r["first"] / r["least"] for r in done])
    out["cpu"] = {k: {"median": _median(v), "most": max(v, default=0.0)} for k, v in cpu.items()}
    return out


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0
