"""Frames of many calls find room behind that of one."""

from __future__ import annotations

import inspect
import resource
from concurrent.futures import ThreadPoolExecutor

import pytest

from isam.compiler import stages
from isam.proof import certificate
from isam.room import roomy

CALLS = 2000
DEPTHS = range(200)  # frames of the tests' own functions: more than a piece of 16 KiB has room for


def called(n: int) -> int:
    return n + 1


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


def looped(depth: int) -> int:
    """Pages that a loop of calls gets from the system, so many calls further down."""
    if depth:
        return looped(depth - 1)
    before = faults()
    for n in range(CALLS):
        called(n)
    return faults() - before


def most(count) -> int:
    """The most pages at any depth, in a thread, which has frames of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: max(count(depth) for depth in DEPTHS)).result()


@pytest.mark.skipif(not hasattr(resource, "RUSAGE_THREAD"), reason="pages are not counted by thread here")
def test_no_loop_asks_the_system_for_room_in_every_iteration() -> None:
    assert most(looped) >= CALLS, "what this is for: Python returns a piece as soon as the last call in it ends"
    assert most(roomy(looped)) < CALLS / 10


def test_it_is_the_same_function() -> None:
    def made(a: int, /, *rest: int, b: int = 2, **named: int) -> tuple:
        """What it says."""
        return a, rest, b, named

    assert roomy(made)(1, 3, b=4, c=5) == (1, (3,), 4, {"c": 5})
    assert roomy(made).__doc__ == "What it says."
    assert inspect.signature(roomy(made)) == inspect.signature(made)
    with pytest.raises(ZeroDivisionError):
        roomy(lambda: 1 // 0)()


def test_functions_call_themselves_as_deep_as_without() -> None:
    def down(n: int) -> int:
        return n and down(n - 1)

    assert roomy(down)(600) == 0
    with pytest.raises(RecursionError):
        roomy(down)(10**6)


def test_compilations_and_proofs_have_room() -> None:
    for function in (stages.run_stages, stages.plain_stages, stages.scheduled, certificate.examine):
        assert function.__code__.co_stacksize >= 1 << 15
