"""What the diagnostics of choices and schedules on disk mean."""

from __future__ import annotations

CODES: dict[str, str] = {
    "approach-argument": "What follows the colon in the name of an Approach is not what that Approach takes.",
    "approach-file": "An Approach is given by its file, which cannot be read, or has no such class.",
    "approach-illegal": "An Approach answered with something that was not among the legal options.",
    "approach-idle": "A warning: a method of an Approach is named like a choice point that nothing asks today, so that "
                     "it decides nothing.",
    "approach-import": "The file of an Approach raised an exception when it was run.",
    "approach-misspelt": "A method of an Approach is nearly named like a choice point: it would never be asked.",
    "approach-raises": "A method of an Approach raised an exception instead of answering.",
    "approach-value": "What an Approach says of the schedules made besides (`tries`, `runs`, `varied`) cannot be so.",
    "schedule-damaged": "A schedule in JSON that no schedule of this version prints as.",
    "trace-differs": "A recorded trace does not fit: the kernel, the machine or the version is another one.",
}
