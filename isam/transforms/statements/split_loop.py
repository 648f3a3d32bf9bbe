"""Cut a recurrent loop of a known number of steps into blocks of as many steps each."""

from __future__ import annotations

from dataclasses import replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Item, Kernel, Recurrence, put
from isam.transforms.edit import fresh, names_in
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.statements.hoist import loops


@dataclass(frozen=True)
class SplitLoop(Transform):
    """``loop t < n*m`` becomes a loop over blocks, in it one over the steps of a block: the same steps in the same
    order (strip mining). What all steps need may then be made block by block (``sink``). Several blocks of several
    steps, none left over."""

    steps: tuple[int, ...] = (2, 8, 32)

    law = "split-loop"
    equation = "loop t < n*m: f(t)  =>  loop c < m: (loop s < n: f(n*c + s))"
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        trips = [loop.item.axis.extent for loop in loops(kernel)]
        return tuple(Site.of(loop=n, steps=k) for n, trip in enumerate(trips) if trip.is_constant
                     for k in self.steps if 1 < k < trip.const and trip.const % k == 0)  # fmt: skip

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        loop, n = loops(kernel)[site["loop"]].item, site["steps"]
        counter, taken = loop.axis.name, names_in(kernel)
        block, step = (fresh(taken, f"{counter}_{x}") for x in ("block", "step"))
        inner = Recurrence(Axis(step, Affine((), n)), put(loop.body, {counter: Affine.of(block, n) + Affine.of(step)}))
        outer = replace(loop, axis=Axis(block, Affine((), loop.axis.extent.const // n)), body=(inner,))

        def item(it: Item) -> Item:
            if it is loop:
                return outer
            return replace(it, body=tuple(map(item, it.body))) if isinstance(it, Recurrence) else it

        new = replace(kernel, body=tuple(map(item, kernel.body)), template=None)
        meanings = ((block, f"{counter} // {n}"), (step, f"{counter} % {n}"))
        back = replace(Correspondence.identity(kernel), axes=((counter, (block, step)),), meanings=meanings)
        return Rewrite(new, back)
