"""Nothing that a test compiles is taken from, or kept for, another process."""

import gc
import os

os.environ["ISAM_CACHE"] = "off"

# What tests keep for the next ones grows to many values: to look for garbage as often as Python does took up to a tenth
# of the time, by folder. What is new is still looked at while it is at hand, what is old next to never.
gc.set_threshold(100_000, 100, 200)


def pytest_sessionfinish() -> None:
    """When all is over, pytest and Python look for garbage among all that tests have kept, for seconds; a process that
    is one of several is interrupted five seconds after its last test, wherever it is then. So it is done here, in time,
    and what is left is not looked through again."""
    gc.collect()
    gc.freeze()
