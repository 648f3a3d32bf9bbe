"""Several implementations of one thing behind one callable, which keeps the quickest for each problem size (an online
selector, as PyDTNN's BestOf): nothing is run for measuring, calls that are made anyway take turns.

>>> import numpy as np
>>> total = best_of({"numpy": np.sum, "dot": lambda x: x @ np.ones_like(x)}, rounds=2)
>>> [float(total(np.arange(4.0))) for _ in range(8)]
[6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0]
>>> list(total.decisions.values()) in (["numpy"], ["dot"])
True
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from copy import deepcopy
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from isam.classes import dataclass
from isam.diagnostics import fail
from isam.runtime.decided import Decided
from isam.runtime.forks import gate

ROUNDS, PRUNED = 5, 2  # samples of each before one is taken; before those far behind are left out
BEHIND = 1.5  # times as long as the quickest
MARGIN = 0.02  # of the time, by which the first has to be beaten
PATIENCE = 10  # turns per sample that something undecided inside may spoil

NOT_YET, UNDER_WAY, DONE = "not yet", "under way", "done"  # comparing results
TRIED = 3  # runs of a group in which results are compared, until all of its members were called
PLAIN = (str, int, bool, type(None), np.dtype)
Array = np.ndarray
Key = Callable[..., Hashable]
Agree = Callable[[Any, Any], bool]
_local = threading.local()  # per thread: how many undecided calls were made


def problem_size(*args: Any, **named: Any) -> Hashable:
    """Shapes and element types of arrays, values of what can be compared, kinds of the rest: what decides by default
    whether two calls are of one size. Arguments by name follow in the order of their names."""
    size = size_of(args)
    for name in sorted(named):
        size += name, size_of((named[name],))
    return size


def size_of(args: tuple[Any, ...]) -> tuple[Hashable, ...]:
    """The problem size of a call without arguments by name. It is most of what a decided call costs: handing on one
    tuple takes a tenth of the time of ``*args``, and up to five arrays a tuple grows quicker than a list."""
    size: tuple[Hashable, ...] = ()
    for a in args:
        if type(a) is Array:
            size += a.shape, a.dtype
        else:
            size += (_other(a),)
    return size


def _other(a: Any) -> Hashable:
    """What stands in a size for what is not exactly a NumPy array."""
    if isinstance(a, PLAIN):
        return a
    if hasattr(a, "shape") and not isinstance(a, type):
        return tuple(a.shape), str(getattr(a, "dtype", ""))
    return f"<{type(a).__qualname__}>"


def close(a: Any, b: Any) -> bool:
    """Whether results are those of the same computation, rounding aside: floats differ by less than the root of their
    precision, of the largest one. It finds what computes something else, not what is less exact."""
    if isinstance(a, tuple | list) or isinstance(b, tuple | list):
        lists = isinstance(a, tuple | list) and isinstance(b, tuple | list)
        return lists and len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, dict) or isinstance(b, dict):
        dicts = isinstance(a, dict) and isinstance(b, dict)
        return dicts and a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if a is None or b is None:
        return a is b
    x, y = np.asarray(a), np.asarray(b)
    if x.shape != y.shape or x.dtype.kind != y.dtype.kind:
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


@dataclass(slots=True)
class _Size:
    """What is known of one problem size: samples in seconds by alternative, whose turns were how many, who is still in
    the running, who takes no part and why, how far it is known that results are the same, who finds that out, and in
    which run."""

    samples: dict[str, list[float]]
    turns: dict[str, int]
    left: list[str]
    unfit: dict[str, str] = field(default_factory=dict)
    compared: str = NOT_YET
    by: threading.Thread | None = None
    tried: int = 0


@dataclass(slots=True)
class _Run:
    """One use of an alternative: of a group, all calls from one of its first member to the next. ``comparing``: all of
    them are called, and no time is taken; ``members``: those called so far."""

    key: Hashable
    name: str
    seconds: float = 0.0
    spoilt: bool = False
    comparing: bool = False
    decided: bool = False
    members: set[int] = field(default_factory=set)


class BestOf:
    """A callable that does what its alternatives do, and finds out while it is used which is quickest for what size:
    calls that are made anyway go to them in turns, until it is known; from then on all of that size go there. May be
    called from several threads. ``isam.best_of`` is this class.

    ``alternatives``: name to callable, the usual one first; or name to a group, itself a mapping of names to callables
    (``{"forward": ..., "backward": ...}``): a run of a group is all calls from one of its first member to the next, is
    timed as a whole, and goes to one alternative; members are called as attributes.
    ``key``: called with the arguments, what problem size they are of (shapes, types, numbers). ``rounds``: samples of
    each alternative before one is taken; those far behind are left out sooner. The first call of a size goes to all, to
    the others with copies of its arguments, and ``agree`` says whether results, and arrays that were given, are the
    same: one that raises or disagrees takes no part. Where arguments cannot be copied nothing is compared. An
    alternative may be such a callable itself: those inside are decided first. ``keep``: a file of its own, in which
    decisions are kept from one process to the next, per CPU. Raises ``IsamError``.
    """

    def __init__(self, alternatives: Mapping[str, Any], key: Key = problem_size, rounds: int = ROUNDS,
                 agree: Agree = close, keep: str | Path | None = None):  # fmt: skip
        self._members = _members(alternatives)
        self._grouped = bool(self._members[0])
        self._ways: dict[str, tuple[Callable[..., Any], ...]] = {
            n: (a,) if callable(a) else tuple(a[m] for m in self._members) for n, a in alternatives.items()}
        if not isinstance(rounds, int) or rounds < 1:
            raise fail("best-of", f"rounds are a number of calls of each alternative, not {rounds!r}")
        self._key, self._rounds, self._agree = key, rounds, agree
        self._usual = key is problem_size
        self._lock, self._own = threading.RLock(), threading.local()  # per thread: the run of a group under way
        self._sizes: dict[Hashable, _Size] = {}
        self._chosen: dict[Hashable, str] = {}
        self._fast: dict[Hashable, Callable[..., Any]] = {}  # of no group: what a call goes to
        self._kept = None if keep is None else Decided(keep, list(self._ways))
        for number, member in enumerate(self._members):
            if member:
                setattr(self, member, _Member(self, number))

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """The result of an alternative. Raises ``IsamError`` for a group, whose members are called."""
        if named or not self._usual:
            fast = self._fast.get(self._key(*args, **named))
            return fast(*args, **named) if fast is not None else self._call(0, args, named)
        fast = self._fast.get(size_of(args))  # as problem_size(*args), sooner
        return fast(*args) if fast is not None else self._call(0, args, named)

    @property
    def decisions(self) -> dict[Hashable, str]:
        """The alternative taken, by problem size, as far as that is decided."""
        with gate.inside(), self._lock:
            return dict(self._chosen)

    def report(self) -> str:
        """A line per problem size and alternative: the best and the median time, or why it takes no part."""
        lines: list[str] = []
        with gate.inside(), self._lock:
            for key in {**self._sizes, **self._chosen}:
                chosen, size = self._chosen.get(key), self._sizes.get(key)
                lines.append(f"{key}: {chosen or 'not decided yet'}" + ("" if size else ", found before"))
                for n in self._ways if size else ():
                    assert size is not None
                    said = size.unfit.get(n) or "no sample yet"
                    if some := sorted(size.samples[n]):
                        best, median = (f"{1e6 * some[at]:.4g} us" for at in (0, len(some) // 2))
                        said = f"{best}, median {median} of {len(some)}"
                    lines.append(f"{'*' if n == chosen else ' '} {n}: {said}")
        return "\n".join(lines)

    # -- calls -------------------------------------------------------------------------------------------------------
    def _call(self, member: int, args: tuple[Any, ...], named: dict[str, Any], grouped: bool = False) -> Any:
        if grouped != self._grouped:
            raise fail("best-of", f"of a group its members are called: {', '.join(self._members)}")
        run = self._going(member) if member else self._begun(args, named)
        if run.decided:
            return self._ways[run.name][member](*args, **named)
        run.members.add(member)
        inside, begin = _undecided(), time.perf_counter()
        try:
            if run.comparing:
                result = self._compared(run, member, args, named)
            else:
                result = self._ways[run.name][member](*args, **named)
        except BaseException as e:
            self._ended(run, broken=e)
            raise
        run.seconds += time.perf_counter() - begin
        run.spoilt |= _undecided() != inside
        if not grouped:
            self._ended(run)
        _local.undecided = _undecided() + 1  # whoever called this one has measured no usual call
        return result

    def _begun(self, args: tuple[Any, ...], named: dict[str, Any]) -> _Run:
        """A new run; of a group it ends the one before."""
        before: _Run | None = getattr(self._own, "run", None)
        if before is not None:
            self._ended(before)
        run = self._next(self._key(*args, **named))
        if self._grouped:
            self._own.run = run
        return run

    def _going(self, member: int) -> _Run:
        run: _Run | None = getattr(self._own, "run", None)
        if run is None:
            first, called = self._members[0], self._members[member]
            raise fail("best-of", f"'{called}' of a group is called before '{first}', with which a run begins")
        return run

    def _next(self, key: Hashable) -> _Run:
        if (name := self._chosen.get(key)) is not None:
            return _Run(key, name, decided=True)
        with gate.inside(), self._lock:
            if key not in self._sizes and self._kept is not None and (name := self._kept.find(key)) is not None:
                self._decide(key, name)
                return _Run(key, name, decided=True)
            names = list(self._ways)
            size = self._sizes.setdefault(key, _Size({n: [] for n in names}, dict.fromkeys(names, 0), names))
            alive = size.by is not None and size.by.is_alive()  # else it ended amid a group, or before a fork
            if size.compared == NOT_YET or (size.compared == UNDER_WAY and not alive):
                size.compared, size.by = UNDER_WAY, threading.current_thread()
                return _Run(key, names[0], comparing=True)
            if size.compared == UNDER_WAY:  # by another thread: nobody knows yet who is right
                return _Run(key, names[0], spoilt=True)
            name = min(size.left, key=lambda n: (len(size.samples[n]), size.turns[n]))
            size.turns[name] += 1
            return _Run(key, name)

    def _compared(self, run: _Run, member: int, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The first one's result; the others have computed it, too, from copies, and are unfit if it is another. Where
        there can be no copies nothing is compared."""
        size, first = self._sizes[run.key], self._ways[run.name][member]
        others: dict[str, Any] = {}
        why: dict[str, str] = {}
        for n in [n for n in self._ways if n != run.name and n not in size.unfit]:
            if (copies := _copies(args, named)) is None:
                break
            try:
                others[n] = _kept(self._ways[n][member](*copies[0], **copies[1])), copies
            except Exception as e:
                why[n] = f"it raised {type(e).__name__}: {e}"
        result = first(*args, **named)  # if it raises, so may the others
        for n, (made, (mine, by_name)) in others.items():
            given = [*zip(args, mine, strict=True), *((named[k], by_name[k]) for k in named)]
            pairs = [(result, made), *((a, b) for a, b in given if isinstance(a, np.ndarray))]
            try:
                if not all(self._agree(a, b) for a, b in pairs):
                    why[n] = f"its results are not those of '{run.name}'"
            except Exception as e:
                why[n] = f"its results cannot be compared: {type(e).__name__}: {e}"
        for n, reason in why.items():
            self._refuse(size, n, reason)
        return result

    def _refuse(self, size: _Size, name: str, why: str) -> None:
        with gate.inside(), self._lock:
            size.unfit[name] = why
            size.left = [n for n in size.left if n != name]

    def _ended(self, run: _Run, broken: BaseException | None = None) -> None:
        """Counts the sample of a run, and decides where there are enough. ``broken``: what it raised; an alternative
        that raises where it did not at first takes no further part, as long as there is another."""
        if self._grouped:
            self._own.run = None
        if run.decided:
            return
        with gate.inside(), self._lock:
            size = self._sizes[run.key]
            if run.comparing:
                size.tried += broken is None
                whole = len(run.members) == len(self._members) or size.tried >= TRIED
                size.compared, size.by = DONE if whole and broken is None else NOT_YET, None
            elif run.name in size.left and isinstance(broken, Exception) and len(size.left) > 1:
                self._refuse(size, run.name, f"it raised {type(broken).__name__}: {broken}")
            elif run.name in size.left and broken is None:
                patient = size.turns[run.name] < PATIENCE * (len(size.samples[run.name]) + 1)
                if not (run.spoilt and patient):
                    size.samples[run.name].append(run.seconds)
            if size.compared == DONE and run.key not in self._chosen:
                self._weigh(run.key, size)

    def _weigh(self, key: Hashable, size: _Size) -> None:
        """Leaves out who is far behind, and decides where there are enough samples."""
        least = min(len(size.samples[n]) for n in size.left)
        best = {n: min(size.samples[n], default=0.0) for n in size.left}
        if least == PRUNED:
            size.left = [n for n in size.left if best[n] <= BEHIND * min(best.values())]
        if least >= self._rounds or len(size.left) == 1:
            quickest, usual = min(size.left, key=best.__getitem__), size.left[0]
            beaten = best[quickest] * (1 + MARGIN) < best[usual]
            self._decide(key, quickest if beaten else usual)
            if self._kept is not None and any(size.samples.values()):
                self._kept.keep(key, self._chosen[key], size.samples)

    def _decide(self, key: Hashable, name: str) -> None:
        self._chosen[key] = name
        if not self._grouped:
            self._fast[key] = self._ways[name][0]


best_of = BestOf  # what makes one is the class itself, so that its parameters are written once


class _Member:
    """A member of a group: a callable."""

    __slots__ = ("_number", "_of")

    def __init__(self, of: BestOf, number: int):
        self._of, self._number = of, number

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        return self._of._call(self._number, args, named, grouped=True)


def _members(alternatives: Any) -> tuple[str, ...]:
    """Names of a group's members; one empty name where alternatives are callables."""
    if not isinstance(alternatives, Mapping) or not alternatives:
        raise fail("best-of", "alternatives are a mapping of names to callables, one at least")
    for n, a in alternatives.items():
        if not isinstance(n, str) or not (callable(a) or isinstance(a, Mapping)):
            raise fail("best-of", f"the alternative {n!r} is {a!r}: a text names a callable, or a group of them")
    groups = [a for a in alternatives.values() if not callable(a)]
    if not groups:
        return ("",)
    members = tuple(groups[0])
    if len(groups) < len(alternatives) or any(a.keys() != groups[0].keys() for a in groups) or not members:
        raise fail("best-of", "alternatives are all callables, or all groups with the same members, one at least")
    for m in members:
        if not isinstance(m, str) or not m.isidentifier() or m.startswith("_") or hasattr(BestOf, m):
            raise fail("best-of", f"a member cannot be called {m!r}: it becomes an attribute")
    if any(not callable(f) for a in groups for f in a.values()):
        raise fail("best-of", "a group is a mapping of names to callables")
    return members


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


def _undecided() -> int:
    return getattr(_local, "undecided", 0)

