"""A mutant in place of the function, in a process of its own."""

from __future__ import annotations

import functools
import importlib
import inspect
import types
from pathlib import Path
from typing import Any

from tests.mutation.edits import Mutant, mutated

ROOT = Path(__file__).parents[2]


def module_of(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".")


def put(mutant: Mutant) -> None:
    """Gives the function the mutant's code. Raises ``LookupError`` where there is no such function to be found."""
    module = importlib.import_module(module_of(mutant.file))
    tree = mutated(ROOT / mutant.file, mutant)
    code = _code(compile(tree, str(ROOT / mutant.file), "exec", dont_inherit=True), mutant.function)
    target = _function(module, mutant.function)
    if target.__code__.co_freevars != code.co_freevars:
        raise LookupError(f"{mutant.function} has other free variables")
    target.__code__ = code


def _code(code: types.CodeType, name: str) -> types.CodeType:
    stack = [code]
    while stack:
        c = stack.pop()
        if c.co_qualname == name:
            return c
        stack += [x for x in c.co_consts if isinstance(x, types.CodeType)]
    raise LookupError(name)


def _function(module: types.ModuleType, name: str) -> Any:
    head, _, rest = name.partition(".")
    found: Any = inspect.getattr_static(getattr(module, head), rest) if rest else getattr(module, head)
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
