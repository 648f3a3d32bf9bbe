"""A chain of rewriting steps made one after the other, each judged before the next is taken."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.mapper.space import Step
from isam.proof.equivalence import Equivalence
from isam.transforms.law import Correspondence, NoSite, Site, Transform, dtypes_at, granted, taken
from isam.transforms.structure.axes import joined
from isam.transforms.structure.dimensions import SplitDimension
from isam.transforms.structure.peel import PeelSum


class StepRefused(Exception):
    """A step that its law, the user or the judge of rewritings does not allow."""


@dataclass
class Way:
    """Steps from ``kernel`` on, one after the other; ``at``: where the sum stands; ``back``: to the kernel that it
    began with, from the first step on."""

    kernel: Kernel
    at: int
    steps: tuple[Step, ...] = ()
    back: Correspondence = Correspondence()
    equivalence: Equivalence = field(default_factory=Equivalence)  # remembers what it computed from step to step

    def take(self, law: Transform, site: Site, *, late: bool = False) -> None:
        """Goes on to what the law makes; the sum is the first (``late``: the last) of the statements it became."""
        if not granted(self.kernel, law.needs, dtypes_at(self.kernel, site)):
            raise StepRefused
        try:
            rewrite = taken(law, self.kernel, site)
        except NoSite:
            raise StepRefused from None
        if not self.equivalence.judge(self.kernel, rewrite.kernel, sorted(law.needs)):
            raise StepRefused
        places = [n for n, old in enumerate(rewrite.back.statements) if self.at in old]
        self.kernel, self.at = rewrite.kernel, places[-1 if late else 0]
        self.back = self.back.then(rewrite.back) if self.steps else rewrite.back
        self.steps = (*self.steps, Step(law, site, None))

    def now(self, statements: Collection[int]) -> tuple[int, ...]:
        """What certain statements of the kernel that the way began with have become."""
        if not self.steps:
            return tuple(statements)
        return tuple(n for n, old in enumerate(self.back.statements) if set(old) & set(statements))

    def take_each(self, law: Transform, sites: Callable[[Kernel], Sequence[Site]], most: int) -> None:
        """Takes what sites there are, one after the other, until the way has so many steps. One that is refused stays,
        and those behind it are taken."""
        refused = 0
        while len(self.steps) < most and (found := sites(self.kernel)[refused:]):
            taken = len(self.steps)
            with self.attempt():
                self.take(law, found[0])
            refused += len(self.steps) == taken

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Where a step within is refused, the way goes back to where it was, and what follows is carried out."""
        before = self.kernel, self.at, self.steps, self.back
        try:
            yield
        except StepRefused:
            self.kernel, self.at, self.steps, self.back = before

    def group(self, axis: str) -> tuple[int, ...]:
        """The statements that share an axis of the sum."""
        return next(g for g in joined(self.kernel, axis) if self.at in g)

    def peel_sum(self, axis: str, length: int) -> None:
        """The sum over the first ``length`` steps of an axis comes after that over the others."""
        cut = Affine.of(axis, -1) + (length - 1)
        self.take(PeelSum(), Site.of(statements=self.group(axis), cut=cut, late=True), late=True)

    def split_temporaries(self, length: int) -> None:
        """Dimensions of temporaries that divide into parts of ``length`` become two: an axis cut into such parts
        indexes one of them alone."""
        law = SplitDimension((length,))
        while site := next((x for x in law.sites(self.kernel) if self.kernel.buffer(x["buffer"]).role == "temp"), None):
            self.take(law, site)
