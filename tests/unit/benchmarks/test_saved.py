"""Kept results: those of this schema and of older ones are read, others are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import plots, run, saved

KEPT = Path(__file__).parents[3] / "benchmarks" / "results"


def test_what_is_measured_now_is_of_the_newest_schema_and_read() -> None:
    assert run.SCHEMA == saved.SCHEMA
    assert saved.SCHEMA not in saved.OLDER


@pytest.mark.parametrize("name", ["zen4", "zen5"])
def test_kept_results_are_of_a_schema_that_is_read(name: str) -> None:
    assert saved.read(KEPT / f"{name}.json")["schema"] in (saved.SCHEMA, *saved.OLDER)


def test_an_older_one_makes_the_same_pictures(tmp_path: Path) -> None:
    results = saved.read(KEPT / "zen4.json")
    for schema in (saved.SCHEMA, *saved.OLDER):
        (tmp_path / "some.json").write_text(json.dumps({**results, "schema": schema}), encoding="utf-8")
        assert plots.pictures(saved.read(tmp_path / "some.json")) == plots.pictures(results)


@pytest.mark.parametrize("content", [{"schema": "isam.bench/3"}, {"schema": "isam.gru/1"}, {}, []])
def test_others_are_refused_by_name(content: object, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"other\.json holds no results of schema isam\.bench/2, isam\.bench/1"):
        plots.main([str(path), str(tmp_path / "there")])
