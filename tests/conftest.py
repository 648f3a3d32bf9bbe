"""Nothing that a test compiles is taken from, or kept for, another process."""

import gc
import os

os.environ["ISAM_CACHE"] = "off"

# What tests keep for the next ones grows to many values; to look through all of them for garbage whenever a quarter
# more are there took from a fifteenth to a fifth of the time, by folder. Still looked for, more seldom.
gc.set_threshold(*gc.get_threshold()[:2], 200)
