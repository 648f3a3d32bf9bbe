"""Laws on values: sums and products, numbers, element types."""

from isam.transforms.law import Transform
from isam.transforms.values.bilinear import BILINEAR
from isam.transforms.values.casts import CASTS
from isam.transforms.values.choices import ChoiceToExtremum
from isam.transforms.values.distribute import Distribute
from isam.transforms.values.expand import Expand
from isam.transforms.values.exponentials import ExpOfSum
from isam.transforms.values.fold import FOLDS
from isam.transforms.values.identity import IdentityMatrix, NumberArray, TimesOne
from isam.transforms.values.join import Join
from isam.transforms.values.monotone import MONOTONE
from isam.transforms.values.nest import NEST_SUMS
from isam.transforms.values.rebase import Rebase
from isam.transforms.values.split_cast import SplitCast
from isam.transforms.values.terms import TERMS
from isam.transforms.values.widen import Widen

LAWS: tuple[Transform, ...] = (
    Distribute(),
    *NEST_SUMS,
    Join(),
    *TERMS,
    *FOLDS,
    TimesOne(),
    NumberArray(),
    IdentityMatrix(),
    ChoiceToExtremum(),
    *CASTS,
    Widen(),
    *MONOTONE,
    ExpOfSum(),
    *BILINEAR,
    Expand(),
    Rebase(),
    SplitCast(),
)
"""In the order in which the search offers them."""
