"""Kernels laid beside instructions: mappings, or reports of why not (MAP-1 to MAP-10)."""

from isam.mapper.explain import Explanation, explain
from isam.mapper.match import Matches, count, match, near_misses

__all__ = ["Explanation", "Matches", "count", "explain", "match", "near_misses"]
