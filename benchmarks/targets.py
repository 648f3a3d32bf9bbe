"""The speed that was asked for, and what was measured: ISAM against the best peer of each row, but for the rows that
name one."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import geometric_mean
from typing import Any

from .measure import BEST, ratio_to
from .shapes import GROUPS, LARGE, Case

FEW = 4  # rows up to which a product is bound by memory
NEVER = 0.9, 0.8, 1.0  # the least of any product, convolution, block of f32
MEANS = {"depthwise": 1.3, "block": 1.2, "block_bf16": 2.0, "gru_bf16": 1.5, "attention": 1.0, "attention_bf16": 1.5,
         "softmax": 1.1, "layer_norm": 1.1, "bias_gelu": 1.1}  # fmt: skip
GRU = {1: 1.0, 4: 1.2, 32: 1.3}  # by batch
RESNET50 = {"resnet50": ("", "onednn", 0.97), "resnet50x28": (" of 28 images", "libxsmm", 1.0),
            "resnet50-bf16": (" in bf16", "onednn", 1.2)}  # fmt: skip
COMPILE = {"compile": ("slowest compilation in a fresh process", 0.5), "import": ("import", 0.35),
           "mapping again": ("slowest mapping, warm process", 0.02),
           "kept": ("slowest compilation whose code was kept", 0.005),
           "load": ("slowest load of an artifact", 0.001)}  # fmt: skip

Row = dict[str, Any]
Found = list[tuple[str, float, float, bool]]  # what, measured, asked for, whether at least or under it


def targets(results: dict[str, Any]) -> list[Row]:
    """What was not measured is left out."""
    found = [*_floats(results), *_narrow(results), *_convolutions(results), *_cases(results), *_compilations(results)]
    for step, (what, limit) in COMPILE.items():
        if rows := results.get("compile"):
            found.append((f"{what}, seconds", max(r["best"][step] for r in rows), limit, False))
    return [{"what": n, "got": got, "want": f"{'at least' if up else 'under'} {want:g}",
             "reached": got >= want if up else got < want} for n, got, want, up in found]  # fmt: skip


def _got(row: Row, library: str = BEST) -> float | None:
    found = ratio_to(row, library)
    return found["best"] if found else None


def _mean(what: str, rows: Iterable[Row], least: float) -> Found:
    some = [got for r in rows if (got := _got(r))]
    return [(f"{what} against {BEST}, geometric mean", geometric_mean(some), least, True)] if some else []


def _worst(what: str, rows: Iterable[Row], least: float) -> Found:
    some = [got for r in rows if (got := _got(r))]
    return [(f"slowest of all {what} against {BEST}", min(some), least, True)] if some else []


def _floats(results: dict[str, Any]) -> Found:
    """Products of f32: the tiny ones, the large ones, those of few rows, the least of all; 16 cubed, nothing bound."""
    tiny = results.get("tiny", [])
    rows = [*results.get("square", []), *results.get("deepbench", [])]
    few = [r for r in rows if int(r["name"].partition("x")[0]) <= FEW]
    large = [r for r in rows if r not in few and r["flops"] >= LARGE]
    found = _mean("tiny products", tiny, 3.0) + _mean("large products", large, 1.0)
    found += _mean(f"products of up to {FEW} rows", few, 0.95) + _worst("products", [*tiny, *rows], NEVER[0])
    for row in (r for r in tiny if r["name"] == "16x16x16" and "numpy" in r["against"]):
        theirs = row["times"][row["against"]["numpy"]["form"]]["best"]
        got = theirs / row["times"]["isam"]["best"]
        found.append(("product 16x16x16, nothing bound, against NumPy", got, 5.0, True))
    return found


def _narrow(results: dict[str, Any]) -> Found:
    """Products of bf16 against oneDNN, of bytes against the best peer, each of its own."""
    found: Found = []
    asked = (("bf16", "onednn", "oneDNN", 1.15, 1.5), ("int8", BEST, BEST, 1.3, 1.3))
    for group, library, words, large, least in asked:
        for row in results.get(group, []):
            want = least if row["name"].startswith("256x") else large
            if got := _got(row, library):
                found.append((f"product {row['name']} against {words}", got, want, True))
    return found


def _convolutions(results: dict[str, Any]) -> Found:
    """Both readings of "weighted by FLOPs" against the library that was named, and the slowest layer of each list."""
    found: Found = []
    names = {"onednn": "oneDNN", "libxsmm": "LIBXSMM"}
    for group, (words, library, least) in RESNET50.items():
        what = f"convolutions of ResNet-50{words}"
        w = results["weighted"].get(f"{group} against {library}", {})
        found += [(f"{what} against {names[library]}, {r}", w[r], least, True)
                  for r in ("mean of ratios", "total over total") if w]  # fmt: skip
        found += _worst(what, results.get(group, []), NEVER[1])
    return found


def _cases(results: dict[str, Any]) -> Found:
    """Geometric means per kernel; of recurrent units of f32 per batch."""
    kernels: dict[str, list[Row]] = {}
    for row in (r for g in GROUPS for r in results.get(g, []) if isinstance(GROUPS[g][0], Case)):
        kernels.setdefault(row["name"].partition(" ")[0], []).append(row)
    found: Found = []
    for kernel, least in MEANS.items():
        found += _mean(kernel, kernels.get(kernel, []), least)
    for batch, least in GRU.items():
        rows = [r for r in kernels.get("gru", []) if int(r["name"].split("x")[1]) == batch]
        found += _mean(f"gru of batch {batch}", rows, least)
    return found + _worst("blocks", kernels.get("block", []), NEVER[2])


def _compilations(results: dict[str, Any]) -> Found:
    """The slowest of a warm process: products and convolutions of f32, by whether registers divide them; the others."""
    ragged = {s.name: s.ragged for shapes in GROUPS.values() for s in shapes if not isinstance(s, Case)}
    taken: dict[str, list[float]] = {}
    for row in (r for g in GROUPS for r in results.get(g, []) if r["name"] in ragged):
        even = "of f32, ragged" if ragged[row["name"]] else "of f32"
        kind = "of bf16 or bytes" if row["name"].endswith(("bf16", "int8")) else even
        taken.setdefault(kind, []).append(row["compile"]["total"])
    wanted = {"of f32": 0.15, "of f32, ragged": 0.25, "of bf16 or bytes": 0.5}
    return [(f"slowest compilation of a product or a convolution {kind}, seconds", max(taken[kind]), want, False)
            for kind, want in wanted.items() if kind in taken]  # fmt: skip
