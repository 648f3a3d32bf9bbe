"""Small kernels at the edges of laws' conditions: every law at every site keeps their meaning. Findings of mutants."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Domain, Kernel, Statement
from isam.ir.text import parse
from isam.ir.verify import verify
from isam.transforms import ALL
from isam.transforms.law import Transform
from tests.laws.judges import same

TEXTS = {
    "copies and numbers": """
  in  x: f32[4]
  out y: f32[4]
  forall i < 4
    t[i] = x[i]
    y[i] = t[i] * 2
""",
    "one element written last": """
  in    x: f32[3]
  inout y: f32[3]
  forall i < 3
    y[i] = x[i] * 2
  forall i < 1
    y[i] = x[i + 1]
""",
    "one element where a condition holds": """
  in    x: f32[3]
  inout y: f32[3]
  forall i < 3
    y[i] = x[i] * 2
  forall i < 2 where 1 - i >= 0
    y[i] = x[i + 1]
""",
    "a padded sum of sums": """
  permits finite, reassociate, contract
  in  x: f32[5]
  in  w: f32[3]
  out y: f32[5]
  forall h < 5
    y[h] = 0
  forall h < 5, r < 3 where 0 <= h + r - 1, h + r - 1 < 5
    u[h, r] = x[h + r - 1] + w[r]
    y[h] += u[h, r]
""",
    "a padded product that is a sum itself": """
  permits finite, reassociate, contract
  in  x: f32[5]
  in  w: f32[3]
  out y: f32[5]
  temp u: f32[5, 3]
  forall h < 5
    y[h] = 0
  forall h < 5, r < 3
    u[h, r] = w[r]
  forall h < 5, r < 3 where 0 <= h + r - 1, h + r - 1 < 5
    u[h, r] *= x[h + r - 1]
  forall h < 5, r < 3 where 0 <= h + r - 1, h + r - 1 < 5
    y[h] += u[h, r]
""",
    "results joined by two statements": """
  in    x: f32[3, 4]
  inout s: f32[3]
  out   y: f32[3]
  forall i < 3, j < 4
    s[i] += x[i, j]
  forall i < 3
    y[i] = s[i] * 2
""",
    "a square of a square": """
  in  x: f32[3]
  out y: f32[3]
  forall i < 3
    t[i] = x[i] * x[i]
    y[i] = t[i] * t[i]
""",
    "a chain with itself": """
  in  x: f32[3]
  in  z: f32[3]
  out y: f32[3]
  forall i < 3
    t[i] = x[i] + z[i]
    y[i] = t[i] + x[i]
""",
}
KERNELS = {name: parse(f"kernel k(){text}") for name, text in TEXTS.items()}


def always(kernel: Kernel) -> Kernel:
    """Its last statement under a condition that is a number: 0 >= 0."""
    *rest, last = kernel.body
    assert isinstance(last, Statement)
    return replace(kernel, body=(*rest, replace(last, domain=Domain(last.domain.axes, (Affine(),)))))


KERNELS["one element under a condition that always holds"] = always(KERNELS["one element written last"])


@pytest.mark.parametrize("law", ALL, ids=lambda t: t.law)
def test_every_law_keeps_the_meaning_at_the_edges(law: Transform) -> None:
    for name, kernel in KERNELS.items():
        for site in law.sites(kernel):
            done = law.apply(kernel, site)
            assert same(law, kernel, done.kernel), f"{law.law} at {site} of {name}\n{kernel}\n{done.kernel}"


def test_laws_have_sites_there() -> None:
    used = {t.law for t in ALL if any(t.sites(k) for k in KERNELS.values())}
    assert {"inline", "reassociate", "factor", "commute"} - used <= {"factor"}
    assert len(used) >= 10


def test_an_argument_is_never_staged_for_an_axis_of_one_element() -> None:
    """Only temporaries inside the group get the axis: an argument in it keeps its shape and is not copied."""
    from isam.transforms.law import Site
    from isam.transforms.structure.axes import AddUnitAxis

    kernel = KERNELS["results joined by two statements"]
    done = AddUnitAxis().apply(kernel, Site.of(statements=(0, 1), buffers=(), axis="one"))
    assert len(done.kernel.statements) == 2


def test_an_axis_of_one_element_is_no_other_axis_of_its_name() -> None:
    """A finding of random pairs: i has one element in the first statement and four in the second."""
    from isam.transforms.law import Site
    from isam.transforms.structure.axes import AddUnitAxis

    kernel = parse("kernel k()\n  in  x: f32[4]\n  out y: f32[4, 1]\n  out z: f32[4, 4]\n  forall i < 1, j < 4\n"
                   "    y[j, i] = x[j]\n  forall i < 4, j < 4\n    z[j, i] = x[j]\n")  # fmt: skip
    law = AddUnitAxis()
    done = law.apply(kernel, Site.of(statements=(0,), buffers=("x",), axis="i"))
    assert same(law, kernel, done.kernel)
    assert not verify(done.kernel)
