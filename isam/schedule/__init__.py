"""The schedule tree: its types and its printer, apart, so that checker and emitters know it without the scheduler."""

SCHEMA = "isam.schedule-tree/6"  # of a schedule as JSON
