"""The ratios that were asked for, per shape, and the rows of results seen as ratios to their best peer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from .targets import GRU, RESNET50
from .targets import MEANS as KERNELS

MEANS = {"tiny": 3.0, **{group: least for group, (_, _, least) in RESNET50.items()}}
EACH = {"square": 0.9, "deepbench": 0.9, "bf16": 1.15, "int8": 1.3}
SINGLE = {("tiny", "16x16x16"): 5.0, ("bf16", "256x256x256 bf16"): 1.5}
TITLES = {
    "tiny": "Tiny products", "square": "Square products", "deepbench": "Products of DeepBench",
    "bf16": "Products of bf16", "int8": "Products of bytes", "resnet50": "Convolutions of ResNet-50",
    "resnet50x28": "Convolutions of ResNet-50, 28 images", "depthwise": "Depthwise convolutions",
    "resnet50-bf16": "Convolutions of ResNet-50 in bf16", "blocks": "Depthwise and pointwise blocks",
    "attention": "Attention", "gru": "Gated recurrent units", "blocks-bf16": "Depthwise and pointwise blocks in bf16",
    "attention-bf16": "Attention in bf16", "gru-bf16": "Gated recurrent units in bf16",
    "softmax": "Softmax", "layer_norm": "Layer normalisation", "bias_gelu": "GELU after a bias",
}  # fmt: skip
SAID = {"bf16", "int8", "softmax", "layer_norm", "bias_gelu"}  # in a title
SAID |= {k + kind for k in ("depthwise", "block", "attention", "gru") for kind in ("", "_bf16")}


@dataclass(frozen=True)
class Row:
    """A measured shape: how many times as fast as its best peer it is, what was asked for, how much it counts."""

    group: str
    name: str
    ratio: float
    peer: str
    asked: float
    work: float
    row: dict[str, Any]

    @property
    def short(self) -> str:
        """Its name without what the title of its panel says."""
        return " ".join(w for w in self.name.split() if w not in SAID) or self.name


def asked(group: str, name: str) -> float:
    """What was asked of a shape, or of the mean that it belongs to."""
    kernel, _, sizes = name.partition(" ")
    if kernel == "gru":
        return GRU[int(sizes.split("x")[1])]
    if kernel in KERNELS:
        return KERNELS[kernel]
    return SINGLE.get((group, name)) or {**MEANS, **EACH}.get(group, 1.0)


def rows(results: dict[str, Any], groups: Iterable[str]) -> Iterator[Row]:
    """The measured shapes that have a peer; of several peers the one that is fastest counts."""
    for group in groups:
        for row in results.get(group) or ():
            if row["against"]:
                library, best = min(row["against"].items(), key=lambda item: item[1]["best"])
                yield Row(group, row["name"], best["best"], library, asked(group, row["name"]),
                          row["count"] * row["flops"], row)  # fmt: skip


def verdict(some: list[Row]) -> str:
    """Of the shapes of a panel, what was asked of them and what was measured: the mean (weighted by work where it is of
    the layers of a network), or the least."""
    group = some[0].group
    if group in EACH:
        wants = sorted({r.asked for r in some})
        want = " to ".join(f"{w:g}" for w in dict.fromkeys((wants[0], wants[-1])))
        good = all(r.ratio >= r.asked for r in some)
        return f"least {_plain(min(r.ratio for r in some))}, asked for {want} each: {_said(good)}"
    if group.startswith("resnet50"):
        mean = sum(r.ratio * r.work for r in some) / sum(r.work for r in some)
    else:
        mean = geometric_mean([r.ratio for r in some])
    want = MEANS.get(group) or some[0].asked
    return f"mean {_plain(mean)}, asked for {want:g}: {_said(mean >= want)}"


def _plain(ratio: float) -> str:
    return f"{ratio:.2f}" if 0.005 <= ratio < 1000 else f"{ratio:.1e}"


def _said(reached: bool) -> str:
    return "reached" if reached else "missed"
