"""Steps that a search does not take, because somebody who judges them could not show that they keep the meaning."""

from __future__ import annotations

from isam.classes import dataclass
from isam.ir.kernel import Kernel
from isam.ir.mapping import Rewriting


@dataclass(frozen=True, slots=True)
class Barred:
    """``steps``: each with the kernel that it is not taken from; ``laws``: those that are not used at all; ``why``: a
    line per step, with what was not shown. Falsy: nothing is barred."""

    steps: tuple[tuple[Kernel, str, str], ...] = ()
    laws: frozenset[str] = frozenset()
    why: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.steps)

    def stops(self, kernel: Kernel, law: str, site: str) -> bool:
        return law in self.laws or (kernel, law, site) in self.steps

    def and_also(self, kernel: Kernel, step: Rewriting, why: str) -> Barred:
        """With one more step; where a law of it is barred already, the law at every place, so that there is an end."""
        again = {step.law} if any(law == step.law for _, law, _ in self.steps) else set[str]()
        said = f"{step.law} ({step.site}): {why}"
        return Barred((*self.steps, (kernel, step.law, step.site)), self.laws | again, (*self.why, said))


NOTHING = Barred()
