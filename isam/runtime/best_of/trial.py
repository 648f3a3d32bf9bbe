"""Which alternative is quickest for calls of one size: rounds in which they take turns, who is left out, and when one
is taken. There is no clock in here and no lock: whoever calls this says how long a turn took, and holds one."""

from __future__ import annotations

from collections.abc import Sequence

ROUNDS, PRUNED = 5, 2  # samples of each before one is taken; before those far behind are left out
BEHIND = 1.5  # times as long as the quickest
MARGIN = 0.02  # of the time, by which the first has to be beaten
PATIENCE = 10  # turns per sample that something undecided inside may spoil


class Trial:
    """Alternatives by name, the usual one first; one is taken once each has as many samples as there are ``rounds``.
    ``samples``: seconds of the runs that count; ``unfit``: who takes no part, and why; ``left``: who is still in the
    running."""

    __slots__ = ("_rounds", "_turns", "left", "samples", "unfit")

    def __init__(self, names: Sequence[str], rounds: int):
        self._rounds, self._turns = rounds, dict.fromkeys(names, 0)
        self.samples: dict[str, list[float]] = {n: [] for n in names}
        self.left, self.unfit = list(names), dict[str, str]()

    def turn(self) -> str:
        """Whose turn it is, which counts as taken."""
        name = min(self.left, key=lambda n: (len(self.samples[n]), self._turns[n]))
        self._turns[name] += 1
        return name

    def refuse(self, name: str, why: str) -> None:
        """It takes no further part."""
        self.unfit[name] = why
        self.left = [n for n in self.left if n != name]

    def failed(self, name: str, why: str) -> None:
        """In a turn of its own: who did so takes no further part, as long as there is another."""
        if name in self.left and len(self.left) > 1:
            self.refuse(name, why)

    def ran(self, name: str, seconds: float, spoilt: bool) -> None:
        """A run took so long. ``spoilt``: something inside was not decided yet, so that it says little; it is waited
        for, but not for ever."""
        patient = self._turns[name] < PATIENCE * (len(self.samples[name]) + 1)
        if name in self.left and not (spoilt and patient):
            self.samples[name].append(seconds)

    def taken(self) -> str | None:
        """Who is taken; None where there are too few samples. Leaves out who is far behind."""
        least = min(len(self.samples[n]) for n in self.left)
        best = {n: min(self.samples[n], default=0.0) for n in self.left}
        if least == PRUNED:
            self.left = [n for n in self.left if best[n] <= BEHIND * min(best.values())]
        if least < self._rounds and len(self.left) > 1:
            return None
        quickest, usual = min(self.left, key=best.__getitem__), self.left[0]
        return quickest if best[quickest] * (1 + MARGIN) < best[usual] else usual

    def lines(self, taken: str | None) -> list[str]:
        """Per alternative the best and the median time in microseconds, or why it takes no part; ``taken`` is
        marked."""
        lines = []
        for n, samples in self.samples.items():
            said = self.unfit.get(n) or "no sample yet"
            if some := sorted(samples):
                best, median = (f"{1e6 * some[at]:.4g} us" for at in (0, len(some) // 2))
                said = f"{best}, median {median} of {len(some)}"
            lines.append(f"{'*' if n == taken else ' '} {n}: {said}")
        return lines
