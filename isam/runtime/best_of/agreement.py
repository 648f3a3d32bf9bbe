"""Whether alternatives compute the same: all of them are called with copies of the same arguments, and results are
compared."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

TRIED = 3  # runs of a group in which results are compared, until all of its members were called
Agree = Callable[[Any, Any], bool]


class Comparison:
    """How far it is known of one size that alternatives agree: one thread at a time finds it out, others wait for
    nobody. Whoever calls this holds a lock. ``done``: it is known."""

    __slots__ = ("_by", "_tried", "done")

    def __init__(self) -> None:
        self.done, self._tried = False, 0
        self._by: threading.Thread | None = None

    def begin(self) -> bool:
        """Whether this thread is the one that finds it out, from now on; not while another one is at it, or a call
        around this one. A thread may have ended amid a group, or before a fork."""
        if self._by is not None and self._by.is_alive():
            return False
        self._by = threading.current_thread()
        return True

    def end(self, everything: bool, raised: bool) -> None:
        """After the run that began it. ``everything``: all members of a group were called; some never are. ``raised``:
        the first alternative itself did, so that nothing was compared."""
        self._tried += not raised
        self.done, self._by = not raised and (everything or self._tried >= TRIED), None


def compared(first: str, ways: Mapping[str, Callable[..., Any]], args: tuple[Any, ...], named: dict[str, Any],
             agree: Agree) -> tuple[Any, dict[str, str]]:  # fmt: skip
    """The result of the ``first`` of these; and of those that raised, or whose results or arrays that were given are
    not what the first one makes of them, why they take no part, by name. The others are called with copies; where there
    can be none nothing is compared. Raises what the first one raises."""
    others: dict[str, Any] = {}
    why: dict[str, str] = {}
    for n in [n for n in ways if n != first]:
        if (copies := _copies(args, named)) is None:
            break
        try:
            others[n] = _kept(ways[n](*copies[0], **copies[1])), copies
        except Exception as e:
            why[n] = raised(e)
    result = ways[first](*args, **named)  # if it raises, so may the others
    for n, (made, (mine, by_name)) in others.items():
        given = [*zip(args, mine, strict=True), *((named[k], by_name[k]) for k in named)]
        pairs = [(result, made), *((a, b) for a, b in given if isinstance(a, np.ndarray))]
        try:
            if not all(agree(a, b) for a, b in pairs):
                why[n] = f"its results are not those of '{first}'"
        except Exception as e:
            why[n] = f"its results cannot be compared: {type(e).__name__}: {e}"
    return result, why


def raised(e: BaseException) -> str:
    """Why an alternative takes no part that raised this."""
    return f"it raised {type(e).__name__}: {e}"


def close(a: Any, b: Any) -> bool:
    """Whether results are those of the same computation, rounding aside: of the same types, and floats differ by less
    than the root of their precision, of the largest one. It finds what computes something else, not what is less
    exact."""
    if isinstance(a, tuple | list) or isinstance(b, tuple | list):
        lists = isinstance(b, tuple if isinstance(a, tuple) else list) and isinstance(a, tuple | list)
        return lists and len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, dict) or isinstance(b, dict):
        dicts = isinstance(a, dict) and isinstance(b, dict)
        return dicts and a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if a is None or b is None:
        return a is b
    x, y = np.asarray(a), np.asarray(b)
    typed = isinstance(a, np.ndarray | np.generic) and isinstance(b, np.ndarray | np.generic)
    if x.shape != y.shape or (x.dtype != y.dtype if typed else x.dtype.kind != y.dtype.kind):
        return False
    if x.dtype.kind in "iubSUO" or not x.size:
        return bool(np.array_equal(x, y))
    precision = _precision(x.dtype)
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    finite = np.isfinite(x)
    if not np.array_equal(finite, np.isfinite(y)) or not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return False
    most = float(np.abs(x[finite]).max(initial=0.0))
    return bool((np.abs(x[finite] - y[finite]) <= precision**0.5 * most).all())


def _precision(dtype: np.dtype[Any]) -> float:
    if dtype.kind in "fc":
        return float(np.finfo(dtype).eps)
    from ml_dtypes import finfo  # bf16 and the like

    return float(finfo(dtype).eps)


def _copies(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments once more; None where they cannot be copied, or arrays among them share memory."""
    arrays = [a for a in (*args, *named.values()) if isinstance(a, np.ndarray)]
    if any(np.may_share_memory(a, b) for n, a in enumerate(arrays) for b in arrays[:n] if a is not b):
        return None
    try:
        mine, by_name = deepcopy((args, named))
    except Exception:
        return None
    for a, b in zip((*args, *named.values()), (*mine, *by_name.values()), strict=True):
        if isinstance(a, np.ndarray):
            b.flags.writeable = a.flags.writeable
    return mine, by_name


def _kept(result: Any) -> Any:
    """A result that no later call changes, as far as it can be copied."""
    try:
        return deepcopy(result)
    except Exception:
        return result
