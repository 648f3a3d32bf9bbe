"""`isam.classes.dataclass` against Python's own: whoever uses a class cannot tell which of the two made it."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import isam
from isam.classes import dataclass

OPTIONS = [{}, {"frozen": True}, {"slots": True}, {"frozen": True, "slots": True}, {"eq": False},
           {"frozen": True, "slots": True, "eq": False}, {"frozen": True, "repr": False}]  # fmt: skip


def point(make: Callable[..., Any], **options: bool) -> Any:
    """One class with every kind of field, made by ``make``."""

    @make(**options)
    class Point:
        """A point."""

        x: int
        y: float = 2.5
        tags: list[str] = field(default_factory=list, compare=False)
        hidden: int = field(default=7, repr=False, hash=False)
        area: float = field(init=False, compare=False)
        serial: int = field(init=False, default=3)

        def __post_init__(self) -> None:
            object.__setattr__(self, "area", self.x * self.y)

    return Point


@pytest.fixture(params=OPTIONS, ids=lambda o: ",".join(o) or "plain")
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return point(dataclass, **request.param), point(dataclasses.dataclass, **request.param)


def seen(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except (TypeError, ValueError, AttributeError) as e:
        return type(e), str(e)


def test_values_look_and_behave_alike(pair: tuple[Any, Any]) -> None:
    def answers(cls: Any) -> list[Any]:
        a, b, other = cls(1), cls(x=1, y=2.5), cls(2, 3.0, ["t"], hidden=8)
        takes = inspect.signature(cls).parameters
        return [
            takes.keys(), [p.default for p in takes.values()][:2],
            [(f.name, f.init, f.compare) for f in dataclasses.fields(cls)], dataclasses.is_dataclass(a),
            cls.__match_args__, cls.__doc__, cls.__init__.__qualname__, hasattr(a, "__dict__"),
            a == b, a == other, a == 1, a != b, a.tags is b.tags, a.area, a.serial, dataclasses.astuple(other),
            repr(a).split(" at 0x")[0], a.hidden, seen(lambda: hash(a) == hash(b)), cls.__hash__ is None,
            dataclasses.astuple(dataclasses.replace(other, x=9)), seen(lambda: dataclasses.replace(a, area=1.0)),
            dataclasses.astuple(copy.copy(other)), dataclasses.astuple(copy.deepcopy(other)),
            seen(lambda: setattr(a, "x", 5)), seen(lambda: delattr(a, "x")),
            seen(lambda: cls()), seen(lambda: cls(1, z=1)),
        ]  # fmt: skip

    mine, python = map(answers, pair)
    assert [str(a) for a in mine] == [str(a) for a in python]


def test_patterns_take_fields_by_place() -> None:
    cls = point(dataclass, frozen=True, slots=True)
    match cls(4, 1.0):
        case cls(x, y):
            assert (x, y) == (4, 1.0)


@pytest.mark.parametrize("slots", [False, True])
def test_nothing_is_added_to_a_frozen_value(slots: bool) -> None:  # Python's own forget who they are, with slots
    value = point(dataclass, frozen=True, slots=slots)(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'unknown'"):
        value.unknown = 5
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'y'"):
        del value.y


def test_a_class_written_out_keeps_its_methods() -> None:
    @dataclass(frozen=True)
    class Name:
        text: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Name) and other.text.lower() == self.text.lower()

        def __hash__(self) -> int:
            return hash(self.text.lower())

        def __repr__(self) -> str:
            return self.text

        @cached_property
        def long(self) -> bool:
            return len(self.text) > 3

    assert Name("A") == Name("a")
    assert len({Name("A"), Name("a")}) == 1
    assert f"{Name('abcd')!r} {Name('abcd').long}" == "abcd True"


def test_a_derived_class_has_all_fields_and_stays_frozen() -> None:
    @dataclass(frozen=True, slots=True)
    class Base:
        a: int

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        b: int = 2

    @dataclasses.dataclass(frozen=True)
    class Foreign(Base):
        c: int = 3

    assert Derived(1) == Derived(1, 2) != Derived(2)
    assert Derived(1) != Base(1)
    assert hash(Derived(1)) == hash(Derived(1, 2))
    assert repr(Derived(1)).endswith("Derived(a=1, b=2)")
    assert Foreign(1).c == 3
    for value in (Derived(1), Foreign(1)):
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
            value.a = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="non-frozen dataclass from a frozen one"):
        dataclass(type("Loose", (Base,), {"__annotations__": {"d": "int"}, "d": 1}))


def test_a_default_is_made_for_each_value() -> None:
    numbers = count()

    @dataclass
    class Numbered:
        n: int = field(default_factory=lambda: next(numbers))

    assert [Numbered().n, Numbered().n, Numbered(9).n, Numbered().n] == [0, 1, 9, 2]


def test_a_field_without_a_default_after_one_with_is_refused() -> None:
    cls = dataclass(type("Wrong", (), {"__annotations__": {"a": "int", "b": "int"}, "a": 1}))
    with pytest.raises(SyntaxError):
        cls(1, 2)


def test_methods_are_made_when_they_are_asked_for() -> None:
    cls = point(dataclass, frozen=True, slots=True)
    waiting = {n for n, m in vars(cls).items() if type(m).__name__ == "_Later"}
    assert waiting == {"__init__", "__eq__", "__hash__"}
    assert cls(1) == cls(1)
    assert {n for n, m in vars(cls).items() if type(m).__name__ == "_Later"} == {"__hash__"}


def test_every_dataclass_of_the_package_is_made_so() -> None:
    folder = Path(isam.__file__).parent
    python = re.compile(r"^\s*(from dataclasses import .*\bdataclass\b|import dataclasses)", re.MULTILINE)
    assert [p.name for p in folder.rglob("*.py") if python.search(p.read_text())] == ["classes.py"]
