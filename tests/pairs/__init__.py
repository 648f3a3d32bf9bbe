"""Random (kernel, instruction) pairs: no wrong mapping, and no wrong "no". ``python -m tests.pairs 100000``."""
