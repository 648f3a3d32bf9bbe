"""What a search learns from a dead end costs no mapping and no deepest report, and saves permutations."""

from __future__ import annotations

import pytest

from isam.ir.kernel import Kernel
from isam.mapper.dataflow import flow_of
from isam.mapper.match import Matches, normal, probe
from isam.mapper.pair import ANYWAY, Pair, joined
from tests.suite import SUITE
from tests.suite.columns import COLUMNS, typed, types_of

FUSED = [k for k, c in COLUMNS.items() if len(c.load().body.statements) > 1]


def cell(name: str, key: str) -> Matches:
    instruction = COLUMNS[key].load()
    kernel = typed(name, *types_of(instruction)) or typed(name, "f32", "f32")
    assert kernel is not None
    kernel = normal(kernel)
    return probe(Kernel(**{f: getattr(kernel, f) for f in kernel.__dataclass_fields__}), instruction)


def answer(found: Matches):
    mappings = [(m.operands, m.axes, m.statement_map, m.outer, m.whole, m.guards) for m in found]
    return mappings, found.near[:1], found.complete


@pytest.mark.parametrize("key", FUSED)
def test_the_answers_are_those_of_a_search_that_learns_nothing(key: str, monkeypatch: pytest.MonkeyPatch):
    names = list(SUITE)[FUSED.index(key) % 6 :: 6]
    taught = {n: cell(n, key) for n in names}
    learning = {n: (answer(f), f.pairs) for n, f in taught.items()}
    monkeypatch.setattr(Pair, "learn", lambda self, blame: None)
    for n, (said, pairs) in learning.items():
        plain = cell(n, key)
        assert said == answer(plain), n
        assert pairs <= plain.pairs


def test_permutations_of_axes_that_are_not_to_blame_are_not_tried(monkeypatch: pytest.MonkeyPatch):
    pairs = cell("conv3d_dx", "transposed2d").pairs
    monkeypatch.setattr(Pair, "learn", lambda self, blame: None)
    assert cell("conv3d_dx", "transposed2d").pairs > 20 * pairs


def test_few_pairs_are_tried():
    assert cell("conv3d_dx", "transposed2d").pairs < 200  # 3,156 when nothing is learnt


def pair_of(width: int) -> Pair:
    node = flow_of(normal(SUITE["matmul"].load())).nodes[-1]
    assert node.width == width
    return Pair(node, node, False, [])


def test_a_chosen_axis_is_barred_and_only_with_what_it_was_agreed_with():
    p = pair_of(3)
    p.begin([-1, 5, 6])  # the last two follow from the dataflow
    p.classes = [7, 5, 6]
    p.learn(frozenset({(0, 7), (1, 5)}))
    assert p.barred == [frozenset({(0, 0)})]
    assert p.blame is None
    assert p.hopeless([7, 5, 6])
    assert not p.hopeless([8, 5, 6])
    p.classes = [-1, 5, 6]
    assert not p.hopeless([-1, 5, 6])  # nothing plays it: that is not an agreement


@pytest.mark.parametrize("linked", [4, 0])
def test_what_was_agreed_before_is_to_blame_for_all_of_it(linked: int):
    p = pair_of(3)
    p.begin([linked, -1, -1])
    p.classes = [linked, 8, 9]
    p.learn(frozenset({(2, linked)}))
    assert (p.barred, p.blame) == ([], frozenset({(2, linked)}))
    p.begin([3, -1, -1])
    assert (p.barred, p.blame) == ([], None)


def test_two_reasons_must_both_hold():
    p = pair_of(3)
    p.classes = [0, 1, 2]
    p.learn(frozenset({(0, 0), (1, 2)}))
    assert p.hopeless([0, 2, 1])
    assert not p.hopeless([0, 1, 2])


def test_dead_ends_side_by_side():
    assert joined(ANYWAY, frozenset({(0, 1)})) == {(0, 1)}
    assert joined(frozenset({(0, 1)}), frozenset({(2, 3)})) == {(0, 1), (2, 3)}
    assert joined(ANYWAY, None) is None
    assert joined(None, ANYWAY) is None


def test_an_axis_agreed_before_is_compared_with_the_next_statement_before_rows_are():
    deepest = cell("conv1d", "fma").near[0]
    assert (deepest.kind, deepest.about("axis"), deepest.about("instruction_axis")) == ("axis-missing", "c", "j")


def test_rows_are_compared_axis_by_axis_and_linked_statements_touch_the_same_elements():
    found = cell("conv1d", "product")
    assert len(found) == 6  # goes through everything
    near = found.near
    assert max(m.depth for m in near if m.kind == "extra-dependence") == 7  # before the second statement is looked at
    assert not any(m.about("relation") == "elements" for m in near)
