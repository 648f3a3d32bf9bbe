"""Threads that call and compile at once: ``python -m tests.campaign_threads [SECONDS] [--threads N] [--cores N]``.

All share some compiled functions and one folder where code is kept. Meanwhile processes are forked, which call and
compile too, some are killed while they do, and entries of the folder are damaged, cut short and removed. Every result
must be the right one, every process must end, and in the end whatever the folder still holds must be whole.
``--cores``: the kernels are compiled for so many cores, and share their work however little it is.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import numpy.random  # loaded when it is first used: by a thread, while another one forks

import isam
from isam.runtime.cache import Cache
from isam.scheduler.plans import shared_home
from tests.threads import at_once

PATIENCE = 60.0  # seconds after which a child that has not ended hangs

# a text, the sizes that stay open, and the right result; whole numbers, so that it is exact
KERNELS = {
    "sums": ("kernel sums(M, N)\n  in A: f32[M, N]\n  out y: f32[M]\n  forall i < M\n    y[i] = 0\n"
             "  forall i < M, j < N\n    y[i] += A[i, j]\n", lambda A: A.sum(1)),
    "product": ("kernel product(M, N, K)\n  in A: f32[M, K]\n  const B: f32[K, N]\n  out C: f32[M, N]\n"
                "  forall i < M, j < N\n    C[i, j] = 0\n  forall i < M, j < N, k < K\n"
                "    C[i, j] += A[i, k] * B[k, j]\n", lambda A, B: A @ B),
    "whole": ("kernel whole(M, N)\n  in A: i32[M, N]\n  in b: i32[N]\n  out C: i32[M, N]\n"
              "  forall i < M, j < N\n    C[i, j] = A[i, j] * b[j] + 3\n", lambda A, b: A * b + 3),
    "chosen": ("kernel chosen(N)\n  in x: f64[N]\n  in y: f64[N]\n  out z: f64[N]\n"
               "  forall i < N\n    z[i] = select(x[i] < y[i], x[i], -y[i])\n", lambda x, y: np.where(x < y, x, -y)),
}  # fmt: skip
LONG = {"M": 40, "N": 40, "K": 64}  # calls of which let go of the interpreter's lock
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32}


class Scene:
    """What all threads share."""

    def __init__(self, folder: Path, cores: int = 1):
        self.folder, self.cores = folder, cores
        self.kernels = {name: isam.parse(text) for name, (text, _) in KERNELS.items()}
        self.long = self.compiled("product", LONG)
        self.open = {name: self.compiled(name, {}) for name in KERNELS}
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []

    def compiled(self, name: str, sizes: dict[str, int]):
        return isam.compile(self.kernels[name], sizes=sizes, check=False, cache=self.folder, threads=self.cores)

    def call(self, r: random.Random) -> str:
        """A function that others call, too; the open ones are compiled for new sizes now and then."""
        name = r.choice(list(KERNELS))
        if r.random() < 0.3:
            return self.judge("product", self.long, LONG, r)
        return self.judge(name, self.open[name], self.sizes(name, r, 3), r)

    def make(self, r: random.Random) -> str:
        """A compilation, or what is left of one in the folder."""
        name = r.choice(list(KERNELS))
        sizes = self.sizes(name, r, 6)
        return self.judge(name, self.compiled(name, sizes), sizes, r)

    def sizes(self, name: str, r: random.Random, most: int) -> dict[str, int]:
        return {s.name: r.randrange(1, most) for s in self.kernels[name].syms}

    def judge(self, name: str, f, sizes: dict[str, int], r: random.Random) -> str:
        """'' or what is wrong."""
        rng = np.random.default_rng(r.randrange(1 << 30))
        given = [rng.integers(-9, 10, [int(n) for n in b.shape]).astype(DTYPES[b.dtype])
                 for b in self.kernels[name].with_sizes(sizes).arguments if b.role in ("in", "const")]  # fmt: skip
        if name == "product" and r.random() < 0.3:
            got = f.bind(B=given[1])(given[0])
        else:
            got = f(*given)
        return "" if np.array_equal(got, KERNELS[name][1](*given)) else f"{name} at {sizes} is wrong"

    def fork(self, r: random.Random) -> str:
        """A process that calls, compiles and calls; every third is killed at some time."""
        seed, killed = r.randrange(1 << 30), r.random() < 0.3
        child = os.fork()
        if not child:
            self._child(random.Random(seed), killed)
        if killed:
            time.sleep(r.random() * 0.2)
            os.kill(child, signal.SIGKILL)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                fine = (killed and os.WIFSIGNALED(status)) or os.waitstatus_to_exitcode(status) == 0
                return "" if fine else f"a child ended with {os.waitstatus_to_exitcode(status)}"
            time.sleep(0.005)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return f"a child hung for {PATIENCE:.0f} s"

    def _child(self, r: random.Random, killed: bool) -> None:
        code = 9
        try:
            told = [self.call(r), self.make(r), self.make(r), self.call(r)]
            while killed:
                told.append(self.make(r))
            code = 1 if any(told) else 0
        finally:
            os._exit(code)

    def damage(self, r: random.Random) -> str:
        """Something happens to an entry."""
        entries = Cache(self.folder).entries()
        if not entries:
            return ""
        path = r.choice(entries)
        try:
            content = bytearray(path.read_bytes())
            how = r.randrange(3)
            if how == 0:
                path.unlink()
            elif how == 1:
                path.write_bytes(content[: r.randrange(len(content) + 1)])
            elif content:
                content[r.randrange(len(content))] ^= 1 << r.randrange(8)
                path.write_bytes(content)
        except OSError:
            pass  # another thread was quicker
        return ""


ACTIONS = {"call": 60, "make": 30, "fork": 4, "damage": 6}  # how often


def campaign(seconds: float, folder: Path, count: int = 8, seed: int = 0, cores: int = 1) -> Scene:
    """What happened in so many seconds."""
    scene, end, lock = Scene(folder, cores), time.monotonic() + seconds, threading.Lock()

    def work(n: int) -> None:
        r, names, weights = random.Random(seed * 1000 + n), list(ACTIONS), list(ACTIONS.values())
        action = names[n % len(names)]
        while time.monotonic() < end and not scene.faults:
            try:
                told = getattr(scene, action)(r)
            except Exception as e:  # whatever it is, it is a finding
                told = f"{type(e).__name__}: {e}"
            with lock:
                scene.counts[action] += 1
                if told:
                    scene.faults.append(f"thread {n}, {action}: {told}")
            (action,) = r.choices(names, weights)

    at_once(work, count)
    scene.faults += leftovers(scene)
    return scene


def leftovers(scene: Scene) -> list[str]:
    """What is wrong with the folder when all is over: every entry is served whole or goes, and works."""
    r, cache = random.Random(1), Cache(scene.folder)
    before = len(cache.entries())
    for path in cache.entries():
        cache.get(path.stem)
    scene.counts["entries"], scene.counts["damaged"] = before, before - len(cache.entries())
    return [told for _ in range(20) if (told := scene.make(r))]


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("seconds", type=float, nargs="?", default=60.0)
    p.add_argument("--threads", type=int, default=8)
    p.add_argument("--cores", type=int, default=1)
    p.add_argument("--seed", type=int, default=0)
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(shared_home, "MEETING", -1e12):
        scene = campaign(o.seconds, Path(folder), o.threads, o.seed, o.cores)
    for told in scene.faults:
        print(told)
    print(f"{o.threads} threads for {o.seconds:.0f} s: {dict(scene.counts)}, {len(scene.faults)} faults")
    return 1 if scene.faults else 0


if __name__ == "__main__":
    sys.exit(main())
