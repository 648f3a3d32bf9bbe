"""What is taken for granted of caches and pages where no description says it: bytes, the same on every machine.

* A line is 64 bytes on x86-64 and on most Arm cores (Arm's CTR_EL0 says it; some have 128).
* The first cache of the x86-64 cores described in ``hwdesc`` has 64 sets of such lines (32 KiB in 8 ways, 48 KiB in
  12): addresses 4096 bytes apart share a set, and rows a multiple of 1024 apart share four sets.
* Memory is handed out, and translated, by pages of 4096 bytes (x86-64; Arm's smallest); prefetchers stop at them.
* What is found again soon is expected in a second cache of 1 MiB, as the smallest of those described is.

Sources: Intel 64 and IA-32 Architectures Optimization Reference Manual; AMD's Software Optimization Guides for the
Zen 4 and Zen 5 microarchitectures; Arm Architecture Reference Manual.
"""

LINE = 64  # of a cache
PERIOD = 4096  # addresses so far apart fall on the same set of the first cache
ALIASED = 1024  # rows that lie multiples of it apart share few sets of a cache
WAYS = 8  # lines (not bytes) that a set of a cache holds at least
PAGE = 4096  # of memory
NEAR = 1 << 20  # up to which what is laid out anew stays where it is found again soon
