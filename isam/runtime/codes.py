"""What the diagnostics of artifacts, calls and registrations mean."""

from __future__ import annotations

CODES: dict[str, str] = {
    "artifact-bound": "What has bound constants is to be saved: an artifact holds the code, not the constants.",
    "artifact-damaged": "The file is no artifact, or its content lacks the hashes that it states.",
    "artifact-features": "The artifact was compiled for a CPU with features that this one lacks: compile it again.",
    "artifact-part": "The artifact lacks the part that was asked for.",
    "artifact-read": "The artifact's file cannot be read.",
    "artifact-several": "A function of open sizes was compiled for several shapes: an artifact holds the code of one, "
    "or of a range of batch sizes (isam.compile_range).",
    "artifact-version": "The artifact was written by another version of the format.",
    "best-of": "Alternatives behind one callable are not what isam.best_of takes, or members of a group are called "
    "out of order.",
    "path-type": "A file or folder is named by a text or a path (pathlib.Path).",
    "artifact-write": "The artifact's file cannot be written; nothing was left behind.",
    "bind-role": "Only arguments declared 'const' can be bound, by name, and only once.",
    "call-arguments": "Arguments are missing, are too many, or cannot be accepted (dtype, rank, overlap, writability).",
    "call-dtype": "An argument has another element type or byte order than declared; nothing is converted silently.",
    "call-overlap": "Two arguments that are written overlap, or elements of one that is written share memory.",
    "call-read-only": "An argument that is written was given as a read-only array.",
    "call-shape": "An argument has another rank or shape than declared.",
    "call-size": "The shapes of the arguments do not agree with each other or with the kernel's sizes.",
    "call-type": "An argument is no NumPy array (or, for rank 0, no number), or is a masked array.",
    "external-function": "What functions= gives for a name cannot be called as the artifact calls it: no function, no "
    "address of code, or a function of another instruction.",
    "external-missing": "The artifact calls a function of the outside (C, Python, BLAS) that is not there.",
    "external-unknown": "functions= gives a function that the artifact does not call.",
    "not-pickled": "A compiled kernel is saved (fn.save, isam.load), never pickled: whoever reads a pickle runs what "
    "is in it.",
    "registry-broken": "A registered object exists, but importing it fails.",
    "registry-duplicate": "Two packages register the same name.",
    "registry-unknown": "Nothing is registered under this name.",
}
