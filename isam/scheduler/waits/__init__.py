"""What each call waits for (SCH-8): ``tokens`` visits every call, ``behind`` looks back from it over what ``within``
says of the nodes passed, in terms of ``footprints``."""

from isam.scheduler.waits.tokens import for_results, with_waits

__all__ = ["for_results", "with_waits"]
