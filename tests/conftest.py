"""Nothing that a test compiles is taken from, or kept for, another process."""

import gc
import os

os.environ["ISAM_CACHE"] = "off"

# What tests keep for the next ones grows to many values, and hardly any cycle is among what they let go: to look for
# garbage as often as Python does took up to a tenth of the time, by folder. Still looked for, more seldom.
gc.set_threshold(1_000_000, 10, 200)
