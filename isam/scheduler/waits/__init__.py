"""What each call waits for (SCH-8): ``tokens`` visits every call, ``behind`` looks back from it over what ``within``
says of the nodes passed, in terms of ``footprints``."""

from isam.scheduler.waits.tokens import with_waits

__all__ = ["with_waits"]
