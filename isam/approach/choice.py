"""Every choice of the compiler goes through an Approach (APP-1); the core offers legal options, and picks none of them.

An Approach has one method per choice point. It receives a :class:`Choice` whose options are all legal and returns one
of them (the object itself). It never touches state. A :class:`Trace` records every decision; replaying a trace makes
the same decisions again, to identical bytes (APP-3).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from isam.approach import SCHEMA
from isam.classes import dataclass
from isam.diagnostics import NOWHERE, IsamError, Loc, fail

T = TypeVar("T")
DIFFERS = {  # what a recording is of, as a refusal says it
    "kernel": "another kernel or other sizes",
    "machine": "another machine: its description is not the one of the recording",
    "options": "other required instructions",
}
NOTHING = "nothing"  # the option by which all stays as it is
SHOWN = 8  # options of a choice that are recorded by their printed forms

POINTS = (
    "search",
    "kernel",
    "mapping",
    "cover",
    "layout",
    "pack",
    "tile",
    "tail",
    "order",
    "serpentine",
    "interchange",
    "boxes",
    "carry",
    "promote",
    "copartition",
    "cascade",
    "agree",
    "bind",
    "fuse",
    "device",
    "source",
    "place",
    "route",
    "join",
    "victim",
    "prefetch",
    "stream",
    "upfront",
    "pipeline",
    "schedule",
    "variant",
    "measure",
)
IDLE = {  # points that nothing asks today, and what is asked instead
    "layout": "how operands lie is part of the plans that 'tile' chooses among",
    "order": "in which order loops go and how long their blocks are is one plan, which 'tile' chooses",
}


@dataclass(frozen=True)
class Choice:
    """Legal ``options`` at a ``point``; ``context`` says what is being decided (JSON-able values; live objects under
    keys that start with '_', which are not recorded). ``costs``: what the core predicts per option, where it does, the
    less the better: calls, cycles, seconds or others, as `isam.approach.questions` says of the point."""

    point: str
    options: Sequence[Any]
    context: dict[str, Any] = field(default_factory=dict)
    costs: Sequence[float] | None = None

    def __post_init__(self) -> None:  # nobody who is asked may change what is asked
        object.__setattr__(self, "options", tuple(self.options))
        if self.costs is not None:
            object.__setattr__(self, "costs", tuple(self.costs))


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided: the index of the chosen option among ``count``, its printed form and the reason given.

    ``costs``: what the core predicted per option; ``options``: their printed forms, where there are at most ``SHOWN``.
    """

    point: str
    context: dict[str, Any]
    count: int
    chosen: int
    label: str
    why: str = ""
    costs: tuple[float, ...] = ()
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.point:8} {self.label}  ({self.count} options; {self.why})"


class Approach:
    """The base: the first legal option everywhere (first-fit). Override single methods and inherit the rest (APP-2)."""

    name = "first-fit"
    why = "first legal option"
    reasons: Mapping[str, str] = {}  # the reasons of single choice points, in the place of ``why``
    tries = 1  # schedules that are made at most before the quickest is kept
    varied: tuple[str, ...] = ("fuse", "tile")  # choice points that are decided otherwise in the others
    runs = 1  # schedules that are run beside each other at most, where code is made for this CPU; 1: none is
    goes_on: bool = False  # further decisions are known on a schedule of the cover that was chosen

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        for name, value in vars(cls).items():
            if name in IDLE and callable(value) and not cls.__module__.startswith("isam."):
                _never_asked(cls.__name__, name, place(value))
            if callable(value) and not name.startswith("_") and not hasattr(Approach, name):
                from difflib import get_close_matches

                near = get_close_matches(name, POINTS, n=1, cutoff=0.75)
                if near:
                    hint = f"did you mean '{near[0]}'? a method of your own may begin with an underscore"
                    what = f"'{name}' of the Approach {cls.__name__} is no choice point"
                    raise fail("approach-misspelt", what, place(value), hint)
        if not cls.__module__.startswith("isam."):
            _stated(cls)

    @classmethod
    def given(cls, argument: str) -> Approach:
        """The Approach for what follows the colon in its name: ``beam:8``."""
        raise fail("approach-argument", f"the Approach '{cls.name}' takes nothing after its name: '{argument}'")

    def decide(self, choice: Choice) -> Any:
        """Dispatches to the method named after the choice point."""
        return getattr(self, choice.point)(choice)

    def because(self, choice: Choice) -> str:
        """The reason that is recorded with a decision: that of the class whose method takes it, so that what is
        inherited is not said to be this class's opinion, for this choice point in its ``reasons`` or else its ``why``.
        One that was set on the Approach itself is that of all."""
        if "why" not in vars(self) and choice.point not in vars(self):
            decides = next(c for c in type(self).__mro__ if choice.point in vars(c) or "decide" in vars(c))
            own = vars(decides).get("reasons", {})
            if isinstance(own, Mapping) and isinstance(own.get(choice.point), str):
                return own[choice.point]
            if isinstance(decides.__dict__.get("why", ""), str):
                return getattr(decides, "why", self.why)
        return self.why

    def _first(self, choice: Choice) -> Any:
        return choice.options[0]

    search = kernel = mapping = cover = layout = pack = tile = tail = order = serpentine = interchange = boxes = _first
    carry = promote = copartition = cascade = agree = bind = fuse = device = source = place = route = _first
    join = victim = prefetch = stream = upfront = pipeline = schedule = variant = measure = _first


class Behind(Approach):
    """An Approach that decides as another one does, which what is derived from it may change."""

    def __init__(self, base: Approach):
        self.base, self.name = base, base.name

    def because(self, choice: Choice) -> str:
        return self.base.because(choice)

    def decide(self, choice: Choice) -> Any:
        return self.base.decide(choice)


class Trace:
    """Records decisions, or replays recorded ones."""

    def __init__(self, approach: Approach, replay: Sequence[Decision] | None = None):
        self.approach = approach
        self.decisions: list[Decision] = []
        self._replay = list(replay) if replay is not None else None
        self.subject: dict[str, str] = {}  # what the decisions are about: digests of kernel, machine and options
        self.loc = NOWHERE  # where the recording was read from
        self.beside: set[int] = set()  # decisions on what is made to be compared, of which one is taken

    @contextmanager
    def comparing(self) -> Iterator[None]:
        """What is decided inside is on something that is made beside what there is, and taken or not."""
        begin = len(self.decisions)
        try:
            yield
        finally:
            self.beside |= set(range(begin, len(self.decisions)))

    def about(self, parts: Mapping[str, str]) -> None:
        """Says what is being compiled, part by part. Raises ``IsamError`` when a recording is of something else."""
        now = {n: sha256(text.encode()).hexdigest()[:16] for n, text in parts.items()}
        if self._replay is not None and self.subject and self.subject != now:
            other = [DIFFERS.get(n, n) for n in now if now[n] != self.subject.get(n)]
            what = "; of ".join(other) if self.subject.keys() == now.keys() else "an earlier version of ISAM"
            raise fail("trace-differs", f"the recorded trace is of {what}", self.loc,
                       "record a new one: `isam schedule ... --trace FILE`")  # fmt: skip
        self.subject = now

    @property
    def recorded(self) -> tuple[Decision, ...]:
        """The decisions made, or those that will be made again."""
        return tuple(self.decisions if self._replay is None else self._replay)

    @property
    def ahead(self) -> Decision | None:
        """While replaying: the decision recorded for the next choice."""
        at = len(self.decisions)
        return self._replay[at] if self._replay is not None and at < len(self._replay) else None

    def done(self) -> None:
        """Raises ``IsamError`` when a recording has decisions that nothing asked for."""
        if self.ahead is not None:
            raise fail("trace-differs", f"the recorded trace goes on after decision {len(self.decisions) - 1}: "
                       f"nothing asks for '{self.ahead.point}'", self.loc,
                       hint="the kernel, the machine or the version differs from the recording")  # fmt: skip

    def choose(self, choice: Choice) -> Any:
        """Asks the Approach (or the recording), checks that the answer is one of the options and records it."""
        n = len(choice.options)
        if n == 0:
            raise ValueError(f"no option at choice point '{choice.point}'")
        if self._replay is not None:
            at = len(self.decisions)
            if at >= len(self._replay) or (self._replay[at].point, self._replay[at].count) != (choice.point, n):
                raise fail(
                    "trace-differs",
                    f"the recorded trace does not fit at decision {at} ({choice.point})",
                    self.loc,
                    hint="the kernel, the machine or the version differs from the recording",
                )
            index, why = self._replay[at].chosen, self._replay[at].why
            if not 0 <= index < n:
                raise fail("trace-differs", f"the recorded trace chooses option {index} of {n} at decision {at}",
                           self.loc)  # fmt: skip
            if label_of(choice.options[index]) != self._replay[at].label:
                raise fail(
                    "trace-differs",
                    f"at decision {at} ({choice.point}) option {index} is not the one recorded",
                    self.loc,
                    hint="the kernel, the machine or the version differs from the recording",
                )
        else:
            why = self.approach.because(choice)
            index = self._asked(choice)
        self.record(choice, index, why)
        return choice.options[index]

    def record(self, choice: Choice, index: int, why: str) -> None:
        """Writes down that an option was chosen."""
        context = {k: v for k, v in choice.context.items() if not k.startswith("_")}
        labels = tuple(map(label_of, choice.options)) if len(choice.options) <= SHOWN else ()
        label = labels[index] if labels else label_of(choice.options[index])
        costs = tuple(float(f"{c:.6g}") for c in choice.costs or ())
        count = len(choice.options)
        self.decisions.append(Decision(choice.point, context, count, index, label, why, costs, labels))

    @property
    def replays(self) -> bool:
        return self._replay is not None

    def answer(self, choice: Choice) -> Any:
        """What the Approach answers, one of the options; not recorded."""
        return choice.options[self._asked(choice)]

    def _asked(self, choice: Choice) -> int:
        """Which option the Approach answers."""
        answer = self._answer(choice)
        index = next((i for i, o in enumerate(choice.options) if o is answer), -1)
        if index < 0:
            index = next((i for i, o in enumerate(choice.options) if o == answer), -1)
        if index < 0:
            raise fail(
                "approach-illegal",
                f"the Approach {_called(self.approach)} answered {answer!r} at choice point "
                f"'{choice.point}', which is not one of the {len(choice.options)} legal options",
                place(getattr(type(self.approach), choice.point, None)),
                "return one of choice.options, the object itself",
            )
        return index

    def _answer(self, choice: Choice) -> Any:
        try:
            return self.approach.decide(choice)
        except IsamError:
            raise
        except (Exception, SystemExit) as e:
            who = self.approach
            while isinstance(who, Behind):
                who = who.base
            if type(who).__module__.startswith("isam."):
                raise  # a shipped one: our fault
            raised = f"raised {type(e).__name__} at choice point '{choice.point}': {e}"
            at = _raised_at(e, place(getattr(type(who), choice.point, None)))
            hint = "the exception's __cause__ is what was raised; isam --traceback VERB ... shows it"
            raise fail("approach-raises", f"the Approach {_called(who)} {raised}", at, hint) from e

    def to_json(self) -> str:
        """A line per decision, so that two traces can be compared by line."""
        head = {"schema": SCHEMA, "approach": self.approach.name, "subject": self.subject}
        rows = [json.dumps({n: getattr(d, n) for n in Decision.__slots__}) for d in self.decisions]
        return json.dumps(head)[:-1] + ', "decisions": [\n' + ",\n".join(rows) + "\n]}\n"

    @staticmethod
    def replaying(text: str, loc: Loc = NOWHERE) -> Trace:
        """A trace that repeats the decisions of ``text`` (made by :meth:`to_json`), which was read from ``loc``. Raises
        ``IsamError`` (``trace-read``) where it is anything else."""
        from isam.approach.recorded import read

        data = read(text, loc)
        a = Approach()
        a.name = data["approach"]
        trace = Trace(a, [Decision(**row) for row in data["decisions"]])
        trace.subject, trace.loc = data["subject"], loc
        return trace

    @staticmethod
    def reading(source: Path | str, name: str = "") -> Trace:
        """The trace in a file, or in a text called ``name``; ``trace-read`` where there is none."""
        from isam.approach.recorded import HINT

        loc = Loc(name or (str(source) if isinstance(source, Path) else "<trace>"), 1, 1)
        try:
            text = source if isinstance(source, str) else source.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as e:
            why = getattr(e, "strerror", None) or "it is no UTF-8 text"
            raise fail("trace-read", f"cannot read the trace: {why}", loc, HINT) from None
        return Trace.replaying(text, loc)

    def diff(self, other: Trace) -> list[tuple[Decision | None, Decision | None]]:
        """Decisions that differ, side by side; None where one trace has none."""
        pairs = zip_longest(self.decisions, other.decisions)
        return [(a, b) for a, b in pairs if a is None or b is None or _key(a) != _key(b)]

    def __str__(self) -> str:
        return "\n".join(f"{i:4} {d}" for i, d in enumerate(self.decisions))


def _key(d: Decision) -> tuple[str, str, str]:
    return d.point, d.label, json.dumps(d.context, sort_keys=True)


def _never_asked(approach: str, point: str, loc: Loc) -> None:
    """Warns of a method that decides nothing: what it would do does not happen."""
    what = f"'{point}' of the Approach {approach} is never asked: {IDLE[point]} [approach-idle]"
    warnings.warn_explicit(what, UserWarning, loc.file, loc.line)


def _stated(cls: type[Approach]) -> None:
    """What the class says of schedules that are made besides can be so. Raises ``IsamError`` (``approach-value``)."""
    at = next((loc for v in vars(cls).values() if (loc := place(v)) != NOWHERE), NOWHERE)
    for name, what in {"tries": "made", "runs": "run beside each other"}.items():
        if not isinstance(value := getattr(cls, name), int) or value < 1:
            raise fail("approach-value", f"'{name}' of the Approach {cls.__name__} is {value!r}, no whole number from "
                       "one on", at, f"how many schedules may be {what}, for example {name} = 5")  # fmt: skip
    named = cls.varied if isinstance(cls.varied, tuple | list | set | frozenset) else (cls.varied,)
    wrong = next((p for p in named if p not in POINTS), None)
    if wrong is not None or named is not cls.varied:
        what = f"{wrong!r} is no choice point" if wrong is not None else "a text, not several"
        raise fail("approach-value", f"'varied' of the Approach {cls.__name__}: {what}", at,
                   'the points decided otherwise, for example varied = ("tile",)')  # fmt: skip


def place(method: Any) -> Loc:
    """Where a method stands that somebody else wrote; nowhere for those of ISAM."""
    code = getattr(method, "__code__", None)
    ours = str(getattr(method, "__module__", "")).startswith("isam.")
    return NOWHERE if code is None or ours else Loc(code.co_filename, code.co_firstlineno, 1)


def _raised_at(e: BaseException, otherwise: Loc) -> Loc:
    """The line of the method that raised, or of what it called in its own file."""
    at, found = e.__traceback__, otherwise
    while at is not None:
        if at.tb_frame.f_code.co_filename == otherwise.file:
            found = Loc(otherwise.file, at.tb_lineno, 1)
        at = at.tb_next
    return found


def _called(approach: Approach) -> str:
    """Its name, and its class where the name is inherited."""
    own = "name" in vars(approach) or "name" in vars(type(approach))
    return f"'{approach.name}'" if own else f"{type(approach).__name__} (named '{approach.name}' like its base)"


def label_of(option: Any) -> str:
    label = getattr(option, "label", None)
    return str(label() if isinstance(label, Callable) else label if label is not None else option)
