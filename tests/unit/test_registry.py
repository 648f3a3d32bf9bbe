"""Names of what can be plugged in."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from isam import registry
from isam.approach.choice import Approach
from isam.diagnostics import IsamError


def test_shipped_names_load():
    assert registry.load("isam.approaches", "first-fit") is Approach
    assert {"first-fit", "greedy"} <= set(registry.names("isam.approaches"))
    assert callable(registry.load("isam.backends", "simulator"))


def test_a_checkout_knows_the_names_that_the_package_registers():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    registered = tomllib.loads(text)["project"]["entry-points"]
    for group in ("isam.approaches", "isam.backends"):
        assert registry.SHIPPED[group] == registered[group]


def test_an_unknown_name_gets_a_hint():
    with pytest.raises(IsamError, match=r"no approach 'gredy'") as e:
        registry.load("isam.approaches", "gredy")
    assert "did you mean 'greedy'?" in str(e.value)


@pytest.fixture
def points(monkeypatch):
    found: list[metadata.EntryPoint] = []
    monkeypatch.setattr(metadata, "entry_points", lambda group: [p for p in found if p.group == group])
    registry._targets.cache_clear()
    yield found
    registry._targets.cache_clear()


def test_entry_points_add_names(points):
    points.append(metadata.EntryPoint("mine", "isam.approach.choice:Approach", "isam.approaches"))
    points.append(metadata.EntryPoint("greedy", "isam.approach.shipped.greedy:Greedy", "isam.approaches"))
    assert registry.load("isam.approaches", "mine") is Approach
    points.append(metadata.EntryPoint("broken", "isam.nowhere:Thing", "isam.approaches"))
    registry._targets.cache_clear()
    with pytest.raises(IsamError, match="registry-broken"):
        registry.load("isam.approaches", "broken")


def test_a_name_registered_twice_is_an_error(points):
    points.append(metadata.EntryPoint("greedy", "other.package:Greedy", "isam.approaches"))
    with pytest.raises(IsamError, match=r"registered twice.*shipped.greedy:Greedy and other.package:Greedy"):
        registry.names("isam.approaches")
