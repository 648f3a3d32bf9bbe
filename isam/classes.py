"""Dataclasses whose methods are made when they are first called.

Python makes five or six methods of every dataclass from text when its module is imported: a fifth of a first
compilation went into methods, most of which nobody called. A class made here is the same to whoever uses it
(``fields``, ``replace``, ``match``, copies, signatures). Fields and slots are Python's own work; what a constructor,
``==`` and ``hash`` do is written down when somebody first asks for it.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, fields, is_dataclass
from dataclasses import dataclass as _with_fields
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True,
                  repr: bool = True) -> Any:  # fmt: skip
        """As Python's decorator of that name, with those of its options that are used here."""

        def made(cls: type) -> type:
            derived = any(map(is_dataclass, cls.__mro__[1:]))  # then Python looks at what the bases are
            cls = _with_fields(init=False, repr=False, eq=False, frozen=frozen and derived, slots=slots)(cls)
            _unless_written(cls, "__init__", _Later(cls, "__init__", _init))
            if repr:
                _unless_written(cls, "__repr__", _repr(cls))
            if eq:
                _compare(cls, frozen)
            if frozen and not derived:
                _freeze(cls)
            if frozen and slots:
                _unless_written(cls, "__getstate__", _state)
                _unless_written(cls, "__setstate__", _restore)
            return cls

        return made if cls is None else made(cls)


class _Later:
    """A method that takes its place in the class when it is first looked up there."""

    def __init__(self, owner: type, name: str, write: Callable[[type], Any]):
        self.owner, self.name, self.write = owner, name, write

    def __get__(self, instance: Any, owner: type) -> Any:
        method = self.write(self.owner)
        method.__module__, method.__qualname__ = self.owner.__module__, f"{self.owner.__qualname__}.{self.name}"
        setattr(self.owner, self.name, method)
        return method.__get__(instance, owner)


def _unless_written(cls: type, name: str, method: Any) -> None:
    if name not in cls.__dict__:
        setattr(cls, name, method)


def _method(lines: list[str], names: dict[str, Any]) -> Any:
    """The function that the lines define, as Python itself makes those of dataclasses: from names of fields."""
    before = set(names)
    exec("\n".join(lines), names)
    return next(made for name, made in names.items() if name not in before and name != "__builtins__")


def _init(cls: type) -> Any:
    names: dict[str, Any] = {"_set": object.__setattr__, "_absent": MISSING}
    given, body = [], []
    for f in fields(cls):
        value = f.name
        if f.default is not MISSING:
            names[f"_default_{f.name}"] = f.default
            value = f.name if f.init else f"_default_{f.name}"
            given += [f"{f.name}=_default_{f.name}"] * f.init
        elif f.default_factory is not MISSING:
            names[f"_make_{f.name}"] = f.default_factory
            value = f"_make_{f.name}()" + (f" if {f.name} is _absent else {f.name}" if f.init else "")
            given += [f"{f.name}=_absent"] * f.init
        elif f.init:
            given.append(f.name)
        else:
            continue
        body.append(_setting(cls, f, value, names))
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    return _method([f"def __init__(self, {', '.join(given)}):", *(body or [" pass"])], names)


def _setting(cls: type, f: Field[Any], value: str, names: dict[str, Any]) -> str:
    """A slot is set by what Python has put into the class for it, in half the time that ``__setattr__`` takes; plainly,
    where nothing forbids that, in a third."""
    if cls.__setattr__ is object.__setattr__:
        return f" self.{f.name} = {value}"
    slot = next((c.__dict__[f.name] for c in cls.__mro__ if f.name in c.__dict__), None)
    if isinstance(slot, MemberDescriptorType):
        names[f"_set_{f.name}"] = slot.__set__
        return f" _set_{f.name}(self, {value})"
    return f' _set(self, "{f.name}", {value})'


def _compare(cls: type, frozen: bool) -> None:
    """Two values of one class are equal when their fields are; what cannot change can be hashed."""
    given = cls.__dict__.get("__hash__")
    by_hand = "__hash__" in cls.__dict__ and not (given is None and "__eq__" in cls.__dict__)
    _unless_written(cls, "__eq__", _Later(cls, "__eq__", _eq))
    if not by_hand:
        setattr(cls, "__hash__", _Later(cls, "__hash__", _hash) if frozen else None)  # noqa: B010


def _eq(cls: type) -> Any:
    mine, theirs = (_values(who, [f for f in fields(cls) if f.compare]) for who in ("self", "other"))
    return _method([
        "def __eq__(self, other):",
        " if other.__class__ is self.__class__:",
        f"  return {mine} == {theirs}",
        " return NotImplemented"], {})  # fmt: skip


def _hash(cls: type) -> Any:
    hashed = [f for f in fields(cls) if (f.compare if f.hash is None else f.hash)]
    return _method(["def __hash__(self):", f" return hash({_values('self', hashed)})"], {})


def _values(who: str, some: list[Field[Any]]) -> str:
    return f"({''.join(f'{who}.{f.name}, ' for f in some)})"


def _repr(cls: type) -> Any:
    names = [f.name for f in fields(cls) if f.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"

    return __repr__


def _freeze(cls: type) -> None:
    names = {f.name for f in fields(cls)}

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__dataclass_params__.frozen = True  # type: ignore[attr-defined]
    cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__  # type: ignore[method-assign]


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)
