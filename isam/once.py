"""What is worked out once about an object that does not change, and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")


class _Itself:
    """Stands for the object where that is the result: kept with itself, it would be a cycle."""


def once(make: Callable[[T], R]) -> Callable[[T], R]:
    """A function of a module, of one frozen object (a kernel, an instruction, a schedule), whose result is made when it
    is first asked for and kept with that object: no field, so neither compared nor taken over by ``replace``."""
    key = _key(make)

    @wraps(make)
    def made(owner: T) -> R:
        known = owner.__dict__
        if key not in known:
            known[key] = _kept(owner, make(owner))
        got = known[key]
        return cast("R", owner) if got is _Itself else got

    return made


def know(function: Callable[[T], R], owner: T, result: R) -> None:
    """Keeps what a function made by :func:`once` would make of ``owner``, where that is known already."""
    owner.__dict__[_key(function)] = _kept(owner, result)


def _kept(owner: object, result: object) -> object:
    return _Itself if result is owner else result


def _key(function: Callable[..., object]) -> str:
    return f"{function.__module__}.{function.__qualname__}"
