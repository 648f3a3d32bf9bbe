"""Checks that a record read from a file has fields of the types its class declares."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from isam.diagnostics import fail

Check = Callable[[Any], bool]
T = TypeVar("T")


def typed(record: T) -> T:
    """The record itself. Raises ``IsamError`` when a field's value is not of its declared type."""
    for name, check in _fields(type(record)):
        if not check(getattr(record, name)):
            kind = type(record).__name__
            raise fail("schedule-damaged", f"{kind}.{name} cannot be {str(getattr(record, name))[:80]!r}")
    return record


@cache
def _fields(cls: type) -> tuple[tuple[str, Check], ...]:
    hints = get_type_hints(cls)
    names = getattr(cls, "_fields", ()) or [f.name for f in fields(cls)]
    return tuple((n, _check(hints[n])) for n in names)


@cache
def _check(hint: Any) -> Check:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda v: True
    if hint is None or hint is type(None):
        return lambda v: v is None
    if origin in (Union, types.UnionType):
        options = [_check(a) for a in args]
        return lambda v: any(o(v) for o in options)
    if origin is tuple:
        return _tuple(args)
    if origin is frozenset:
        item = _check(args[0])
        return lambda v: isinstance(v, frozenset) and all(item(x) for x in v)
    if origin in (dict, Mapping):
        key, value = _check(args[0]), _check(args[1])
        return lambda v: isinstance(v, dict) and all(key(k) and value(x) for k, x in v.items())
    if hint is int:
        return lambda v: type(v) is int
    if hint is float:
        return lambda v: type(v) in (int, float)
    cls = hint if isinstance(hint, type) else object
    return lambda v: isinstance(v, cls)


def _tuple(args: tuple[Any, ...]) -> Check:
    if len(args) == 2 and args[1] is Ellipsis:
        item = _check(args[0])
        return lambda v: isinstance(v, tuple) and all([item(x) for x in v])  # noqa: C419  (faster)
    items = [_check(a) for a in args]
    return lambda v: isinstance(v, tuple) and len(v) == len(items) and all(
        [c(x) for c, x in zip(items, v, strict=True)])  # fmt: skip  # noqa: C419
