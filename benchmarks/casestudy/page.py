"""The results as text, as a page with a picture."""

from __future__ import annotations

from html import escape
from math import log2
from typing import Any

from .experiment import CLASSES, LIMITS, TRIES, far, kind

PAGE = """\
<!-- generated: python -m benchmarks.casestudy --page -->
# Products on the case study's machine

`python -m benchmarks.casestudy --keep` computes this anew (paper, 6.2.1). The machine is
[casestudy](../hwdesc/casestudy/README.md), *inspired by* the paper's from public facts; its open numbers were decided
before and are frozen. The library is three padded tilings written by hand
([how](../benchmarks/casestudy/README.md)), the best per size being taken, frozen too. Times are those of
`isam.cost.timeline`; nothing here was measured on hardware. The bound is that of `isam.cost.floor`: full calls on all
units, what must cross a link, what comes and goes because scratchpads are small; no unit works before its first
operands can be there, and its last results go home. ISAM's schedule is the quickest of {tries} made (Approach
`best-first`, all timed by the timeline, as the library's tilings are), proved before it counts; what the first alone
reaches (`greedy`) is said below, too. Where a product has fewer blocks of results than the machine has units, sums are
split over the clusters (partial results in main memory, added up afterwards) if a schedule of that takes less time; the
library's tilings do not split sums. A link's bandwidth is split between loads and stores by what they carry in all: of
a product bound by loads, the result goes out slowly at the end, and nothing hides it.

{summary}

## Ratios

The library's time over ISAM's: {classes}.
{judged} sizes, DeepBench's and awkward ones; the library's own are apart.

| | {names} |
|---|{dashes}
| with main memory's traffic | {outside} |
| without | {inside} |

![distance to the bound](drawings/casestudy.svg)

## Every size

*far*: times the bound, ISAM's and the library's. *mx*: the share of the time in which the matrix units of all clusters
had work. *inside*: the ratio without main memory's traffic. *cpu*: seconds to schedule once and prove, on {cpu}.

{table}
"""


def facts(s: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What is asked for: name, reached, limit."""
    own, isam, library = s["own, least ratio"], s["isam"], s["library"]
    return [
        (f"median distance to the bound, {isam['large']} large sizes", f"{isam['large, median']:.2f}",
         f"{LIMITS['large']}"),
        ("largest of them", f"{isam['large, worst']:.2f}", ""),
        ("median distance over all", f"{isam['all, median']:.2f}", f"{LIMITS['all']}"),
        ("the same of the first schedule alone", f"{s['first, median']:.2f}", ""),
        ("the library's: large, all", f"{library['large, median']:.2f}, {library['all, median']:.2f}", ""),
        ("ratio to the library on its own sizes: least, median", f"{own:.2f}, {s['own, median ratio']:.2f}",
         f"{LIMITS['own']}"),
        ("steps of pairs in which both units work, median", f"{s['both']:.1%}", ""),
        ("CPU seconds to look for the quickest: median, most", _both(s["cpu"]["search"]), ""),
        ("CPU seconds to schedule once: median, most", _both(s["cpu"]["schedule"]), ""),
        ("CPU seconds to prove: median, most", _both(s["cpu"]["prove"]), ""),
        ("sizes without a proved schedule", str(s["refused"]), "0"),
    ]  # fmt: skip


def _both(v: dict[str, float]) -> str:
    return f"{v['median']:.2f}, {v['most']:.2f}"


def cells(r: dict[str, Any]) -> list[str]:
    """A row of the table."""
    size = " x ".join(map(str, r["size"]))
    if "isam" not in r:
        return [r["set"], size, "-", "-", "-", "-", r["tiling"], "-", "-", r["refused"], "-"]
    first = [r["set"], size, f"{1e6 * r['least']:.3g}", r["bound by"]]
    cpu = r["cpu"]["schedule"] + r["cpu"]["prove"]
    busy = r["isam"]["busy"].get("mx0", 0.0), r["isam"]["busy"].get("mx1", 0.0)
    return [*first, f"{far(r, 'isam'):.2f}", f"{far(r, 'library'):.2f}", r["tiling"], f"{r['ratio']:.2f}",
            f"{r['ratio inside']:.2f}", f"{busy[0]:.0%}, {busy[1]:.0%}", f"{cpu:.1f}"]  # fmt: skip


HEAD = ["set", "M x N x K", "bound, us", "by", "far", "library", "tiling", "ratio", "inside", "mx0, mx1", "cpu"]


def shown(result: dict[str, Any]) -> str:
    """For the terminal."""
    s, rows = result["summary"], [HEAD, *map(cells, result["rows"])]
    wide = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, wide, strict=True)).rstrip() for r in rows]
    lines += ["", *(f"{n}: {v}" + (f" (asked for: {limit})" if limit else "") for n, v, limit in facts(s))]
    for key, words in (("ratio", "with main memory's traffic"), ("ratio inside", "without")):
        lines.append(f"{words}: " + ", ".join(f"{c} {n}" for c, n in s[key].items()))
    return "\n".join(lines)


def page(result: dict[str, Any]) -> str:
    """For the documentation."""
    s = result["summary"]
    table = ["| " + " | ".join(HEAD) + " |", "|---" * 2 + "|---:|---|---:|---:|---|---:|---:|---:|---:|"]
    table += ["| " + " | ".join(cells(r)) + " |" for r in result["rows"]]
    lines = ["| | reached | asked for |", "|---|---:|---:|", *(f"| {n} | {v} | {limit} |" for n, v, limit in facts(s))]
    ends = [f"{c} below {CLASSES[i + 1][1]}" for i, (c, _) in enumerate(CLASSES[:-1])]
    ends.append(CLASSES[-1][0] + " from there on")
    counts = {k: " | ".join(str(n) for n in s[k].values()) for k in ("ratio", "ratio inside")}
    return PAGE.format(summary="\n".join(lines), classes=", ".join(ends), judged=sum(s["ratio"].values()),
                       names=" | ".join(s["ratio"]), dashes="---:|" * len(CLASSES), outside=counts["ratio"],
                       inside=counts["ratio inside"], table="\n".join(table), cpu=result["machine"]["cpu"],
                       tries=TRIES)  # fmt: skip


LEFT, WIDE, ROW, TOP = 170, 560, 14, 72
ACROSS = "predicted time of a product, in multiples of the bound (logarithmic)"
INKS = {"isam": "#1b6ca8", "library": "#d1495b"}


def picture(result: dict[str, Any]) -> str:
    """Per size the distance of both to the bound, on a logarithmic axis; the gap between them is the ratio."""
    rows = [r for r in result["rows"] if "isam" in r]
    most = max([2.0, *(far(r, who) for r in rows for who in INKS)])
    high = TOP + ROW * len(rows) + 10

    def x(value: float) -> float:
        return LEFT + WIDE * log2(max(1.0, value)) / log2(most)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDE + 30} {high}" '
             f'font-family="sans-serif" font-size="10">',
             f'<rect width="{LEFT + WIDE + 30}" height="{high}" fill="white"/>',
             f'<text x="{LEFT}" y="18" font-size="14">Distance to the bound</text>',
             f'<text x="{LEFT}" y="{TOP - 34}">{ACROSS}</text>',
             f'<text x="{LEFT - 8}" y="{TOP - 16}" text-anchor="end">M x N x K, set</text>']  # fmt: skip
    for n, (who, ink) in enumerate(INKS.items()):
        at = LEFT + 190 + 90 * n
        parts.append(f'<circle cx="{at}" cy="14" r="4" fill="{ink}"/><text x="{at + 8}" y="18">{who}</text>')
    for tick in (v for v in (1, 1.15, 1.5, 2, 4, 8, 16, 32, 64) if v <= most):
        parts.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP - 12}" y2="{high - 8}" stroke="#ddd"/>'
                     f'<text x="{x(tick):.1f}" y="{TOP - 16}" text-anchor="middle">{tick:g}</text>')  # fmt: skip
    for n, r in enumerate(rows):
        y = TOP + ROW * n
        name = escape("x".join(map(str, r["size"])) + f", {r['set']}")
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{name}</text>')
        parts += [f'<circle cx="{x(far(r, who)):.1f}" cy="{y}" r="4" fill="{ink}" fill-opacity="0.8">'
                  f"<title>{kind(r['ratio'])}</title></circle>" for who, ink in INKS.items()]  # fmt: skip
    return "\n".join([*parts, "</svg>", ""])
