"""Arrays for runs from the command line: those in files, and what a kernel's work amounts to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile

from isam.diagnostics import Loc, did_you_mean, fail

if TYPE_CHECKING:
    from isam.ir.kernel import Kernel, Recurrence, Statement

NO_ARRAY = (ValueError, EOFError, BadZipFile, TokenError)  # what NumPy raises of a file that is none
NO_WORK = ("copy", "cast", "cast_sat", "select")


def read_arrays(texts: Iterable[str] | None, kernel: Kernel) -> dict[str, Any]:
    """``NAME=FILE.npy`` pairs as arrays; what has another shape than the kernel needs is refused unread. Raises
    ``IsamError``."""
    import numpy as np

    out: dict[str, Any] = {}
    for name, path in pairs(texts, [b.name for b in kernel.arguments if b.role != "out"]):
        b = kernel.buffer(name)
        want = tuple(max(0, d.evaluate({})) for d in b.shape)
        at = Loc(f"--input {name}={path}")
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
            if not isinstance(found, np.ndarray):
                raise fail("cli-array", f"{path} is not one array (.npy)", at)
            if found.shape != want:
                raise fail("cli-array", f"'{name}' needs the shape {want}, but {path} has {found.shape}", b.loc)
            out[name] = _typed(np.array(found), b.dtype)
        except OSError as e:
            raise fail("cli-array", f"cannot read {path}: {e.strerror or e}", at) from None
        except NO_ARRAY:
            what = f"cannot read {path}: it holds no array of numbers, or not all of it"
            raise fail("cli-array", what, at, f"numpy.save('{path}', {name}) writes such a file") from None
    return out


def _typed(array: Any, dtype: str) -> Any:
    """Of a type that NumPy has no name for, files hold the bytes alone (``|V2``): they are elements of this type."""
    from isam.ir.dtype import numpy_dtype

    want = numpy_dtype(dtype)
    nameless = array.dtype.kind == "V" and array.dtype.names is None and want.isbuiltin != 1
    return array.view(want) if nameless and array.dtype.itemsize == want.itemsize else array


def write_arrays(targets: Iterable[tuple[str, Path]], results: Mapping[str, Any]) -> None:
    """Results as ``.npy`` files. Raises ``IsamError``."""
    import numpy as np

    for name, path in targets:
        try:
            with open(path, "wb") as f:
                np.save(f, np.asarray(results[name]), allow_pickle=False)
        except OSError as e:
            raise fail("cli-file", f"cannot write {path}: {e.strerror or e}") from None


def pairs(texts: Iterable[str] | None, known: list[str]) -> list[tuple[str, Path]]:
    """``NAME=FILE`` texts, the names being known ones. Raises ``IsamError``."""
    out = []
    for text in texts or ():
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise fail("cli-array", f"'{text}' is not of the form NAME=FILE.npy")
        if name not in known:
            hint = did_you_mean(name, known) or f"known: {', '.join(known) or 'none'}"
            raise fail("cli-array", f"there is no argument '{name}' here", hint=hint)
        if path == "-":
            what = f"'{text}': arrays are neither read from standard input nor written to standard output"
            raise fail("cli-array", what, hint="name a file")
        out.append((name, Path(path)))
    return out


class Work(NamedTuple):
    """Arithmetic operations of one call. ``exact``: of the points that conditions admit; else, where those are too many
    to count, of all points of the loops."""

    operations: int
    exact: bool = True


def work_of(kernel: Kernel, sizes: Mapping[str, int]) -> Work:
    """What one call computes; copies and casts count nothing."""
    from isam.ir.counting import admitted

    total, exact = 0, True
    for s, box in domains(kernel.body, sizes):
        if s.accumulate or s.op not in NO_WORK:
            n = admitted(box, [w.substitute(sizes) for w in s.domain.where])
            total, exact = total + (prod(box.values()) if n is None else n), exact and n is not None
    return Work(total, exact)


def visits(body: Iterable[Statement | Recurrence], sizes: Mapping[str, int]) -> Iterator[tuple[Statement, int]]:
    """Every statement with the points of its loops, all trips counted, whatever its condition admits."""
    return ((s, prod(box.values())) for s, box in domains(body, sizes))


def domains(body: Iterable[Statement | Recurrence], sizes: Mapping[str, int],
            outer: Mapping[str, int] | None = None) -> Iterator[tuple[Statement, dict[str, int]]]:  # fmt: skip
    """Every statement with the extents of the loops around it and of its own axes."""
    from isam.ir.kernel import Statement

    for item in body:
        axes = item.domain.axes if isinstance(item, Statement) else (item.axis,)
        box = {**(outer or {}), **{a.name: max(0, a.extent.evaluate(sizes)) for a in axes}}
        if isinstance(item, Statement):
            yield item, box
        else:
            yield from domains(item.body, sizes, box)
