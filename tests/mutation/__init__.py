"""Mutants of matcher, transforms and checker, and the tests that kill them: ``python -m tests.mutation``."""
