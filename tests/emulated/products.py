"""Products by tiles as object code, with what they are called with and what must come out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from unittest import mock

import numpy as np

from isam.artifact import Artifact
from isam.compiler import Refused
from isam.compiler.stages import new_job, run_stages
from isam.ir import interp
from isam.ir.bounds import enclose
from isam.ir.text import parse_kernel
from isam.scheduler.plans import shared_home
from isam.system.load import load_system
from tests.campaign_tiles import case
from tests.native_cases import Case, data, split

ON = "sapphire-rapids"
TEXT = """kernel product(M, N, K)
  permits reassociate, contract, flush
  in  A: {a}[M, K]
  in  B: {b}[K, N]
  out C: {c}[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += {c}(A[i, k]) * {c}(B[k, j])
"""
HALVES = ("bf16", "bf16", "f32")
FIXED = ((HALVES, 512, "normal"), (("u8", "i8", "i32"), 512, "normal"), (("i8", "i8", "i32"), 256, "normal"),
         (("i8", "u8", "i32"), 256, "normal"), (("u8", "u8", "i32"), 256, "normal"),
         (HALVES, 256, "special"))  # fmt: skip
BY = {("i8", "i8"): 1, ("i8", "u8"): 2, ("u8", "i8"): 4, ("u8", "u8"): 8}  # as in run.h


@dataclass(frozen=True)
class Written:
    """What an argument must hold afterwards: these bytes, or numbers within a bound each."""

    whole: bytes = b""
    value: bytes = b""
    bound: bytes = b""


@dataclass(frozen=True)
class Argument:
    """``written`` is None for what is only read; ``constant``: it is bound before the call."""

    name: str
    first: bytes
    constant: bool
    written: Written | None


@dataclass(frozen=True)
class Product:
    """One call. ``signs``: which tile product it takes bytes below zero to (`run.h`)."""

    name: str
    artifact: Artifact
    arguments: tuple[Argument, ...]
    signs: int


def drawn(seed: int) -> list[Product] | str:
    """The case of `tests.campaign_tiles`: its products, or why vectors take it."""
    c, by, threads = case(seed)
    try:
        with mock.patch.object(shared_home, "MEETING", -1e12):
            made = compiled(c, by, threads)
    except Refused as no:
        return no.diagnostics[0].message
    return list(calls(str(seed), c, made))


def fixed() -> Iterator[Product]:
    """Products whose blocks are of two by two tiles, nothing demanded."""
    for n, ((a, b, c), size, kind) in enumerate(FIXED):
        kernel = parse_kernel(TEXT.format(a=a, b=b, c=c))
        one = Case(n, kernel, dict.fromkeys("MNK", size), kind, False, False)
        yield from calls(f"{a} {b} {size} {kind}", one, compiled(one))


def compiled(c: Case, by: str = "", threads: int = 1) -> Artifact:
    """The artifact of a case, proved, for a CPU that need not be this one."""
    system = load_system(ON)
    job = new_job(c.kernel, system.threaded(threads) if threads > 1 else system, c.given, None, check=True,
                  require=(by,) if by else (), threads=threads)  # fmt: skip
    made = run_stages(job)
    assert made.artifact is not None
    assert made.certificate is not None
    return made.artifact


def calls(name: str, c: Case, artifact: Artifact) -> Iterator[Product]:
    """With the case's numbers; where bytes below zero are among them, with their magnitudes too."""
    arrays = data(c)
    signs = below(arrays)
    yield product(name, c, artifact, arrays, signs)
    if signs:
        yield product(f"{name} without signs", c, artifact, {n: without(a) for n, a in arrays.items()}, 0)


def below(arrays: dict[str, np.ndarray]) -> int:
    """Through which product bytes below zero go."""
    kinds = tuple({"i": "i8", "u": "u8"}.get(a.dtype.kind, "") for a in (arrays["A"], arrays["B"]))
    return BY.get(kinds, 0) if any(a.dtype == np.int8 and (a < 0).any() for a in arrays.values()) else 0


def without(a: np.ndarray) -> np.ndarray:
    return a & 0x7F if a.dtype == np.int8 else a


def product(name: str, c: Case, artifact: Artifact, arrays: dict[str, np.ndarray], signs: int) -> Product:
    """What the interpreter says for these numbers, or the bounds."""
    _, loose = split(c.kernel)
    want = interp.run(c.kernel, arrays, c.sizes)
    bounds = enclose(c.kernel, arrays, c.sizes) if loose & want.keys() else {}
    make = partial(argument, c, arrays, want, bounds)
    return Product(name, artifact, tuple(make(a.name) for a in artifact.arguments), signs)


def argument(c: Case, arrays: dict[str, np.ndarray], want: dict[str, np.ndarray], bounds: dict, name: str) -> Argument:
    constant = c.bound and c.kernel.buffer(name).role == "const"
    if name in arrays:
        return Argument(name, arrays[name].tobytes(), constant, None)
    if name not in bounds:
        assert want[name].dtype.kind == "i", name
        return Argument(name, nothing(want[name]), False, Written(whole=want[name].tobytes()))
    value, bound = (np.ascontiguousarray(x, np.float64).tobytes() for x in bounds[name])
    return Argument(name, nothing(want[name]), False, Written(value=value, bound=bound))


def nothing(a: np.ndarray) -> bytes:
    return interp.unwritten(a.shape, {"i": "i32", "f": "f32"}[a.dtype.kind]).tobytes()


def changed(p: Product, name: str, code: bytes, signs: int) -> Product:
    """The same call of other code."""
    parts = {**p.artifact.parts, "object.o": code}
    return replace(p, name=name, signs=signs, artifact=replace(p.artifact, parts=parts))
