"""Artifacts on disk: the same comes back or nothing does, whatever happens to the files."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from isam.runtime import cache as module
from isam.runtime.cache import Cache, default
from tests.threads import at_once
from tests.unit.runtime.test_native import AXPY

SMALL = replace(AXPY, parts={"object.o": b"code", "kernel.isam": b"text"})
KEY = "0123456789abcdef"


def same(a, b):
    return replace(a, provenance={}) == replace(b, provenance={})


def test_what_was_put_comes_back(tmp_path):
    c = Cache(tmp_path / "new" / "folder")
    assert c.get(KEY) is None
    assert c.put(KEY, AXPY)
    assert same(c.get(KEY), AXPY)
    assert c.get(KEY[::-1]) is None
    assert len(c.entries()) == 1
    assert c.clear() == 1
    assert c.get(KEY) is None
    assert not list((tmp_path / "new" / "folder").iterdir())


def test_an_entry_under_another_name_is_not_served(tmp_path):
    c = Cache(tmp_path)
    c.put(KEY, SMALL)
    c.entries()[0].rename(tmp_path / "other.isa")
    assert c.get("other") is None
    assert not list(tmp_path.iterdir())


def test_no_damage_to_a_byte_is_served(tmp_path):
    c = Cache(tmp_path)
    c.put(KEY, SMALL)
    path = c.entries()[0]
    good = path.read_bytes()
    for at in range(len(good)):
        for bit in (1, 128):
            path.write_bytes(good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :])
            found = c.get(KEY)
            assert found is None or same(found, SMALL), at
            assert (found is None) == (not path.exists())


def test_nothing_cut_short_or_of_another_kind_is_served(tmp_path):
    c = Cache(tmp_path)
    c.put(KEY, SMALL)
    path = c.entries()[0]
    good, r = path.read_bytes(), random.Random(1)
    for n in [0, 1, 10, *r.sample(range(len(good)), 40)]:
        path.write_bytes(good[:n])
        assert c.get(KEY) is None
    for text in (b"", b"no archive", good + good, b"\0" * 1000):
        path.write_bytes(text)
        found = c.get(KEY)
        assert found is None or same(found, SMALL)
    path.unlink(missing_ok=True)
    path.mkdir()
    assert c.get(KEY) is None
    assert c.put(KEY, SMALL) is False


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_no_error(tmp_path):
    tmp_path.chmod(0o500)
    assert Cache(tmp_path / "x").put(KEY, SMALL) is False
    assert Cache(tmp_path).put(KEY, SMALL) is False
    tmp_path.chmod(0o700)


def test_a_folder_that_cannot_be_is_no_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    c = Cache(tmp_path / "file")
    assert c.put(KEY, SMALL) is False
    assert c.get(KEY) is None
    assert c.entries() == []
    assert c.clear() == 0


def test_a_full_disk_is_no_error_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert Cache(tmp_path).put(KEY, SMALL) is False
    assert list(tmp_path.iterdir()) == []


def test_what_was_used_longest_ago_makes_room(tmp_path):
    size = len(SMALL.to_bytes()) + 100
    c = Cache(tmp_path, limit=5 * size)
    for n in range(5):
        c.put(f"k{n}", SMALL)
        os.utime(tmp_path / f"k{n}.isa", (n, n))
    assert c.get("k0") is not None  # used now
    c.put("k5", SMALL)
    c.put("k6", SMALL)
    left = {p.stem for p in c.entries()}
    assert {"k0", "k5", "k6"} <= left
    assert "k1" not in left


def test_what_was_left_unfinished_is_removed_in_time(tmp_path, monkeypatch):
    c = Cache(tmp_path)
    old, new = tmp_path / f".{KEY}.isa.abc", tmp_path / f".{KEY}.isa.def"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (1, 1))
    c.put(KEY, SMALL)
    assert not old.exists()
    assert new.exists()
    assert [p.name for p in c.entries()] == [f"{KEY}.isa"]


def test_many_readers_and_writers_at_once(tmp_path):
    c = Cache(tmp_path, limit=3 * len(SMALL.to_bytes()))
    faults, end = [], time.monotonic() + 0.5

    def work(seed):
        r = random.Random(seed)
        while time.monotonic() < end:
            key = f"k{r.randrange(6)}"
            if r.random() < 0.5:
                c.put(key, SMALL)
            elif (found := c.get(key)) is not None and not same(found, SMALL):
                faults.append(key)

    at_once(work)
    assert not faults


def test_a_writer_that_is_killed_leaves_nothing_that_is_served(tmp_path):
    code = (
        "import sys\nfrom pathlib import Path\nfrom isam.runtime.cache import Cache\n"
        "from tests.unit.runtime.test_cache import SMALL\nc = Cache(Path(sys.argv[1]))\nprint('go', flush=True)\n"
        "while True:\n    c.put('k', SMALL)\n"
    )
    for n in range(3):
        p = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert p.stdout.readline() == "go\n"
        time.sleep(0.05 + 0.01 * n)
        p.kill()
        p.wait()
        p.stdout.close()
        found = Cache(tmp_path).get("k")
        assert found is None or same(found, SMALL)


def test_where_it_is(tmp_path, monkeypatch):
    for word in ("off", "OFF", "0", "no"):
        monkeypatch.setenv("ISAM_CACHE", word)
        assert default() is None
    monkeypatch.setenv("ISAM_CACHE", str(tmp_path))
    assert default() == Cache(tmp_path)
    monkeypatch.delenv("ISAM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    found = default()
    assert found is not None
    assert found.folder.name == "isam"
    assert found.limit == module.LIMIT
