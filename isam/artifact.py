"""A compiled kernel on disk: a zip archive of named parts with a manifest; shared by code generators and the runtime.

The archive has the same bytes whenever its contents are the same: entries in one order, no dates, nothing compressed.
It is written under another name and renamed, so that a reader sees all of it or nothing. Every part's hash stands in
the manifest and is checked on reading. Nothing in it is executed by reading it; there is no pickle.

Parts: ``kernel.isam`` (text), ``schedule.json``, ``certificate.json``, ``trace.json``, ``object.o`` (native code),
``functions.json`` (the instructions that the functions are which it calls). A range of batch sizes has others
(:mod:`isam.runtime.ranged_artifact`).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import zipfile
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from isam.classes import dataclass
from isam.diagnostics import IsamError, Loc, as_path, fail

SCHEMA = "isam.artifact/1"
LARGEST = 1 << 31  # bytes of one part
MANIFEST = "manifest.json"
_BEFORE_NAME = 26  # bytes of a part's header in an archive; then how long its name is, and what follows that, then both
RANGE = "range"  # stands for the back end where the parts are other artifacts: variants for a range of batch sizes
ROLES = ("in", "const", "inout", "out")

Row = tuple[int, tuple[tuple[str, int], ...]]  # an affine extent: constant, then (size, coefficient) pairs


@dataclass(frozen=True, slots=True)
class Argument:
    """What a caller passes: ``shape`` has one affine row per dimension, over the run-time sizes."""

    name: str
    role: str
    dtype: str
    shape: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Size:
    """A size that is known at run time only, and the values the code was made for (part of the guard)."""

    name: str
    lo: int = 0
    hi: int | None = None
    multiple_of: int = 1


@dataclass(frozen=True)
class Artifact:
    """A compiled kernel. ``arguments`` and ``sizes`` are its signature and guard.

    ``entry`` and ``bind``: names of the two functions in ``object.o`` (``bind`` empty: nothing to do). ``workspace``
    bytes are needed per thread, the first ``bound`` of them are filled by ``bind`` and kept. ``needs``: CPU features.
    ``externals``: symbols of the object code that others provide, as (symbol, name) pairs such as
    ``("isam.blas.sgemm", "blas:sgemm")``. ``points``: of all statements in one call, None where that depends on
    run-time sizes. ``given``: the sizes that it was compiled for. ``provenance``: what it was made from (JSON values);
    ``spills`` there, where LLVM keeps vectors of an innermost loop on the stack: how many of its instructions save or
    load them, and how many it has.
    """

    name: str
    backend: str
    arguments: tuple[Argument, ...]
    sizes: tuple[Size, ...] = ()
    entry: str = ""
    bind: str = ""
    workspace: int = 0
    bound: int = 0
    needs: tuple[str, ...] = ()
    externals: tuple[tuple[str, str], ...] = ()
    points: int | None = None
    given: tuple[tuple[str, int], ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, bytes] = field(default_factory=dict, repr=False)

    def text(self, part: str) -> str:
        """A part that is text. Raises ``IsamError`` when the artifact has none of this name, or it is no text."""
        if part not in self.parts:
            raise fail("artifact-part", f"the artifact of '{self.name}' has no part '{part}'")
        try:
            return self.parts[part].decode()
        except UnicodeDecodeError as e:
            what = f"the part '{part}' of the artifact of '{self.name}' is no text: {e.reason} at byte {e.start}"
            raise fail("artifact-damaged", what) from None

    def to_bytes(self) -> bytes:
        """The archive."""
        manifest = {
            "schema": SCHEMA,
            "name": self.name,
            "backend": self.backend,
            "arguments": [[a.name, a.role, a.dtype, [[c, [list(t) for t in ts]] for c, ts in a.shape]]
                          for a in self.arguments],
            "sizes": [[s.name, s.lo, s.hi, s.multiple_of] for s in self.sizes],
            "entry": self.entry,
            "bind": self.bind,
            "workspace": self.workspace,
            "bound": self.bound,
            "needs": list(self.needs),
            "externals": [list(e) for e in self.externals],
            "points": self.points,
            "given": dict(self.given),
            "provenance": self.provenance,
            "parts": {n: hashlib.sha256(b).hexdigest() for n, b in sorted(self.parts.items())},
        }  # fmt: skip
        head = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False).encode()
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as z:
            for name, content in [(MANIFEST, head), *sorted(self.parts.items())]:
                z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
        return out.getvalue()

    def save(self, path: str | Path) -> None:
        """Writes the archive to ``path``, or to what a link there leads to: all of it or, on any error, nothing."""
        path = as_place(path)
        temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        try:
            with temporary.open("xb") as f:
                f.write(self.to_bytes())
                f.flush()
                os.fsync(f.fileno())
            with suppress(FileNotFoundError):
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))
            os.replace(temporary, path)
        except BaseException as e:  # an interrupt, too
            with suppress(OSError):
                temporary.unlink()
            if isinstance(e, OSError):
                raise fail("artifact-write", f"cannot write {path}: {e.strerror}", Loc(str(path))) from None
            raise


def as_place(path: str | Path) -> Path:
    """The file that an artifact is to be written to, links followed. Raises ``IsamError`` where there can be none."""
    place = as_path(path, "an artifact's place")
    why, hint = "", ""
    if os.path.islink(place):
        place = Path(os.path.realpath(place))
    if not place.name:
        why = "that names no file"
    elif os.path.isdir(place):
        why = "it is a folder"
    elif place.exists() and not place.is_file():
        why = "it is no file but a device, a pipe or the like"
    elif not os.path.isdir(place.parent):
        why, hint = "No such file or directory", f"there is no folder {place.parent}"
    if why:
        raise fail("artifact-write", f"cannot write {place}: {why}", Loc(str(place)), hint)
    return place


def load_artifact(path: str | Path) -> Artifact:
    """Reads an artifact. Raises ``IsamError`` when the file is missing, damaged or of another version."""
    try:
        content = as_path(path, "an artifact's place").read_bytes()
    except OSError as e:
        hint = "standard input is not read here: name a file" if str(path) == "-" else ""
        raise fail("artifact-read", f"cannot read {path}: {e.strerror}", Loc(str(path)), hint) from None
    return from_bytes(content, str(path))


def from_bytes(content: bytes, file: str = "<bytes>") -> Artifact:
    """The artifact in ``content``; ``file`` is its name in diagnostics."""
    loc = Loc(file)
    try:
        parts = _parts(content, loc)
        if MANIFEST not in parts:
            raise fail("artifact-damaged", f"{file} is no ISAM artifact: it has no manifest", loc, _HINT)
        manifest = json.loads(parts.pop(MANIFEST))
        if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
            found = manifest.get("schema") if isinstance(manifest, dict) else None
            raise fail("artifact-version", f"{file} is no artifact of schema {SCHEMA}: {found!r}", loc,
                       "compile the kernel again with this version")  # fmt: skip
        hashes = {n: hashlib.sha256(b).hexdigest() for n, b in parts.items()}
        if hashes != manifest["parts"]:
            raise fail("artifact-damaged", f"{file}: the parts do not have the hashes that the manifest states", loc)
        return _artifact(manifest, parts)
    except IsamError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, KeyError, TypeError, ValueError, AttributeError, IndexError,
            EOFError, OSError, RecursionError, RuntimeError) as e:  # fmt: skip
        raise fail("artifact-damaged", f"{file} is not an artifact: {e}", loc, _HINT) from None


_HINT = "`isam compile KERNEL -o OUT` writes one; `isam check` reads kernels and instructions"


def _parts(content: bytes, loc: Loc) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content), metadata_encoding="utf-8") as z:  # else a codec is loaded for names
        infos = z.infolist()
        names = [i.filename for i in infos]
        if len(set(names)) != len(names):
            raise fail("artifact-damaged", f"{loc.file} holds a part twice", loc)
        if sum(i.file_size for i in infos) > len(content):
            raise fail("artifact-damaged", f"{loc.file} holds parts that lie over each other", loc)
        for i in infos:
            if i.compress_type != zipfile.ZIP_STORED or i.file_size > LARGEST or i.flag_bits & 1:
                what = f"{loc.file}: part {i.filename} is compressed, encrypted or too large"
                raise fail("artifact-damaged", what, loc)
        return {n: z.read(n) if n == MANIFEST else _stored(content, i) for n, i in zip(names, infos, strict=True)}


def _stored(content: bytes, part: zipfile.ZipInfo) -> bytes:
    """What is stored of a part, as it is: its hash is looked at later, and no checksum besides."""
    names = part.header_offset + _BEFORE_NAME
    begin = names + 4 + sum(int.from_bytes(content[at : at + 2], "little") for at in (names, names + 2))
    return content[begin : begin + part.file_size]


def _artifact(m: dict[str, Any], parts: dict[str, bytes]) -> Artifact:
    arguments = tuple(
        Argument(_str(n), _one_of(r, ROLES), _str(d), tuple((_int(c), _terms(t)) for c, t in shape))
        for n, r, d, shape in m["arguments"]
    )
    sizes = tuple(Size(_str(n), _int(lo), None if hi is None else _int(hi), _int(k)) for n, lo, hi, k in m["sizes"])
    if any(s.multiple_of < 1 for s in sizes) or len({a.name for a in arguments}) != len(arguments):
        raise ValueError("arguments or sizes make no sense")
    workspace, bound = _int(m["workspace"]), _int(m["bound"])
    if not 0 <= bound <= workspace:
        raise ValueError("workspace makes no sense")
    return Artifact(
        name=_str(m["name"]), backend=_str(m["backend"]), arguments=arguments, sizes=sizes, entry=_str(m["entry"]),
        bind=_str(m["bind"]), workspace=workspace, bound=bound, needs=tuple(map(_str, m["needs"])),
        externals=tuple((_str(a), _str(b)) for a, b in m["externals"]),
        points=None if m["points"] is None else _int(m["points"]),
        given=tuple((n, _int(v)) for n, v in m.get("given", {}).items()), provenance=dict(m["provenance"]), parts=parts,
    )  # fmt: skip


def _terms(terms: Any) -> tuple[tuple[str, int], ...]:
    return tuple((_str(n), _int(c)) for n, c in terms)


def _str(v: Any) -> str:
    if not isinstance(v, str):
        raise TypeError(f"{v!r} is no text")
    return v


def _int(v: Any) -> int:
    if type(v) is not int:
        raise TypeError(f"{v!r} is no whole number")
    return v


def _one_of(v: Any, options: tuple[str, ...]) -> str:
    if v not in options:
        raise ValueError(f"{v!r} is none of {', '.join(options)}")
    return v
