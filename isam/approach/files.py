"""An Approach of one's own from a file: ``path/to/file.py:Class``, or ``path/to/file.py:Class:ARGUMENT``."""

from __future__ import annotations

import os
import sys
import traceback
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from isam.approach.choice import Approach
from isam.diagnostics import NOWHERE, IsamError, Loc, did_you_mean, fail
from isam.registry import SHIPPED
from isam.registry import names as registered

FORM = "an Approach in a file is given as path/to/file.py:ClassName"


def in_file(name: str) -> bool:
    """Whether an Approach is named by its file.

    >>> in_file("mine.py:Smallest"), in_file("mine.py"), in_file("beam:8"), in_file("replay:trace.py")
    (True, True, False, False)
    """
    path, _, _ = _parts(name)
    return path.endswith(".py") and name.partition(":")[0] not in SHIPPED["isam.approaches"]


def not_python(name: str) -> None:
    """Raises ``IsamError`` for an Approach that is named by a file of another kind."""
    if name.partition(":")[0] not in registered("isam.approaches"):
        path = name
        while path and not os.path.isfile(path):
            path = path.rpartition(":")[0]
        if path:
            what = f"{path} is no file of Approaches: its name does not end in .py"
            raise fail("approach-file", what, Loc(path), FORM)


def from_file(name: str) -> Approach:
    """The Approach of that name; its file is run as a module of its own. Raises ``IsamError``: no such file, class, or
    one that is no Approach, or that raises."""
    path, cls, argument = _parts(name)
    if not cls:
        raise fail("approach-file", f"'{path}' needs the name of a class", Loc(path), FORM)
    module = _module(path)
    found = getattr(module, cls, None)
    if found is None:
        ours = [n for n, v in vars(module).items() if _is_approach(v) and v.__module__ == module.__name__]
        hint = did_you_mean(cls, ours) or f"Approaches there: {', '.join(ours) or 'none'}"
        raise fail("approach-file", f"there is no class '{cls}' in {path}", Loc(path), hint)
    if not _is_approach(found):
        raise fail("approach-type", f"'{cls}' in {path} is no Approach", Loc(path), "derive it from isam.Approach")
    try:
        return found() if argument is None else found.given(argument)
    except Exception as e:
        raise _raised(path, f"making a '{cls}'", e) from e


def _parts(name: str) -> tuple[str, str, str | None]:
    """Path, class and argument; a path may have colons before its ``.py``."""
    head, dot, rest = name.partition(".py:")
    if not dot:
        return name, "", None
    cls, colon, argument = rest.partition(":")
    return f"{head}.py", cls, argument if colon else None


def _is_approach(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Approach)


def _module(path: str) -> ModuleType:
    """The file, run: by a name that no other module has."""
    try:
        source = Path(path).read_bytes()
    except OSError as e:
        raise fail("approach-file", f"cannot read the Approach: {e.strerror or e}", Loc(path), FORM) from None
    module = ModuleType(f"approach_in_file_{sha256(str(Path(path).resolve()).encode()).hexdigest()[:16]}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # where dataclasses and pickles look
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    except (Exception, SystemExit) as e:
        del sys.modules[module.__name__]
        raise _raised(path, "importing it", e) from e
    return module


def _raised(path: str, what: str, error: Exception | SystemExit) -> IsamError:
    """At the line of the file that raised, where it is one."""
    if isinstance(error, SyntaxError) and error.filename == path:
        loc, line = Loc(path, error.lineno or 1, error.offset or 1), error.text or ""
    else:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        loc, line = (Loc(path, frames[-1].lineno or 1, (frames[-1].colno or 0) + 1), "") if frames else (Loc(path), "")
        line = _line(path, loc.line)
    if isinstance(error, IsamError):
        return IsamError([d if d.loc != NOWHERE else type(d)(d.code, d.message, loc, d.hint, line)
                          for d in error.diagnostics])  # fmt: skip
    words = error.msg if isinstance(error, SyntaxError) else str(error)
    return fail("approach-import", f"{what} raised {type(error).__name__}: {words}", loc, source_line=line)


def _line(path: str, number: int) -> str:
    lines = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
    return lines[number - 1] if 0 < number <= len(lines) else ""
