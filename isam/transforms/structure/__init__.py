"""Laws of axes, buffers and domains: another shape for loops and data, the same operations on the same values."""

from isam.transforms.law import Transform
from isam.transforms.structure.axes import AddUnitAxis, RemoveUnitAxis, SplitAxis
from isam.transforms.structure.dilate import Dilate
from isam.transforms.structure.dimensions import PermuteDimensions, SplitDimension
from isam.transforms.structure.embed import Embed
from isam.transforms.structure.fuse import FuseAxes, FuseDimensions
from isam.transforms.structure.inplace import InPlace
from isam.transforms.structure.pad import Pad
from isam.transforms.structure.peel import Peel, PeelSum
from isam.transforms.structure.pitch import Pitch, Trim
from isam.transforms.structure.reverse import ReverseAxis, ReverseDimension, ReverseSum
from isam.transforms.structure.roundup import RoundUp, RoundUpSum
from isam.transforms.structure.skew import Skew
from isam.transforms.structure.speculate import Speculate
from isam.transforms.structure.store import StoreApart, StoreAt
from isam.transforms.structure.unfold import Unfold, UnfoldSum
from isam.transforms.structure.unpad import Unpad
from isam.transforms.structure.unpeel import Unpeel, UnpeelSum

LAWS: tuple[Transform, ...] = (
    SplitAxis(),
    SplitDimension(),
    FuseAxes(),
    FuseDimensions(),
    AddUnitAxis(),
    RemoveUnitAxis(),
    Pad(),
    Unpad(),
    Unpeel(),
    UnpeelSum(),
    Peel(),
    PeelSum(),
    ReverseAxis(),
    ReverseSum(),
    ReverseDimension(),
    Unfold(),
    UnfoldSum(),
    Skew(),
    RoundUp(),
    RoundUpSum(),
    Embed(),
    Dilate(),
    Pitch(),
    Trim(),
    StoreAt(),
    StoreApart(),
    InPlace(),
    Speculate(),
    PermuteDimensions(),
)
"""In the order in which the search offers them."""
