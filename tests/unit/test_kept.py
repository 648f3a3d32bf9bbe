"""Compiled once, kept for other processes: the same code comes back, and only where everything is the same."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import isam
from isam.approach.shipped.greedy import Greedy
from isam.artifact import from_bytes as load_bytes
from isam.artifact import load_artifact
from isam.compiler import keys
from isam.compiler.keys import key_of
from isam.runtime.cache import Cache
from isam.system.load import load_system

TEXT = """kernel scaled(N)
  in  x: f32[N]
  out y: f32[N]
  forall i < N
    y[i] = 2 * x[i]
"""
K = isam.parse(TEXT)
X = np.arange(8, dtype=np.float32)


@pytest.fixture
def compiled(monkeypatch):
    """Names of the kernels whose compilation began."""
    import isam.compiler.function as function

    seen = []
    real = function.run_stages

    def counting(job, *rest):
        seen.append(job.original.name)
        return real(job, *rest)

    monkeypatch.setattr(function, "run_stages", counting)
    return seen


def test_the_second_time_nothing_is_compiled(tmp_path, compiled):
    first = isam.compile(K, sizes={"N": 8}, cache=tmp_path)
    assert compiled == ["scaled"]
    again = isam.compile(K, sizes={"N": 8}, cache=str(tmp_path))
    assert compiled == ["scaled"]
    np.testing.assert_array_equal(again(X), 2 * X)
    np.testing.assert_array_equal(first(X), 2 * X)
    assert again.artifact.parts == first.artifact.parts
    assert "certificate.json" in again.artifact.parts
    assert str(again.schedule) == str(first.schedule)  # found out again
    assert compiled == ["scaled", "scaled"]
    assert again.report()
    assert len(compiled) == 2


def test_open_sizes_are_kept_each(tmp_path, compiled):
    for _ in range(2):
        f = isam.compile(K, cache=tmp_path)
        for n in (3, 8, 3):
            np.testing.assert_array_equal(f(X[:n]), 2 * X[:n])
        assert f.artifact.arguments[0].shape == ((8, ()),)
    assert len(compiled) == 2


def test_off_and_a_replay_keep_nothing(tmp_path, monkeypatch, compiled):
    f = isam.compile(K, sizes={"N": 8}, cache=tmp_path)
    isam.compile(K, sizes={"N": 8}, cache=False)
    isam.compile(K, sizes={"N": 8}, replay=f.trace, cache=tmp_path)
    assert len(compiled) == 3
    monkeypatch.setenv("ISAM_CACHE", str(tmp_path))
    isam.compile(K, sizes={"N": 8})
    assert len(compiled) == 3
    monkeypatch.setenv("ISAM_CACHE", "off")
    isam.compile(K, sizes={"N": 8})
    assert len(compiled) == 4


def test_a_damaged_entry_is_compiled_again(tmp_path, compiled):
    isam.compile(K, sizes={"N": 8}, cache=tmp_path)
    (path,) = Cache(tmp_path).entries()
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    np.testing.assert_array_equal(isam.compile(K, sizes={"N": 8}, cache=tmp_path)(X), 2 * X)
    assert len(compiled) == 2
    assert load_artifact(path).parts["object.o"] == load_bytes(good).parts["object.o"]


class Own(Greedy):
    """Somebody's."""

    name, why = "own", "mine"


def test_whatever_matters_is_in_the_key(tmp_path, monkeypatch):
    host = load_system("host")
    options = {"require": (), "check": True, "threads": 1}

    def key(kernel=K, system=host, sizes=(("N", 8),), approach=None, **more):
        return key_of(kernel, system, dict(sizes), approach, {**options, **more})

    base = key()
    assert base == key()
    assert base is not None
    described = Path(load_system("toy").source).read_text()
    (tmp_path / "mine.yaml").write_text(described)
    mine = load_system(tmp_path / "mine.yaml")
    (tmp_path / "mine.yaml").write_text(described + "# another word\n")
    other = load_system(tmp_path / "mine.yaml")
    found = [
        base, key(sizes=(("N", 9),)), key(isam.parse(TEXT.replace("2 *", "3 *"))),
        key(isam.parse(TEXT.replace("f32", "f64"))),
        key(check=False), key(threads=2), key(require=("v_mul_f32",)), key(system=mine), key(system=other),
        key(approach=Greedy()), key(approach=isam.Approach()),
    ]  # fmt: skip
    monkeypatch.setattr(keys, "code_environment", lambda: ("another CPU",))
    found.append(key())
    monkeypatch.undo()
    monkeypatch.setattr(keys, "_program", lambda: ["another version"])
    found.append(key())
    assert None not in found
    assert len(set(found)) == len(found)


def test_sizes_are_numbers_whoever_made_them(tmp_path, compiled):
    for n in (8, np.int64(8), np.uint8(8)):
        np.testing.assert_array_equal(isam.compile(K, sizes={"N": n}, cache=tmp_path)(X), 2 * X)
    assert len(compiled) == 1


def test_an_artifact_does_not_tell_whether_it_was_kept(tmp_path):
    first, again = (isam.compile(K, sizes={"N": 8}, cache=tmp_path) for _ in range(2))
    assert first.artifact.to_bytes() == again.artifact.to_bytes()
    assert copy.copy(first) is first
    assert copy.deepcopy(again)._only is again._only


def test_sources_that_are_not_what_runs_keep_nothing(tmp_path, monkeypatch):
    host = load_system("host")
    for broken in (
        lambda: monkeypatch.setattr(isam, "BEGAN", 0.0),
        lambda: monkeypatch.setattr(keys.os, "stat", lambda *_: (_ for _ in ()).throw(OSError("gone"))),
    ):
        keys._program.cache_clear()
        broken()
        assert key_of(K, host, {"N": 8}, None, {}) is None
        monkeypatch.undo()
        keys._program.cache_clear()
    assert key_of(K, host, {"N": 8}, None, {}) is not None


def test_what_the_machine_names_and_others_ship_is_not_kept():
    host = load_system("host")
    for changed in (replace(host, approach="somebody's"), replace(host, backend="somebody's")):
        changed.__dict__["_digest"] = host.digest
        assert key_of(K, changed, {"N": 8}, None, {}) is None


def test_what_is_not_known_by_its_text_is_not_kept(tmp_path, compiled):
    host = load_system("host")
    assert key_of(K, host, {"N": 8}, Own(), {}) is None
    greedy = Greedy()
    greedy.context = object()
    assert key_of(K, host, {"N": 8}, greedy, {}) is None
    assert key_of(K, host, {"N": 8}, None, {"limit": object()}) is None

    @isam.instruction("instruction vtwice(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = 2 * x[i]")
    def vtwice(x, y):
        np.multiply(x, 2, out=y)

    extended = host.extended(vtwice)
    assert extended.digest == ""
    for _ in range(2):
        f = isam.compile(K, on=extended, sizes={"N": 8}, require="vtwice", cache=tmp_path)
        np.testing.assert_array_equal(f(X), 2 * X)
    assert len(compiled) == 2
    assert not list(tmp_path.iterdir())


def test_a_kernel_that_is_refused_is_not_found_as_what_it_prints(tmp_path):
    """Parts that read old values are a kernel of their own, with the same text."""
    refused = isam.parse("kernel k(N)\n  in b: f32[N]\n  inout y: f32[N + 1]\n  forall i < N\n"
                         "    y[i + 1] = 0.5 * y[i] + b[i]\n")  # fmt: skip
    for _ in range(2):
        isam.compile(isam.parse(str(refused)), sizes={"N": 8}, cache=tmp_path)
        with pytest.raises(isam.IsamError, match="V433"):
            isam.compile(refused, sizes={"N": 8}, cache=tmp_path)


def test_a_constant_is_part_of_the_kernel(tmp_path):
    k = isam.parse(TEXT.replace("(N)", "(N, c=2)").replace("2 * ", "c * "))
    for c in (2, 3, 2):
        f = isam.compile(k, sizes={"N": 8, "c": c}, cache=tmp_path)
        np.testing.assert_array_equal(f(X), c * X)


def test_whatever_byte_of_a_compiled_entry_changes_the_result_is_right(tmp_path):
    """Served whole or compiled again: some bytes through ``isam.compile``, more through the cache alone."""
    first = isam.compile(K, sizes={"N": 8}, cache=tmp_path)
    (path,) = Cache(tmp_path).entries()
    good = path.read_bytes()
    for at in range(0, len(good), len(good) // 8):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        again = isam.compile(K, sizes={"N": 8}, cache=tmp_path)
        np.testing.assert_array_equal(again(X), 2 * X)
        assert again.artifact.parts["object.o"] == first.artifact.parts["object.o"]
    for at in range(3, len(good), 7):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        found = Cache(tmp_path).get(path.stem)
        assert found is None or found == first.artifact, at
