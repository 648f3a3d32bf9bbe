"""An instruction statement and the kernel statement that plays it, and what their dead ends taught.

When the next statement of an instruction cannot be joined, often one agreed axis alone is to blame: the sum has a step
along it, say, that the product before it does not show. Every permutation of the other axes would end the same way. So
a dead end says which agreed axes it depends on (its *blame*), and an assignment that holds them is not tried again.
"""

from __future__ import annotations

from isam.mapper.dataflow import Node, Source

Blame = frozenset[tuple[int, int]]
"""(instruction axis, axis of the region) that a dead end depends on. Empty: it comes whatever the axes are."""
ANYWAY: Blame = frozenset()


def joined(one: Blame | None, other: Blame | None) -> Blame | None:
    """Two dead ends side by side depend on both; None is a dead end that is not understood, or none at all."""
    return None if one is None or other is None else one | other


class Pair:
    """An instruction statement and the kernel statement that plays it. ``classes[axis]``: the region's axis, or -1.

    ``linked``: the classes that followed from the dataflow; ``barred``: sets of (instruction axis, axis of the
    statement), each a dead end by itself; ``blame``: where all of it is a dead end for what was agreed before.
    """

    __slots__ = ("barred", "blame", "classes", "fits", "forms", "linked", "node", "plays", "swapped")

    def __init__(self, plays: Node, node: Node, swapped: bool, forms: list[tuple[Source, Source]]):
        self.plays = plays  # the instruction's statement
        self.node = node  # the kernel's statement
        self.swapped = swapped
        self.forms = forms  # (instruction's, kernel's), destination first
        self.fits: dict[tuple[int, int], bool] = {}  # columns compared so far
        self.begin([-1] * node.width)

    def begin(self, classes: list[int]) -> None:
        """Starts anew with the axes that follow from the dataflow."""
        self.classes = classes
        self.linked = tuple(classes)
        self.barred: list[frozenset[tuple[int, int]]] = []
        self.blame: Blame | None = None

    def learn(self, blame: Blame) -> None:
        """The statements after this one cannot be joined, because of ``blame``."""
        here = {k: a for a, k in enumerate(self.classes) if self.linked[a] < 0}  # chosen, not linked
        own = frozenset((c, here[k]) for c, k in blame if k in here)
        if own:
            self.barred.append(own)
        else:
            self.blame = blame

    def hopeless(self, axes: list[int]) -> bool:
        """Is it known that what is agreed now can never be completed?"""
        return bool(self.barred) and any(all(0 <= axes[c] == self.classes[a] for c, a in own) for own in self.barred)
