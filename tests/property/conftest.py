"""Random kernels and machines have to be proved on the tree, as in campaigns."""

import pytest

from tests.on_the_tree import on_the_tree


@pytest.fixture(autouse=True)
def _on_the_tree():
    with on_the_tree():
        yield
