"""Conditions of laws that small edits of examples do not reach, each decided by a kernel written for it: how many sites
the law has there; where it has any, it keeps the meaning. And laws can be asked by reports that say little."""

from __future__ import annotations

import pytest

import isam.transforms
from isam.ir.kernel import Kernel
from isam.ir.mismatch import Mismatch
from isam.ir.verify import verify
from isam.transforms import ALL, Site, Transform, shipped
from isam.transforms.law import NoSite
from tests.laws.deciding import ROWS, kernel
from tests.laws.judges import same
from tests.laws.neighbours import examples, facts, written
from tests.laws.offers import mark
from tests.laws.test_examples import sized
from tests.random_kernels import Seeded

LAWS = {t.law: t for t in ALL}
ESSENTIAL = {"coefficient": {"have", "need", "row"}, "extra-dependence": {"row"}}  # what reports of a kind always say


@pytest.mark.parametrize("what", ROWS)
def test_a_law_holds_where_it_is_right_and_nowhere_else(what: str) -> None:
    name, count, k = ROWS[what]
    law = LAWS[name]
    assert not verify(k)
    assert len(law.sites(k)) == count, list(map(str, law.sites(k)))
    for small in sized(k) if k.syms else [k]:
        for site in law.sites(small):
            after = law.apply(small, site).kernel
            assert not verify(after)
            assert all(n.const >= 0 for b in after.buffers for n in b.shape), after
            used = {a.buffer for s in after.statements for a in (s.dest, *s.reads)}
            assert all(b.name in used for b in after.buffers if b.role == "temp"), after
            assert same(law, small, after), f"{site}:\n{after}"


@pytest.mark.parametrize("law", ALL, ids=lambda t: t.law)
def test_a_law_can_be_asked_by_reports_that_say_less(law: Transform) -> None:
    """What it offers then are sites that it can be applied at."""
    for name in examples(law)[:4]:
        k = written()[name]
        for kind in sorted(law.kinds) if k.statements else ():
            said = facts(k, kind, Seeded(mark(f"{law.law}/{name}/{kind}")))
            for left_out in said.keys() - ESSENTIAL.get(kind, set()):
                report = {x: v for x, v in said.items() if x != left_out and v is not None}
                for site in law.sites_for(k, Mismatch(kind, "", "", subject=tuple(report.items())))[:1]:
                    assert law.apply(k, site)


def asked(law: str, k: Kernel, kind: str, **said: object) -> list[str]:
    """What a law offers for a report."""
    return [str(s) for s in LAWS[law].sites_for(k, Mismatch(kind, "", "", subject=tuple(said.items())))]  # type: ignore


MATVEC = ("  u[i, k] = a[i, k] * x[k]", "  y[i] += u[i, k]")


def test_a_unit_axis_is_given_to_all_that_are_joined_by_what_lacks_it() -> None:
    k = kernel(" ; in a: f32[4, 3]; in x: f32[3]; inout y: f32[4]; inout z: f32[4]", "forall i < 4, k < 3", *MATVEC,
               "forall i < 4", "  z[i] = z[i] * 2")  # fmt: skip
    report = {"statement": 1, "lacking": ("B",), "roles": (("B", "x"),)}
    assert asked("add-unit-axis", k, "axis-missing", **report) == ["axis one, buffers x, statements 0 1"]
    law = LAWS["add-unit-axis"]
    (site,) = law.sites_for(k, Mismatch("axis-missing", "", "", subject=tuple(report.items())))
    after = law.apply(k, site).kernel
    assert [len(after.buffer(n).shape) for n in ("u", "x", "y")] == [3, 2, 1]
    assert same(law, k, after)
    k = kernel(" ; in a: f32[4, 3]; in x: f32[3]; inout y: f32[4]", "forall i < 4, k < 3, o < 1", *MATVEC)
    near = {"statement": 1, "axis": "o", "buffer": "y", "lacking": ("B",), "roles": (("B", "x"),)}
    assert asked("add-unit-axis", k, "axis-missing", **near) == ["axis o, buffers x y, statements 0 1"]
    assert asked("add-unit-axis", k, "axis-missing", **near | {"buffer": "nobody"}) == []
    longer = asked("add-unit-axis", k, "axis-missing", **near | {"axis": "k"})
    assert longer == ["axis one, buffers x, statements 0 1"]
    k = kernel(" ; in a: f32[4, 3]; in x: f32[3]; inout y: f32[4]; out z: f32[4, 3]", "forall i < 4, k < 3, o < 1",
               *MATVEC, "forall i < 4, k < 3", "  z[i, k] = u[i, k] + x[k]")  # fmt: skip
    assert asked("add-unit-axis", k, "axis-missing", **near) == ["axis o, buffers x y, statements 0 1"]


def test_partial_results_of_an_extremum_without_an_identity_begin_with_what_the_result_holds() -> None:
    k = kernel(" ; in a: i32[4, 3, 2]; inout y: i32[4]", "forall i < 4, k < 3, r < 2", "  y[i] max= a[i, k, r]")
    law, site = LAWS["nest-extremum"], Site.of(sum=0, kept="k", factor=0)
    assert site in law.sites(k)
    after = law.apply(k, site).kernel
    begin = after.statements[0]
    assert begin.op == "copy"
    assert [str(x) for x in begin.sources] == ["y[i]"]
    assert same(law, k, after)


def test_steps_are_filled_up_by_the_multiple_that_an_axis_has_of_what_is_needed() -> None:
    k = kernel(" ; in x: f32[3]; in w: f32[2]; inout y: f32[10]", "forall a < 3, r < 2",
               "  u[a, r] = x[a] * w[r]", "  y[4 * a + r] += u[a, r]")  # fmt: skip
    report = {"axis": "a", "have": 4, "need": 2, "statement": 1, "row": 0}
    offered = ["axis a, factor 2, product 0, spread 0, sum 1"]
    assert asked("dilate", k, "coefficient", **report) == asked("dilate", k, "coefficient", **report | {"statement": 0})
    assert asked("dilate", k, "coefficient", **report) == offered
    for other in ({"need": 0}, {"need": 3}, {"need": 4}, {"axis": "r"}, {"statement": 2}):
        assert asked("dilate", k, "coefficient", **report | other) == []


def test_a_source_is_filled_up_where_the_missing_axis_lies_between_its_steps() -> None:
    k = kernel(" ; in x: f32[3]; in w: f32[2]; inout y: f32[10]; inout z: f32[6]", "forall a < 3, r < 2",
               "  u[a, r] = x[a] * w[r]", "  y[4 * a + r] += u[a, r]", "  v[a, r] = x[a] * w[r]",
               "  z[2 * a + r] += v[a, r]")  # fmt: skip
    for at, factor in ((0, 4), (2, 2)):
        offered = [f"axis a, factor {factor}, product {at}, spread 0, sum {at + 1}"]
        assert asked("dilate", k, "axis-missing", statement=at, axis="r") == offered
    assert asked("dilate", k, "axis-missing", statement=1, axis="r") == []


def test_sums_leave_a_loop_with_what_they_need() -> None:
    k = ROWS["two sums may leave, and what follows them need not"][2]
    own = [i for i, s in enumerate(k.statements) if s.dest.buffer not in ("r", "h")]
    sums = [i for i in own if i <= max(i for i in own if k.statements[i].accumulate)]
    assert [list(s["statements"]) for s in LAWS["hoist"].sites(k)][1] == sums


def test_two_results_are_not_one() -> None:
    k = kernel(" ; in a: f32[4]; in b: f32[4]; out t: f32[4]; inout y: f32[4]", "forall i < 4", "  t[i] = a[i]",
               "  y[i] += b[i]")  # fmt: skip
    with pytest.raises(NoSite, match="does not apply"):
        LAWS["fusion"].apply(k, Site.of(first=0, second=1))


def test_elements_that_others_touch_are_cut_off_where_they_begin_and_end() -> None:
    k = kernel(" ; in x: f32[6]; inout y: f32[9]", "forall i < 6", "  y[i + 2] = x[i]", "forall j < 2",
               "  y[j + 4] += x[j]")  # fmt: skip
    offered = asked("peel", k, "domain", statement=0, relation="elements")
    assert offered == ["cut -i + 1, late False, statements 0", "cut -i + 3, late True, statements 0"]
    k = kernel("N; in x: f32[N]; inout y: f32[N + 3]", "forall i < 3, j < N", "  y[i + j] += x[j]", "forall i < 3",
               "  y[i] += 2")  # fmt: skip
    assert asked("peel", k, "domain", statement=1, relation="elements") == []


def test_the_laws_shipped_are_there_by_name_and_nothing_else_is() -> None:
    assert isam.transforms.__getattr__("ALL") is shipped.ALL
    with pytest.raises(AttributeError):
        isam.transforms.__getattr__("SOME")
