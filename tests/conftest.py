"""Nothing that a test compiles is taken from, or kept for, another process."""

import os

os.environ["ISAM_CACHE"] = "off"
