"""Code for a CPU that is not this one: what a description's ``target`` asks for, and where it is refused."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest

import isam
from isam.codegen.llvm import Code, emit, generate, to_ir
from isam.diagnostics import IsamError
from isam.ir.text import parse_kernel
from isam.runtime import linking, native
from isam.runtime.linking import Target, architecture, features
from isam.system.features import demand, lacking
from isam.system.load import load_system
from tests import campaign_native
from tests.corpus import CASES
from tests.elsewhere import elsewhere
from tests.pipeline import compiled

AARCH64 = 183  # e_machine in ELF for the Arm 64-bit Architecture, table 4-2
SIZES = {"M": 64, "N": 96, "K": 80}
HERE = """isam: 1
system: mine
extends: host-generic
"""


@lru_cache
def product(on: str) -> Code:
    job = compiled(CASES["matmul"].load(), SIZES, load_system(on), check=True)
    assert job.schedule is not None
    return generate(job.schedule, assembly=True)


def inner(assembly: str) -> list[str]:
    """The lines of the loop that holds most products and no other loop."""
    lines = assembly.splitlines()
    labels = {m[1]: n for n, x in enumerate(lines) if (m := re.match(r"(\.L\w+):", x))}
    ends = ((m[1], n) for n, x in enumerate(lines) if (m := re.search(r"\bb\.\w+\s+(\.L\w+)", x)))
    loops = [lines[a:b] for to, b in ends if (a := labels.get(to, b)) < b]
    return max(loops, key=lambda body: sum("fmla" in x for x in body) / len(body))


@pytest.mark.parametrize(("on", "register"), [("neoverse-n1", r"v\d+\.4s"), ("neoverse-v1", r"z\d+\.s")])
def test_products_stay_in_registers(on: str, register: str) -> None:
    code = product(on)
    assert struct.unpack_from("<H", code.object, 18) == (AARCH64,)
    body = inner(code.assembly)
    products = [x for x in body if re.search(rf"fmla\s+{register}", x)]
    assert len(products) >= 16
    assert len({x.split()[1] for x in products}) >= 8  # of two pipes, each four cycles behind
    assert not any("[sp" in x for x in body)
    assert len(body) < 2.5 * len(products)
    assert code.needs == tuple(sorted({"aarch64", *load_system(on).target.features}))


def test_a_length_of_registers_is_told_where_it_is_counted_on() -> None:
    for on, told in (("neoverse-v1", True), ("neoverse-n1", False), ("host-generic", False)):
        job = compiled(CASES["matmul"].load(), SIZES, load_system(on), check=False)
        assert ("vscale_range(2,2)" in to_ir(job.schedule)[0]) == told


@pytest.mark.parametrize("on", ["host-neon", "host-sve256"])
def test_random_kernels_of_other_cpus_run_here(on: str) -> None:
    with elsewhere():
        assert [campaign_native.one(seed, on) for seed in range(4)] == [("right", "")] * 4


BYTES = """kernel bytes(M, N, K)
  in  A: {a}[M, K]
  in  B: {b}[K, N]
  out C: i32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += i32(A[i, k]) * i32(B[k, j])
"""


@pytest.mark.parametrize(("a", "b", "by"), [
    ("i8", "i8", "sdot"), ("u8", "u8", "udot"), ("u8", "i8", "usdot"), ("i8", "u8", "usdot"),
])  # fmt: skip
def test_products_of_bytes_by_groups(a: str, b: str, by: str) -> None:
    kernel, sizes = parse_kernel(BYTES.format(a=a, b=b)), {"M": 5, "N": 11, "K": 14}
    there = load_system("neoverse-n1")
    able = replace(there, target=there.target._replace(features=there.target.features | {"i8mm"}))
    assert re.search(rf"\s{by}\s+v\d+\.4s", generate(compiled(kernel, sizes, able).schedule, assembly=True).assembly)
    rng, kinds = np.random.default_rng(3), {"i8": np.int8, "u8": np.uint8}
    given = [rng.choice([np.iinfo(t).min, np.iinfo(t).max, 3], shape).astype(t)
             for t, shape in ((kinds[a], (5, 14)), (kinds[b], (14, 11)))]  # fmt: skip
    with elsewhere():
        made = isam.compile(kernel, on="host-neon", sizes=sizes, cache=False)
        assert any(m.instruction.name == f"dot4_{a}_{b}" for m in made.job.cover.mappings)
        assert (made(*given) == given[0].astype(np.int32) @ given[1].astype(np.int32)).all()


def test_host_takes_what_the_cpu_has() -> None:
    def taken(*have: str) -> str:
        return load_system("host", features=have).name

    assert taken("aarch64", "neon") == "host-neon"
    assert taken("aarch64", "neon", "sve", "vscale-1") == "host-neon"
    assert taken("aarch64", "neon", "sve", "vscale-2") == "host-sve256"
    assert taken("x86_64", "neon") == "host-generic"


def test_what_this_cpu_has() -> None:
    from isam.runtime.linking import initialised

    assert architecture(initialised().get_process_triple()) in features()
    assert architecture("arm64-apple-darwin23.1.0") == "aarch64"
    flags = Target("aarch64-unknown-linux-gnu", "generic", frozenset({"aarch64", "sve", "neon", "vscale-2"})).flags
    assert flags == "+neon,+sve"


@pytest.mark.parametrize("granted", [False, True])
def test_tiles_that_the_system_does_not_grant_are_not_there(granted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    have = {"avx512f": True, "amx-tile": True, "amx-int8": True}
    llvm = SimpleNamespace(get_process_triple=lambda: "x86_64-linux", get_host_cpu_features=lambda: have)
    monkeypatch.setattr(linking, "initialised", lambda: llvm)
    monkeypatch.setattr(linking, "_granted", lambda: granted)
    found = linking.features.__wrapped__()
    assert found == {"x86_64", "avx512f"} | ({"amx-tile", "amx-int8"} if granted else set())


def test_an_artifact_of_another_cpu_is_refused() -> None:
    lacks = lacking(product("neoverse-n1").needs)
    if not lacks:
        pytest.skip("this CPU has what neoverse-n1 has")
    job = compiled(CASES["matmul"].load(), SIZES, load_system("neoverse-n1"), check=False)
    with pytest.raises(IsamError, match=f"compiled for a CPU with {lacks[0]}"):
        native.check_features(emit(job.schedule))
    with pytest.raises(IsamError, match=r"'neoverse-n1' needs .*which this CPU lacks"):
        demand(load_system("neoverse-n1"))


@pytest.mark.parametrize(("target", "code", "said"), [
    ("{triple: aarch64-unknown-linux-gnu}\nneeds: [sve]", "codegen-features", "do not say sve"),
    ("{triple: pdp11-dec-ultrix}", "codegen-target", "no code for 'pdp11-dec-ultrix'"),
    ("{cpu: neoverse-n1}", "system-missing", "triple"),
    ("aarch64", "system-kind", "a target"),
])  # fmt: skip
def test_targets_that_are_refused(target: str, code: str, said: str, tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{HERE}target: {target}\n")

    def made() -> Code:
        job = compiled(CASES["matmul"].load(), {"M": 4, "N": 4, "K": 4}, load_system(str(path)), check=False)
        return generate(job.schedule)

    with pytest.raises(IsamError) as e:
        made()
    assert (e.value.diagnostics[0].code, said in str(e.value)) == (code, True), str(e.value)
