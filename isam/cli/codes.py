"""What the diagnostics of the command line mean."""

from __future__ import annotations

CODES: dict[str, str] = {
    "cli-array": "An array given with --input, or asked for with --output, does not exist or cannot be used.",
    "cli-code": "No diagnostic has this code, and no report of the mapper or of a proof has this word.",
    "bench-backend": "A machine without code for this CPU is to be compared with libraries that run on it.",
    "calibrate-backend": "A machine without code for this CPU is to be measured on it.",
    "calibrate-none": "No instruction between registers has the name that is to be measured.",
    "cli-file": "A file named on the command line cannot be read or written, is no text, or is to be written "
                "though the same command reads it.",
    "cli-group": "No group of measurements has this name (isam bench --only GROUP).",
    "cli-kernel": "The file has no kernel (of this name), or has several and none was named (FILE:NAME).",
    "cli-limit": "The simulator, or the judge of results, would work for longer than --limit allows.",
    "cli-memory": "There is not enough memory for the arrays or for the judge of results.",
    "cli-number": "A number on the command line is outside what the option takes.",
    "cli-option": "An option says how a kernel is compiled, and what is run is compiled already; a file is given "
                  "to a verb that takes none; or another option leaves this one nothing to say.",
    "cli-range": "A range of sizes, a weight or a size to be measured is malformed, or is none of the range.",
    "cli-size": "A size on the command line (-D NAME=NUMBER) is malformed, given twice or missing, or an "
                "artifact is compiled for another.",
    "cli-usage": "The command line is not one that the verb takes: an option or a verb that there is not, something "
                 "missing or too much, or a value of another kind.",
    "tune-approach": "Schedules are to be run beside each other by an Approach that runs none.",
    "tune-system": "Schedules of a machine whose code does not run on this CPU are to be run on it.",
}
