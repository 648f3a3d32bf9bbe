"""Kernel to equivalent kernel: one law per file (TR-0). README.md is the law for laws."""

from isam.transforms import statements, structure, values
from isam.transforms.commute import Commute
from isam.transforms.convert import CONVERSIONS
from isam.transforms.factor import Factor
from isam.transforms.law import Correspondence, Rewrite, Site, Transform, granted
from isam.transforms.narrow import Narrow
from isam.transforms.reassociate import Reassociate

__all__ = ["ALL", "Correspondence", "Rewrite", "Site", "Transform", "granted"]

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
"""Every law shipped, in the order in which the search offers them."""
