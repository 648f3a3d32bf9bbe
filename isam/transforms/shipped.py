"""Every law shipped."""

from isam.transforms import statements, structure, values
from isam.transforms.commute import Commute
from isam.transforms.convert import CONVERSIONS
from isam.transforms.factor import Factor
from isam.transforms.law import Transform
from isam.transforms.narrow import Narrow
from isam.transforms.reassociate import Reassociate

ALL: tuple[Transform, ...] = (
    Factor(),
    Narrow(),
    Reassociate(),
    *structure.LAWS,
    *values.LAWS,
    *statements.LAWS,
    *CONVERSIONS,
    Commute(),
)
"""In the order in which the search offers them."""
