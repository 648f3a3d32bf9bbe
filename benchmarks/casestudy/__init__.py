"""The case study (paper, 6.2) on the machine `casestudy`: ISAM's schedules against a library written by hand."""
