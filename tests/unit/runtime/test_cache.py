"""Artifacts on disk: the same comes back or nothing does, whatever happens to the files."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import pytest

from isam.artifact import Artifact
from isam.runtime import cache as module
from isam.runtime.cache import Cache, default
from tests.threads import at_once
from tests.unit.runtime.test_native import AXPY

SMALL = replace(AXPY, parts={"object.o": b"code", "kernel.isam": b"text"})
KEY = "0123456789abcdef"


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
resource = pytest.importorskip("resource") if hasattr(os, "fork") else None


def child(work):
    """The exit code of a process that does it; below zero: the signal that ended it."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@contextmanager
def reachable(folder):
    """Other users may pass the folders above."""
    found = [(p, p.stat()) for p in folder.parents]
    changed = [(p, s.st_mode) for p, s in found if s.st_uid == os.geteuid() and s.st_mode & 0o011 != 0o011]
    for p, mode in changed:
        p.chmod(mode | 0o011)
    try:
        yield
    finally:
        for p, mode in changed:
            p.chmod(mode)


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


@forks
def test_a_folder_that_may_not_be_written_is_no_error_and_serves_what_is_there(tmp_path):
    Cache(tmp_path).put(KEY, SMALL)
    tmp_path.chmod(0o555)

    def work():
        if os.geteuid() == 0:
            os.seteuid(65534)  # root may write everywhere
        c = Cache(tmp_path)
        assert Cache(tmp_path / "x").put(KEY, AXPY) is False
        assert c.put("other", SMALL) is False
        assert c.put(KEY, AXPY) is False
        assert same(c.get(KEY), SMALL)
        assert c.clear() == 1  # which it could not
        assert same(c.get(KEY), SMALL)

    try:
        with reachable(tmp_path):
            assert child(work) == 0
    finally:
        tmp_path.chmod(0o700)


@forks
def test_a_disk_that_is_full_after_any_number_of_bytes_loses_nothing(tmp_path):
    c = Cache(tmp_path)
    c.put(KEY, AXPY)
    size = len(SMALL.to_bytes())
    for room in (*range(0, size, 97), size - 1, size):

        def work(room=room):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
            assert Cache(tmp_path).put(KEY, SMALL) is False

        assert child(work) == 0, room
        assert same(c.get(KEY), AXPY)
        assert len(list(tmp_path.iterdir())) == 1


@forks
def test_a_writer_that_is_killed_at_any_line_loses_nothing(tmp_path):
    c, lines, left, served = Cache(tmp_path), 0, 0, Counter()
    c.put(KEY, AXPY)
    while True:

        def work(stop=lines):
            seen = itertools.count()

            def trace(frame, event, _):
                ours = frame.f_code in (Cache.put.__code__, Cache._trim.__code__, Artifact.save.__code__)
                if event == "line" and ours and next(seen) == stop:
                    os.kill(os.getpid(), signal.SIGKILL)
                return trace if ours else None

            sys.settrace(trace)
            Cache(tmp_path).put(KEY, SMALL)

        ended = child(work)
        found = c.get(KEY)
        assert same(found, AXPY) or same(found, SMALL)
        served["new" if same(found, SMALL) else "old"] += 1
        left = max(left, len(list(tmp_path.glob(f".{KEY}*"))))
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        c.put(KEY, AXPY)
        lines += 1
    assert lines > 15
    assert min(served.values()) > 3  # before the file has its name, and after
    assert left > 0
    for unfinished in tmp_path.glob(".*"):
        os.utime(unfinished, (1, 1))
    c.put(KEY, AXPY)
    assert [p.name for p in tmp_path.iterdir()] == [f"{KEY}.isa"]


def test_the_umask_is_obeyed_and_never_touched(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda _: pytest.fail("another thread's files would get it"))
        Cache(tmp_path).put(KEY, SMALL)
        SMALL.save(tmp_path / "saved.isa")
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {0o640}


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
