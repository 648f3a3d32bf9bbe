"""Drop statements whose results nobody sees (TR-1)."""

from __future__ import annotations

from isam.ir.kernel import Kernel
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import buffer_of, is_full_box, readers, splice, together, touched_between, touches, writers
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform


class Dead(Transform):
    """A temporary that no other statement reads need not be filled; what is overwritten in full before anyone has read
    it need not be written; a statement over an empty domain does nothing."""

    law = "dead"
    equation = "t = f  =>  (nothing)   (nobody reads t)"
    kinds = frozenset({"operation", "escapes", "dtype"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        found = {i for b in kernel.buffers if b.role == "temp" for i in _unread(kernel, b.name)}
        found |= {i for i in range(len(kernel.statements)) if _overwritten(kernel, i) or _empty(kernel, i)}
        return tuple(Site.of(statement=i) for i in sorted(found))

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        new, origin = splice(kernel, {site["statement"]: ()})
        return Rewrite(new, Correspondence(origin))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The statement that nothing carries out, or one that uses the temporary in question, is dead."""
        if not self.answers(mismatch):
            return ()
        asked = {mismatch.about("statement"), *(mismatch.about("outside") or ())}
        return tuple(s for s in self.sites(kernel) if s["statement"] in asked)


def _unread(kernel: Kernel, name: str) -> tuple[int, ...]:
    """The last statement that writes a temporary which only its own writers read."""
    made = writers(kernel, name)
    return made[-1:] if set(readers(kernel, name)) <= set(made) else ()


def _overwritten(kernel: Kernel, i: int) -> bool:
    """Is the next statement that touches the destination one that writes all of it without looking?"""
    name = kernel.statements[i].dest.buffer
    later = next((j for j in writers(kernel, name) if j > i), None)
    if later is None or not together(kernel, i, later) or name in touched_between(kernel, i, later):
        return False
    s = kernel.statements[later]
    return is_full_box(kernel, s) and name not in {buffer_of(x) for x in s.sources}


def _empty(kernel: Kernel, i: int) -> bool:
    """Nothing to do, and the last to touch its destination: the first write of a buffer stays before the others."""
    domain, name = kernel.statements[i].domain, kernel.statements[i].dest.buffer
    only = kernel.buffer(name).role == "out" and writers(kernel, name) == (i,)
    if only or any(name in touches(s) for s in kernel.statements[i + 1 :]):
        return False
    no_axis = any(a.extent.is_constant and a.extent.const <= 0 for a in domain.axes)
    return no_axis or any(w.is_constant and w.const < 0 for w in domain.where)
