"""State that recurrent loops keep in a row of a buffer: what a step wrote and the next one reads as its own.

``y[t + 1]`` of one step is ``y[t]`` of the next: another place of the buffer, so that it goes through memory. As a
temporary it may stay in a register (``isam.scheduler.handed_on``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isam.compiler.offers.subject import one
from isam.ir.kernel import Kernel, recurrences

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject

STATES = 8  # temporaries at most: registers are few, and each is a step that is judged


@one
def carried(of: Subject) -> Steps:
    """Steps by which everything that a step reads of steps before it comes from a temporary, what is further back by
    way of several. What the judge of rewritings cannot decide is not offered."""
    from isam.compiler.offers.way import Way
    from isam.transforms.statements import ScalarReplacement

    law, way = ScalarReplacement(), Way(of.kernel, 0)
    way.take_each(law, lambda k: [s for s in law.sites(k) if _innermost(k, s["loop"])], STATES)
    return way.steps


def _innermost(kernel: Kernel, loop: int) -> bool:
    """Whether no other recurrent loop stands in it: beside the steps of one nothing stays in registers."""
    return not any(True for _ in recurrences(list(recurrences(kernel.body))[loop].body))
