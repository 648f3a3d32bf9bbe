"""``python -m benchmarks.run``: measures, prints, and writes results as JSON."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isam.cli import fair

from . import machine, peers
from .compiling import SAMPLES, cold
from .data import LINE
from .measure import BEST, Settings, Wrong, compiled, measure, weighted
from .saved import SCHEMA
from .shapes import GROUPS, Gemm
from .targets import RESNET50, targets

SHORT = 1e-5  # seconds: calls of less are told in nanoseconds too
QUICK = {"tiny": ("4x4x4", "16x16x16"), "bf16": ("256x256x256 bf16",), "int8": ("256x256x256 int8", "256x256x256 i8"),
         "square": ("512x512x512", "1024x1024x1024"), "deepbench": ("700x1024x512", "4x7680x2560"),
         "depthwise": ("depthwise 28x28x256x1",),
         "blocks": ("block 28x28x256x256x1",), "attention": ("attention 12x128x128x64x64",),
         "gru": ("gru 128x4x512x512",),
         "rows": ("softmax 256x1024", "layer_norm 256x1024", "bias_gelu 256x1024"),
         "layouts": ("transpose 256x256", "channels_last 256x784"),
         "interleaved": ("complex_product 8192", "pooled 64x56x56"),
         "terms": ("gates 64x256", "complex_matmul 64x256"),
         "scans": ("running_sum 256x1024", "recursive_filter 256x1024"),
         "algebra": ("lu 64", "substitutions 200x64", "syrk 64x64"),
         "resnet50": ("56x56x64 to 64, 3x3/1", "28x28x512 to 128, 1x1/1"),
         "resnet50x28": ("28x28x28x512 to 128, 1x1/1",), "resnet50-bf16": ("28x28x512 to 128, 1x1/1 bf16",),
         "blocks-bf16": ("block_bf16 28x28x256x256x1",),
         "attention-bf16": ("attention_bf16 12x128x128x64x64",), "gru-bf16": ("gru_bf16 128x4x512x512",)}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns the exit code: 0 measured and every target reached, 1 measured and some target missed."""
    p = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    p.add_argument("--only", action="append", choices=[*GROUPS, "compile"], help="only these groups; several times")
    p.add_argument("--shape", action="append", help="only shapes whose name contains this; several times")
    p.add_argument("--quick", action="store_true", help="two shapes per group, few rounds")
    p.add_argument("--rounds", type=int, help="turns that each contender gets (5)")
    p.add_argument("--seconds", type=float, help="seconds per turn (0.08)")
    p.add_argument("--on", default="host", help="the machine to compile for")
    p.add_argument("--out", type=Path, help="write the results here, as JSON")
    p.add_argument("--json", action="store_true", help="print the results as JSON; progress goes to standard error")
    p.add_argument("--docs", type=Path, help="write the page of tables here, from these results")
    p.add_argument("--plots", type=Path, help="draw pictures of the results into this folder")
    p.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    a = p.parse_args(arguments)
    settings = Settings(a.rounds or (3 if a.quick else 5), a.seconds or (0.03 if a.quick else 0.08), a.on)
    what = (settings, tuple(a.only or [*GROUPS, "compile"]), tuple(a.shape or ()), a.quick)
    if a.inside:
        return _inside(a.inside, *what)
    results = run(*what, a.json)
    if a.out:
        a.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if a.docs:
        from .table import page

        a.docs.write_text(page(results, a.out.stem if a.out and a.plots else ""), encoding="utf-8")
    if a.plots:
        from .plots import write

        print("\n".join(write(results, a.plots, a.out.stem if a.out else "results")), file=sys.stderr)
    if a.json:
        print(json.dumps(results))
    return 0 if all(t["reached"] for t in results["targets"]) else 1


def run(settings: Settings, groups: tuple[str, ...], shapes: tuple[str, ...] = (), quick: bool = False,
        quiet: bool = False) -> dict[str, Any]:  # fmt: skip
    """Measures the groups and returns everything as JSON-able values. Raises ``Wrong`` when a result is.

    In a process of its own, without the variables that would choose kernels or threads for a peer's library: they are
    read when a library is loaded, and an environment that holds one back would flatter us.
    """
    root = Path(__file__).resolve().parents[len((__package__ or "").split("."))]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "results.json")
        command = ["--inside", str(out), "--on", settings.on, "--rounds", str(settings.rounds),
                   "--seconds", str(settings.seconds)]  # fmt: skip
        command += [x for g in groups for x in ("--only", g)] + [x for s in shapes for x in ("--shape", s)]
        command += ["--quick"] if quick else []
        say = 2 if quiet else None  # standard error itself: sys.stderr may be no file
        fair.run(root, f"{__package__}.run", command, stdout=say)
        results: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    if "wrong" in results:
        raise Wrong(results["wrong"])
    results["settings"]["removed from the environment"] = fair.steering()
    return results


def _inside(out: Path, *what: Any) -> int:
    """The measuring process: leaves the results, or what was wrong, in a file."""
    try:
        results = _measured(*what)
    except Wrong as e:
        results = {"wrong": str(e)}
    out.write_text(json.dumps(results), encoding="utf-8")
    return 0


def _measured(settings: Settings, groups: tuple[str, ...], shapes: tuple[str, ...], quick: bool) -> dict[str, Any]:
    from threadpoolctl import threadpool_limits

    import isam

    began = time.time()
    results: dict[str, Any] = {"schema": SCHEMA, "settings": {"rounds": settings.rounds, "seconds": settings.seconds,
                               "on": settings.on, "threads": 1, "line": LINE}}  # fmt: skip
    with threadpool_limits(1):
        isam.load_system(settings.on)
        results["machine"] = machine.facts()
        results["roofs"] = machine.roofs(settings.on)
        compiled(Gemm(2, 3, 4), settings.on)  # times of compiling are those of a process that has compiled before
        for group in (g for g in GROUPS if g in groups):
            results[group] = []
            for shape in GROUPS[group]:
                if _wanted(shape.name, shapes, QUICK[group] if quick else ()):
                    results[group].append(measure(shape, settings))
                    print(line(results[group][-1]), flush=True)
        results["versions"], results["absent"] = peers.versions(), peers.absent()
    if "compile" in groups:
        results["compile"] = []
        for shape in SAMPLES[:1] if quick else SAMPLES:
            if _wanted(shape.name, shapes, ()):
                results["compile"].append(cold(shape, settings.on, 2 if quick else 5))
                print(compile_line(results["compile"][-1]), flush=True)
    results["weighted"] = _weighted(results)
    results["machine"]["load at the end"] = machine.load()
    results["seconds"] = round(time.time() - began, 1)
    results["targets"] = targets(results)
    print(f"absent: {', '.join(results['absent']) or 'no peer'}")
    for name, w in results["weighted"].items():
        print(f"{name}: " + ", ".join(f"{k} {v:.2f}" for k, v in w.items()))
    for t in results["targets"]:
        print(f"{'reached' if t['reached'] else 'MISSED '}  {t['what']}: {t['got']:.3g} ({t['want']})")
    return results


def _weighted(results: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Of every group against the best peers; of the network's convolutions against each library as well."""
    libraries = tuple(x.name for x in peers.LIBRARIES)
    names = {g: (BEST, *libraries) if g in RESNET50 else (BEST,) for g in GROUPS if g in results}
    return {f"{g} against {n}": w for g, some in names.items() for n in some if (w := weighted(results[g], n))}


def _wanted(name: str, shapes: tuple[str, ...], quick: tuple[str, ...]) -> bool:
    return any(s in name for s in shapes) if shapes else name in quick if quick else True


def line(row: dict[str, Any]) -> str:
    """One shape in one line."""
    speed = {n: row["flops"] / t["best"] / 1e9 for n, t in row["times"].items()}
    parts = [f"{n} {v:.0f}" for n, v in speed.items()]
    least = min(t["best"] for t in row["times"].values())
    if least < SHORT:
        parts.append("ns a call: " + ", ".join(f"{n} {t['best'] * 1e9:.0f}" for n, t in row["times"].items()))
    found = row["peer"]
    best = f"{found['best']:.2f} (median {found['median']:.2f}) x {found['form']}" if found else "no peer"
    others = {**row["against"], **row["references"]}
    ratios = ", ".join(f"{r['best']:.2f} x {name}" for name, r in others.items())
    parts += [f"wrong, not counted: {name} ({fault})" for name, fault in row.get("wrong", {}).items()]
    return (f"{row['name']:32} {best}; {ratios}; GFLOP/s: {', '.join(parts)}; "
            f"compiled in {row['compile']['total'] * 1e3:.0f} ms")  # fmt: skip


def compile_line(row: dict[str, Any]) -> str:
    """One cold compilation in one line, milliseconds, best of the samples."""
    return f"{row['name']:32} cold, ms: " + ", ".join(f"{k} {v * 1e3:.0f}" for k, v in row["best"].items())


if __name__ == "__main__":
    raise SystemExit(main())
