"""Divisions by an integer program (HiGHS, which comes with SciPy), for those that the search of `partition.py` gives
up. Imported only then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from isam.ir.dataflow import bits
from isam.mapper.partition import Region

NODES = 60  # of the solver's own tree: a count, so that it ends the same way everywhere
ROUND = 1e-6  # the solver's tolerance, relative


def divide(
    regions: Sequence[Region], goal: int, required: frozenset[str] = frozenset()
) -> tuple[tuple[Region, ...], float] | None:
    """A division of ``goal`` with the fewest calls that the solver finds, and a lower bound on them; None when it finds
    none."""
    tags = {tag: n for n, tag in enumerate(sorted(required))}
    rows = {s: n for n, s in enumerate(bits(goal))}
    entries = [(rows[s], c) for c, r in enumerate(regions) for s in bits(r.mask)]
    entries += [(len(rows) + tags[r.tag], c) for c, r in enumerate(regions) if r.tag in tags]
    at = np.array(entries).T
    shape = (len(rows) + len(tags), len(regions))
    matrix = coo_array((np.ones(len(entries)), (at[0], at[1])), shape=shape).tocsr()
    most = np.concatenate([np.ones(len(rows)), np.full(len(tags), np.inf)])
    each: Any = LinearConstraint
    found: Any = milp(
        np.array([r.price[0] for r in regions]),
        constraints=each(matrix, np.ones(shape[0]), most),
        integrality=np.ones(len(regions)),
        bounds=Bounds(0.0, 1.0),
        options={"node_limit": NODES, "mip_rel_gap": 0.0},
    )
    if found.x is None:
        return None
    picked = tuple(r for r, x in zip(regions, found.x, strict=True) if x > 0.5)
    bound = float(found.mip_dual_bound)
    return tuple(sorted(picked, key=lambda r: r.mask & -r.mask)), bound - ROUND * abs(bound)
