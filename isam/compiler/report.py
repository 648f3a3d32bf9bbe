"""The report of a compilation: what was decided, what it costs, how long it took."""

from __future__ import annotations

from collections import Counter

from isam.compiler.grants import grants
from isam.compiler.job import Job
from isam.compiler.measured import table
from isam.schedule.text import figures


def report(job: Job) -> str:
    """One page of text."""
    assert job.cover is not None
    assert job.schedule is not None
    sizes = ", ".join(f"{n} = {v}" for n, v in job.sizes.items())
    lines = [f"{job.original.name} on {job.system.name}" + (f" with {sizes}" if sizes else "")]
    lines += ["", "instructions"] + [f"  {m}" for m in job.cover.mappings]
    if job.cover.steps:
        lines += ["", "rewritten by"] + [f"  {s}" for s in job.cover.steps]
    if job.unproved:
        lines += ["", "could not be proved, and gave way"] + [f"  {v}" for v in job.unproved]
    if job.barred:
        lines += ["", "not shown to keep the meaning, and not taken"] + [f"  {step}" for step in job.barred.why]
    if job.cover.gap:
        lines += ["", f"the choice of instructions may be {job.cover.gap:.0%} from the best"]
    if found := grants(job):
        lines += ["", "with further permissions"] + [f"  {g}" for g in found]
    call, bind = figures(job.schedule.call), figures(job.schedule.bind)
    lines += ["", "schedule"]
    for name, f in (("bind", bind), ("call", call)):
        if f["calls"]:
            lines.append(f"  {name}: {f['loops']} loops, {f['calls']} distinct calls, {f['bodies']} innermost bodies")
    lines.append(f"  workspace {sum(s.bytes for s in job.schedule.workspace)} B in {len(job.schedule.workspace)} slots")
    points = Counter(d.point for d in job.trace.decisions)
    lines += ["", f"decisions by '{job.trace.approach.name}'"]
    lines += [f"  {n:>6}  {p}" for p, n in sorted(points.items())] or ["  none"]
    if job.ran:
        lines += ["", "schedules run beside each other (isam tune)", *(f"  {line}" for line in table(job.ran))]
    if job.system.assumed:
        idle = {m.by for m in job.system.moves} - job.schedule.called()  # what computes was compared in any case
        mine = [a for a in job.system.assumed if a.partition(":")[0] not in idle]
        rest = len(job.system.assumed) - len(mine)
        lines += ["", "costs that the description does not state (assumed)"] + [f"  {a}" for a in mine]
        lines += [f"  {rest} of moves that are not called"] if rest else []
    proof = "left out" if job.certificate is None else str(job.certificate).partition("\n")[0]
    lines += ["", f"proof: {proof}", "", "time"]
    lines += [f"  {1e3 * s:8.1f} ms  {n}" for n, s in job.seconds.items()]
    return "\n".join(lines) + "\n"
