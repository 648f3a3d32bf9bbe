"""Permissions that a kernel does not give, told where they unlock an instruction that is far quicker."""

from __future__ import annotations

import pytest

import isam
from isam.compiler.feasible import as_far
from isam.compiler.grants import Grant, grants
from isam.compiler.stages import new_job
from isam.ir.kernel import GRANTED, PERMITS, Kernel
from isam.system.graph import System

KERNEL = """
kernel product(M, N, K)
  in    x: f32[M, K]
  in    w: f32[K, N]
  inout y: f32[M, N]
  permits {permits}
  forall i < M, j < N, k < K
    y[i, j] += x[i, k] * w[k, j]
"""
MACHINE = """
isam: 1
system: two_products
backend: simulator
memories:
  ddr: {{kind: managed, capacity: 1 MiB, home: true}}
units:
  mac: {{runs: ["p*"], clock: 1 GHz}}
instructions:
  plain:
    body: |
      instruction plain(M <= 4, N <= 4, K <= 4)
        in    A: f32[M, K]
        in    W: f32[K, N]
        inout C: f32[M, N]
        forall i < M, j < N, k < K
          C[i, j] += A[i, k] * W[k, j]
    cost: {{issue: 64 cycles, latency: 64 cycles}}
  pquick:
    body: |
      instruction pquick(M <= 4, N <= 4, K <= 4)
        in    A: f32[M, K]
        in    W: f32[K, N]
        inout C: f32[M, N]
        permits {takes}
        forall i < M, j < N, k < K
          C[i, j] += A[i, k] * W[k, j]
    cost: {{issue: {cycles} cycles, latency: 64 cycles}}
"""
SIZES = {"M": 8, "N": 8, "K": 8}


def machine(tmp_path, takes: str, cycles: int = 8) -> System:
    path = tmp_path / "two.yaml"
    path.write_text(MACHINE.format(takes=takes, cycles=cycles))
    return isam.load_system(path)


def kernel(permits: str) -> Kernel:
    return isam.parse(KERNEL.format(permits=permits))


def told(k: Kernel, system: System, sizes: dict[str, int]) -> tuple[Grant, ...]:
    job, no = as_far(new_job(k, system, sizes, None), "cover")
    assert no is None
    return grants(job)


def test_every_permission_is_told_in_words():
    assert GRANTED.keys() == PERMITS - {"exact"}


@pytest.mark.parametrize("permission", GRANTED)
def test_what_one_permission_is_worth(tmp_path, permission):
    (grant,) = told(kernel("nothing"), machine(tmp_path, permission), SIZES)
    assert (grant.missing, grant.permits, grant.instructions, grant.lines) == (
        (permission,), (permission,), ("pquick",), (8,))  # fmt: skip
    assert grant.times == pytest.approx(8)
    assert str(grant) == (f"with 'permits {permission}' ({permission}: {GRANTED[permission]}): pquick could carry out "
                          "line 8, 8 times as quickly by prediction")  # fmt: skip
    assert told(kernel(permission), machine(tmp_path, permission), SIZES) == ()


def test_all_that_would_be_permitted_is_named_and_what_each_new_one_allows(tmp_path):
    (grant,) = told(kernel("contract"), machine(tmp_path, "contract, finite, flush"), SIZES)
    assert (grant.missing, grant.permits) == (("finite", "flush"), ("contract", "finite", "flush"))
    assert f"(finite: {GRANTED['finite']}; flush: {GRANTED['flush']})" in str(grant)
    (grant,) = told(kernel("exact"), machine(tmp_path, "flush"), SIZES)
    assert grant.permits == ("flush",)


def test_less_than_twice_as_quick_is_no_remark(tmp_path):
    assert told(kernel("nothing"), machine(tmp_path, "flush", 33), SIZES) == ()
    assert told(kernel("nothing"), machine(tmp_path, "flush", 32), SIZES) != ()


def test_where_sizes_are_open_the_usual_ones_say(tmp_path):
    (grant,) = told(kernel("nothing"), machine(tmp_path, "flush"), {})
    assert grant.instructions == ("pquick",)


def test_explanations_and_reports_tell_it(tmp_path):
    system = machine(tmp_path, "flush")
    for sizes in (SIZES, {}):
        why = isam.explain(kernel("nothing"), on=system, sizes=sizes)
        assert [str(g) for g in why.grants] == str(why).splitlines()[-1:]
        assert not isam.explain(kernel("flush"), on=system, sizes=sizes).grants
    report = isam.compile(kernel("nothing"), on=system, sizes=SIZES, cache=False).report()
    assert "\nwith further permissions\n  with 'permits flush' (" in report
    assert "further permissions" not in isam.compile(kernel("flush"), on=system, sizes=SIZES, cache=False).report()
