"""Nothing that a test compiles is taken from, or kept for, another process."""

import gc
import os

os.environ["ISAM_CACHE"] = "off"

# What is kept from one test to the next grows to millions of values; to look through all of them for garbage whenever a
# quarter more are there takes a fifth of the time. Hardly any garbage lives long enough to be found by that alone.
gc.set_threshold(*gc.get_threshold()[:2], 200)
