"""Arrays for runs from the command line: random ones, files, and what a kernel's work amounts to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isam.diagnostics import did_you_mean, fail

if TYPE_CHECKING:
    from isam.ir.kernel import Buffer, Kernel

MOST = 1 << 30  # elements of all arguments together
NO_WORK = ("copy", "cast", "cast_sat", "select")


def random_arrays(kernel: Kernel, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Random data for ``in``, ``const`` and ``inout``: normal floats, small whole numbers, never constant."""
    import numpy as np

    rng = np.random.default_rng(seed)
    total = sum(prod(max(0, d.evaluate(sizes)) for d in b.shape) for b in kernel.arguments)
    if total > MOST:
        raise fail("cli-memory", f"the arguments have {total} elements at these sizes, more than {MOST}", kernel.loc,
                   "smaller sizes")  # fmt: skip
    return {b.name: _random(rng, b, sizes) for b in kernel.arguments if b.role != "out"}


def _random(rng: Any, b: Buffer, sizes: Mapping[str, int]) -> Any:
    import numpy as np

    from isam.ir.dtype import DTYPES, numpy_dtype

    shape = tuple(max(0, d.evaluate(sizes)) for d in b.shape)
    kind = DTYPES[b.dtype].kind
    if kind == "f":
        a = rng.standard_normal(shape, dtype=np.float64 if b.dtype == "f64" else np.float32)
    else:
        a = rng.integers(0, 2, shape) if kind == "b" else rng.integers(0 if kind == "u" else -4, 5, shape)
    return np.asarray(a).astype(numpy_dtype(b.dtype), copy=False)


def read_arrays(texts: Iterable[str] | None, kernel: Kernel) -> dict[str, Any]:
    """``NAME=FILE.npy`` pairs as arrays. Raises ``IsamError``."""
    import numpy as np

    out: dict[str, Any] = {}
    for name, path in pairs(texts, [b.name for b in kernel.arguments if b.role != "out"]):
        try:
            out[name] = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as e:
            raise fail("cli-array", f"cannot read {path}: {getattr(e, 'strerror', None) or e}") from None
        if not isinstance(out[name], np.ndarray):
            raise fail("cli-array", f"{path} is not one array (.npy)")
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
    from isam.ir.kernel import recurrences

    inside = {id(s): max(0, r.axis.extent.evaluate(sizes)) for r in recurrences(kernel.body) for s in _of(r)}
    return sum(
        inside.get(id(s), 1) * prod(max(0, a.extent.evaluate(sizes)) for a in s.domain.axes)
        for s in kernel.statements if s.accumulate or s.op not in NO_WORK
    )  # fmt: skip


def _of(recurrence: Any) -> list[Any]:
    from isam.ir.kernel import Statement

    return [s for i in recurrence.body for s in ([i] if isinstance(i, Statement) else _of(i))]


def largest(kernel: Kernel, sizes: Mapping[str, int]) -> int:
    """Points of the largest domain."""
    return max((prod(max(0, a.extent.evaluate(sizes)) for a in s.domain.axes) for s in kernel.statements), default=0)
