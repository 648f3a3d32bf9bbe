"""Cut a recurrent loop over a size into parts of a fixed number of steps, and the steps left over."""

from __future__ import annotations

from dataclasses import replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Buffer, Item, Kernel, Recurrence, Statement, Sym, put, recurrences
from isam.transforms.edit import fresh, names_in
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.statements.hoist import alone_in


@dataclass(frozen=True)
class Parts(Transform):
    """``loop t < T`` becomes a loop over the whole parts in ``T``, in it one over the steps of a part, and after it one
    over what is left: so what may leave a loop of a fixed number of steps (``hoist``) may where that number is known at
    run time only. All loops over a size at once, whichever steps it admits: none, fewer than a part has, any other."""

    steps: tuple[int, ...] = (2, 8, 32)

    law = "parts"
    equation = "loop t < T: f(t)  =>  Q = T // n; loop c < Q: (loop s < n: f(n*c + s)); loop r < T - n*Q: f(n*Q + r)"
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        trips = {r.axis.extent for r in recurrences(kernel.body)}
        known = {s.whole[0] for s in kernel.follow if s.whole}
        able = [s.name for s in kernel.given if Affine.of(s.name) in trips and s.name not in known]
        return tuple(Site.of(size=name, steps=n) for name in able for n in self.steps)

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        made = _Made(kernel, site["size"], site["steps"])
        body = made.items(kernel.body)
        buffers = (*kernel.buffers, *made.buffers)
        new = replace(kernel, syms=(*kernel.syms, made.parts), buffers=buffers, body=body, template=None)
        back = Correspondence(tuple(made.origins), tuple(made.axes), tuple(made.copies), tuple(made.meanings))
        return Rewrite(new, back)


class _Made:
    """Rebuilds a kernel's items; ``origins`` are the old numbers of the new statements, in their order."""

    def __init__(self, kernel: Kernel, size: str, steps: int):
        self.kernel, self.taken = kernel, names_in(kernel)
        self.buffers: list[Buffer] = []
        self.copies: list[tuple[str, tuple[str, ...]]] = []
        self.size, self.steps = size, steps
        self.parts = Sym.times(self.name(f"{size}_parts"), next(s for s in kernel.syms if s.name == size), steps)
        self.origins: list[tuple[int, ...]] = []
        self.axes: list[tuple[str, tuple[str, ...]]] = []
        self.meanings: list[tuple[str, str]] = []
        self.at = 0  # the statement that comes next

    def name(self, base: str) -> str:
        got = fresh(self.taken, base)
        self.taken.add(got)
        return got

    def items(self, body: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(x for it in body for x in self.item(it))

    def item(self, it: Item) -> tuple[Item, ...]:
        if isinstance(it, Statement):
            self.origins.append((self.at,))
            self.at += 1
            return (it,)
        if it.axis.extent != Affine.of(self.size):
            return (replace(it, body=self.items(it.body)),)
        counter, n = it.axis.name, self.steps
        part, step, left = (self.name(f"{counter}_{x}") for x in ("part", "step", "left"))
        self.axes.append((counter, (part, step, left)))
        begin = Affine.of(self.parts.name, n)
        self.meanings += [(part, f"{counter} // {n}"), (step, f"{counter} % {n}"), (left, f"{counter} - {begin}")]
        first, before = self.at, len(self.origins)
        body = self.items(it.body)
        inner = Recurrence(Axis(step, Affine((), n)), put(body, {counter: Affine.of(part, n) + Affine.of(step)}))
        self.origins += self.origins[before:]
        rest = self.own(range(first, self.at), put(body, {counter: begin + Affine.of(left)}))
        return (Recurrence(Axis(part, Affine.of(self.parts.name)), (inner,)),
                Recurrence(Axis(left, Affine.of(self.size) - begin), rest))  # fmt: skip

    def own(self, loop: range, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """The steps left over, with temporaries of their own where nothing is handed on in them: what leaves one loop
        need not leave the other."""
        found = dict.fromkeys(self.kernel.statements[i].dest.buffer for i in loop)
        names = {b: self.name(f"{b}_left") for b in found if alone_in(self.kernel, loop, b)}
        self.buffers += [replace(self.kernel.buffer(b), name=new) for b, new in names.items()]
        self.copies += [(b, (b, new)) for b, new in names.items()]

        def item(it: Item) -> Item:
            return replace(it, body=tuple(map(item, it.body))) if isinstance(it, Recurrence) else it.renamed(names)

        return tuple(map(item, items))
