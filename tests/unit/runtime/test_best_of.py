"""Alternatives behind one callable: which is taken for what size, who takes no part, what is kept of it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import isam
from isam.diagnostics import IsamError
from isam.runtime import best_of as module
from isam.runtime.best_of.agreement import close
from isam.runtime.best_of.decided import Decided
from isam.runtime.best_of.sizes import problem_size
from isam.runtime.best_of.trial import BEHIND, PATIENCE, PRUNED
from isam.runtime.environment import call_environment

X = np.arange(6, dtype=np.float32)
Way = Callable[..., Any]


class Clock:
    """A clock that calls alone move: ``taking(s)`` is an alternative that takes so many seconds."""

    def __init__(self) -> None:
        self.now, self.calls = 0.0, list[str]()

    def perf_counter(self) -> float:
        return self.now

    def taking(self, seconds: float, name: str = "", result: Way = lambda x: 2 * x) -> Way:
        def call(*args: Any, **named: Any) -> Any:
            self.now += seconds
            self.calls.append(name)
            return result(*args, **named)

        return call


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "time", found)
    return found


def used(best: Any, times: int = 40, *args: Any) -> list[Any]:
    return [best(*(args or (X,))) for _ in range(times)]


def test_the_quickest_is_taken_after_its_rounds_and_every_call_has_its_result(clock: Clock):
    ways = {"a": clock.taking(3.0, "a"), "b": clock.taking(2.5, "b"), "c": clock.taking(3.5, "c")}
    best = isam.best_of(ways, rounds=4)
    for y in used(best, 30):
        np.testing.assert_array_equal(y, 2 * X)
    assert best.decisions == {problem_size(X): "b"}
    first, rest = clock.calls[:3], clock.calls[3:]
    assert sorted(first) == ["a", "b", "c"]  # the first call compares
    assert rest[:12] == ["a", "b", "c"] * 4
    assert set(rest[12:]) == {"b"}
    assert "* b: 2.5e+06 us, median 2.5e+06 us of 4" in best.report()


@pytest.mark.parametrize(("second", "taken"), [(0.97, "b"), (0.99, "a"), (1.2, "a")])
def test_the_first_stays_unless_it_is_beaten_by_more_than_the_margin(clock: Clock, second: float, taken: str):
    best = isam.best_of({"a": clock.taking(1.0), "b": clock.taking(second)})
    used(best)
    assert list(best.decisions.values()) == [taken]


def test_who_is_far_behind_is_left_out_sooner(clock: Clock):
    ways = {"a": clock.taking(1.0, "a"), "b": clock.taking(BEHIND + 0.1, "b"), "c": clock.taking(1.1, "c")}
    best = isam.best_of(ways, rounds=6)
    used(best)
    assert clock.calls.count("b") == 1 + PRUNED
    assert clock.calls.count("c") == 1 + 6


def test_sizes_are_decided_apart(clock: Clock):
    def slow_when(large: bool, name: str) -> Way:
        def call(x: Any) -> Any:
            clock.now += 2.0 if (x.size > 6) == large else 1.0
            return x + 1

        return call

    best = isam.best_of({"small": slow_when(True, "small"), "large": slow_when(False, "large")})
    for x in (X, np.ones(7, np.float32), np.ones(7), X.reshape(2, 3)):
        used(best, 20, x)
    assert list(best.decisions.values()) == ["small", "large", "large", "small"]
    assert len(best.decisions) == 4


def test_a_key_of_ones_own(clock: Clock):
    best = isam.best_of({"a": clock.taking(2.0), "b": clock.taking(1.0)}, key=lambda x: x.ndim)
    used(best, 20)
    used(best, 1, np.ones(99))
    assert best.decisions == {1: "b"}


@pytest.mark.parametrize("wrong", [
    lambda x: 3 * x, lambda x: (2 * x)[:-1], lambda x: (2 * x).astype(np.int32), lambda x: None, lambda x: [2 * x],
    lambda x: np.where(x == 1, np.nan, 2 * x), lambda x: 2 * x + 0.01,
])  # fmt: skip
def test_who_computes_something_else_takes_no_part(clock: Clock, wrong: Way):
    best = isam.best_of({"a": clock.taking(5.0), "b": clock.taking(1.0, result=wrong), "c": clock.taking(4.0)})
    for y in used(best):
        np.testing.assert_array_equal(y, 2 * X)
    assert list(best.decisions.values()) == ["c"]
    assert "b: its results are not those of 'a'" in best.report()


def test_rounding_is_no_difference_and_other_rules_may_be_given(clock: Clock):
    nearly = clock.taking(1.0, result=lambda x: 2 * x * np.float32(1 + 3e-7))
    assert list(_decided({"a": clock.taking(2.0), "b": nearly}).values()) == ["b"]
    assert list(_decided({"a": clock.taking(2.0), "b": nearly}, agree=np.array_equal).values()) == ["a"]


def _decided(ways: dict[str, Way], **more: Any) -> dict[Any, str]:
    best = isam.best_of(ways, **more)
    used(best)
    return best.decisions


def test_who_raises_at_first_takes_no_part_and_later_it_is_raised(clock: Clock):
    def refuses(x: Any) -> Any:
        raise NotImplementedError("rank 1")

    best = isam.best_of({"a": clock.taking(2.0), "b": refuses})
    used(best)
    assert list(best.decisions.values()) == ["a"]
    assert "b: it raised NotImplementedError: rank 1" in best.report()
    first = isam.best_of({"a": refuses, "b": clock.taking(2.0)})
    for _ in range(3):
        with pytest.raises(NotImplementedError):
            first(X)
    assert first.decisions == {}


def test_what_is_updated_in_place_is_updated_once_a_call(clock: Clock):
    def adds(by: float, seconds: float) -> Way:
        def call(y: Any) -> None:
            clock.now += seconds
            y += by

        return call

    best = isam.best_of({"a": adds(1, 3.0), "b": adds(1, 1.0), "c": adds(2, 0.5)})
    y = np.zeros(4)
    for n in range(1, 25):
        assert best(y) is None
        np.testing.assert_array_equal(y, n)
    assert list(best.decisions.values()) == ["b"]
    assert "c: its results are not those of 'a'" in best.report()


def test_a_group_is_timed_as_a_whole_and_goes_to_one_alternative(clock: Clock):
    """One is quick forth and slow back; a result of the one is no use to the other."""
    def pair(name: str, forth: float, back: float) -> dict[str, Way]:
        return {"forth": clock.taking(forth, name, lambda x: 2 * x), "back": clock.taking(back, name, lambda x: x / 2)}

    best = isam.best_of({"a": pair("a", 2.0, 2.0), "b": pair("b", 1.0, 4.0), "c": pair("c", 3.0, 0.5)}, rounds=3)
    for _ in range(20):
        np.testing.assert_array_equal(best.back(best.forth(X)), X)
    assert list(best.decisions.values()) == ["c"]
    runs = list(zip(clock.calls[6::2], clock.calls[7::2], strict=True))
    assert all(a == b for a, b in runs)
    with pytest.raises(IsamError, match="its members are called: forth, back"):
        best(X)
    with pytest.raises(IsamError, match="'back' of a group is called before 'forth'"):
        isam.best_of({"a": pair("a", 1, 1)}).back(X)


def test_a_group_of_one_is_a_group(clock: Clock):
    best = isam.best_of({"a": {"only": clock.taking(2.0)}, "b": {"only": clock.taking(1.0)}})
    for _ in range(30):
        best.only(X)
    assert list(best.decisions.values()) == ["b"]
    with pytest.raises(IsamError, match="members are called: only"):
        best(X)


def test_those_inside_are_decided_first(clock: Clock):
    """While the inner one tries its slow alternative, nobody knows how long the outer one takes."""
    order: list[str] = []
    inner = isam.best_of({"slow": clock.taking(9.0), "quick": clock.taking(1.0)}, rounds=4)
    outer = isam.best_of({"plain": clock.taking(2.0), "nested": inner}, rounds=2)
    for _ in range(40):
        outer(X)
        order += [n for n, b in (("inner", inner), ("outer", outer)) if b.decisions and n not in order]
    assert order == ["inner", "outer"]
    assert list(outer.decisions.values()) == ["nested"]


def test_what_is_never_decided_inside_is_not_waited_for(clock: Clock):
    number = iter(range(10**6))
    inner = isam.best_of({"a": clock.taking(1.0), "b": clock.taking(1.0)}, key=lambda x: next(number))
    outer = isam.best_of({"plain": clock.taking(5.0), "nested": inner}, rounds=2)
    used(outer, 4 * 2 * PATIENCE + 10)
    assert list(outer.decisions.values()) in (["plain"], ["nested"])


def test_overlapping_calls_of_threads_while_results_are_compared_go_to_the_first(clock: Clock):
    entered, go = threading.Event(), threading.Event()

    def waits(x: Any) -> Any:
        entered.set()
        assert go.wait(30)
        return 3 * x  # wrong

    best = isam.best_of({"a": lambda x: 2 * x, "b": waits})
    results: list[Any] = []
    comparing = threading.Thread(target=lambda: results.append(best(X)))
    comparing.start()
    assert entered.wait(30)
    for _ in range(20):
        np.testing.assert_array_equal(best(X), 2 * X)
    go.set()
    comparing.join()
    np.testing.assert_array_equal(results[0], 2 * X)
    assert list(best.decisions.values()) == ["a"]


def test_many_threads_and_sizes():
    best = isam.best_of({"a": lambda x: x + 1, "b": lambda x: np.add(x, 1), "c": lambda x: x + 2})
    wrong: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(300):
            x = rng.random(int(rng.integers(1, 6)))
            if not np.array_equal(best(x), x + 1):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert len(best.decisions) == 5
    assert "c" not in best.decisions.values()


def test_compiled_kernels_are_alternatives():
    product = isam.einsum("mk,kn->mn")
    best = isam.best_of({"numpy": np.matmul, "isam": isam.compile(product)}, rounds=2)
    for m in (3, 17):
        a, b = np.random.default_rng(m).random((2, m, m), np.float32)
        for _ in range(8):
            np.testing.assert_allclose(best(a, b), a @ b, rtol=1e-5)
    assert len(best.decisions) == 2


# -- arguments and results of every kind -----------------------------------------------------------------------------
def test_what_is_used_up_or_changed_by_a_call_is_so_once():
    best = isam.best_of({"a": sum, "b": lambda given: sum(list(given))})
    for _ in range(9):
        assert best(iter([1, 2, 3])) == 6
        assert best(n for n in (1, 2, 3)) == 6  # no copy of a generator: nothing is compared

    def first_up(rows: Any) -> Any:
        rows[0] += 1
        return rows[0].copy()

    lists = isam.best_of({"a": first_up, "b": lambda rows: first_up(rows)})
    rows, rng = [np.zeros(2)], np.random.default_rng(1)
    drawn = isam.best_of({"a": lambda r: r.random(), "b": lambda r: r.random()})
    wanted = np.random.default_rng(1)
    for n in range(1, 20):
        np.testing.assert_array_equal(lists(rows), n)
        assert drawn(rng) == wanted.random()
    assert not any("not those" in b.report() for b in (lists, drawn))


def test_arguments_that_share_memory_are_not_compared():
    def shifted(x: Any, out: Any) -> None:
        out[...] = x + 1

    best, y = isam.best_of({"a": shifted, "b": lambda x, out: shifted(x, out)}), np.zeros(5)
    for n in range(1, 12):
        best(y, y)
        np.testing.assert_array_equal(y, n)
    assert "not those" not in best.report()


def test_results_in_one_buffer_are_told_apart():
    buffer = np.zeros(3)

    def into(by: float) -> Way:
        def call(x: Any) -> Any:
            buffer[...] = by * x
            return buffer

        return call

    best = isam.best_of({"a": into(2), "wrong": into(3)})
    for _ in range(20):
        np.testing.assert_array_equal(best(np.ones(3)), 2)
    assert "wrong: its results are not those of 'a'" in best.report()


@pytest.mark.parametrize("result", [lambda x: {"y": 2 * x}, lambda x: {"y": [2 * x, {"z": x}]}])
def test_results_in_dicts(clock: Clock, result: Way):
    best = isam.best_of({"a": clock.taking(2.0, result=result), "b": clock.taking(1.0, result=result),
                         "c": clock.taking(0.5, result=lambda x: {"y": 3 * x})})  # fmt: skip
    used(best)
    assert list(best.decisions.values()) == ["b"]


def test_results_that_cannot_be_compared_are_nobodys_fault(clock: Clock):
    def odd(a: Any, b: Any) -> bool:
        raise ValueError("which one?")

    best = isam.best_of({"a": clock.taking(2.0), "b": clock.taking(1.0)}, agree=odd)
    used(best)
    assert list(best.decisions.values()) == ["a"]
    assert "its results cannot be compared: ValueError: which one?" in best.report()


def test_types_as_arguments():
    best = isam.best_of({"a": np.sum, "b": lambda x, dtype: x.sum(dtype=dtype)})
    for dtype in (np.float32, np.dtype("f8"), np.float64):
        for _ in range(9):
            assert best(X, dtype=dtype) == X.sum()
    assert problem_size(np.dtype("f4")) != problem_size(np.dtype("i8"))
    assert isam.best_of({"a": lambda **given: given["self"]})(self=3) == 3


# -- failures --------------------------------------------------------------------------------------------------------
def test_who_raises_later_takes_no_further_part(clock: Clock):
    calls = [0]

    def once(x: Any) -> Any:
        calls[0] += 1
        if calls[0] > 1:
            raise RuntimeError("no more")
        return 2 * x

    best = isam.best_of({"a": clock.taking(2.0), "b": once})
    failed = 0
    for _ in range(30):
        try:
            best(X)
        except RuntimeError:
            failed += 1
    assert failed == 1
    assert list(best.decisions.values()) == ["a"]
    assert "b: it raised RuntimeError: no more" in best.report()


def test_a_first_call_that_none_can_do_decides_nothing(clock: Clock, tmp_path: Path):
    def needs(name: str, seconds: float) -> Way:
        def call(x: Any) -> Any:
            if not x[0]:
                raise ZeroDivisionError
            clock.now += seconds
            return 1 / x

        return call

    best = isam.best_of({"a": needs("a", 2.0), "b": needs("b", 1.0)}, keep=tmp_path / "d.json")
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            best(np.zeros(2))
    used(best, 30, np.ones(2))
    assert list(best.decisions.values()) == ["b"]


def test_what_was_never_timed_is_not_kept(tmp_path: Path):
    def refuses(x: Any) -> Any:
        raise MemoryError

    file = tmp_path / "d.json"
    used(isam.best_of({"a": lambda x: x, "b": refuses}, keep=file))
    assert not file.exists()


def test_a_call_within_a_call_is_no_sample(clock: Clock):
    """One that calls the whole again for something smaller is timed with what is inside, or not at all."""
    def halves(n: int) -> int:
        clock.now += 1.0
        return n if n < 2 else best(n // 2) + best(n - n // 2)

    def loop(n: int) -> int:
        clock.now += 0.5 * n
        return n

    best = isam.best_of({"halves": halves, "loop": loop}, rounds=3)
    for _ in range(60):
        assert best(8) == 8
    assert best.decisions[problem_size(8)] == "loop"
    assert " 0 us" not in best.report()


def test_a_thread_that_ends_amid_a_group_holds_nobody_up(clock: Clock):
    best = isam.best_of({"a": {"f": clock.taking(2.0), "b": clock.taking(2.0)},
                         "b": {"f": clock.taking(1.0), "b": clock.taking(1.0)}})  # fmt: skip
    for _ in range(2):
        other = threading.Thread(target=lambda: best.f(X))
        other.start()
        other.join()
    for _ in range(30):
        best.b(best.f(X))
    assert list(best.decisions.values()) == ["b"]


def test_members_that_come_late_are_compared_too(clock: Clock):
    wrong = {"f": clock.taking(1.0), "b": clock.taking(1.0, result=lambda x: 99 * x)}
    best = isam.best_of({"a": {"f": clock.taking(2.0), "b": clock.taking(2.0)}, "wrong": wrong})
    best.f(X)  # alone
    for _ in range(30):
        np.testing.assert_array_equal(best.b(best.f(X)), 4 * X)
    assert list(best.decisions.values()) == ["a"]


def test_keys_may_call_it_again(clock: Clock):
    """As a signal handler may: whoever is inside may come in once more."""
    class Key:
        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            other_one.decisions  # noqa: B018
            best.decisions  # noqa: B018
            return True

    other_one = isam.best_of({"a": len})
    best = isam.best_of({"a": clock.taking(2.0), "b": clock.taking(1.0)}, key=lambda x: Key())
    used(best, 20)
    assert list(best.decisions.values()) == ["b"]


# -- what is kept ----------------------------------------------------------------------------------------------------
def test_decisions_are_kept_and_used_by_later_runs(clock: Clock, tmp_path: Path):
    file = tmp_path / "made" / "decisions.json"
    ways = {"a": clock.taking(2.0, "a"), "b": clock.taking(1.0, "b")}
    used(isam.best_of(ways, keep=file))
    clock.calls.clear()
    again = isam.best_of(ways, keep=file)
    used(again, 5)
    assert clock.calls == ["b"] * 5
    assert "b, found before" in again.report()
    used(again, 20, np.ones(9))  # another size is tried, and kept beside
    third = isam.best_of(ways, keep=str(file))
    clock.calls.clear()
    used(third, 2)
    used(third, 2, np.ones(9))
    assert clock.calls == ["b"] * 4
    assert not [p for p in file.parent.iterdir() if p != file]


@pytest.mark.parametrize("content", ["", "?", "[]", "{}", '{"schema": "isam.best-of/1"}',
                                     '{"schema": "isam.best-of/1", "decisions": 3}', "[" * 100_000])  # fmt: skip
def test_a_file_that_is_none_counts_as_empty(clock: Clock, tmp_path: Path, content: str):
    file = tmp_path / "d.json"
    file.write_text(content)
    ways = {"a": clock.taking(2.0), "b": clock.taking(1.0)}
    used(isam.best_of(ways, keep=file))
    assert json.loads(file.read_text())["decisions"][call_environment()][repr(problem_size(X))]["taken"] == "b"


@pytest.mark.parametrize("row", [3, {}, {"taken": "c", "among": ["a", "b"]}, {"taken": "b", "among": ["b"]},
                                 {"taken": 5, "among": ["a", "b"]}])  # fmt: skip
def test_what_was_decided_among_others_is_not_used(clock: Clock, tmp_path: Path, row: Any):
    file = tmp_path / "d.json"
    rows = {repr(problem_size(X)): row}
    file.write_text(json.dumps({"schema": "isam.best-of/1", "decisions": {call_environment(): rows}}))
    assert Decided(file, ["a", "b"]).find(problem_size(X)) is None


def test_other_cpus_keep_their_own(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, ways = tmp_path / "d.json", {"a": clock.taking(2.0, "a"), "b": clock.taking(1.0, "b")}
    used(isam.best_of(ways, keep=file))
    monkeypatch.setattr("isam.runtime.best_of.decided.call_environment", lambda: "another")
    clock.calls.clear()
    used(isam.best_of(ways, keep=file))
    assert "a" in clock.calls
    assert json.loads(file.read_text())["decisions"].keys() == {call_environment(), "another"}


@pytest.mark.parametrize("keep", [".", "/"])
def test_a_folder_is_no_file(keep: str):
    with pytest.raises(IsamError, match="is a folder"):
        isam.best_of({"a": len}, keep=keep)


def test_a_place_that_cannot_be_written_is_no_error(clock: Clock, tmp_path: Path):
    (tmp_path / "file").write_text("")
    best = isam.best_of({"a": clock.taking(2.0), "b": clock.taking(1.0)}, keep=tmp_path / "file" / "d.json")
    used(best)
    assert list(best.decisions.values()) == ["b"]


# -- what is one, and what is the same -------------------------------------------------------------------------------
@pytest.mark.parametrize(("alternatives", "says"), [
    ({}, "one at least"), ([], "a mapping of names"), ({"a": 3}, "'a' is 3"), ({1: len}, "1 is"),
    ({"a": len, "b": {"f": len}}, "all callables, or all groups"), ({"a": {"f": len}, "b": {"g": len}}, "same members"),
    ({"a": {}}, "one at least"), ({"a": {"report": len}}, "'report'"), ({"a": {"x y": len}}, "'x y'"),
    ({"a": {"_f": len}}, "'_f'"), ({"a": {"f": 3}}, "names to callables"),
])  # fmt: skip
def test_what_is_no_alternative_is_said(alternatives: Any, says: str):
    with pytest.raises(IsamError, match=says) as e:
        isam.best_of(alternatives)
    assert e.value.diagnostics[0].code == "best-of"


@pytest.mark.parametrize("rounds", [0, -1, 2.5, "3"])
def test_rounds_are_a_number(rounds: Any):
    with pytest.raises(IsamError, match="rounds are a number"):
        isam.best_of({"a": len}, rounds=rounds)


def test_sizes_of_calls():
    size = problem_size(X, 3, "t", None, axis=1)
    assert size == problem_size(X + 1, 3, "t", None, axis=1)
    others = [(X[1:], 3, "t", None), (X.astype(np.float64), 3, "t", None), (X, 4, "t", None), (X, 3, "n", None),
              (X, 3, "t", 1.5), (X.reshape(2, 3), 3, "t", None)]  # fmt: skip
    assert len({size, problem_size(X, 3, "t", None, axis=0), *(problem_size(*o, axis=1) for o in others)}) == 8
    shaped = SimpleNamespace(shape=[2, 3], dtype="torch.float32")
    assert problem_size(shaped) == problem_size(SimpleNamespace(shape=(2, 3), dtype="torch.float32"))
    assert problem_size(1.5) == problem_size(2.5)  # the kind of what is no size


@pytest.mark.parametrize("given", [{"key": 3}, {"agree": 3}])
def test_key_and_agree_are_functions(given: Any):
    with pytest.raises(IsamError, match="is a function, not int"):
        isam.best_of({"a": abs, "b": abs}, **given)


@pytest.mark.parametrize(("a", "b", "same"), [
    (1.0, 1.0 + 1e-9, True), (1.0, 1.0 + 1e-6, False), (3, 3, True), (3, 4, False), (None, None, True),
    (None, 0, False), ((1.0, 2.0), [1.0, 2.0], False), ([1.0, 2.0], (1.0, 2.0), False), ([1.0], [1.0], True),
        (X, X.astype(np.float64), False), (np.float64(1), 1.0, True),
    (np.float64(1), np.float32(1), False), ((1.0, 2.0), (1.0,), False), ("a", "a", True),
    ("a", "b", False), (True, True, True),
    (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), True), (np.array([np.inf]), np.array([-np.inf]), False),
    (np.array([1e8, 1.0]), np.array([1e8, 1.5]), True), (np.zeros(0), np.zeros(0), True), (1j, 1j + 1e-9, True),
    (1j, -1j, False), (np.array([1, 2], ml_dtypes.bfloat16), np.array([1, 2.01], ml_dtypes.bfloat16), True),
    (np.array([1, 2], ml_dtypes.bfloat16), np.array([1, 3], ml_dtypes.bfloat16), False),
    (np.array([1.0], ml_dtypes.float8_e4m3fn), np.array([1.125], ml_dtypes.float8_e4m3fn), True),
    ([1.0], np.array([1.0]), False), (np.array([1.0]), [1.0], False), ({"a": 1}, {"a": 1}, True),
    ({"a": 1}, {"b": 1}, False), ({"a": X}, {"a": X + 1}, False), ({"a": 1}, 1, False),
])  # fmt: skip
def test_close(a: Any, b: Any, same: bool):
    assert close(a, b) is same


def test_a_decided_call_costs_little():
    """Under a microsecond beside the call itself; here ten are allowed, as machines are shared."""
    best = isam.best_of({"a": lambda x, y: None})
    best(X, X)
    took = []
    for _ in range(50):
        begin = time.process_time()
        for _ in range(200):
            best(X, X)
        took.append((time.process_time() - begin) / 200)
    assert min(took) < 1e-5


def test_a_failure_while_alternatives_are_compared_refuses_nobody():
    """The first is all that other threads call then; if it took no further part, and the others were refused by what is
    being found out, nobody would be left."""
    comparing, go_on = threading.Event(), threading.Event()

    def first(x):
        if x.sum() < 0:
            raise ValueError("below zero")
        return x * 2

    def other(x):
        comparing.set()
        go_on.wait(30)
        return x * 3

    both = isam.best_of({"first": first, "other": other}, rounds=1)
    found = []
    thread = threading.Thread(target=lambda: found.append(both(np.ones(3))))
    thread.start()
    comparing.wait(30)
    with pytest.raises(ValueError, match="below zero"):
        both(-np.ones(3))
    go_on.set()
    thread.join(30)
    assert found[0].tolist() == [2, 2, 2]
    assert both(np.ones(3)).tolist() == [2, 2, 2]
    assert list(both.decisions.values()) == ["first"]
