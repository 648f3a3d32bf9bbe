"""What calls wait for, as text: ``facts: {stream: {wait: "wait {stream}, {lag}"}}`` (SYS-8, SCH-8).

``unit`` is the one whose next command waits, until ``stream`` has finished all commands that stand before, but for the
last ``lag`` of them. Units with ``hazards: resolved`` wait by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from isam.classes import dataclass
from isam.codegen.stream.template import Address, Value, filled, lines_of
from isam.diagnostics import fail
from isam.ir.affine import Affine
from isam.schedule.tree import Issue, Loop, Schedule, distinct

FIELDS = "unit", "stream", "lag"


@dataclass
class Waiting:
    """Of one schedule. Raises ``IsamError`` where its waits cannot be written."""

    schedule: Schedule
    text: object = field(init=False)
    single: frozenset[str] = field(init=False)  # streams whose calls are one command each

    def __post_init__(self) -> None:
        s = self.schedule.system
        nodes = [n for t in (self.schedule.bind, self.schedule.call) for n in distinct(t)]
        if any(isinstance(n, Loop) and n.deal is not None for n in nodes):
            raise fail("emission-instances", f"loops are dealt to instances of '{s.name}', which commands do not name")
        issues = [n for n in nodes if isinstance(n, Issue)]
        self.text = s.facts.get("stream", {}).get("wait")
        streams = {s.stream_of(n.unit) for n in issues}
        self.single = frozenset(streams - {s.stream_of(n.unit) for n in issues if self._commands(n) != {1}})
        later = {s.stream_of(n.unit): n for n in issues if not n.configures and 0 in self._commands(n)}
        for n in issues:
            for w in n.after if s.units[n.unit].hazards != "resolved" else ():
                self._writable(n, w.stream, later.get(w.stream))

    def _writable(self, call: Issue, stream: str, later: Issue | None) -> None:
        unit = self.schedule.system.units[call.unit]
        if self.text is None:
            what = f"calls of '{unit.name}' have to wait for '{stream}', and nothing says how that is written"
            hint = "write 'facts: {stream: {wait: ...}}', or 'hazards: resolved' where the hardware waits"
            raise fail("emission-wait", what, unit.loc, hint)
        if later is not None:
            what = f"calls of '{unit.name}' have to wait for '{later.instruction}', which has no command"
            hint = "what a later command brings along is waited for by the hardware: write 'hazards: resolved'"
            raise fail("emission-wait", what, unit.loc, hint)

    def _commands(self, call: Issue) -> set[int]:
        """The numbers of commands that a call may be."""
        emission = self.schedule.system.instructions[call.instruction].emission
        return set(map(len, lines_of(emission.get("stream", "")).values()))

    def lines(self, step: Sequence[Issue]) -> Iterator[str]:
        """The lines before a step. Where a call is several commands, a number of calls says nothing of how many
        commands they are: then everything is waited for that stands before."""
        head, system = step[0], self.schedule.system
        if system.units[head.unit].hazards == "resolved":
            return
        lags: dict[str, int] = {}
        for w in (w for n in step for w in n.after):
            lags[w.stream] = min(w.lag, lags.get(w.stream, w.lag))
        for stream, lag in sorted(lags.items()):
            known: dict[str, Value] = {"unit": Address(head.unit, Affine()), "stream": Address(stream, Affine()),
                                       "lag": lag if stream in self.single else 0}  # fmt: skip

            def lookup(word: str, known: dict[str, Value] = known) -> Value:
                if word not in known:
                    raise fail("emission-name", f"a wait has no '{word}' to write: it has {', '.join(FIELDS)}")
                return known[word]

            for line in lines_of(self.text)["always"]:
                yield filled(line, lookup)
