"""A mutant in place of the function, in a process of its own; and which statements a test reaches."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import linecache
import signal
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.mutation.edits import Mutant, functions, marked, mutated, statements

ROOT = Path(__file__).parents[2]
Place = tuple[str, str, int]  # file, function, statement


def put(mutant: Mutant) -> None:
    """Gives the functions of the mutant's file the code of its text, which is what ``inspect`` finds from then on: some
    are compiled from their text. What was kept of an answer is forgotten, whatever ran before in this process."""
    tree = mutated(ROOT / mutant.file, mutant)
    text, name = ast.unparse(tree), str(ROOT / mutant.file)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    code = compile(text, name, "exec", dont_inherit=True)
    for function, _ in functions(tree):
        _function(mutant.file, function).__code__ = _code(code, function)
    modules = [m for n, m in list(sys.modules.items()) if n.partition(".")[0] == "isam"]
    for clear in [c for m in modules for v in vars(m).values() if callable(c := getattr(v, "cache_clear", None))]:
        clear()


def exchange(mutant: Mutant) -> None:
    """Gives the mutant's function alone its code, which whoever asked puts back: quicker, and of no use for functions
    that are compiled from their text."""
    code = compile(mutated(ROOT / mutant.file, mutant), mutant.file, "exec", dont_inherit=True)
    _function(mutant.file, mutant.function).__code__ = _code(code, mutant.function)


class Slow(BaseException):
    """A mutant that does not end."""


def alarmed() -> None:
    """From now on ``Slow`` is raised when a timer of the process's own time ends."""

    def late(*_: object) -> None:
        raise Slow

    signal.signal(signal.SIGVTALRM, late)


def numbered(files: list[str]) -> dict[Place, int]:
    """A number for every statement of the files' functions."""
    trees = ((file, ast.parse((ROOT / file).read_text(encoding="utf-8"))) for file in files)
    places = ((file, name, n) for file, t in trees for name, f in functions(t) for n in range(len(statements(f))))
    return {place: number for number, place in enumerate(places)}


@contextmanager
def watched(places: dict[Place, int]) -> Iterator[set[int]]:
    """Notes which of these statements are reached, by number."""
    seen: set[int] = set()
    was: list[tuple[types.FunctionType, types.CodeType]] = []
    try:
        for file in dict.fromkeys(file for file, _, _ in places):
            importlib.import_module(_module(file)).__dict__["__reached__"] = seen.add
            tree = marked(ROOT / file, lambda f, n, file=file: f"__reached__({places[file, f, n]})")
            code = compile(tree, str(ROOT / file), "exec", dont_inherit=True)
            for name, _ in functions(tree):
                target = _function(file, name)
                was.append((target, target.__code__))
                target.__code__ = _code(code, name)
        yield seen
    finally:
        for target, old in was:
            target.__code__ = old


def _module(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _code(code: types.CodeType, name: str) -> types.CodeType:
    stack = [code]
    while stack:
        c = stack.pop()
        if c.co_qualname == name:
            return c
        stack += [x for x in c.co_consts if isinstance(x, types.CodeType)]
    raise LookupError(name)


def _function(file: str, name: str) -> types.FunctionType:
    head, _, rest = name.partition(".")
    top = getattr(importlib.import_module(_module(file)), head)
    found: Any = inspect.getattr_static(top, rest) if rest else top
    if isinstance(found, functools.cached_property):
        found = found.func
    elif isinstance(found, property):
        found = found.fget
    elif isinstance(found, staticmethod | classmethod):
        found = found.__func__
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    if not isinstance(found, types.FunctionType):
        raise LookupError(name)
    return found
