"""How fast compiled kernels are, beside the peers a user would take instead, and how long compiling takes.

``python -m benchmarks.run`` (or ``isam bench``) measures through the public interface alone: ``isam.compile``, calls
and ``fn.bind``. Everything runs on one thread, on random data, in alternating rounds of one process; every result is
checked against float64 with a bound per element. Absolute numbers depend on the hour; ratios of one run count.
"""
