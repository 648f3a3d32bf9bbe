"""Choices and those who make them: ``choice`` says what a choice is, ``shipped`` holds opinions."""

SCHEMA = "isam.trace/4"  # of the decisions that were made, as JSON
