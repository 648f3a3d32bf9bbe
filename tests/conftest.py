"""Nothing that a test compiles is taken from, or kept for, another process."""

import gc
import os

import pytest
from _pytest import runner

from isam.room import roomy

os.environ["ISAM_CACHE"] = "off"

# What tests keep for the next ones grows to many values: to look for garbage as often as Python does took up to a tenth
# of the time, by folder. What is new is still looked at while it is at hand, what is old next to never.
gc.set_threshold(100_000, 100, 200)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What looks at all values that there are comes first: later on, each look takes seconds."""
    items.sort(key=lambda item: item.path.name != "test_garbage.py")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """As pytest does it, below a frame that leaves room for the tests': they begin dozens of calls deep."""
    return roomy(runner.pytest_runtest_protocol)(item, nextitem)


@pytest.hookimpl(trylast=True)  # behind Hypothesis, which says when it may be used
def pytest_sessionstart(session: pytest.Session) -> None:
    """Hypothesis looks for garbage when a process uses it for the first time: here, where there is hardly anything yet,
    and not among all that tests have kept by then, for seconds. A process that only hands tests out uses it not at all.
    """
    if hasattr(session.config, "workerinput") or not session.config.getoption("numprocesses", None):
        from hypothesis import given, settings, strategies

        settings(max_examples=1, database=None)(given(strategies.none())(lambda _: None))()


def pytest_sessionfinish() -> None:
    """When all is over, pytest and Python look for garbage among all that tests have kept, for seconds; a process that
    is one of several is interrupted five seconds after its last test, wherever it is then. So it is done here, in time,
    and what is left is not looked through again."""
    gc.collect()
    gc.freeze()
