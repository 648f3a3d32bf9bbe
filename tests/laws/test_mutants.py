"""Each condition of a law is needed: a law without it is caught by a kernel made for it (a rule has a mutant that some
test kills). A mutant is the law's own source with one condition edited out."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from isam.ir import oracle
from isam.ir.text import parse
from isam.proof.equivalence import Equivalence
from isam.transforms import ALL
from isam.transforms.law import NoSite, Site
from tests.laws.example_kernels import SUM_TIMES_SUM, masked

FACTOR = """
kernel k()
  in  a: f32[3, 4, 2]
  in  p: f32[3, 4]
  out y: f32[3]
  forall i < 3
    y[i] = 0
  forall i < 3, k < 4, r < 2
    u[i, k, r] = a[i, k, r] * p[i, k]
    y[i] += u[i, k, r]
"""
FACTOR_WHERE = """
kernel k()
  in  a: f32[3, 4]
  in  p: f32[3]
  out y: f32[5]
  forall i < 5
    y[i] = 0
  forall i < 5, j < 3, r < 4 where r <= i
    u[i, j, r] = a[j, r] * p[j]
    y[i] += u[i, j, r]
"""
FACTOR_READ_TWICE = FACTOR.replace("  out y: f32[3]", "  out y: f32[3]\n  out w: f32[3, 4, 2]") + (
    "  forall i < 3, k < 4, r < 2\n    w[i, k, r] = u[i, k, r] + 1\n"
)
FACTOR_WRITTEN_TWICE = """
kernel k()
  in  a: f32[3, 2]
  in  p: f32[3]
  out y: f32[3]
  forall i < 3
    y[i] = 0
  forall i < 3, r < 2
    u[i, r] = a[i, r] * p[i]
  forall i < 3
    u[i, 1] = p[i]
  forall i < 3, r < 2
    y[i] += u[i, r]
"""
NARROW_PARTS = """
kernel k()
  in  x: f32[3]
  out y: f32[3, 4]
  temp t: f32[3, 4]
  forall i < 3, k < 4
    t[i, k] = x[i] + 1
  forall i < 3, k < 2
    t[i, k] = x[i] * x[i]
  forall i < 3, k < 4
    y[i, k] = t[i, k]
"""
NARROW_WHERE = """
kernel k()
  in  x: f32[3]
  out y: f32[3, 4]
  temp t: f32[3, 4]
  forall i < 3, k < 4
    t[i, k] = x[i] + 1
  forall i < 3, k < 4 where k <= i
    t[i, k] = x[i] * x[i]
  forall i < 3, k < 4
    y[i, k] = t[i, k]
"""
NARROW_SOURCE = """
kernel k()
  in  x: f32[3, 4]
  out y: f32[3, 4]
  forall i < 3, k < 4
    t[i, k] = x[i, k] + 1
    y[i, k] = t[i, k] * 2
"""
CHAIN = """
kernel k()
  inout a: f32[4]
  in    b: f32[4]
  in    c: f32[4]
  out   y: f32[4]
  forall i < 4
    t[i] = a[i] * b[i]
    {between}
    {end}
"""
PAD = """
kernel k()
  in  x: f32[6]
  in  w: f32[3]
  out y: f32[6]
  forall i < 6
    y[i] = 0
  forall i < 6, r < 3 where {where}
    y[i] += x[i + r - 1] * w[r]
"""
REVERSED = """
kernel k()
  in  x: f32[6]
  in  w: f32[3]
  out y: f32[6]
  forall i < 6
    y[i] = 0
  forall i < 6, r < 3 where 0 <= i + r - 1, i + r - 1 < 6, 0 <= i - 2
    y[i] += x[i + r - 1] * w[r]
"""

FACTOR_SHIFTED = """
kernel k()
  in  a: f32[8]
  in  p: f32
  out y: f32
  temp u: f32[9]
  y = 0
  forall i < 8
    u[i + 1] = a[i] * p
  forall r < 9 where 1 <= r
    y += u[r]
"""
FACTOR_LOOP = """
kernel k()
  in    a: f32[3, 4]
  in    p: f32[3]
  inout y: f32[5, 3]
  forall i < 3, r < 4
    u[i, r] = a[i, r] * p[i]
  loop t < 5
    forall i < 3, r < 4 where r <= t
      y[t, i] += u[i, r]
"""


def _kernel(*lines: str, loop: str = "") -> str:
    """A kernel on x, w (in), y (out) and h (inout) of 8 elements each, and the temporary t."""
    head = ["kernel k(N)" if any("N" in x for x in lines) else "kernel k()"]
    head += ["  in x: f32[8]", "  in w: f32[8]", "  out y: f32[8]", "  inout h: f32[8]", "  temp t: f32[8]"]
    return "\n".join((*head, "  forall i < 8", "    y[i] = 0", *(f"  {x}" for x in lines))) + "\n"


FUSE = """
kernel k()
  in  x: f32[12, 3, 4]
  out y: f32[12]
  forall i < 12
    y[i] = 1
  forall a < 3, b < 4 where {where}
    y[4 * a + b] = x[4 * a + b, {row}]
"""
UNPAD = """
kernel k()
  inout x: f32[6]
  in    w: f32[3]
  inout y: f32[6]
  temp  p: f32[8]
  forall i < 8
    p[i] = {fill}
  forall i < 6
    p[i + 1] = {copy}
{more}  forall i < 6, k < 3
    y[i] += p[i + k] * w[k]
"""
PEEL = """
kernel k()
  in  a: f32[4, 4]
  out z: f32[4, 4]
  {}
"""

IN_PLACE = """
kernel k()
  in  a: f32[3, 4]
  out y: {y}
  out z: f32[3, 4]
  temp t: f32[3, 4]
  forall i < 3, j < 4
    t[i, j] = a[i, j] + 1
    z[i, j] = {z}
  forall {over}
    y[{to}] = {y_is}
  {end}
"""


def in_place(y: str = "f32[3, 4]", z: str = "t[i, j]", over: str = "i < 3, j < 4", to: str = "i, j",
             y_is: str = "t[i, j] * 2", end: str = "") -> str:  # fmt: skip
    return IN_PLACE.format(y=y, z=z, over=over, to=to, y_is=y_is, end=end)


MUTANTS = [
    # law file, class, condition, edited, kernel
    ("factor", "Factor", "if a not in used_by(factor)]", "]", FACTOR),
    ("factor", "Factor", " or readers(kernel, u) != (n,)", "", FACTOR_READ_TWICE),
    ("factor", "Factor", " or len(made) != 1", "", FACTOR_WRITTEN_TWICE),
    ("factor", "Factor", "        inner |= more\n", "        break\n", FACTOR_WHERE),
    ("factor", "Factor", "tuple(w for w in where if inner & set(w.names))", "()", FACTOR_WHERE),
    ("factor", "Factor", "not (lone(w) and lone(r))", "not lone(r)", FACTOR_SHIFTED),
    ("factor", "Factor", " and same_list", "", FACTOR_LOOP),
    ("narrow", "Narrow", " or s.domain.extent(axis) != size", "", NARROW_PARTS),
    ("narrow", "Narrow", "(*rows, *s.domain.where)", "rows", NARROW_WHERE),
    ("narrow", "Narrow", "(*rows, *s.domain.where)", "s.domain.where", NARROW_SOURCE),
    ("reassociate", "Reassociate", " and _untouched(kernel, made[0], j)", "",
     CHAIN.format(between="a[i] = b[i] + 1", end="y[i] = t[i] * c[i]")),
    ("reassociate", "Reassociate", " or readers(kernel, x.buffer) != (j,)", "",
     CHAIN.format(between="y[i] = t[i] * c[i]", end="a[i] = t[i] + 1")),
    ("reassociate", "Reassociate", "inner.op == s.op", "True",
     CHAIN.format(between="y[i] = 1", end="y[i] = t[i] + c[i]")),
    ("structure.pad", "Pad", "if not all(c in in_range for c in total.domain.where):", "if False:",
     PAD.format(where="0 <= i + r - 1, i + r - 1 < 6, r <= i")),
    ("structure.pad", "Pad", "if not all(c in in_range for c in total.domain.where):", "if False:",
     PAD.format(where="1 <= i + r - 1, i + r - 1 < 6")),
    ("structure.inplace", "InPlace", " or t.dtype != y.dtype", "", in_place(y="f16[3, 4]", y_is="f16(t[i, j])")),
    ("structure.inplace", "InPlace", " or made[:1] != (max(used, default=-1),)", "",
     in_place(end="forall i < 3, j < 4\n    z[i, j] = t[i, j] + 1")),
    ("structure.inplace", "InPlace", " or s.domain.where", "", in_place(over="i < 3, j < 4 where j <= i")),
    ("structure.inplace", "InPlace", "if told and all(", "if all(", in_place(y="f32[3]", to="i")),
    ("structure.inplace", "InPlace", "if told and all(_counts(row, s.domain) for row in s.dest.index)", "if told",
     in_place(y="f32[6]", to="i + j")),
    ("structure.inplace", "InPlace", "abs(weight) <= reach or ", "", in_place(y="f32[9]", to="2 * i + j")),
    ("structure.speculate", "Speculate", "if any(uncertain(kernel, x, s.domain.axes) for x in (s.dest, *sources)):",
     "if False:", masked("2 * j < 4", value="a[i, 2 * j]")),
    ("structure.speculate", "Speculate", "more.is_disjoint(footprint(domain_set(r.domain, kernel.syms), x))", "True",
     masked(read="3 - j")),
    ("structure.speculate", "Speculate", "more.is_disjoint(footprint(domain_set(r.domain, kernel.syms), x))", "True",
     masked(to="i, i")),
    ("structure.dimensions", "SplitDimension", "if lo < 0 or hi >= factor:", "if False:",
     "kernel k()\n  in x: f32[4]\n  in w: f32[3]\n  out y: f32[2]\n  forall i < 2\n    y[i] = 0\n"
     "  forall i < 2, r < 3\n    y[i] += x[i + r] * w[r]\n"),
    ("structure.axes", "SplitAxis", "if divides(f, extent)", "",
     "kernel k()\n  in x: f32[7]\n  out y: f32[7]\n  forall i < 7\n    y[i] = x[i] + 1\n"),
    ("structure.axes", "RemoveUnitAxis", "if a.extent == one", "",
     "kernel k()\n  in x: f32[7]\n  out y: f32[7]\n  forall i < 7\n    y[i] = x[i] + 1\n"),
    ("structure.fuse", "FuseAxes", "(*rows, *s.domain.where)", "s.domain.where",
     FUSE.format(where="0 <= 4 * a + b", row="a, b")),
    ("structure.fuse", "FuseAxes", "(*rows, *s.domain.where)", "rows", FUSE.format(where="a <= b", row="0, 0")),
    ("structure.axes", "SplitAxis", " and g[2] == extent", "",
     _kernel("forall i < 8", "  t[i] = x[i]", "forall i < 3", "  y[i] = t[i]")),
    ("structure.unfold", "Unfold", "uncertain(kernel, read, axes)", "()",
     _kernel("forall i < 8, k < 3 where i + k < 8", "  y[i] += x[i + k]")),
    ("structure.unfold", "UnfoldSum", "uncertain(kernel, y, axes)", "()",
     _kernel("forall i < 8, k < 3 where i + k < 8", "  y[i + k] += x[i]")),
    ("structure.unfold", "UnfoldSum", "Literal(IDENTITY[s.op])", "Literal(0)",
     _kernel("forall i < 6, k < 3", "  h[i + k] *= x[i]")),
    ("structure.peel", "PeelSum", "{n for n in cut.names if n in names} <= {axis_of(r) for r in index}", "True",
     _kernel("forall i < 8, j < 3 where j <= 0", "  t[i] = 0", "forall i < 8, j < 3", "  t[i] += x[j]",
             "forall i < 8, j < 3", "  h[j] += t[i]")),
    ("structure.peel", "Peel", "    if len(found) != 1:\n        return False\n", "    found = list(found)[:1]\n",
     PEEL.format("forall i < 4, j < 4\n    q[i, j] = a[j, i]\n    z[i, j] = q[j, i]")),
    ("structure.peel", "Peel", "        if any(n not in have for n in names):\n            return False\n", "",
     PEEL.format("forall i < 4, j < 4\n    q[i, j] = a[j, i]\n    z[i, j] = 1\n  forall i < 4\n    z[i, 0] = q[i, 1]\n"
                 "  forall i < 4, j < 4 where i <= j\n    z[i, j] = a[i, j]")),
    ("structure.peel", "Peel", "if 0 < cut.const + 1 < extent.const else 0", "",
     _kernel("forall i < 8", "  h[i] = 3 * h[i]", "forall i < 8 where i < 9", "  y[i] = x[i]")),
    ("structure.skew", "Skew", "row.coefficient(a) == 1", "row.coefficient(a)",
     _kernel("forall i < 3, k < 2", "  h[2 * i + k] += x[i] * w[k]")),
    ("structure.skew", "Skew", "(*new.domain.where, *kept)", "new.domain.where",
     _kernel("forall i < 3, k < 4", "  h[i + k] += x[2 * k] * w[k]")),
    ("structure.roundup", "RoundUpSum", " or kernel.buffer(a.buffer).shape[d] != extent", "",
     _kernel("forall k < 5", "  h[0] += x[k]")),
    ("structure.roundup", "RoundUpSum", " or axis_of(a.index[d]) != axis", "",
     _kernel("forall k < 8", "  h[0] += x[7 - k]")),
    ("structure.roundup", "RoundUpSum", "if len(dims) > 1 or ", "if ",
     PEEL.format("forall i < 3, j < 4\n    z[i, j] = 0\n  forall k < 4\n    z[0, 0] += a[k, k]").replace("4", "3")),
    ("structure.roundup", "RoundUp", "            if out.setdefault(a.buffer, d) != d:\n                return None\n",
     "            out[a.buffer] = d\n",
     PEEL.format("forall i < 3, j < 3\n    z[i, j] = a[i, j] + a[j, i]").replace("4", "3")),
    ("structure.roundup", "RoundUpSum", 's.op == "add" and ', "", _kernel("forall k < 8", "  h[0] *= x[k]")),
    ("structure.roundup", "RoundUpSum", "and _is_zero(s.sources[0], axis, zeros))", ")",
     _kernel("forall k < 8", "  t[k] = exp(x[k])", "  h[0] += t[k]")),
    ("structure.roundup", "RoundUpSum", "        if not lost:\n", "        if True:\n",
     _kernel("forall k < 8", "  t[k] = exp(x[k])", "  h[0] += t[k]")),
    ("structure.roundup", "RoundUpSum", '(s.op == "mul" and _is_finite(x))', "isinstance(x, Literal)",
     _kernel("forall k < 8", "  t[k] = x[k] + 1", "  h[0] += t[k]")),
    ("structure.roundup", "RoundUpSum", " or _unfilled(kernel, b, group)", "",
     _kernel("forall i < 8", "  t[i] = x[i]", "forall k < 8", "  h[0] += t[k]")),
    ("structure.roundup", "RoundUpSum", 'old.role == "inout" or ', "",
     _kernel("forall k < 8", "  t[k] = x[k]", "  h[k] = h[k] + t[k]", "  q[k] = h[k] + t[k]", "  y[0] += q[k]")),
    ("structure.embed", "Embed", "if [axis_of(r) for r in a.index if r.coefficient(axis)] != [axis]:", "if False:",
     _kernel("forall c < 4, k < 3", "  h[c] += x[c + k] * w[7 - c]")),
    ("structure.dilate", "Dilate", "or [axis_of(r) for r in x.index if r.coefficient(axis)] != [axis]", "",
     _kernel("forall a < 3, k < 2", "  h[2 * a + k] += x[2 * a] * w[k]")),
    ("structure.dilate", "Dilate", "return any(rows) and not any(c % f for c in rows)", "return any(rows)",
     _kernel("forall a < 3, k < 2", "  h[2 * a + k] += x[a] * w[a + k]")),
    ("structure.dilate", "Dilate", "if any(w.coefficient(axis) for w in total.domain.where):", "if False:",
     _kernel("forall a < 3, k < 5 where k <= a", "  h[2 * a + k] += x[a] * w[k]")),
    ("structure.pitch", "Trim", "(s for s in found if s[\"size\"] > 0 and _is_less(kernel, s))", "(found)",
     _kernel("forall i < 8", "  q[i] = x[i]", "forall i < N", "  q[i] = 2", "forall i < 8", "  h[i] = q[i]")
     .replace("  inout h: f32[8]\n", "  inout h: f32[8]\n  temp q: f32[N + 8]\n")),
    ("structure.pitch", "Trim", "if all(e.is_constant for e in ends) else 0", "",
     _kernel("forall i < N", "  q[i + 3] = 2", "forall i < N", "  y[0] += q[i + 3]")
     .replace("  inout h: f32[8]\n", "  inout h: f32[8]\n  temp q: f32[N + 8]\n")),
    ("structure.store", "StoreAt", "return guest.shape == around", "return True",
     PEEL.format("forall i < 4\n    z[i, 0] = a[i, 1] * p[i]").replace("  out z", "  in  p: f32[5]\n  out z")),
    ("structure.store", "StoreAt", 'b.role in ("in", "const", "temp")', "True",
     PEEL.format("forall i < 4\n    z[i, 0] = g[i]").replace("  out z", "  inout g: f32[4]\n  inout z")),
    ("structure.store", "StoreApart", "all(b or f for b, f in zip(below, from_it, strict=True))", "True",
     _kernel("forall i < 2", "  h[i] = x[i]", "forall i < 4", "  h[i + 4] = x[i + 2]", "  y[i] = x[i + 1]")),
    ("structure.store", "StoreApart", 'if old.role == "inout" else []', "if False else []",
     _kernel("forall i < 4", "  h[i + 4] = x[i]", "  h[i] = w[i]")),
    ("structure.unpad", "Unpad", " and zero.sources[0].value == 0", "", UNPAD.format(fill="1", copy="x[i]", more="")),
    ("structure.unpad", "Unpad", "uncertain(kernel, read, product.domain.axes)", "()",
     UNPAD.format(fill="0", copy="x[i]", more="")),
    ("structure.unpad", "Unpad", 'copy.op != "copy"', "False", UNPAD.format(fill="0", copy="exp(x[i])", more="")),
    ("structure.unpad", "Unpad", "whole and sorted", "sorted",
     UNPAD.format(fill="0", copy="x[i]", more="").replace("x: f32[6]", "x: f32[9]")),
    ("structure.unpad", "Unpad", " or copy.domain.where", "",
     UNPAD.format(fill="0", copy="x[i]", more="").replace("forall i < 6\n    p", "forall i < 6 where i < 4\n    p")),
    ("structure.unpad", "Unpad", "kept = x.buffer not in written_between(kernel, made[-1], used[-1])", "kept = True",
     UNPAD.format(fill="0", copy="x[i]", more="  forall i < 6\n    x[i] = 2\n")),
    ("structure.unpad", "Unpad", "once and ", "",
     UNPAD.format(fill="0", copy="x[i]", more="").replace("* w[k]", "* p[i]")),
    ("structure.unpeel", "Unpeel", "set(other.domain.where) == rest | {-w - 1}", "True",
     _kernel("forall i < 8 where i < 3", "  y[i] = x[i]", "forall i < 8 where i < 2", "  y[i] = x[i]")),
    ("structure.unpeel", "Unpeel", "x.dest.buffer in read | {t.dest.buffer} or ", "",
     _kernel("forall i < 3", "  y[i] = h[i]", "forall i < 5", "  h[i + 3] = 1", "forall i < 5",
             "  y[i + 3] = h[i + 3]")),
    ("structure.unpeel", "Unpeel", " or any(a.buffer == t.dest.buffer for a in x.reads)", "",
     _kernel("forall i < 3", "  y[i] = x[i]", "forall i < 5", "  h[i] = y[i + 3]", "forall i < 5",
             "  y[i + 3] = x[i + 3]")),
    ("structure.unpeel", "Unpeel", "for x in (under, over)", "for x in (under,)",
     _kernel("forall i < 4", "  y[i] = x[i]", "forall i < N - 1", "  y[i + 4] = x[i + 4]")),
    ("structure.unpeel", "Unpeel", "if _same(low, moved) and ", "if ",
     _kernel("forall i < 4", "  y[i] = x[i]", "forall i < 4", "  y[i + 4] = w[i]")),
    ("structure.unpeel", "Unpeel", "    if any(x.index != s.dest.index for x in own) or ", "    if ",
     _kernel("forall i < 4", "  h[i] = h[7 - i]", "forall i < 4", "  h[i + 4] = h[3 - i]")),
    ("structure.unpeel", "UnpeelSum", "set(low.domain.where) == set(moved.domain.where)", "True",
     _kernel("forall i < 4, k < 3 where k <= i", "  y[i] += x[k]", "forall i < 4, k < 5", "  y[i] += x[k + 3]")),
    ("convert", "Convert", "s.op == self.op and s.accumulate == (s.op == \"select\")", "s.op == self.op",
     "kernel k()\n  in x: f32[7]\n  out y: f32[1]\n  y[0] = 0\n  forall i < 7\n    y[0] max= x[i]\n"),
    ("commute", "Commute", "s.op in COMMUTATIVE and ", "",
     "kernel k()\n  in x: f32[7]\n  in z: f32[7]\n  out y: f32[7]\n  forall i < 7\n    y[i] = x[i] - z[i]\n"),
]  # fmt: skip


def mutated(name: str, old: str, new: str) -> types.ModuleType:
    original = importlib.import_module(f"isam.transforms.{name}")
    source = Path(original.__file__).read_text()
    assert old in source, f"the condition of the mutant is no longer in {name}.py"
    module = types.ModuleType(f"mutant_{name}")
    sys.modules[module.__name__] = module
    try:
        exec(compile(source.replace(old, new), f"<mutant of {name}>", "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module


def laws_of(module: types.ModuleType, name: str):
    return module.CONVERSIONS if name == "Convert" else (getattr(module, name)(),)


def sizes_of(kernel) -> Iterator[dict[str, int]]:
    """Sizes left open are tried at these values."""
    for value in (3, 0, 1) if kernel.syms else (0,):
        yield {s.name: value for s in kernel.syms}


def wrong(law, kernel) -> str:
    """A site at which the law changes the meaning (or cannot even be applied), or ''."""
    for site in law.sites(kernel):
        try:
            done = law.apply(kernel, site).kernel
            if not all(oracle.equal(kernel, done, sizes, 13) for sizes in sizes_of(kernel)):
                return str(site)
        except Exception as e:
            return f"{site}: {type(e).__name__}"
    return ""


@pytest.mark.parametrize(("file", "name", "old", "new", "text"), MUTANTS, ids=lambda v: str(v)[:24].strip())
def test_a_law_without_one_of_its_conditions_is_caught(file, name, old, new, text):
    kernel = parse(text)
    for law in laws_of(importlib.import_module(f"isam.transforms.{file}"), name):
        assert not wrong(law, kernel), "the law itself is wrong here"
    assert any(wrong(law, kernel) for law in laws_of(mutated(file, old, new), name))


def test_reassociation_never_makes_a_statement_read_what_it_writes_elsewhere():
    from isam.transforms.reassociate import Reassociate

    text = CHAIN.format(between="y[i] = 1", end="a[3 - i] = t[3 - i] * c[i]").replace("t[i] = a[i]", "t[3 - i] = a[i]")
    assert not Reassociate().sites(parse(text))
    assert Reassociate().sites(parse(text.replace("a[3 - i] =", "y[3 - i] =")))


@pytest.mark.parametrize(("where", "permits", "dtype", "found"), [
    ("r <= i", "", "f32", True), ("i + 1 <= r", "", "f32", False), ("i + 1 <= r", "finite", "f32", True),
    ("i + 1 <= r", "", "i32", True), ("r + j >= 2, r <= i + 3", "", "f32", True), ("r + j >= 5", "", "f32", False),
])  # fmt: skip
def test_nothing_is_factored_out_of_a_sum_that_may_be_empty(where, permits, dtype, found):
    """``x * 0`` is not 0 when ``x`` is infinite: the term may leave only a sum that has something in it."""
    from isam.transforms.factor import Factor

    text = FACTOR_WHERE.replace("where r <= i", f"where {where}").replace("f32", dtype)
    kernel = replace(parse(text), permits=parse(text).permits | frozenset(filter(None, [permits])))
    assert (Site.of(sum=2, product=1, pulled=1) in Factor().sites(kernel)) == found


@pytest.mark.parametrize(("where", "size", "permits", "dtype", "found"), [
    ("r <= i", 4, "", "f32", True), ("i + 2 <= r", 4, "", "f32", False), ("i + 2 <= r", 4, "finite", "f32", True),
    ("i + 2 <= r", 4, "", "i32", True), ("i >= 1", 4, "", "f32", False), ("r <= i", 0, "", "f32", False),
    ("r <= i", 0, "finite", "f32", True),
])  # fmt: skip
def test_no_factor_goes_into_a_sum_that_may_be_empty(where, size, permits, dtype, found):
    """``0 * x`` is not 0 when ``x`` is infinite, also where a condition leaves out all that is summed up."""
    text = SUM_TIMES_SUM.replace("where r <= i", f"where {where}").replace("f32", dtype)
    kernel = parse(text).with_sizes({"M": 3, "K": 2, "R": size})
    kernel = replace(kernel, permits=kernel.permits | frozenset(filter(None, [permits])))
    (law,) = (t for t in ALL if t.law == "distribute")
    assert bool(law.sites(kernel)) == found
    for s in law.sites(kernel):
        assert Equivalence().judge(kernel, law.apply(kernel, s).kernel, sorted(law.needs))


def test_factoring_keeps_conditions_of_both_sums():
    from isam.transforms.factor import Factor

    kernel = parse(FACTOR_WHERE)
    sites = Factor().sites(kernel)
    assert Site.of(sum=2, product=1, pulled=1) in sites
    for s in sites:
        assert oracle.equal(kernel, Factor().apply(kernel, s).kernel, {}, 3)


def test_a_law_that_is_asked_at_no_site_of_its_own_refuses():
    from isam.transforms.factor import Factor
    from isam.transforms.structure.pad import Pad
    from isam.transforms.structure.unpad import Unpad

    kernel = parse(FACTOR)
    with pytest.raises(NoSite, match="factor"):
        Factor().apply(kernel, Site.of(sum=2, product=1, pulled=0))
    read_twice = parse(UNPAD.format(fill="0", copy="x[i]", more="  forall i < 6\n    y[i] = p[i]\n"))
    for name in ("y", "p"):
        with pytest.raises(NoSite, match="unpad"):
            Unpad().apply(read_twice, Site.of(buffer=name))
    with pytest.raises(NoSite, match="pad"):
        Pad().apply(kernel, Site.of(sum=2, product=1, padded=0))
