"""The tests that face the mutants, called directly."""

from __future__ import annotations

import importlib
import inspect
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
FOLDERS = ("laws", "paper", "property", "suite", "systems", "unit/ir", "unit/mapper", "unit/proof", "unit/schedule",
           "unit/scheduler", "unit/system", "unit/transforms", "unit")  # fmt: skip
OTHERS = ("test_mutation", "test_compile_time", "test_imports")  # about mutants, about time, about other processes
MORE = "tests.mutation.faults"  # what every run has no time for


@dataclass(frozen=True)
class Check:
    """One test with its parameters."""

    name: str
    call: Any
    arguments: tuple[tuple[str, Any], ...]

    @property
    def function(self) -> str:
        return self.name.partition("[")[0]

    def __call__(self) -> None:
        self.call(**dict(self.arguments))


def checks() -> list[Check]:
    """Every test that needs nothing but its parameters."""
    files = [f for folder in FOLDERS for f in sorted((TESTS / folder).glob("test_*.py"))]
    names = [".".join(f.relative_to(TESTS.parent).with_suffix("").parts) for f in files if f.stem not in OTHERS]
    return [c for name in (*names, MORE) for c in of_module(importlib.import_module(name))]


def of_module(module: Any) -> Iterator[Check]:
    """The tests of one module that need nothing but their parameters."""
    for name, f in vars(module).items():
        if name.startswith("test_") and inspect.isfunction(f) and f.__module__ == module.__name__:
            needs = set(inspect.signature(f).parameters)
            for n, values in enumerate(_parameters(f)):
                if needs == {k for k, _ in values}:
                    yield Check(f"{module.__name__.removeprefix('tests.')}.{name}[{n}]", f, values)


def _parameters(f: Any) -> Iterator[tuple[tuple[str, Any], ...]]:
    rows = []
    for mark in getattr(f, "pytestmark", ()):
        if mark.name == "parametrize":
            names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
            names = [n.strip() for n in names]
            rows.append([tuple(zip(names, _values(v, len(names)), strict=True)) for v in mark.args[1]])
    for chosen in itertools.product(*rows):
        yield tuple(pair for row in chosen for pair in row)


def _values(v: Any, count: int) -> tuple[Any, ...]:
    if type(v).__name__ == "ParameterSet":  # pytest.param(...)
        return tuple(v.values)
    return tuple(v) if count > 1 else (v,)
