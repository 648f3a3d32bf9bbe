"""Kernels laid beside instructions: mappings, or reports of why not (MAP-1 to MAP-10)."""

from isam.mapper.match import Matches, count, match, near_misses

__all__ = ["Matches", "count", "match", "near_misses"]
