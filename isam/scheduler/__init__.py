"""From a cover and a machine to a schedule: devices, placements, routes, evictions and loops, decided ahead of time."""

from isam.scheduler.build import schedule

__all__ = ["schedule"]
