"""Several implementations of one thing behind one callable, which keeps the quickest for each problem size (an online
selector, as PyDTNN's BestOf): nothing is run for measuring, calls that are made anyway take turns.

Here is who is called and timed, groups and threads included. Of which size a call is says :mod:`.sizes`, whether
alternatives compute the same :mod:`.agreement`, whose turn it is and which one is taken :mod:`.trial`; what was taken
is kept by :mod:`.decided`.

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
from dataclasses import field
from pathlib import Path
from typing import Any

from isam.classes import dataclass
from isam.diagnostics import fail
from isam.runtime.best_of.agreement import Agree, Comparison, close, compared, raised
from isam.runtime.best_of.decided import Decided
from isam.runtime.best_of.sizes import problem_size, size_of
from isam.runtime.best_of.trial import ROUNDS, Trial
from isam.runtime.forks import gate

Key = Callable[..., Hashable]
_local = threading.local()  # per thread: how many undecided calls were made


@dataclass(slots=True)
class _Size:
    """What is known of one problem size that is not decided, or was decided here."""

    trial: Trial
    comparison: Comparison = field(default_factory=Comparison)


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
        for given, what in ((key, "key"), (agree, "agree")):
            if not callable(given):
                raise fail("best-of", f"{what} is a function, not {type(given).__name__}")
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
                taken, size = self._chosen.get(key), self._sizes.get(key)
                lines.append(f"{key}: {taken or 'not decided yet'}" + ("" if size else ", found before"))
                lines += size.trial.lines(taken) if size else []
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
            size = self._sizes.setdefault(key, _Size(Trial(list(self._ways), self._rounds)))
            if size.comparison.done:
                return _Run(key, size.trial.turn())
            mine = size.comparison.begin()  # else nobody knows yet who is right
            return _Run(key, next(iter(self._ways)), comparing=mine, spoilt=not mine)

    def _compared(self, run: _Run, member: int, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The first one's result; the others have computed it, too, and are unfit if it is another."""
        trial = self._sizes[run.key].trial
        ways = {n: way[member] for n, way in self._ways.items() if n == run.name or n not in trial.unfit}
        result, why = compared(run.name, ways, args, named, self._agree)
        with gate.inside(), self._lock:
            for n, reason in why.items():
                trial.refuse(n, reason)
        return result

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
                size.comparison.end(len(run.members) == len(self._members), broken is not None)
            elif broken is None:
                size.trial.ran(run.name, run.seconds, run.spoilt)
            elif isinstance(broken, Exception) and size.comparison.done:  # else the first, beside whom nobody is known
                size.trial.failed(run.name, raised(broken))
            if size.comparison.done and run.key not in self._chosen and (name := size.trial.taken()) is not None:
                self._decide(run.key, name)
                if self._kept is not None and any(size.trial.samples.values()):
                    self._kept.keep(run.key, name, size.trial.samples)

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


def _undecided() -> int:
    return getattr(_local, "undecided", 0)

