"""Arrays for runs from the command line: those in files, and what a kernel's work amounts to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isam.diagnostics import did_you_mean, fail

if TYPE_CHECKING:
    from isam.ir.kernel import Kernel, Recurrence, Statement

NO_WORK = ("copy", "cast", "cast_sat", "select")


def read_arrays(texts: Iterable[str] | None, kernel: Kernel) -> dict[str, Any]:
    """``NAME=FILE.npy`` pairs as arrays; what has another shape than the kernel needs is refused unread. Raises
    ``IsamError``."""
    import numpy as np

    out: dict[str, Any] = {}
    for name, path in pairs(texts, [b.name for b in kernel.arguments if b.role != "out"]):
        b = kernel.buffer(name)
        want = tuple(max(0, d.evaluate({})) for d in b.shape)
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
            if not isinstance(found, np.ndarray):
                raise fail("cli-array", f"{path} is not one array (.npy)")
            if found.shape != want:
                raise fail("cli-array", f"'{name}' needs the shape {want}, but {path} has {found.shape}", b.loc)
            out[name] = np.array(found)
        except (OSError, ValueError, EOFError) as e:
            raise fail("cli-array", f"cannot read {path}: {getattr(e, 'strerror', None) or e}") from None
    return out


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
        out.append((name, Path(path)))
    return out


def operations(kernel: Kernel, sizes: Mapping[str, int]) -> int:
    """Arithmetic operations of one call; copies and casts count nothing, a ``where`` counts its whole box."""
    return sum(n for s, n in visits(kernel.body, sizes) if s.accumulate or s.op not in NO_WORK)


def visits(body: Iterable[Statement | Recurrence], sizes: Mapping[str, int]) -> Iterator[tuple[Statement, int]]:
    """Every statement with the points at which one call carries it out, all trips counted."""
    from isam.ir.kernel import Statement

    for item in body:
        if isinstance(item, Statement):
            yield item, prod(max(0, a.extent.evaluate(sizes)) for a in item.domain.axes)
        else:
            trip = max(0, item.axis.extent.evaluate(sizes))
            yield from ((s, trip * n) for s, n in visits(item.body, sizes))
