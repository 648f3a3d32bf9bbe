"""Schedules of many kinds, small enough to be carried out in milliseconds: random kernels on shipped and random
machines, products on arrays and matrix units; dealt loops, steps, bursts, registers, places by turns, open trips."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from benchmarks.gemmini import CONVOLUTION, PRODUCT
from isam.compiler import Refused
from isam.ir.kernel import Kernel
from isam.schedule.steps import steps
from isam.system.graph import System
from isam.system.load import load_system
from tests.double_buffered import product as double_buffered
from tests.harm import Case
from tests.machines import CROWD
from tests.pipeline import compiled, simulated
from tests.random_kernels import random_kernel
from tests.random_machines import machine
from tests.systems.test_casestudy import product
from tests.unit.proof.handmade import running_sum, vec_matmul

MOST = 1000  # steps
LOOPS = 40  # seeds that are tried for a kernel with a recurrent loop


def made(source: str, kernel: Kernel, sizes: Mapping[str, int], system: System, later: bool = False) -> Case | None:
    """A case, unless the machine cannot or there is too little or too much to do. ``later``: T is open."""
    known = {n: v for n, v in sizes.items() if not (later and n == "T")}
    trips = ({"T": 2}, {"T": 0}, {"T": 1}) if later and "T" in sizes else ({},)
    try:
        job = compiled(kernel, known, system, check=True)
    except Refused:
        return None
    assert job.schedule is not None
    count = steps(job.schedule.call, trips[0], MOST + 1)
    return Case(source, kernel, known, job.schedule, trips) if 0 < count <= MOST else None


def drawn(system: str) -> Callable[[int], Case | None]:
    def case(seed: int) -> Case | None:
        kernel, sizes = random_kernel(seed)
        return made(system, kernel, sizes, simulated(system), bool(seed % 2))

    return case


def products(system: str, most: int, kernel: Kernel = PRODUCT) -> Callable[[int], Case | None]:
    def case(seed: int) -> Case | None:
        r = random.Random(seed)
        sizes = {n: r.randint(1, most) for n in ("M", "N", "K")}
        return made(system, kernel, sizes, simulated(system))

    return case


def convolved(seed: int) -> Case | None:
    r = random.Random(seed)
    sizes = {"H": r.randint(1, 4), "V": r.randint(1, 5), "C": r.randint(1, 24), "K": r.randint(1, 24)}
    return made("gemmini", CONVOLUTION, sizes, simulated("gemmini"))


def clusters(seed: int) -> Case | None:
    """Products with a bias on the case study's machine."""
    r = random.Random(seed)
    kernel = product(r.choice((("bf16", "f32"), ("i8", "i32"))), r.random() < 0.5)
    return made("casestudy", kernel, {n: r.randint(1, 70) for n in ("M", "N", "K")}, simulated("casestudy"))


def on_random(seed: int) -> Case | None:
    kernel, sizes = random_kernel(seed)
    return made("random machine", kernel, sizes, machine(seed))


def crowd(seed: int) -> Case | None:
    kernel, sizes = random_kernel(seed)
    return made("crowd", kernel, sizes, load_system(CROWD), bool(seed % 2))


def recurrent(seed: int) -> Case | None:
    """The next random kernel that has a recurrent loop, on toy, its trip open."""
    for other in range(LOOPS * seed, LOOPS * (seed + 1)):
        kernel, sizes = random_kernel(other)
        if "T" in sizes:
            return made("recurrence", kernel, sizes, simulated("toy"), True)
    return None


def by_hand(seed: int) -> Case | None:
    """Two places by turns; registers packed, bound constants; an open recurrence."""
    r = random.Random(seed)
    if seed % 3 == 0:
        s = double_buffered(4 * r.randint(1, 3), 2 * r.randint(1, 3), 2, r.randint(1, 2))
    elif seed % 3 == 1:
        s = vec_matmul(r.randint(3, 8), 8 * r.randint(1, 2), 5 * r.randint(2, 3), bound=r.random() < 0.5)
    else:
        s = running_sum(4 * r.randint(1, 3))
    trips = ({"T": 3}, {"T": 0}, {"T": 1}) if seed % 3 == 2 else ({},)
    return Case("by hand", s.cover.original, {}, s, trips)


SOURCES: dict[str, Callable[[int], Case | None]] = {
    "toy": drawn("toy"), "host": drawn("host-avx512"), "random machine": on_random, "crowd": crowd,
    "recurrence": recurrent, "casestudy": clusters, "casestudy, random kernels": drawn("casestudy"),
    "gemmini": products("gemmini", 40), "gemmini, convolutions": convolved,
    "tpu_v1_like": products("tpu_v1_like", 40), "systolic": products("systolic", 70), "dual": products("dual", 40),
    "dual, random kernels": drawn("dual"), "by hand": by_hand,
}  # fmt: skip
