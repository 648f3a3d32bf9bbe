"""Schedules to artifacts: a back end per package, whose ``emit`` is registered in the group ``isam.backends``."""
