"""Loops that go back and forth: offered where they may, right wherever they are, refused wherever they may not."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import isam
from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.compiler.job import Job, Refused
from isam.diagnostics import IsamError
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.proof import ProofError, check_flat, check_points, check_tree, prove
from isam.schedule.serial import from_json, to_json
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Schedule, Seq, Serpentine, Wait, distinct
from isam.scheduler.plans import shared_home
from isam.scheduler.plans.dealing import dealings
from isam.system.load import load_system
from tests.campaign import right_numbers
from tests.pipeline import compiled, judge, simulated
from tests.random_blocks import Options
from tests.random_kernels import random_kernel

NARROW = "tests/machines/narrow.yaml"
CELL = """kernel cell(T, B, H)
  permits reassociate, contract
  in    x: f32[T, B, H]
  const u: f32[H, H]
  inout h: f32[B, H]
  loop t < T
    forall i < B, j < H
      v[i, j] = x[t, i, j]
    forall i < B, j < H, k < H
      v[i, j] += h[i, k] * u[k, j]
    forall i < B, j < H
      h[i, j] = max(v[i, j] * 0.125, 0)
"""
ROWS = """kernel rows(M, N, K)
  permits reassociate, contract
  in    a: f32[M, K]
  const b: f32[K, N]
  out   c: f32[M, N]
  forall i < M, j < N
    c[i, j] = 0
  forall i < M, j < N, k < K
    c[i, j] += a[i, k] * b[k, j]
"""


def turned(s: Schedule) -> list[Loop]:
    return [n for n in distinct(s.call) if isinstance(n, Loop) and n.serpentine is not None]


@cache
def made(text: str, **sizes: int) -> tuple[Kernel, Job]:
    kernel = parse_kernel(text)
    return kernel, compiled(kernel, sizes, load_system(NARROW), check=True)


@pytest.mark.parametrize(("text", "sizes"), [
    *((CELL, {"T": t, "B": b, "H": h}) for t in (1, 2, 7) for b, h in ((1, 64), (5, 33))),
    (ROWS, {"M": 40, "N": 200, "K": 9}), (ROWS, {"M": 131, "N": 200, "K": 5}),
])  # fmt: skip
def test_sweeps_go_back_and_forth_and_are_right(text: str, sizes: dict[str, int]) -> None:
    kernel, job = made(text, **sizes)
    assert job.schedule is not None
    assert turned(job.schedule) or sizes.get("T") == 1
    assert check_flat(job.schedule) == []
    judge(kernel, sizes, job)
    right_numbers(kernel, sizes, job, 3)


def test_steps_that_are_known_when_it_runs() -> None:
    kernel = parse_kernel(CELL)
    job = compiled(kernel, {"B": 3, "H": 64}, simulated(NARROW), check=True)
    assert job.schedule is not None
    assert turned(job.schedule)
    for steps in (0, 1, 2, 5):
        judge(kernel, {"B": 3, "H": 64}, job, run_time={"T": steps})


@pytest.mark.parametrize("sizes", [{"T": 3, "B": 31, "H": 31}, {"T": 2, "B": 40, "H": 33}])
def test_what_waits_for_another_core_goes_forth_alone(sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each core goes through all rows again for every few columns, and the first time waits for those of the others."""
    monkeypatch.setattr(shared_home, "MEETING", -1e12)  # no loop is too short for threads
    monkeypatch.setattr(shared_home, "dealings", lambda *a: [d for d in dealings(*a) if [n for n, *_ in d] == ["j"]])
    kernel = parse_kernel(CELL)
    fn = isam.compile(kernel, on=NARROW, sizes=sizes, check=True, cache=False, threads=2)
    schedule = fn.schedule
    assert schedule is not None
    loops = [n for n in distinct(schedule.call) if isinstance(n, Loop)]
    assert any(n.deal is not None and any(isinstance(c, Issue) and c.after for c in distinct(n)) for n in loops)
    assert not any(isinstance(c, Issue) and c.after for n in turned(schedule) for c in distinct(n))


@pytest.mark.parametrize("seed", range(5))
def test_random_sizes_are_right(seed: int) -> None:
    r = random.Random(seed)
    sizes = {"T": r.randint(2, 5), "B": r.randint(1, 6), "H": r.choice((64, 68, 72, 80))}
    kernel, job = made(CELL, **sizes)
    assert job.schedule is not None
    assert turned(job.schedule)
    judge(kernel, sizes, job, seed)
    right_numbers(kernel, sizes, job, seed)


DOTS = """kernel dots(T, H)
  permits reassociate, contract
  in  x: f32[T, H]
  in  w: f32[H]
  out y: f32[T]
  loop t < T
    y[t] = 0
    forall j < H
      y[t] += x[t, j] * w[j]
"""


@pytest.mark.parametrize(("text", "sizes", "axis"), [
    (DOTS, {"T": 6, "H": 1024}, "j"), (CELL.replace("const", "in"), {"T": 6, "B": 1, "H": 64}, "k"),
])  # fmt: skip
def test_what_an_iteration_hands_to_the_next_goes_forth_alone(text: str, sizes: dict[str, int], axis: str) -> None:
    """Sums in registers, and sums in memory: one loop goes through all weights in every step."""
    kernel, job = made(text, **sizes)
    assert job.schedule is not None
    assert any(isinstance(n, Loop) and n.axis == axis for n in distinct(job.schedule.call))
    assert not turned(job.schedule)
    judge(kernel, sizes, job)


def test_it_is_the_approach_that_decides() -> None:
    class Forth(Greedy):
        def serpentine(self, choice: Choice) -> Any:
            asked.append(choice.context)
            return choice.options[0]

    asked: list[dict[str, Any]] = []
    kernel = parse_kernel(CELL)
    job = compiled(kernel, {"T": 7, "B": 1, "H": 64}, simulated(NARROW), Forth())
    assert job.schedule is not None
    assert not turned(job.schedule)
    assert any(c["around"] == "t" and c["bytes"] == 64 * 64 * 4 for c in asked)


@pytest.mark.parametrize("on", ["host-generic", "host-zen4"])
def test_what_a_cache_holds_goes_forth_alone(on: str) -> None:
    job = compiled(parse_kernel(CELL), {"T": 7, "B": 1, "H": 64}, simulated(on))
    assert job.schedule is not None
    assert not turned(job.schedule)


def test_weights_of_a_recurrent_unit_that_only_the_last_cache_holds() -> None:
    job = compiled(parse_kernel(CELL), {"T": 64, "B": 1, "H": 1024}, simulated("host-zen4"), check=True)
    assert job.schedule is not None
    assert [n.serpentine for n in turned(job.schedule)] == [Serpentine("t", 1)] * len(turned(job.schedule))
    assert turned(job.schedule)
    assert "backwards where t is odd" in str(job.schedule)


# -- the judges --------------------------------------------------------------------------------------------------------
def edited(s: Schedule, change: Any) -> Schedule:
    """The schedule with every loop that goes back and forth changed."""

    def node(n: Node) -> Node:
        if isinstance(n, Seq):
            return Seq(tuple(node(c) for c in n.children))
        if isinstance(n, Issue):
            return n
        n = replace(n, **{k: node(p) for k in ("enter", "first", "body", "last", "exit") if (p := getattr(n, k))})
        return change(n) if n.serpentine is not None else n

    return replace(s, call=node(s.call))


def waiting(n: Loop) -> Loop:
    def node(m: Node) -> Node:
        if isinstance(m, Issue):
            return m.waiting((Wait("core", 0),))
        parts = m.children if isinstance(m, Seq) else (m.body,)
        return Seq(tuple(node(c) for c in parts)) if isinstance(m, Seq) else replace(m, body=node(m.body))

    return replace(n, body=node(n.body))


@pytest.mark.parametrize(("change", "kind"), [
    (lambda n: replace(n, serpentine=Serpentine("nobody", 1)), "scope"),
    (lambda n: replace(n, serpentine=Serpentine(n.var, 1)), "scope"),
    (lambda n: replace(n, serpentine=Serpentine("t", 0)), "form"),
    (lambda n: replace(n, last=n.body), "form"),
    (lambda n: replace(n, deal=Deal("cores")), "form"),
    (waiting, "form"),
])  # fmt: skip
def test_forged_forms_are_refused(change: Any, kind: str) -> None:
    _, job = made(CELL, T=4, B=1, H=64)
    assert job.schedule is not None
    assert check_points(job.schedule) == []
    assert kind in {v.kind for v in check_points(edited(job.schedule, change))}


@pytest.mark.parametrize("change", [
    *(lambda n, p=p: replace(n, serpentine=Serpentine("t", p)) for p in (0, -1)),
    *(lambda n, k=k: replace(n, step=k) for k in (0, -1)),
    lambda n: replace(n, hi=(Bound(n.hi[0].expr, 0),)),
    lambda n: replace(n, lo=()),
    lambda n: replace(n, hi=(Bound(Affine.of("t", 64)), *n.hi), serpentine=Serpentine("t", 0)),
])  # fmt: skip
def test_loops_that_cannot_be_counted_are_refused_by_every_judge(change: Any) -> None:
    _, job = made(CELL, T=4, B=1, H=64)
    assert job.schedule is not None
    assert prove(job.schedule)
    forged = edited(job.schedule, change)
    assert {v.kind for v in check_flat(forged)} == {"form"}
    with pytest.raises(ProofError, match="form"):
        prove(forged)


def forged(s: Schedule, r: random.Random) -> tuple[Schedule, int]:
    """Loops that go back and forth by the toss of a coin, and how many."""
    count = 0

    def node(n: Node, around: tuple[Serpentine, ...]) -> Node:
        nonlocal count
        if isinstance(n, Issue):
            return n
        if isinstance(n, Seq):
            return Seq(tuple(node(c, around) for c in n.children))
        inner = (*around, Serpentine(n.var, n.step))
        parts = {k: node(p, inner) for k in ("first", "body", "last") if (p := getattr(n, k)) is not None}
        made = replace(n, enter=node(n.enter, around), exit=node(n.exit, around), **parts)
        if around and (n.trip or 0) > 1 and n.first is None is n.last and r.random() < 0.4:
            count += 1
            made = replace(made, serpentine=r.choice(around))
        return made

    return replace(s, call=node(s.call, ())), count


def test_what_is_proved_of_any_loop_holds_when_it_is_executed() -> None:
    """The tree is judged without the order of iterations, the other judge executes them as they come."""
    seen: Counter[tuple[bool, bool]] = Counter()
    for seed in range(9):
        kernel, sizes = random_kernel(seed, Options(sizes=(17, 33, 40), points=20000))
        kernel = replace(kernel, permits=frozenset()) if seed % 2 else kernel
        try:
            job = compiled(kernel, sizes, simulated("host-generic"))
        except Refused:
            continue
        assert job.schedule is not None
        for n in range(3):
            s, count = forged(job.schedule, random.Random(3 * seed + n))
            if count:
                proved, found = not check_points(s) and not check_tree(s), check_flat(s)
                if not any(v.kind == "budget" for v in found):
                    seen[proved, not found] += 1
    assert not seen[True, False]
    assert seen[True, True] > 6
    assert seen[False, False] > 1


def test_a_sum_that_keeps_its_order_does_not_turn() -> None:
    """Blocks of the sum, innermost: backwards they add terms in another order, and find what others have left."""
    kernel = replace(parse_kernel(ROWS), permits=frozenset())
    job = compiled(kernel, {"M": 9, "N": 16, "K": 200}, simulated("host-generic"))
    assert job.schedule is not None
    sums = [n for n in distinct(job.schedule.call) if isinstance(n, Loop) and n.axis == "k"]
    assert sums

    def node(n: Node, around: Serpentine | None) -> Node:
        if isinstance(n, Issue):
            return n
        if isinstance(n, Seq):
            return Seq(tuple(node(c, around) for c in n.children))
        back = around if n.axis == "k" else None
        return replace(n, body=node(n.body, Serpentine(n.var, n.step)), serpentine=back)

    s = replace(job.schedule, call=node(job.schedule.call, None))
    assert check_points(s)
    assert check_flat(s)


def test_it_is_written_and_read() -> None:
    kernel, job = made(CELL, T=4, B=1, H=64)
    assert job.schedule is not None
    again = from_json(to_json(job.schedule))
    assert again.call == job.schedule.call
    assert turned(again)
    judge(kernel, {"T": 4, "B": 1, "H": 64}, replace(job, schedule=again))


def test_a_row_with_more_than_it_may_have_is_no_schedule() -> None:
    _, job = made(CELL, T=4, B=1, H=64)
    assert job.schedule is not None
    document = json.loads(to_json(job.schedule))
    row = next(r for r in document["nodes"] if r[0] == "loop" and r[-1] == ["t", 1])
    row.append(["t", 2])
    with pytest.raises(IsamError, match="one"):
        from_json(json.dumps(document))
