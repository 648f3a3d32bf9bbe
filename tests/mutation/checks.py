"""The tests that face the mutants: those of each part, called directly, the fast ones first."""

from __future__ import annotations

import importlib
import inspect
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PARTS: dict[str, tuple[str, ...]] = {
    "matcher": (
        "tests.unit.mapper.test_match", "tests.unit.mapper.test_regions", "tests.unit.mapper.test_refused",
        "tests.unit.mapper.test_soundness", "tests.unit.mapper.test_guards", "tests.unit.mapper.test_dead_ends",
        "tests.unit.mapper.test_steps", "tests.unit.mapper.test_kinds", "tests.paper.test_map10",
        "tests.property.test_mappings", "tests.property.test_pairs", "tests.systems.test_brute_counts",
        "tests.unit.mapper.test_explain", "tests.unit.mapper.test_together", "tests.unit.mapper.test_symmetry",
        "tests.unit.mapper.test_alike",
    ),
    "transforms": (
        "tests.laws.test_laws", "tests.laws.test_mutants", "tests.laws.test_examples", "tests.laws.test_chosen",
        "tests.laws.test_makes", "tests.laws.test_bilinear", "tests.laws.test_value_mutants",
        "tests.laws.test_hard", "tests.laws.test_inverse", "tests.laws.test_tiny", "tests.laws.test_proved",
        "tests.laws.test_offers", "tests.laws.test_types", "tests.unit.mapper.test_saving",
        "tests.unit.transforms.test_law", "tests.unit.transforms.test_chosen",
        "tests.unit.mapper.test_search", "tests.unit.mapper.test_reach",
        "tests.paper.test_tr3", "tests.paper.test_factored_sums",
    ),
    "checker": (
        "tests.unit.proof.test_mutants", "tests.unit.proof.test_prover", "tests.unit.proof.test_points",
        "tests.unit.proof.test_tree", "tests.unit.proof.test_flat", "tests.unit.proof.test_subset",
        "tests.unit.proof.test_flat_compiled", "tests.unit.proof.test_cuts",
        "tests.unit.proof.test_numerics", "tests.unit.proof.test_workspace", "tests.unit.proof.test_certificate",
        "tests.unit.proof.test_equivalence", "tests.unit.proof.test_checker", "tests.unit.proof.test_dealt",
        "tests.unit.proof.test_digits", "tests.unit.proof.test_witness", "tests.unit.proof.test_forged",
        "tests.unit.proof.test_signature", "tests.unit.proof.test_preimage", "tests.unit.proof.test_races",
        "tests.unit.proof.test_semantics", "tests.unit.proof.test_bursts", "tests.unit.proof.test_layouts",
        "tests.unit.proof.test_registers", "tests.unit.proof.test_instances", "tests.unit.scheduler.test_dealt",
        "tests.laws.test_types", "tests.unit.scheduler.test_lags", "tests.unit.scheduler.test_loops",
        "tests.unit.scheduler.test_ports", "tests.unit.scheduler.test_spans", "tests.unit.scheduler.test_tokens",
        "tests.mutation.faults",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Check:
    """One test with its parameters."""

    name: str
    call: Any
    arguments: tuple[tuple[str, Any], ...]

    def __call__(self) -> None:
        self.call(**dict(self.arguments))


def checks(part: str) -> list[Check]:
    """Every test of the part's modules that needs nothing but its parameters."""
    return [c for module in PARTS[part] for c in _of(importlib.import_module(module))]


def _of(module: Any) -> Iterator[Check]:
    for name, f in vars(module).items():
        if name.startswith("test_") and inspect.isfunction(f) and f.__module__ == module.__name__:
            needs = set(inspect.signature(f).parameters)
            for n, values in enumerate(_parameters(f)):
                if needs == {k for k, _ in values}:
                    yield Check(f"{module.__name__.rpartition('.')[2]}.{name}[{n}]", f, values)


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


def timed(part: str) -> list[tuple[float, Check]]:
    """The checks with the CPU seconds each takes on the sources as they are, fast ones first. A check that fails
    there, or draws on a fixture of pytest, is none."""
    out = []
    for c in checks(part):
        start = time.process_time()
        try:
            c()
        except BaseException as e:
            if isinstance(e, KeyboardInterrupt):
                raise
            continue
        out.append((time.process_time() - start, c))
    return sorted(out, key=lambda x: x[0])
