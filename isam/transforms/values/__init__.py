"""Laws on values: sums and products, numbers, element types."""

from isam.transforms.law import Transform
from isam.transforms.values.bilinear import BILINEAR
from isam.transforms.values.distribute import Distribute
from isam.transforms.values.join import Join
from isam.transforms.values.nest import NESTS

LAWS: tuple[Transform, ...] = (
    Distribute(),
    *NESTS,
    Join(),
    *BILINEAR,
)
"""In the order in which the search offers them."""
