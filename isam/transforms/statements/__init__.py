"""Laws on statements: which there are, what they share, where they stand."""

from isam.transforms.law import Transform
from isam.transforms.statements.carried import ScalarReplacement
from isam.transforms.statements.dead import Dead
from isam.transforms.statements.duplicate import Duplicate, Unify
from isam.transforms.statements.fission import Fission, Fusion
from isam.transforms.statements.hoist import Hoist
from isam.transforms.statements.inline import Inline
from isam.transforms.statements.parts import Parts
from isam.transforms.statements.sink import Sink
from isam.transforms.statements.split_loop import SplitLoop

LAWS: tuple[Transform, ...] = (
    Dead(),
    Inline(),
    Fusion(),
    Unify(),
    Duplicate(),
    Fission(),
    Hoist(),
    Parts(),
    SplitLoop(),
    Sink(),
    ScalarReplacement(),
)
"""In the order in which the search offers them."""
