"""The campaign of mutants itself, and a few mutants of each part (``python -m tests.mutation`` runs the rest)."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

from isam.mapper.rows import step_between
from tests.mutation.__main__ import KNOWN, SOURCES, drawn, known
from tests.mutation.checks import Check, checks
from tests.mutation.edits import Mutant, mutants, mutated
from tests.mutation.face import faced, reach
from tests.mutation.live import ROOT, numbered, watched

SMALL = '''
def least(xs, top=3):
    """The smallest, at most top."""
    if not xs and top > 0:
        return top
    best = min(xs) + 3
    return best if best < top else top
'''


def named(*tests: str) -> list[Check]:
    return [c for c in checks() if any(t in c.name for t in tests)]


def test_edits_of_a_function(tmp_path: Path) -> None:
    path = tmp_path / "small.py"
    path.write_text(SMALL)
    found = mutants(path, "small.py")
    said = [m.what for m in found]
    for what in ("not xs and top > 0 becomes not xs or top > 0", "not xs and top > 0 without top > 0",
                 "3 becomes 4", "top > 0 becomes top >= 0", "min(xs) becomes max(xs)", "without best = min(xs) + 3",
                 "not xs without not", "if best < top: always False", "return top becomes return None"):  # fmt: skip
        assert what in said, said
    assert len(said) == len(set(said))
    texts = {ast.unparse(mutated(path, m)) for m in found}
    assert ast.unparse(ast.parse(SMALL)) not in texts
    assert all("The smallest" in t for t in texts)


@pytest.mark.parametrize(("file", "tests"), [
    ("isam/mapper/rows.py", (".test_match.",)), ("isam/mapper/linking.py", (".test_match.",)),
    ("isam/proof/cuts.py", (".test_cuts.",)),
])  # fmt: skip
def test_most_mutants_of_a_file_are_seen_by_its_own_tests(file: str, tests: tuple[str, ...]) -> None:
    own, some = named(*tests), mutants(ROOT / file, file)[3::17][:3]
    assert own
    fates = {str(m): faced(m, own, 60) for m in some}
    assert sum(bool(by) for by in fates.values()) >= len(fates) - 1, fates


def test_the_statements_that_a_check_reaches() -> None:
    places = numbered(["isam/mapper/rows.py"])
    with watched(places) as seen:
        (found,) = reach([Check("equal", lambda: step_between({0: 1}, {0: 1}, False), ())], seen)
        assert reach([Check("failing", lambda: 1 // 0, ())], seen) == [None]
        assert not seen, "each in a child"
    assert found
    reached = {p[1:] for p, n in places.items() if int(found[2], 16) >> n & 1}
    assert reached == {("step_between", 0), ("step_between", 1), ("step_between", 5)}  # return 1
    assert "__reached__" not in step_between.__code__.co_names


def test_what_checks_of_one_function_share_is_reached_by_all_of_them() -> None:
    @functools.cache
    def shared() -> int:
        return step_between({0: 1}, {0: 1}, False)

    def check(n: int) -> None:
        assert shared() == 1
        assert n == 0 or step_between({0: 1}, {0: 2}, False) == 0

    places = numbered(["isam/mapper/rows.py"])
    with watched(places) as seen:
        found = reach([Check(f"c[{n}]", check, (("n", n),)) for n in (0, 1, 2)], seen)
    first, *others = (int(f[2], 16) for f in found if f)
    assert len(others) == 2
    assert all(first & o == first != o for o in others)


def test_a_mutant_of_a_function_that_is_compiled_from_its_text() -> None:
    file, own = "isam/proof/flat_walk.py", named(".test_flat_compiled.test_schedules_that_are_right[0]")
    (m,) = (m for m in mutants(ROOT / file, file) if (m.function, m.what) == ("walk", "if op == STEP: always False"))
    own[0]()  # compiles it, as tests that ran before may have
    assert faced(m, own, 60)


def test_what_changes_nothing_survives_and_what_never_ends_is_stopped() -> None:
    file = "isam/mapper/symmetry.py"
    (own, *_), (m, *_) = named(".test_match."), mutants(ROOT / file, file)
    assert faced(m, [], 60) == ""

    def endless() -> None:
        while True:
            pass

    assert faced(m, [Check("endless", endless, ())], 1) == "a limit of time or memory"
    assert own.name.startswith("unit.mapper.test_match.")


def test_every_known_survivor_is_a_mutant_and_has_a_reason() -> None:
    every = {str(m) for part in SOURCES for m in drawn(part, 0, 0)}
    for name, reason in known().items():
        assert name in every, f"{KNOWN.name}: no such mutant any more: {name}"
        assert reason, name
    assert len(every) > 5000


def test_a_mutant_names_its_function() -> None:
    m = Mutant("isam/a.py", "f", 0, 3, "1 becomes 2")
    assert str(m) == "isam/a.py f: 1 becomes 2"
