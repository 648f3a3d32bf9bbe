"""What the diagnostics of the compiler's front door mean."""

from __future__ import annotations

CODES: dict[str, str] = {
    "approach-type": "What was given as an Approach is none: derive a class from isam.Approach.",
    "compile-kernel": "The first argument of isam.compile is a kernel: see isam.parse, isam.einsum and isam.kernel.",
    "compile-threads": "The number of threads (argument or ISAM_THREADS) is a whole number of at least 1.",
    "infeasible": "The instructions suffice, but the machine cannot hold or move what a call needs.",
    "not-compiled": "The kernel has open sizes and was not called yet: there is no mapping or schedule to show.",
    "range-batch": "The size of a range does not count a batch: some statement does more with a row than compute it "
                   "from itself, or rows of an argument do not lie together.",
    "range-limits": "The range, a size said to be likely, or the number of variants is none that there can be.",
    "size-open": "A schedule needs a number for every size that is not only the trip of a recurrent loop: give it.",
    "size-range": "A size outside the range, or not the multiple, that the kernel's head admits.",
    "size-unknown": "A size that the kernel's head does not mention.",
    "too-deep": "The kernel nests too deeply for a stage of the compiler.",
    "trace-read": "The recorded trace cannot be read, or is damaged, no trace, or of another version.",
    "uncovered": "No choice of the machine's instructions carries out every statement: the report says which and why.",
}
