"""Campaigns look for what the walk over a tree cannot show: no execution of every step helps out (ADR 21)."""

from unittest import mock

from isam.proof import certificate


def on_the_tree():
    """While it lasts, what the tree does not show is not proved."""
    return mock.patch.object(certificate, "SHOWN", frozenset())
