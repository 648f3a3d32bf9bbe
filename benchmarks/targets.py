"""The speed that was asked for, and what was measured: ISAM against the best peer of each row, but for the rows that
name one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from .compiling import WARM, compiled_as
from .measure import BEST, ratio_to
from .peers import printed
from .shapes import GROUPS, LARGE, Case

FEW = 4  # rows up to which a product is bound by memory
NEVER = 0.9, 0.8, 1.0  # the least of any product, convolution, block of f32
PRODUCTS = 3.0, 1.0, 0.95  # the means of the tiny, the large, those of few rows
PLAIN = {"16x16x16": ("numpy", 5.0)}  # of tiny products with nothing bound
NARROW = {"bf16": ("onednn", 1.15, 1.5), "int8": (BEST, 1.3, 1.3)}  # each, and the one of 256 cubed
MEANS = {"depthwise": 1.3, "block": 1.2, "block_bf16": 2.0, "gru_bf16": 1.5, "attention": 1.0, "attention_bf16": 1.5,
         "softmax": 1.1, "layer_norm": 1.1, "bias_gelu": 1.1}  # fmt: skip
GRU = {1: 1.0, 4: 1.2, 32: 1.3}  # by batch
RESNET50 = {"resnet50": ("", "onednn", 0.97), "resnet50x28": (" of 28 images", "libxsmm", 1.0),
            "resnet50-bf16": (" in bf16", "onednn", 1.2)}  # fmt: skip
READINGS = {"mean of ratios": "mean", "total over total": "all work over all time"}  # of "weighted by work"
COMPILE = {"compile": ("slowest compilation in a fresh process", 0.5), "import": ("import", 0.35),
           "mapping again": ("slowest mapping, warm process", 0.02),
           "kept": ("slowest compilation whose code was kept", 0.005),
           "load": ("slowest load of an artifact", 0.001)}  # fmt: skip

Row = dict[str, Any]
Placed = tuple[str, Row]  # with its group
Times = list[tuple[str, float, float]]  # what, measured, asked for, in seconds


@dataclass(frozen=True)
class Target:
    """A speed that was asked for. ``short``: what, beside a picture of ``rows``, its groups and names; ``library``:
    against which; ``plain``: with nothing bound, where other figures of these rows have."""

    what: str
    short: str
    got: float
    want: float
    rows: tuple[tuple[str, str], ...]
    library: str = BEST
    plain: bool = False

    @property
    def reached(self) -> bool:
        return self.got >= self.want


def targets(results: dict[str, Any]) -> list[Row]:
    """What was not measured is left out."""
    found = [{"what": t.what, "got": t.got, "want": f"at least {t.want:g}", "reached": t.reached}
             for t in speeds(results)]  # fmt: skip
    times = _compilations(results)
    if rows := results.get("compile"):
        times += [(f"{what}, seconds", max(r["best"][step] for r in rows), limit)
                  for step, (what, limit) in COMPILE.items()]  # fmt: skip
    return [*found, *({"what": what, "got": got, "want": f"under {want:g}", "reached": got < want}
                      for what, got, want in times)]  # fmt: skip


def speeds(results: dict[str, Any]) -> list[Target]:
    """Those of how fast compiled kernels are."""
    return [*_floats(results), *_narrow(results), *_convolutions(results), *_cases(results)]


def _placed(results: dict[str, Any], *groups: str) -> list[Placed]:
    return [(g, r) for g in groups for r in results.get(g, ())]


def _got(row: Row, library: str = BEST) -> float | None:
    found = ratio_to(row, library)
    return found["best"] if found else None


def _names(rows: Iterable[Placed]) -> tuple[tuple[str, str], ...]:
    return tuple((group, row["name"]) for group, row in rows)


def _mean(what: str, rows: list[Placed], least: float, short: str = "mean") -> list[Target]:
    some = [got for _, r in rows if (got := _got(r))]
    what = f"{what} against {BEST}, geometric mean"
    return [Target(what, short, geometric_mean(some), least, _names(rows))] if some else []


def _worst(what: str, rows: list[Placed], least: float, short: str = "slowest") -> list[Target]:
    some = [got for _, r in rows if (got := _got(r))]
    what = f"slowest of all {what} against {BEST}"
    return [Target(what, short, min(some), least, _names(rows))] if some else []


def _floats(results: dict[str, Any]) -> list[Target]:
    """Products of f32: the tiny ones, the large ones, those of few rows, the least of all; 16 cubed, nothing bound."""
    tiny, rows = _placed(results, "tiny"), _placed(results, "square", "deepbench")
    few = [(g, r) for g, r in rows if int(r["name"].partition("x")[0]) <= FEW]
    large = [(g, r) for g, r in rows if (g, r) not in few and r["flops"] >= LARGE]
    found = _mean("tiny products", tiny, PRODUCTS[0])
    found += _mean("large products", large, PRODUCTS[1], "mean of all large products")
    found += _mean(f"products of up to {FEW} rows", few, PRODUCTS[2], f"mean of products of up to {FEW} rows")
    found += _worst("products", [*tiny, *rows], NEVER[0], "slowest of all products")
    for group, row in tiny:
        library, want = PLAIN.get(row["name"], ("", 0.0))
        if library in row["against"]:
            got = row["times"][row["against"][library]["form"]]["best"] / row["times"]["isam"]["best"]
            short = f"{row['name']}, nothing bound, against {printed(library)}"
            found.append(Target(f"product {short}", short, got, want, _names([(group, row)]), library, True))
    return found


def _narrow(results: dict[str, Any]) -> list[Target]:
    """Products of bf16 against oneDNN, of bytes against the best peer, each of its own."""
    found = []
    for group, (library, large, least) in NARROW.items():
        for row in results.get(group, ()):
            want, short = least if row["name"].startswith("256x") else large, f"each against {printed(library)}"
            if got := _got(row, library):
                what = f"product {row['name']} against {printed(library)}"
                found.append(Target(what, short, got, want, _names([(group, row)]), library))
    return found


def _convolutions(results: dict[str, Any]) -> list[Target]:
    """Both readings of "weighted by FLOPs" against the library that was named, and the slowest layer of each list."""
    found: list[Target] = []
    for group, (words, library, least) in RESNET50.items():
        rows, what = _placed(results, group), f"convolutions of ResNet-50{words}"
        w = results.get("weighted", {}).get(f"{group} against {library}", {})
        name, of = printed(library), _names(p for p in rows if _got(p[1], library))
        found += [Target(f"{what} against {name}, {r}", f"{short} against {name}", w[r], least, of, library)
                  for r, short in READINGS.items() if w]  # fmt: skip
        found += _worst(what, rows, NEVER[1])
    return found


def _cases(results: dict[str, Any]) -> list[Target]:
    """Geometric means per kernel; of recurrent units of f32 per batch."""
    kernels: dict[str, list[Placed]] = {}
    for placed in _placed(results, *(g for g, shapes in GROUPS.items() if isinstance(shapes[0], Case))):
        kernels.setdefault(placed[1]["name"].partition(" ")[0], []).append(placed)
    found: list[Target] = []
    for kernel, least in MEANS.items():
        found += _mean(kernel, kernels.get(kernel, []), least)
    for batch, least in GRU.items():
        rows = [(g, r) for g, r in kernels.get("gru", []) if int(r["name"].split("x")[1]) == batch]
        found += _mean(f"gru of batch {batch}", rows, least, f"mean of batch {batch}")
    return found + _worst("blocks", kernels.get("block", []), NEVER[2])


def _compilations(results: dict[str, Any]) -> Times:
    """The slowest of a warm process: products and convolutions of f32, by whether registers divide them; the others."""
    kinds = {s.name: compiled_as(s) for shapes in GROUPS.values() for s in shapes if not isinstance(s, Case)}
    taken: dict[str, list[float]] = {}
    for row in (r for g in GROUPS for r in results.get(g, []) if r["name"] in kinds):
        taken.setdefault(kinds[row["name"]], []).append(row["compile"]["total"])
    return [(f"slowest compilation of a product or a convolution {kind}, seconds", max(taken[kind]), want)
            for kind, want in WARM.items() if kind in taken]  # fmt: skip
