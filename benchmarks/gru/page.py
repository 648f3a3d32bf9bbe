"""The results as text and as a page."""

from __future__ import annotations

from typing import Any

from .experiment import ANY, one_by_one, split

PAGE = """\
<!-- generated: python -m benchmarks.gru --page -->
# Gated recurrent units on the case study's machine

`python -m benchmarks.gru --keep` computes this anew (paper, 6.2.2, "adapted": {steps} steps, which DeepBench
does not have). The machine is [casestudy](../hwdesc/casestudy/README.md), its numbers are frozen. Times are
those of `isam.cost.timeline`; nothing here was measured on hardware, and no price is put on a call of a kernel
itself. ISAM's schedules are proved before they are timed. The library's kernels are called one by one, from
main memory to main memory: the frozen products of the [case study](casestudy.md) at the best of their three
tilings, and element-wise kernels written by hand (`benchmarks/gru/elementwise.py`). Of two callers (gates one
by one and input products in every step; gates side by side and the input products of all steps at once) the
quicker counts.

Measured: {count} of {asked} sizes asked for. Ahead of the library's best caller: {ahead}; ahead of kernels
called gate by gate in every step: {plainly}.

*apart*: every nest with loops of its own, everything through main memory; *fused*: what can flow does;
*staying*: weights stay in the scratchpads of the clusters as far as they fit; *all*: the input product leaves
the loop where that takes less time. All in microseconds per step. *weights*: KiB of each cluster that are for
what stays.

| hidden | batch | apart | fused | staying | all | weights | library | its launches | one by one | ratio |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
{table}

## What makes the difference
Microseconds per step that kernels called gate by gate in every step take longer, by what makes the difference: one
after the other, each with those before it. *launches*: one schedule with everything still apart against kernels that
begin when the one before has ended (without such a schedule, `--no-apart`, the share of fusion is in it). *fusion* is
negative where nests that share loops can only be dealt to clusters together (all gates of some columns), while apart
each is dealt as is best for it; what they gain by it comes with weights that stay. The last column is what the
library's best caller gains over the other by putting gates side by side and input products before the loop.

| hidden | batch | launches | fusion | weights that stay | input product taken out | in all | best caller |
|---:|---:|---:|---:|---:|---:|---:|---:|
{shares}

## Any number of steps
A schedule for a number of steps that is known at run time only (`python -m benchmarks.gru --any --keep`) does the input
products of 32 steps together, in a loop over as many such parts as there are, where that takes less time for 31 and for
144 steps together; the steps left over, and fewer than 32, go as written. Microseconds per step, as the loop is written
and as it is taken.

| hidden | batch | input products | {heads} |
|---:|---:|:---|{lines}|
{open}

With fewer steps than a part has what is taken may be slower: of the near memory that weights may stay in, the loop over
parts has its share ([ADR 16](adr/0016-steps-in-parts.md)).

## What is not done
* Elements that a step hands to the next go through main memory: no box stays that a step writes.
* The cast of the state to bf16 is a dealt loop of its own at the begin of a step; what it makes goes through main
  memory to all clusters.
* Of few rows (batch 2 to about 20) element-wise calls go row by row unless an Approach prices moves, as the one
  of this experiment does.
* Loops one after the other share the room for what stays, though only one of them runs at a time.
"""


def page(result: dict[str, Any]) -> str:
    rows = result["rows"]
    return PAGE.format(
        steps=rows[0]["steps"], count=len(rows), asked=result["asked"],
        table="\n".join(map(_row, rows)),
        shares="\n".join(map(_shares, rows)), ahead=_count(r["ratio"] > 1 for r in rows),
        heads=" | ".join(f"{n}, written | {n}, taken" for n in ANY), lines="---:|" * (2 * len(ANY) - 1) + "---:",
        open="\n".join(map(_open, result.get("any", ()))),
        plainly=_count(one_by_one(r) > r["isam"]["all"]["seconds"] for r in rows),
    )  # fmt: skip


def _count(found: Any) -> str:
    all_ = list(found)
    return f"{sum(all_)} of {len(all_)}"


def _each(r: dict[str, Any], seconds: float) -> str:
    return f"{seconds * 1e6 / r['steps']:.2f}"


def _row(r: dict[str, Any]) -> str:
    isam, best = r["isam"], r["library"][0]
    ways = ("apart", "fused", "staying", "all")
    cells = [r["hidden"], r["batch"], *(_each(r, isam[w]["seconds"]) if w in isam else "" for w in ways),
             isam["all"]["slots"] >> 10, _each(r, best["seconds"]), best["launches"], _each(r, one_by_one(r)),
             f"{r['ratio']:.2f}"]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def _open(r: dict[str, Any]) -> str:
    def each(way: str, n: int) -> str:
        return f"{r[way]['seconds'][str(n)] * 1e6 / n:.2f}"

    taken = "32 steps together" if r["taken"]["steps"] else "step by step"
    cells = [r["hidden"], r["batch"], taken, *(each(w, n) for n in ANY for w in ("written", "taken"))]
    return "| " + " | ".join(map(str, cells)) + " |"


def _shares(r: dict[str, Any]) -> str:
    parts = split(r)
    return "| " + " | ".join([str(r["hidden"]), str(r["batch"]), *(_each(r, s) for s in parts.values())]) + " |"
