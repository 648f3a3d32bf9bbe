"""``python -m benchmarks.run``: measures, prints, and writes results as JSON."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from isam.cli import fair

from . import machine, peers
from .compiling import SAMPLES, cold
from .measure import LIBRARIES, Settings, Wrong, compiled, measure, weighted
from .shapes import GROUPS, LARGE, Gemm

SCHEMA = "isam.bench/1"
TINY, FEW = 2 * 64**3, 4  # flops up to which a product counts as tiny; rows up to which it is bound by memory
SHORT = 1e-5  # seconds: calls of less are told in nanoseconds too
CASES = ("depthwise", "rows", "blocks", "attention", "gru", "blocks-bf16", "attention-bf16", "gru-bf16")
LEAST = {"depthwise": 1.3, "block": 1.2, "attention": 1.0, "gru": 1.16,  # of a geometric mean; of others 1.1
         "block_bf16": 2.0, "attention_bf16": 1.5, "gru_bf16": 1.5}  # fmt: skip
QUICK = {"tiny": ("4x4x4", "16x16x16"), "bf16": ("256x256x256 bf16",), "int8": ("256x256x256 int8",),
         "square": ("512x512x512", "1024x1024x1024"), "deepbench": ("700x1024x512", "4x7680x2560"),
         "depthwise": ("depthwise 28x28x256x1",),
         "blocks": ("block 28x28x256x256x1",), "attention": ("attention 12x128x128x64x64",),
         "gru": ("gru 128x4x512x512",),
         "rows": ("softmax 256x1024", "layer_norm 256x1024", "bias_gelu 256x1024"),
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
                               "on": settings.on, "threads": 1}}  # fmt: skip
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
        results["versions"] = peers.versions()
    if "compile" in groups:
        results["compile"] = []
        for shape in SAMPLES[:1] if quick else SAMPLES:
            if _wanted(shape.name, shapes, ()):
                results["compile"].append(cold(shape, settings.on, 2 if quick else 5))
                print(compile_line(results["compile"][-1]), flush=True)
    results["weighted"] = {f"{g} against {lib}": w for g in GROUPS if g in results for lib in LIBRARIES
                           if (w := weighted(results[g], lib))}  # fmt: skip
    results["machine"]["load at the end"] = machine.load()
    results["seconds"] = round(time.time() - began, 1)
    results["targets"] = targets(results)
    for name, w in results["weighted"].items():
        print(f"{name}: " + ", ".join(f"{k} {v:.2f}" for k, v in w.items()))
    for t in results["targets"]:
        print(f"{'reached' if t['reached'] else 'MISSED '}  {t['what']}: {t['got']:.3g} ({t['want']})")
    return results


def _wanted(name: str, shapes: tuple[str, ...], quick: tuple[str, ...]) -> bool:
    return any(s in name for s in shapes) if shapes else name in quick if quick else True


def line(row: dict[str, Any]) -> str:
    """One shape in one line."""
    speed = {n: row["flops"] / t["best"] / 1e9 for n, t in row["times"].items()}
    parts = [f"{n} {v:.0f}" for n, v in speed.items()]
    least = min(t["best"] for t in row["times"].values())
    if least < SHORT:
        parts.append("ns a call: " + ", ".join(f"{n} {t['best'] * 1e9:.0f}" for n, t in row["times"].items()))
    ratios = ", ".join(f"{r['best']:.2f} (median {r['median']:.2f}) x {lib}" for lib, r in row["against"].items())
    return f"{row['name']:32} GFLOP/s: {', '.join(parts)}; {ratios}; compiled in {row['compile']['total'] * 1e3:.0f} ms"


def compile_line(row: dict[str, Any]) -> str:
    """One cold compilation in one line, milliseconds, best of the samples."""
    return f"{row['name']:32} cold, ms: " + ", ".join(f"{k} {v * 1e3:.0f}" for k, v in row["best"].items())


def targets(results: dict[str, Any]) -> list[dict[str, Any]]:
    """The speed that was asked for and what was measured; what was not measured is left out."""
    found: list[tuple[str, float, float, bool]] = []
    found += _products([*results.get("square", []), *results.get("deepbench", [])])
    for kind, words, least in (("", "", 0.97), ("x28", " of 28 images", 1.0), ("-bf16", " in bf16", 1.2)):
        w = results["weighted"].get(f"resnet50{kind} against onednn", {})
        what = f"ResNet-50 convolutions{words} against oneDNN"
        found += [(f"{what}, {r}", w[r], least, True) for r in ("mean of ratios", "total over total") if w]
    found += _small(results.get("tiny", []))
    for group, large, least in (("bf16", 1.15, 1.5), ("int8", 1.3, 1.3)):
        for row in (r for r in results.get(group, []) if "onednn" in r["against"]):
            want = least if row["name"].startswith("256x") else large
            found.append((f"product {row['name']} against oneDNN", row["against"]["onednn"]["best"], want, True))
    found += _means(results)
    found += _compilations(results)
    if results.get("compile"):
        rows = [r["best"] for r in results["compile"]]
        found.append(("slowest compilation in a fresh process, seconds", max(r["compile"] for r in rows), 0.5, False))
        found.append(("slowest mapping, warm process, seconds", max(r["mapping again"] for r in rows), 0.02, False))
        found.append(("slowest compilation whose code was kept, seconds", max(r["kept"] for r in rows), 0.005, False))
        found.append(("slowest load of an artifact, seconds", max(r["load"] for r in rows), 0.001, False))
        found.append(("import, seconds", max(r["import"] for r in rows), 0.35, False))
    return [{"what": n, "got": got, "want": f"{'at least' if up else 'under'} {want:g}",
             "reached": got >= want if up else got < want} for n, got, want, up in found]  # fmt: skip


def _compilations(results: dict[str, Any]) -> list[tuple[str, float, float, bool]]:
    """The slowest of a warm process: products and convolutions of f32, by whether registers divide them; the others."""
    ragged = {s.name: s.ragged for g in GROUPS if g not in CASES for s in GROUPS[g]}
    taken: dict[str, list[float]] = {}
    for row in (r for g in GROUPS if g not in CASES for r in results.get(g, [])):
        name = row["name"]
        even = "of f32, ragged" if ragged.get(name) else "of f32"
        kind = "of bf16 or bytes" if name.endswith(("bf16", "int8")) else even
        taken.setdefault(kind, []).append(row["compile"]["total"])
    wanted = {"of f32": 0.15, "of f32, ragged": 0.25, "of bf16 or bytes": 0.5}
    return [(f"slowest compilation of a product or a convolution {kind}, seconds", max(taken[kind]), want, False)
            for kind, want in wanted.items() if kind in taken]  # fmt: skip


def _means(results: dict[str, Any]) -> list[tuple[str, float, float, bool]]:
    """Geometric means of what is no product, one per kernel."""
    found = []
    ratios: dict[str, list[float]] = {}
    for r in (r for group in CASES for r in results.get(group, [])):
        for library, got in r["against"].items():
            ratios.setdefault(f"{r['name'].partition(' ')[0]} against {library}", []).append(got["best"])
    for what, some in ratios.items():
        found.append((f"{what}, geometric mean", geometric_mean(some), LEAST.get(what.partition(" ")[0], 1.1), True))
    return found


def _products(rows: list[dict[str, Any]]) -> list[tuple[str, float, float, bool]]:
    """Products that are not tiny: geometric means of the large ones and of those of few rows, and the least of all."""
    ratios = [(r["against"]["numpy"]["best"], r) for r in rows if r["flops"] > TINY]
    few = [got for got, r in ratios if int(r["name"].partition("x")[0]) <= FEW]
    large = [got for got, r in ratios if int(r["name"].partition("x")[0]) > FEW and r["flops"] >= LARGE]
    means = (("large products", large, 1.0), (f"products of up to {FEW} rows", few, 0.95))
    found = [(f"{what} against NumPy, geometric mean", geometric_mean(some), want, True)
             for what, some, want in means if some]  # fmt: skip
    if ratios:
        found.append(("slowest of all products against NumPy", min(got for got, _ in ratios), 0.9, True))
    return found


def _small(rows: list[dict[str, Any]]) -> list[tuple[str, float, float, bool]]:
    """Products up to 64: the geometric mean of their ratios, and 16 cubed."""
    ratios = {r["name"]: r["against"]["numpy"]["best"] for r in rows}
    what = "tiny products against NumPy, geometric mean"
    mean = [(what, geometric_mean(ratios.values()), 3.0, True)] if rows else []
    return [*mean, *((f"product {n} against NumPy", r, 5.0, True) for n, r in ratios.items() if n == "16x16x16")]


if __name__ == "__main__":
    raise SystemExit(main())
