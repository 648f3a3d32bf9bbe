"""Campaigns look for what the walk over a tree, or the judge of rewritings, cannot show: no execution of every step
helps out, and no schedule and no step gives way to another (ADR 21)."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from isam.compiler import judged, variants
from isam.proof import certificate


@contextmanager
def on_the_tree() -> Iterator[None]:
    """While it lasts, what the tree does not show is not proved."""
    shows_less = mock.patch.object(certificate, "SHOWN", frozenset())
    stays = mock.patch.object(variants, "give_way", return_value=False)
    taken = mock.patch.object(judged, "undecided", return_value=None)
    with shows_less, stays, taken:
        yield
