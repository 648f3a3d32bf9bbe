"""ISAM's schedules for `gemmini` against the best one written by hand: commands that bring data in, and bytes read.

    python -m benchmarks.gemmini [--json] [--keep]
    python -m benchmarks.gemmini --page

Nothing is measured on hardware: commands and bytes are counted on the schedule, which is proved before. ``--keep``
writes the results and the page, ``--page`` the page from the results on disk. Exit code: 0, or 1 beyond a limit.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil, prod
from pathlib import Path
from typing import Any

from isam.compiler.stages import new_job, run_stages
from isam.cost.timeline import timeline
from isam.ir.dtype import size_of
from isam.ir.kernel import Kernel
from isam.ir.text import parse
from isam.proof import prove
from isam.schedule.tree import Issue, Loop, Node, Schedule, children
from isam.system.load import load_system

SCHEMA = "isam.gemmini/1"
ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "gemmini.json", ROOT / "docs" / "gemmini.md"
LIMITS = {"bytes": 1.05, "commands": 1.10}
PRODUCT = parse("""kernel product(M, N, K)
  in  A: i8[M, K]
  in  B: i8[K, N]
  out C: i32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += i32(A[i, k]) * i32(B[k, j])
""")
CONVOLUTION = parse("""kernel conv3x3(H, V, C, K)
  in  x: i8[H + 2, V + 2, C]
  in  w: i8[3, 3, C, K]
  out y: i32[H, V, K]
  forall h < H, v < V, k < K
    y[h, v, k] = 0
  forall h < H, v < V, k < K, r < 3, s < 3, c < C
    y[h, v, k] += i32(x[h + r, v + s, c]) * i32(w[r, s, c, k])
""")
LAYERS = ((56, 56, 64, 64), (28, 28, 128, 128))
SIZES = ((512, 512, 512), (12544, 256, 64))
LIBRARY = {(512, 512, 512): (13_312, 3_407_872), (12544, 256, 64): (19_456, 4_980_736)}  # Gemmini's own, as published


@dataclass(frozen=True)
class Counted:
    """Commands that bring data in, ``fills`` of them zeros; bytes read from DRAM."""

    commands: int
    fills: int
    bytes: int


def by_hand(m: int, n: int, k: int) -> Counted:
    """The schedule written by hand with Exo: half the scratchpad holds as many columns of B as fit, rows of A pass by
    them once per such part; a command brings 16 rows of 64 bytes, or fills a tile of 16 x 16 sums with zeros."""
    half, command = 128 * 1024, 16 * 64
    read = k * n + m * k * ceil(k * n / half)
    fills = ceil(m / 16) * ceil(n / 16)
    return Counted(read // command + fills, fills, read)


def counted(schedule: Schedule) -> Counted:
    """The same of a schedule: what its load unit is told, and what that reads."""
    system = schedule.system
    commands: Counter[str] = Counter()
    read = 0
    for issue, times in executed(schedule.call, 1):
        if issue.unit != "load" or issue.configures:
            continue
        commands[issue.instruction] += 0 if issue.joined else times
        ins = system.instructions[issue.instruction]
        for o in issue.operands:
            if ins.operand(o.name).role == "in":
                read += times * prod(o.tile.shape) * size_of(schedule.dtype(o.tile.buffer))
    return Counted(commands.total(), commands["mvin_zero"], read)


def executed(node: Node, times: int) -> list[tuple[Issue, int]]:
    """Every call with how often it is carried out; loops have static trips here."""
    if isinstance(node, Issue):
        return [(node, times)]
    if not isinstance(node, Loop):
        return [pair for c in children(node) for pair in executed(c, times)]
    trip = node.trip or 0
    peeled = [p for p in (node.first, node.last) if p is not None]
    inside = [pair for p in peeled for pair in executed(p, times)]
    inside += executed(node.enter, times) + executed(node.exit, times) if trip else []
    return inside + executed(node.body, times * (trip - len(peeled)))


def scheduled(kernel: Kernel, sizes: dict[str, int]) -> Schedule:
    """ISAM's proved schedule."""
    job = run_stages(new_job(kernel, load_system("gemmini"), sizes, None), "schedule")
    assert job.schedule is not None
    prove(job.schedule)
    return job.schedule


def measured(size: tuple[int, int, int]) -> dict[str, Any]:
    schedule = scheduled(PRODUCT, dict(zip("MNK", size, strict=True)))
    mine, best = counted(schedule), by_hand(*size)
    library = dict(zip(("commands", "bytes"), LIBRARY[size], strict=True))
    far = {"commands": round(mine.commands / best.commands, 3), "bytes": round(mine.bytes / best.bytes, 3)}
    return {"size": size, "isam": asdict(mine), "by hand": asdict(best), "library": library, "far": far,
            "microseconds": round(timeline(schedule).seconds * 1e6, 1)}  # fmt: skip


def convolved(size: tuple[int, int, int, int]) -> dict[str, Any]:
    """A layer: bytes read against each operand once; what lies in DRAM besides the arguments (im2col would)."""
    h, v, c, k = size
    schedule = scheduled(CONVOLUTION, dict(zip("HVCK", size, strict=True)))
    t = timeline(schedule)
    return {"size": size, "isam": asdict(counted(schedule)), "once": (h + 2) * (v + 2) * c + 9 * c * k,
            "unfolded": 9 * h * v * c + 9 * c * k, "workspace": sum(w.bytes for w in schedule.workspace),
            "microseconds": round(t.seconds * 1e6, 1), "array busy": round(t.utilisation("ex"), 3)}  # fmt: skip


def page(result: dict[str, Any]) -> str:
    rows = [f"| {' x '.join(map(str, r['size']))} | {who} | {n['commands']:,} | {n.get('fills', '')} | {n['bytes']:,} |"
            for r in result["rows"] for who, n in (("ISAM", r["isam"]), ("by hand", r["by hand"]),
                                                   ("Gemmini's library", r["library"]))]  # fmt: skip
    far = [f"| {' x '.join(map(str, r['size']))} | {r['far']['commands']:.3f} | {r['far']['bytes']:.3f} |"
           f" {r['microseconds']} |" for r in result["rows"]]  # fmt: skip
    layers = []
    for r in result["layers"]:
        read = f"{r['isam']['bytes']:,} | {r['once']:,} | {r['unfolded']:,} | {r['workspace']}"
        layers.append(f"| {' x '.join(map(str, r['size']))} | {read} | {r['microseconds']} | {r['array busy']:.0%} |")
    return TEXT.format(rows="\n".join(rows), far="\n".join(far), layers="\n".join(layers), **LIMITS)


TEXT = """<!-- generated: python -m benchmarks.gemmini --page -->
# Products on Gemmini

`python -m benchmarks.gemmini --keep` computes this anew: int8 products with i32 results on
[gemmini](../hwdesc/gemmini/README.md). Commands and bytes are counted on proved schedules; nothing here was measured on
hardware. *by hand* is the best schedule known, written with Exo: half the scratchpad holds columns of B, the rows of A
pass by them once for each such part; 16 rows of 64 bytes per command and one fill per tile of sums. Its formula gives
the published numbers; those of Gemmini's own library are quoted.

| M x N x K | schedule | mvin commands | of them zero fills | bytes read |
|---|---|---:|---:|---:|
{rows}

| M x N x K | commands, at most {commands} | bytes, at most {bytes} | us in time |
|---|---:|---:|---:|
{far}

## Convolutions, 3 x 3

Rows of pixels are brought to the scratchpad once per block and read where they lie: the distance of the rows that the
array reads is a register (`config_ex`), so that each of the nine taps is an address. Nothing is unfolded; *unfolded* is
what reading an im2col matrix would take.

| H x W x C x K | bytes read | each operand once | unfolded | workspace in DRAM | us in time | array busy |
|---|---:|---:|---:|---:|---:|---:|
{layers}

## The stream

`isam.compile(kernel, on="gemmini", ...).artifact.text("stream.s")` is the program: `config_ex`, `config_ld`,
`config_st`, `mvin`, `mvout`, `preload`, `compute_preloaded`, `compute_accumulated`, `fence`, in the manual's operands,
with loops as `.for v 8` ... `.end` (v counts from 0) or spelled out (`isam.codegen.stream.stream(schedule,
expanded=True)`). The texts are templates of the description; where a memory is addressed in rows is in its facts.
`tests/systems/gemmini_model.py` reads such programs with the manual's limits (16 rows, 64 columns, registers set, a
compute behind every preload, addresses inside) and computes them in NumPy.

## Not done

Sums are stored as i32, 16 columns to a command, which binds products with short sums. The first product of a sum does
not overwrite: tiles are filled with zeros first, as by hand. One `mvin` is used, not the three with registers of their
own. A preload waits for the products before it, where the hardware overlaps them: times are too long. Bursts hold
blocks of one size: the last, narrow block of a row is a command of its own. Streams are read by a model of the manual,
not by Gemmini's own simulator. Blocks that do not divide the sizes make trees large
(4096 x 4096 x 4096: 997 distinct steps), half of the time of scheduling goes into waits that this machine's queues do
not need.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", action="store_true", help="the results as JSON")
    options.add_argument("--keep", action="store_true", help="write the results and the page")
    options.add_argument("--page", action="store_true", help="only write the page, from the results on disk")
    given = options.parse_args(arguments)
    if given.page:
        result = json.loads(RESULTS.read_text(encoding="utf-8"))
    else:
        result = {"schema": SCHEMA, "rows": [measured(size) for size in SIZES],
                  "layers": [convolved(size) for size in LAYERS]}  # fmt: skip
    print(json.dumps(result, indent=1) if given.json else page(result), end="")
    if given.keep:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if given.keep or given.page:
        PAGE.write_text(page(result), encoding="utf-8")
    over = [f"{r['size']}: {what} {r['far'][what]}, limit {most}" for r in result["rows"] for what, most in
            LIMITS.items() if r["far"][what] > most]  # fmt: skip
    print("\n".join(over), file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
