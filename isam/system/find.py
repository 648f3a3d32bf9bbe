"""Where descriptions are: an explicit path, the folders in ISAM_HWDESC, the package's data, the checkout, plug-ins.

A root holds folders, a folder holds systems: ``hwdesc/cpu/avx2.yaml`` is the system ``avx2``. Files without a
``system:`` line are parts of others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from isam.diagnostics import fail
from isam.system.faults import nearest

ENDINGS = (".yaml", ".yml")
_SYSTEM = re.compile(r"^system:", re.MULTILINE)


def roots() -> tuple[Path, ...]:
    """The folders searched, in order."""
    given = [Path(p) for p in os.environ.get("ISAM_HWDESC", "").split(os.pathsep) if p]
    return tuple(r for r in (*given, *shipped()) if r.is_dir())


def shipped() -> tuple[Path, ...]:
    """The folders of what comes with ISAM: in the package, in the checkout."""
    package = Path(__file__).resolve().parent.parent
    return tuple(r for r in (package / "hwdesc", package.parent / "hwdesc") if r.is_dir())


def looks_like_path(name: str) -> bool:
    return name.endswith(ENDINGS) or "/" in name or os.sep in name


def find_system(name: str) -> Path:
    """The file of a system. Raises ``IsamError`` with the closest known name."""
    if "\0" in name or len(name) > 4096:
        raise fail("system-unknown", "that is not the name of a system", hint="a name or the path of a YAML file")
    if name.endswith(".isam"):
        raise fail("system-unknown", f"'{Path(name).name[:60]}' is a file of kernels, not a system",
                   hint="`isam check` looks it over; the path of a description ends in .yaml")  # fmt: skip
    if name == "-":
        raise fail("system-unknown", "'-' is no system: descriptions are not read from standard input",
                   hint="a name or the path of a YAML file")  # fmt: skip
    if looks_like_path(name):
        return Path(name)
    for path in _candidates(name):
        return path
    plugged = _plugged(name)
    if plugged is not None:
        return plugged
    if Path(name).is_file():
        return Path(name)
    raise fail("system-unknown", f"no system is called '{name[:60]}'", hint=_beside(name) or
               unnamed(name) + "; a path ends in .yaml")  # fmt: skip


def unnamed(name: str) -> str:
    """A hint for a name that no system has: the closest, or all there are."""
    return nearest(name, sorted(list_systems()))


def _beside(name: str) -> str:
    """A hint at a description of this name in the working directory, or the empty string."""
    here = next((f for end in ENDINGS if len(name) <= 200 and Path(f := name + end).is_file()), "")
    return f"the file {here} is here: with its ending, '{here}', it is a path" if here else ""


def _candidates(name: str) -> Iterator[Path]:
    if not name or any(c in name for c in "*?[]"):
        return
    for root in roots():
        here = [root / f"{name}.yaml", *sorted(root.glob(f"*/{name}.yaml"))]
        found = [p for p in here if p.is_file()]
        if len(found) > 1:
            raise fail("system-duplicate", f"two systems are called '{name}': {found[0]} and {found[1]}",
                       hint="give the path of one")  # fmt: skip
        yield from found


def _plugged(name: str) -> Path | None:
    """A system of another package: an entry point in the group ``isam.systems`` that gives a path."""
    from importlib.metadata import entry_points

    for point in entry_points(group="isam.systems", name=name):
        value = point.load()
        return Path(str(value() if callable(value) else value))
    return None


def list_systems(folders: Iterable[Path] | None = None) -> dict[str, Path]:
    """Every system that can be loaded by name, with its file; earlier roots hide later ones. ``folders``: instead of
    the :func:`roots`."""
    out: dict[str, Path] = {}
    for root in roots() if folders is None else folders:
        for path in sorted([*root.glob("*.yaml"), *root.glob("*/*.yaml")]):
            with path.open(encoding="utf-8", errors="replace") as f:
                if _SYSTEM.search(f.read(4096)):
                    out.setdefault(path.stem, path)
    return out
