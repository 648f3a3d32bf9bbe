"""The contract of laws (TR-0): the way back composes, permissions are asked for, sites are values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.kernel import Literal
from isam.ir.mismatch import KINDS, Mismatch
from isam.ir.normal import normal_form
from isam.ir.text import parse
from isam.transforms import ALL
from isam.transforms.factor import Factor
from isam.transforms.law import Correspondence, Site, Transform, dtypes_at, granted
from isam.transforms.narrow import Narrow
from isam.transforms.structure.axes import AddUnitAxis, RemoveUnitAxis, SplitAxis
from isam.transforms.structure.dimensions import PermuteDimensions, SplitDimension, split_row
from isam.transforms.structure.roundup import RoundUpSum
from isam.transforms.values.nest import NestSum
from tests.corpus import CASES
from tests.laws.judges import same

SCALE = parse("""kernel scale()
  in  x: f32[8, 6]
  out y: f32[8, 6]
  forall i < 8, j < 6
    t[i, j] = x[i, j] * 2
    y[i, j] = t[i, j] + 1
""")


def test_correspondences_compose_from_the_users_names_to_the_last():
    first = SplitAxis((2,)).apply(SCALE, Site.of(axis="i", statements=(0, 1), factor=2))
    (site,) = [s for s in SplitAxis((2,)).sites(first.kernel) if s["axis"] == "i_o"]
    second = SplitAxis((2,)).apply(first.kernel, site)
    back = first.back.then(second.back)
    assert back.new_axes("i") == ("i_o_o", "i_o_i", "i_i")
    assert back.new_axes("j") == ("j",)
    assert back.meaning("i_i") == "i % 2"
    assert back.meaning("i_o_i") == "i // 2 % 2"
    assert back.statements == ((0,), (1,))


def test_statements_added_by_a_step_belong_to_none_and_stay_so():
    turned = PermuteDimensions().apply(SCALE, Site.of(buffer="x", dim=0))
    assert turned.back.statements == ((), (0,), (1,))
    assert turned.back.new_buffers("x") == ("x", "x_t")
    unit = AddUnitAxis().apply(turned.kernel, Site.of(statements=(1,), buffers=("t",), axis="one"))
    assert turned.back.then(unit.back).statements == ((), (0,), (1,))
    gone = RemoveUnitAxis().apply(unit.kernel, Site.of(axis="one", statement=1))
    assert turned.back.then(unit.back).then(gone.back).new_axes("one") == ()


def test_a_name_that_is_gone_may_come_back_for_something_else():
    first = Correspondence(((0,),), axes=(("i", ("j",)), ("o", ())), buffers=(("t", ("s",)),))
    second = Correspondence(((0,),), axes=(("i", ("k",)), ("o", ("p",)), ("r", ("q",))), buffers=(("t", ("u",)),))
    both = first.then(second)
    assert both.axes == (("i", ("j",)), ("o", ()), ("r", ("q",)))
    assert both.buffers == (("t", ("s",)),)


def test_identity_is_neutral():
    step = SplitAxis((2,)).apply(SCALE, Site.of(axis="i", statements=(0, 1), factor=2)).back
    assert Correspondence.identity(SCALE).then(step) == step


def test_split_joined_statements_only_together():
    (group,) = {s["statements"] for s in SplitAxis((2,)).sites(SCALE) if s["axis"] == "i"}
    assert group == (0, 1)


def test_narrowing_stops_at_what_the_value_depends_on():
    kernel = parse("""kernel n()
  in  x: f32[8]
  out y: f32[8, 6, 3]
  forall i < 8, j < 6, k < 3
    t[i, j, k] = x[i] * x[i]
    y[i, j, k] = t[i, j, k] + 1
""")
    sites = Narrow().sites(kernel)
    assert [(s["buffer"], s["dim"]) for s in sites] == [("t", 1), ("t", 2)]
    once = Narrow().apply(kernel, sites[0]).kernel
    twice = Narrow().apply(once, Narrow().sites(once)[0]).kernel
    assert [str(d) for d in twice.buffer("t").shape] == ["8"]
    assert not Narrow().sites(twice)


@pytest.mark.parametrize(("permits", "dtype", "needs", "yes"), [
    ({"reassociate", "contract"}, "f32", {"reassociates", "rounding"}, True),
    ({"exact"}, "f32", {"reassociates"}, False),
    ({"exact"}, "f32", {"exact"}, True),
    ({"exact"}, "i32", {"reassociates", "rounding", "finite", "integers"}, True),
    ({"reassociate"}, "f32", {"finite"}, False),
    ({"reassociate", "finite"}, "f32", {"finite"}, True),
    ({"reassociate"}, "bf16", {"integers"}, False),
])  # fmt: skip
def test_numerics_are_the_users_to_grant(permits, dtype, needs, yes):
    assert granted(replace(SCALE, permits=frozenset(permits)), needs, [dtype]) is yes


def test_dtypes_of_a_site_are_those_it_computes_with():
    kernel = parse("kernel m()\n  in a: i8[4]\n  in f: f32[4]\n  out y: i32[4]\n  out z: f32[4]\n  forall i < 4\n"
                   "    y[i] = i32(a[i])\n    z[i] = -f[i]\n")  # fmt: skip
    assert dtypes_at(kernel, Site.of(statement=0)) == ("i32",)
    assert dtypes_at(kernel, Site.of(statement=1)) == ("f32",)
    assert dtypes_at(kernel, Site.of(buffer="a", dim=0)) == ("i8",)


@pytest.mark.parametrize(("factor", "whole", "rest"), [(4, "k_o", "k_i + 3"), (2, "2*k_o + 1", "k_i + 1")])
def test_rows_split_by_coefficients(factor, whole, rest):
    from isam.ir.affine import Affine

    a, b = split_row(Affine.of("k_o", 4) + "k_i" + 3, factor)
    assert (str(a), str(b)) == (whole, rest)


def test_arguments_keep_their_shape_and_outputs_need_to_be_written_whole():
    part = parse("kernel p()\n  in x: f32[8]\n  out y: f32[8]\n  forall i < 4\n    y[i] = x[i]\n")
    assert not [s for s in SplitDimension((2,)).sites(part) if s["buffer"] == "y"]
    whole = parse("kernel p()\n  in x: f32[8, 2]\n  out y: f32[8, 2]\n  forall i < 8, j < 2\n    y[i, j] = x[i, j]\n")
    turned = PermuteDimensions().apply(whole, Site.of(buffer="y", dim=0)).kernel
    assert turned.buffer("y") == whole.buffer("y")
    assert [str(d) for d in turned.buffer("y_t").shape] == ["2", "8"]


def test_factoring_wants_one_dtype_throughout():
    text = """kernel f()
  in  a: i8[4, 3]
  in  p: i32[4]
  out y: i32[4]
  forall i < 4
    y[i] = 0
  forall i < 4, r < 3
    y[i] += i32(a[i, r]) * p[i]
"""
    (site,) = Factor().sites(parse(text))
    assert site["pulled"] == 1


@pytest.mark.parametrize("law", ALL, ids=lambda t: t.law)
def test_a_law_is_asked_only_by_the_kinds_that_it_names(law: Transform):
    subject = (("statement", 1), ("instruction_statement", 0), ("buffer", "u"), ("axis", "k"), ("row", 0),
               ("instruction_axis", "j"), ("operand", "A"), ("lacking", ("A",)), ("roles", ()))  # fmt: skip
    others = set(KINDS) - law.kinds
    for name in ("sepconv", "conv_same", "softmax", "rnn"):
        kernel = normal_form(CASES[name].load())
        assert not any(law.answers(Mismatch(kind, "", "", subject=subject)) for kind in others)
        assert not any(law.sites_for(kernel, Mismatch(kind, "", "", subject=subject)) for kind in others)


def test_a_limit_of_one_asks_for_no_cut():
    total = parse("kernel k()\n  in a: f32[8, 6]\n  inout y: f32[8]\n  forall i < 8, r < 6\n    y[i] += a[i, r]\n")
    for law in (SplitAxis(), NestSum()):
        offered = {}
        for limit in (1, 2, 3):
            facts = {"statement": 0, "axis": "r", "lacking": ("Y",), "roles": (("Y", "y"),), "limit": limit}
            found = law.sites_for(total, Mismatch("axis-missing", "", "", subject=tuple(facts.items())))
            offered[limit] = {s["factor"] for s in found}
        assert offered == {1: set() if law == NestSum() else {2}, 2: {2}, 3: {3}}, law
    nobody = Mismatch("axis-missing", "", "", subject=(("statement", 0), ("axis", "r"), ("limit", 2)))
    assert NestSum().sites_for(total, nobody) == ()


@pytest.mark.parametrize("where", ["", " where i + r <= 9", " where r <= 4"])
def test_an_axis_is_not_cut_where_a_condition_binds_it_to_the_result(where):
    text = "kernel k()\n  in a: f32[8, 6]\n  inout y: f32[8]\n  forall i < 8, r < 6{}\n    y[i] += a[i, r]\n"
    kernel, law = parse(text.format(where)), NestSum(factors=(2, 3))
    made = [law.apply(kernel, s).kernel for s in law.sites(kernel)]
    assert len(made) == (0 if "+" in where else 2)
    assert all(same(law, kernel, after) for after in made)


def test_numbers_alone_are_no_zeros_in_the_lanes_that_rounding_up_adds():
    """The parser computes what stands there in numbers; laws may bring it about."""
    text = "kernel k()\n  inout y: f32[3]\n  forall k < 5\n    t[k] = 0\n  forall i < 3, k < 5\n    y[i] += t[k]\n"
    kernel, held = parse(text), {("copy", 0): True, ("mul", 2, 3): False, ("mul", 0, 3): True, ("add", 2, 0): False}
    start, total = kernel.statements
    for (op, *numbers), zero in held.items():
        first = replace(start, op=op, sources=tuple(map(Literal, numbers)))
        found = RoundUpSum((4,)).sites(replace(kernel, body=(first, total), template=None))
        assert bool(found) is zero, (op, numbers)
