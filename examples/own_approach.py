"""An Approach that overrides one choice and inherits the rest: the register block with the fewest loops around it."""

import numpy as np

import isam
from isam.approach.shipped.greedy import Greedy


class Smallest(Greedy):
    """Takes the last option where tiles are chosen, whatever it costs."""

    name = "smallest"
    why = "to show that it can be done"

    def tile(self, choice):
        return choice.options[-1]


text = isam.einsum("mk,kn->mn", name="matmul", names=("A", "B", "C"))
sizes = {"M": 40, "N": 50, "K": 60}
usual = isam.compile(text, sizes=sizes)
mine = isam.compile(text, sizes=sizes, approach=Smallest())

rng = np.random.default_rng(4)
A, B = rng.standard_normal((40, 60), dtype=np.float32), rng.standard_normal((60, 50), dtype=np.float32)
print("close:", bool(abs(usual(A, B) - mine(A, B)).max() < 1e-4))
print("other tiles:", [d.label for d in usual.trace.decisions if d.point == "tile"]
      != [d.label for d in mine.trace.decisions if d.point == "tile"])  # fmt: skip
again = isam.compile(text, sizes=sizes, replay=mine.trace)
print("replayed to identical bytes:", again.artifact.parts["object.o"] == mine.artifact.parts["object.o"])
