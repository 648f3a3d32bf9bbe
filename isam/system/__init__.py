"""Machines, described by data and immutable: memories, units, moves, instructions."""
