"""Temporaries that are made again where they are read later, instead of being kept."""

from __future__ import annotations

import pytest

from isam.compiler.offers.again import made_again
from isam.ir.text import parse_kernel
from isam.schedule.tree import Schedule
from isam.transforms.law import NoSite, Site
from isam.transforms.statements import Duplicate
from tests.laws.judges import same
from tests.pipeline import compiled, judge, simulated
from tests.subjects import covered

CENTRED = """kernel centred(M, N)
  in  X: f32[M, N]
  in  m: f32[M]
  out D: f32[M, N]
  forall i < M, j < N
    c[i, j] = X[i, j] - m[i]
  forall i < M
    v[i] = 0
  forall i < M, j < N
    v[i] += c[i, j] * c[i, j]
  forall i < M
    r[i] = rsqrt(v[i] + 1)
  forall i < M, j < N
    D[i, j] = c[i, j] * r[i]
"""
LARGE = {"M": 12, "N": 1024}  # c: 48 KiB, beside 32 of the nearest cache


def steps(text: str, sizes: dict[str, int]) -> tuple:
    system = simulated("host-avx512")
    job = compiled(parse_kernel(text), sizes, system)
    plain = next(c.cover for c in job.candidates if not c.ahead)
    return made_again(covered(plain, system))[0]


def test_values_read_before_and_after_a_sum_over_them_are_made_twice():
    first, *others = steps(CENTRED, LARGE)
    assert (first.transform.law, first.site["buffer"], first.site["late"]) == ("duplicate", "c", True)
    assert others, "the sum is still made in lanes"


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (CENTRED, {"M": 8, "N": 1024}),  # is near
        (CENTRED.replace("X[i, j] - m[i]", "exp(X[i, j])"), LARGE),  # takes longer than keeping it
        (CENTRED.replace("m: f32[M]", "m: f32[M, N]").replace("m[i]", "m[i, j]"), LARGE),  # of twice as much
        (CENTRED.replace("    c[i, j] = X", "    e[i, j] = exp(X[i, j])\n    c[i, j] = e"), LARGE),
        (CENTRED.replace("D[i, j] = c[i, j] * r[i]", "D[i, j] = X[i, j] * r[i]"), LARGE),  # nobody reads it later
        (CENTRED.replace("= c[i, j] * r[i]", "= c[i, j] * m[i]"), LARGE),  # nobody waits for a sum
        (CENTRED.replace("[i]", "[j]").replace("f32[M]", "f32[N]").replace("forall i < M\n", "forall j < N\n"), LARGE),
    ],
    ids=["near", "slow", "of-two", "of-kept", "once", "no-sum", "columns"],
)
def test_others_are_kept(text, sizes):
    assert not steps(text, sizes)


def test_a_schedule_keeps_no_more_than_rows():
    job = compiled(parse_kernel(CENTRED), LARGE, simulated("host-avx512"))
    assert isinstance(job.schedule, Schedule)
    assert sum(s.bytes for s in job.schedule.workspace) < 4 * 1024
    judge(parse_kernel(CENTRED), LARGE, job, 3)


LATE = """kernel late(M)
  in    a: f32[M]
  inout b: f32[M]
  out   y: f32[M]
  out   z: f32[M]
  forall i < M
    t[i] = a[i] * b[i]
    y[i] = t[i] + 1
    z[i] = t[i] + 2
"""


def test_a_copy_may_be_made_just_before_who_reads_it():
    kernel = parse_kernel(LATE)
    changed = Duplicate().apply(kernel, Site.of(buffer="t", readers=(2,), late=True)).kernel
    assert [s.dest.buffer for s in changed.statements] == ["t", "y", "t2", "z"]
    assert same(Duplicate(), kernel.with_sizes({"M": 5}), changed.with_sizes({"M": 5}))


@pytest.mark.parametrize(
    ("text", "reader"),
    [
        (LATE.replace("    y[i] =", "    b[i] = 3\n    y[i] ="), 3),  # made of something else by then
        (LATE.replace("    y[i] =", "    t[i] = t[i] + a[i]\n    y[i] ="), 3),  # written twice
        (LATE.replace("    z[i]", "  loop s < M\n    z[s]").replace("= t[i] + 2", "= t[s] + 2"), 2),  # in a loop
    ],
    ids=["overwritten", "twice", "loop"],
)
def test_not_where_it_would_hold_something_else(text, reader):
    with pytest.raises(NoSite, match="does not apply"):
        Duplicate().apply(parse_kernel(text), Site.of(buffer="t", readers=(reader,), late=True))
