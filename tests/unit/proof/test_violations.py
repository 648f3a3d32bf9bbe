"""What a violation says: the step as a person reads it, equal ones once, so many of a kind and the rest counted."""

from __future__ import annotations

import pytest

from isam.ir.affine import Affine
from isam.proof.violation import Findings, Violation, issue_text, operand_text
from isam.schedule.tree import Issue, Operand, Place, Tile
from tests.unit.proof.handmade import tile
from tests.unit.proof.handmade_machines import lit

V = Affine.of("v")
AT_HOME = Place("home", "A", lit(0), (4, 1))


@pytest.mark.parametrize(("place", "where"), [
    (AT_HOME, "home:A"), (Place("home", "A", V, (4, 1)), f"home:A+({V})"),
    (Place("sp", "", lit(0), (4, 1)), "sp"), (Place("sp", "", lit(8), (4, 1)), "sp+(8)"),
    (Place("sp", "", V + 8, (4, 1)), f"sp+({V + 8})"), (Place("regs", "", lit(0), (4, 1), 0), "regs#0"),
    (Place("regs", "", lit(4), (4, 1), 3), "regs#3+(4)"),
])  # fmt: skip
def test_where_an_operand_lies(place: Place, where: str) -> None:
    """Where nothing is to be said of a base, a cell or an offset, nothing is."""
    t = tile("A", [V, 0], [1, 4])
    assert operand_text(Operand("x", t, place, (0, 1))) == f"x = {t} @ {where}"


@pytest.mark.parametrize(
    ("start", "shape", "steps"), [((1,), (2, 4), (1, 1)), ((1, 2), (4,), (1, 1)), ((1, 2), (2, 4), ())]
)
def test_what_is_no_tile_is_shown_as_it_is(
    start: tuple[int, ...], shape: tuple[int, ...], steps: tuple[int, ...]
) -> None:
    t = Tile("A", tuple(map(lit, start)), shape, steps)
    said = f"A{[str(n) for n in start]}{list(shape)}{list(steps)}"
    assert operand_text(Operand("x", t, AT_HOME, (0, 1))) == f"x = {said} @ home:A"


def test_a_step_is_one_line() -> None:
    t = tile("A", [0, 0], [2, 4])
    o, p = Operand("x", t, AT_HOME, (0, 1)), Operand("y", t, Place("sp", "", lit(0), (4, 1)), (0, 1))
    assert issue_text(Issue("dma", "load", (("m", 2), ("n", 4)), (o, p))) == (
        f"dma: load(m=2, n=4) x = {t} @ home:A; y = {t} @ sp"
    )


def test_equal_ones_once_and_so_many_of_a_kind() -> None:
    out = Findings(limit=3)
    issue = Issue("dma", "load", (), ())
    out.add(7, "tile", "outside", issue)
    out.extend([Violation(7, "tile", "outside", issue_text(issue)), Violation(8, "read", "stale")])
    assert out.found == [Violation(7, "tile", "outside", issue_text(issue)), Violation(8, "read", "stale")]
    for n in range(4):
        out.add(7, "tile", f"outside {n}")
    assert [v.message for v in out.found] == ["outside", "stale", "outside 0"]  # equal ones count, too
    assert out.per_kind == {"tile": 6, "read": 1}
    assert len(out) == 3
    assert [str(v) for v in out.found[:2]] == [
        "obligation 7 [tile]: outside\n    at dma: load() ", "obligation 8 [read]: stale"
    ]  # fmt: skip
