"""What every cell of the table is expected to be, derived from what was worked out on paper, not from the kernels.

``roles.txt`` says which axes index what in every sum of products, ``operations.txt`` what else a kernel does. The rules
below are the sub-matrix rule for an instruction with one loop nest (MAP-2), told in these terms: an axis of the
instruction is played by an axis that indexes the same arrays, with coefficient one, and no two of them share a row.
``exceptions.txt`` holds the cells that the rules do not reach, each with its reason, ``corrections.txt`` those in which
the first run showed that paper was wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from pathlib import Path

FOLDER = Path(__file__).parent
ARRAYS = {"I": "yx", "J": "yw", "K": "xw", "L": "yxw", "S": "x"}
UNIT = frozenset({"add-unit-axis"})


@dataclass(frozen=True)
class Expected:
    """``kind``: mapped, needs or impossible. ``count``: (roles, axes) pairs, None where paper does not say; ``laws``:
    those of a shortest chain; ``mismatch``: the kind of the deepest report; ``because``: why, in a few words."""

    kind: str
    count: int | None = None
    laws: frozenset[str] = frozenset()
    mismatch: str = ""
    because: str = ""

    def __str__(self) -> str:
        if self.kind == "mapped":
            return "mapped" if self.count is None else f"mapped {self.count}"
        detail = " + ".join(sorted(self.laws)) if self.kind == "needs" else self.mismatch
        return f"{self.kind}: {detail}" + (f" because {self.because}" if self.because else "")


def mapped(count: int | None = None) -> Expected:
    return Expected("mapped", count)


def needs(*laws: str) -> Expected:
    return Expected("needs", laws=frozenset(laws))


def impossible(mismatch: str, because: str = "") -> Expected:
    return Expected("impossible", mismatch=mismatch, because=because)


# sums of products -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sum:
    """One line of ``roles.txt``: (axis, role, arrays with another coefficient); pairs that share a row of an array."""

    axes: tuple[tuple[str, str, str], ...]
    clashes: frozenset[tuple[str, str, str]]
    tags: frozenset[str]

    def of(self, role: str) -> list[str]:
        return [a for a, r, _ in self.axes if r in role]

    def bad(self, axis: str) -> str:
        return next(b for a, _, b in self.axes if a == axis)

    @property
    def rank(self) -> int:
        """Dimensions of the result: axes that share a row count once."""
        shared = sum(c[0] == "y" for c in self.clashes) + sum("y" in self.bad(a) for a in self.of("IJL"))
        return len(self.of("IJL")) - shared

    def clash(self, a: str, b: str, arrays: str) -> bool:
        return any((x, p, q) in self.clashes for x in arrays for p, q in ((a, b), (b, a)))

    def plays(self, roles: str, *, anyhow: bool = False) -> int:
        """In how many ways the axes of an instruction with these roles can be chosen, both orders of the factors."""
        found = 0
        for swap in (False, True):
            wanted = roles.translate(str.maketrans("IJ", "JI")) if swap else roles
            for chosen in permutations([a for a, _, _ in self.axes], len(wanted)):
                found += self._fits(chosen, wanted, anyhow)
            if "same" in self.tags:
                break
        return found

    def _fits(self, chosen: tuple[str, ...], wanted: str, anyhow: bool) -> bool:
        for a, role in zip(chosen, wanted, strict=True):
            if a not in self.of(role) or (not anyhow and set(self.bad(a)) & set(ARRAYS[role])):
                return False
        pairs = ((a, b) for n, a in enumerate(chosen) for b in chosen[:n])
        return not any(self.clash(a, b, "yxw") for a, b in pairs)


@cache
def sums() -> dict[str, dict[str, tuple[Sum, ...]]]:
    """Kernel -> law ('' for the kernel as it is) -> its sums of products."""
    found: dict[str, dict[str, list[Sum]]] = {}
    for line in _lines("roles.txt"):
        name, rest = line.split(":", 1)
        name, _, law = (p.strip() for p in name.partition(">"))
        found.setdefault(name, {}).setdefault(law, []).append(_sum(rest))
    return {n: {law: tuple(s) for law, s in by.items()} for n, by in found.items()}


def _sum(text: str) -> Sum:
    clashes = frozenset(re.findall(r"\(([yxw])~(\w+) (\w+)\)", text))
    parts = re.sub(r"\([^)]*\)", "", text).split("|")
    axes, tags = [], set()
    for part in parts:
        role, *names = part.split()
        for n in names:
            if n in ("raw", "same", "bias", "noinit", "later", "domain"):
                tags.add(n)
            else:
                axis, _, bad = n.partition("!")
                axes.append((axis, role, bad))
    return Sum(tuple(axes), clashes, frozenset(tags))


def _lines(name: str) -> list[str]:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


PRODUCTS = {
    "product": "IJK", "product.b": "IJK", "product.i8": "IJK", "product.new": "IJK", "gemv": "IK", "gemv.b": "IK",
    "rowdot.b": "LK", "dot": "K", "dot.new": "K", "outer": "IJ", "fma": "L", "axpy": "J", "batched": "LIJK",
}  # fmt: skip
NARROW = ("product.b", "product.i8", "product.new", "gemv.b", "rowdot.b", "tile.b")
FLOATS = (
    "attention", "causal_attention", "softmax", "layer_norm", "batch_norm_inference", "rnn", "rnn_step", "gru_step",
    "lstm_step", "gru", "lstm", "stencil", "max_pool", "multi_query_attention", "heat1d", "global_max_pool", "rms_norm",
    "log_softmax", "gelu_erf",
)  # fmt: skip
"""Kernels that make no sense in integers: they stay as they are."""


def _usable(s: Sum, key: str) -> bool:
    if key in NARROW and "raw" not in s.tags:
        return False
    fresh = not s.tags & {"bias", "noinit", "later", "domain"} and len(s.of("KS")) == 1
    return fresh or not key.endswith(".new")


def _product(kernel: str, key: str) -> Expected:
    known = sums().get(kernel, {})
    if not known or (key == "product.i8" and kernel in FLOATS):
        return impossible("operation", "nothing sums up products")
    roles = PRODUCTS[key]
    total = sum(s.plays(roles) for s in known[""] if _usable(s, key))
    if total:
        return mapped(total)
    for law in ("factor", "narrow"):
        if any(s.plays(roles) for s in known.get(law, ()) if _usable(s, key)):
            return needs(law)
    ready = [s for s in known[""] if key not in NARROW or "raw" in s.tags]
    if not ready:
        return impossible("operation", "a factor is made by the kernel itself, in the wide type")
    if key.endswith(".new") and any(s.plays(roles) for s in ready):
        return _not_new(ready)
    if all(len(s.axes) < len(roles) for s in ready):
        return needs("add-unit-axis")
    if any(s.plays(roles, anyhow=True) for s in ready):
        return impossible("coefficient", "an axis has a step")
    return impossible(_nearest(ready, roles))


def _not_new(ready: list[Sum]) -> Expected:
    tags = frozenset[str]().union(*(s.tags for s in ready))
    if "noinit" in tags:
        return impossible("operation", "nothing is set to zero")
    if "bias" in tags:
        return impossible("literal", "the sum starts from something else than zero")
    why = "the zero is written over another domain" if "domain" in tags else "further axes are summed over"
    return impossible("domain", why)


def _nearest(ready: list[Sum], roles: str) -> str:
    """What stands in the way of the first role that nothing plays: the axis with the fewest wrong arrays says it."""
    worst = "axis-missing"
    for s in ready:
        for role in roles:
            if s.of(role) and any(s.plays(role) for _ in (0,)):
                continue
            spare = [(len(set(ARRAYS[r]) ^ set(ARRAYS[role])), bool(set(ARRAYS[r]) - set(ARRAYS[role])))
                     for _, r, _ in s.axes]  # fmt: skip
            if spare and min(spare)[1]:
                worst = "extra-dependence"
        if all(s.plays(role) for role in roles):
            worst = "extra-dependence"
    return worst


# everything else ------------------------------------------------------------------------------------------------------


@cache
def operations() -> dict[str, dict[str, str]]:
    """Kernel -> token -> its argument, as ``operations.txt`` and the sums of products say."""
    found: dict[str, dict[str, str]] = {}
    for line in _lines("operations.txt"):
        name, rest = line.split(":", 1)
        tokens = re.findall(r"(sum|max)\(([^)]*(?:\([^)]*\)[^)]*)*)\)(domain)?|(\S+)", rest)
        found[name] = {(t[0] or t[3]): t[1] + t[2] for t in tokens}
    for name, by in sums().items():
        mine = found.setdefault(name, {})
        for s in by[""]:
            for token, there in (("mul.vv", any(not set(s.bad(a)) & set("xw") for a in s.of("KL"))),
                                 ("mul.vs", any(set(s.bad(a)) <= {"y"} for a in s.of("IJS"))),
                                 ("add.vv", any("y" not in s.bad(a) for a in s.of("IJL")))):  # fmt: skip
                if there:
                    mine.setdefault(token, "")
            mine.setdefault("mul", "")
            mine.setdefault("add", "")
    return found


def _tokens(kernel: str, stem: str) -> list[int]:
    """The numbers behind tokens like ``copy2``."""
    return [int(m[1]) for t in operations().get(kernel, {}) if (m := re.fullmatch(rf"{stem}(\d)", t))]


def _elementwise(kernel: str, key: str) -> Expected:
    mine = operations().get(kernel, {})
    op, form = key.split(".")
    if key in mine:
        return mapped()
    if not any(t.split(".")[0] == op for t in mine):
        return impossible("operation")
    if form == "row":
        return impossible("extra-dependence", "both sources have both axes")
    return impossible("axis-missing" if form == "vv" else "extra-dependence", "the sources have other axes")


def _function(kernel: str, key: str) -> Expected:
    ranks = _tokens(kernel, key)
    if 2 in ranks:
        return mapped()
    return needs("add-unit-axis") if 1 in ranks else impossible("operation")


def _zeroed(kernel: str) -> list[int]:
    """Ranks of what is set to zero."""
    ranks = [s.rank for s in sums().get(kernel, {}).get("", ()) if not s.tags & {"bias", "noinit", "later"}]
    return [*ranks, *_tokens(kernel, "zero")]


def _moves(kernel: str, key: str) -> Expected:
    if key == "zero":
        ranks = _zeroed(kernel)
        if any(r >= 2 for r in ranks):
            return mapped()
        if ranks:
            return needs("add-unit-axis")
        mine = operations().get(kernel, {})
        return impossible("literal" if {"copy1", "copy2", "bcast1"} & set(mine) else "operation")
    if key == "copy.all":
        some = [r for r in [*_zeroed(kernel), *_tokens(kernel, "fill"), *_tokens(kernel, "bcast")] if r]
        if some:
            return mapped()
        if _tokens(kernel, "copy"):
            return impossible("extra-dependence", "the source has the same axes")
        return impossible("axis-missing", "a number is set") if _zeroed(kernel) else impossible("operation")
    wanted = 1 if key == "copy1" else 2
    ranks = _tokens(kernel, "copy")
    if any(r >= wanted for r in ranks):
        return mapped()
    if ranks:
        return needs("add-unit-axis")
    numbers = _zeroed(kernel) + _tokens(kernel, "fill")
    return impossible("literal", "only numbers are copied") if numbers else impossible("operation")


def _plain(kernel: str, token: str) -> Sum | None:
    text = operations().get(kernel, {}).get(token)
    if not text or "/" not in text:
        return None
    result, summed = re.sub(r"\([^)]*\)|domain", "", text).split("/")
    axes = [(n.rstrip("!"), "I", "x" * n.endswith("!")) for n in result.split()]
    axes += [(n, "S", "") for n in summed.split()]
    shared = frozenset(("x", a, b) for a, b in re.findall(r"\((\w+) (\w+)\)", text))
    return Sum(tuple(axes), shared, frozenset({"domain"} if "domain" in text else ()))


def _reduction(kernel: str, key: str) -> Expected:
    token, form = key.split(".")
    plain = _plain(kernel, token)
    products = sums().get(kernel, {}).get("", ()) if token == "sum" else ()
    if plain is None and not products:
        return impossible("operation")
    every = [*products, *([plain] if plain else [])]
    if form == "new":
        found = sum(len(s.of("KS")) == 1 and not s.tags & {"noinit", "later", "domain"} for s in every)
        return mapped(found) if found else impossible("domain", "it starts elsewhere, or further axes are summed over")
    found = 0
    for s in products:
        found += sum("y" not in s.bad(a) for a in s.of("IJL")) * len(s.of("KS"))
    if plain:
        rows = [a for a in plain.of("I") if not plain.bad(a)]
        found += sum(not plain.clash(a, b, "x") for a in rows for b in plain.of("S"))
    if found:
        return mapped(found)
    return impossible("axis-missing", "no axis of the result, or none that is summed over")


UNITS = {
    "gemm+bias+relu": {"bias_relu_matmul": 1},
    "conv2d.s1": {"conv2d": 2, "conv2d_nhwc": 2, "conv2d_nchw": 2, "padded_conv2d_where": 2, "padded_conv2d_temp": 2,
                  "grouped_conv2d": 2, "conv3d": 6, "conv2d_dw": 2, "grouped_conv2d_dw": 2, "conv3d_dw": 6},
    "conv2d.s2": {"conv2d_nchw/stride=2": 2, "conv2d_dw/dilation=2": 2, "transposed_conv2d_dx": 2},
    "conv2d+bias+relu": {"conv2d": 2},
    "conv1d": {"conv1d": 1, "grouped_conv1d": 1, "conv2d": 6, "conv2d_nhwc": 6, "conv2d_nchw": 6, "conv1d_dw": 1,
               "padded_conv2d_where": 6, "padded_conv2d_temp": 6, "grouped_conv2d": 6, "conv3d": 21, "conv2d_dw": 6,
               "multiplier_conv2d": 2, "grouped_conv2d_dw": 6, "conv3d_dw": 21, "multiplier_conv2d_dw": 2},
    "conv3d": {"conv3d": 6, "conv3d_dw": 6},
    "depthwise2d": {"depthwise_conv2d": 2, "depthwise_conv3d": 6, "multiplier_conv2d": 2, "grouped_conv2d": 2,
                    "grouped_conv2d_dw": 2},
    "transposed2d": {"transposed_conv2d": 2, "conv2d_dx/stride=2": 2, "conv2d_dx/dilation=2": 2},
    "pool.max": {"max_pool": 4}, "pool.sum": {"sum_pool": 4}, "softmax": {"softmax": 1}, "gelu": {"gelu_erf": 2},
    "product.sat": {}, "gemm.requant": {}, "outer.minus": {}, "narrow": {}, "merge": {}, "tile.b": {},
}  # fmt: skip
"""Mappings on the units that do one thing, counted by hand: which kernels are it, up to exchanges of like axes."""

SHAPED = ("conv2d.s1", "conv2d.s2", "conv1d", "conv3d", "depthwise2d", "transposed2d")


def _unit(kernel: str, key: str) -> Expected:
    count = UNITS[key].get(kernel)
    if count:
        return mapped(count)
    if key == "tile.b":
        whole = [s for law in ("", "factor") for s in sums().get(kernel, {}).get(law, ()) if "raw" in s.tags]
        if any(s.plays("IJK") and _groups(s) for s in whole):
            return needs("split-axis", "split-dimension")
        return impossible("coefficient" if whole else "operation")
    if key in SHAPED and sums().get(kernel):
        return _shape(kernel)
    return impossible("operation")


def _groups(s: Sum) -> bool:
    """Some summed axis is no filter tap, so that it can be cut into groups."""
    return any(a not in ("r", "s", "q") for a in s.of("K"))


def _shape(kernel: str) -> Expected:
    stepped = re.search(r"stride|dilation|transposed", kernel)
    return impossible("coefficient" if stepped else "axis-missing", "no rows of that shape")


def rule(kernel: str, key: str) -> Expected:
    """What the rules say of a cell."""
    if key in PRODUCTS:
        return _product(kernel, key)
    if key in UNITS:
        return _unit(kernel, key)
    if key in ("sum.rows", "max.rows", "sum.new", "max.new"):
        return _reduction(kernel, key)
    if key in ("zero", "copy1", "copy2", "copy.all"):
        return _moves(kernel, key)
    if key == "relu":
        return mapped() if "relu2" in operations().get(kernel, {}) else impossible(
            "literal" if "max.vv" in operations().get(kernel, {}) else "operation")  # fmt: skip
    if "." in key:
        return _elementwise(kernel, key)
    return _function(kernel, key)


@cache
def written(name: str) -> list[tuple[str, str, Expected, str]]:
    """The lines of ``exceptions.txt`` or ``corrections.txt``: kernels | columns | result | reason, with patterns."""
    out = []
    for line in _lines(name):
        kernels, columns, result, reason = (p.strip() for p in line.split("|"))
        kind, _, detail = result.partition(" ")
        kind = kind.rstrip(":")
        if kind == "mapped":
            made = mapped(int(detail) if detail else None)
        else:
            made = needs(*detail.split(" + ")) if kind == "needs" else impossible(detail, reason)
        out.append((kernels, columns, made, reason))
    return out


def expected(kernel: str, key: str) -> Expected:
    """Corrections before exceptions before rules; of several lines the last counts."""
    found = rule(kernel, key)
    for name in ("exceptions.txt", "corrections.txt"):
        for kernels, columns, made, _ in written(name):
            if _named(kernel, kernels) and _named(key, columns):
                found = made
    return found


@cache
def _named(name: str, patterns: str) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, p) for p in patterns.split())
