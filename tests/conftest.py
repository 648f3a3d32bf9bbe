"""Nothing that a test compiles is taken from, or kept for, another process."""

import gc
import os

os.environ["ISAM_CACHE"] = "off"

# What tests keep for the next ones grows to many values: to look for garbage as often as Python does took up to a tenth
# of the time, by folder. What is new is still looked at while it is at hand, what is old next to never.
gc.set_threshold(100_000, 100, 200)


def pytest_sessionfinish() -> None:
    """At its end pytest looks for garbage five times over; of all that tests have kept, that takes so long that the
    process is interrupted (one of several is, five seconds after its last test). Here that is done once, in time, and
    what is left then is not looked through again."""
    gc.collect()
    gc.freeze()
