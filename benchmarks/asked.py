"""The rows of results seen as ratios to their best peer, and beside them what was asked for (``targets``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .measure import BEST, ratio_to
from .peers import printed
from .targets import Target, speeds

TITLES = {
    "tiny": "Tiny products", "square": "Square products", "deepbench": "Products of DeepBench",
    "bf16": "Products of bf16", "int8": "Products of bytes", "resnet50": "Convolutions of ResNet-50",
    "resnet50x28": "Convolutions of ResNet-50, 28 images", "depthwise": "Depthwise convolutions",
    "resnet50-bf16": "Convolutions of ResNet-50 in bf16", "blocks": "Depthwise and pointwise blocks",
    "attention": "Attention", "gru": "Gated recurrent units", "blocks-bf16": "Depthwise and pointwise blocks in bf16",
    "attention-bf16": "Attention in bf16", "gru-bf16": "Gated recurrent units in bf16",
    "softmax": "Softmax", "layer_norm": "Layer normalisation", "bias_gelu": "GELU after a bias",
    "layouts": "Layouts turned", "interleaved": "Elements apart from each other",
    "terms": "Sums of several products",
    "scans": "Running sums, filters along rows", "algebra": "Linear algebra",
}  # fmt: skip
SAID = {"bf16", "int8", "softmax", "layer_norm", "bias_gelu"}  # in a title
SAID |= {k + kind for k in ("depthwise", "block", "attention", "gru") for kind in ("", "_bf16")}


BESIDE = {"resnet50", "resnet50x28"}  # groups whose pictures show references


@dataclass(frozen=True)
class Row:
    """A measured shape: how many times as fast as its best peer it is, which form of whom that is, and how many times
    as fast as that what was asked for is, if anything was, and every reference by its printed name."""

    group: str
    name: str
    ratio: float
    form: str
    asked: float | None
    beside: tuple[tuple[str, float], ...]
    row: dict[str, Any]

    @property
    def peer(self) -> str:
        """The best peer's name as it is printed."""
        return printed(self.form)

    @property
    def short(self) -> str:
        """Its name without what the title of its panel says."""
        return " ".join(w for w in self.name.split() if w not in SAID) or self.name


def rows(results: dict[str, Any], groups: Iterable[str]) -> Iterator[Row]:
    """The measured shapes that have a peer."""
    targets = speeds(results)
    for group in groups:
        for row in results.get(group) or ():
            if best := ratio_to(row, BEST):
                ratio = best["best"]
                others = row.get("references", {}) if group in BESIDE else {}
                beside = tuple((printed(n), ratio / found["best"]) for n, found in others.items())
                yield Row(group, row["name"], ratio, best["form"], _asked(group, row, ratio, targets), beside, row)


def _asked(group: str, row: dict[str, Any], ratio: float, targets: list[Target]) -> float | None:
    """Of the targets that the row is among, that of the fewest rows: so many times as fast as the best peer, also where
    it is against another library."""
    among = [t for t in targets if (group, row["name"]) in t.rows and not t.plain]
    if not among:
        return None
    target = min(among, key=lambda t: len(t.rows))
    found = ratio_to(row, target.library)
    return target.want * ratio / found["best"] if found else None


def verdicts(some: list[Row], targets: list[Target]) -> list[str]:
    """What was asked of the shapes of a panel, or of more shapes that these are among, and whether it was reached: a
    line per target, one for those that are each of one shape."""
    names = {(r.group, r.name) for r in some}
    lines: dict[str, list[Target]] = {}
    for target in targets:
        if names & set(target.rows):
            lines.setdefault(target.short, []).append(target)
    return [_line(short, found) for short, found in lines.items()]


def _line(short: str, found: list[Target]) -> str:
    wants = sorted({t.want for t in found})
    want = " to ".join(f"{w:g}" for w in dict.fromkeys((wants[0], wants[-1])))
    if short.startswith("each"):
        return f"{short}, asked for {want}: {sum(t.reached for t in found)} of {len(found)} reached"
    (target,) = found
    return f"{short} {plain(target.got)}, asked for {want}: {'reached' if target.reached else 'missed'}"


def plain(ratio: float) -> str:
    """A ratio in few digits."""
    return f"{ratio:.2f}" if 0.005 <= ratio < 1000 else f"{ratio:.1e}"
