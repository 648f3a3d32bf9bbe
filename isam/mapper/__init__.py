"""Finds every way in which an instruction can carry out part of a kernel, or says why there is none."""
