"""Laws of axes, buffers and domains: another shape for loops and data, the same operations on the same values."""

from isam.transforms.law import Transform
from isam.transforms.structure.axes import AddUnitAxis, RemoveUnitAxis, SplitAxis
from isam.transforms.structure.dimensions import PermuteDimensions, SplitDimension
from isam.transforms.structure.pad import Pad

LAWS: tuple[Transform, ...] = (
    SplitAxis(),
    SplitDimension(),
    AddUnitAxis(),
    RemoveUnitAxis(),
    Pad(),
    PermuteDimensions(),
)
