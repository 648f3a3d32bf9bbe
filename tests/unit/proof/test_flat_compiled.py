"""The compiled walk and the step by step execution of the flat checker say the same of every schedule."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest

import isam
from benchmarks.large import made, unrolled
from isam.ir.affine import Affine
from isam.proof import flat_program
from isam.proof.flat import MANY, Replay, check_flat, expected, replayed
from isam.proof.flat_units import Multiples
from isam.proof.flat_walk import walk
from isam.proof.points import check_points
from isam.proof.tree import check_tree
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Issue, Loop, Schedule, Seq, distinct
from tests.campaign_flat import schedules
from tests.flat_both_ways import difference, judged
from tests.pipeline import compiled
from tests.unit.proof import test_dealt, test_numerics, test_registers
from tests.unit.proof.handmade import running_sum, tiny_matmul, vec_matmul
from tests.unit.proof.mutants import mutants
from tests.unit.proof.test_forged import FORGED
from tests.unit.proof.test_mutants import SMALL
from tests.unit.proof.test_points import MADE
from tests.unit.proof.verdicts import on_record

PER_KIND = 1  # mutants; all of them: python -m tests.unit.proof.test_flat_compiled


def trips(s: Schedule) -> list[dict[str, int]]:
    syms = [y.name for y in s.cover.kernel.syms]
    return [dict.fromkeys(syms, n) for n in ((3, 1, 0) if syms else (0,))]


def planted(s: Schedule, per_kind: int, seed: int) -> list[tuple[str, Schedule]]:
    kinds: dict[str, list[Schedule]] = {}
    for what, mutant in mutants(s):
        kinds.setdefault(what, []).append(mutant)
    choose = random.Random(seed)
    return [(what, m) for what, all_ in kinds.items() for m in choose.sample(all_, min(per_kind, len(all_)))]


@pytest.mark.parametrize("name", MADE)
def test_schedules_that_are_right(name):
    s = MADE[name]()
    assert not any(difference(s, t) for t in trips(s))
    on_record(f"walked: {name}", (judged(s, t, compiled=True)[2] for t in trips(s)))


@pytest.mark.parametrize("name", SMALL)
def test_planted_faults(name):
    found = {what: difference(m, t) for what, m in planted(SMALL[name](), PER_KIND, 1) for t in trips(m)}
    assert not {what: d for what, d in found.items() if d}


@pytest.mark.parametrize("what", FORGED)
def test_forged_schedules(what):
    s = FORGED[what][0]()
    assert not any(difference(s, t) for t in trips(s))


@pytest.mark.parametrize("what", ["nothing", *test_dealt.FORGED])
def test_dealt_loops(what):
    s = test_dealt.good()
    assert not difference(s if what == "nothing" else test_dealt.edited(s, test_dealt.FORGED[what][1]), {})


def test_set_up_commands():
    good = test_registers.good()
    assert not difference(good, {})
    for command in test_registers.commands(good)[:6]:
        less = test_registers.instead(command, ())
        assert "register" in {v.kind for v in check_flat(less)}
        assert not difference(less, {})


@pytest.mark.parametrize("seed", range(5))
def test_random_kernels_with_planted_faults(seed):
    """Thousands of them: python -m tests.campaign_flat toy 0 1000."""
    said = []
    for what, s in schedules(seed, "toy", 3):
        sizes = {y.name: 2 for y in s.cover.kernel.syms}
        assert not difference(s, sizes), what
        said += [what, judged(s, sizes, compiled=True)[2], *(check_points(s) or check_tree(s))]
    on_record(f"random kernel {seed}", said)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [0, 2, 1, 3, 4]])
def test_terms_in_order(order):
    """Every step, not only the first of its kind."""
    s = test_numerics.made(order, frozenset({"exact"}))
    assert not difference(s, {})
    if order != sorted(order):
        assert judged(s, {}, compiled=True)[0][1]["reassociate"] > len(order)


@pytest.mark.parametrize("budget", [1, 2, 5, 17, 40])
def test_budgets(budget):
    s = tiny_matmul()
    assert not difference(s, {}, budget)
    assert judged(s, {}, budget, compiled=True)[0][0][-1].kind == "budget"


def test_walk_as_python():
    """What is compiled is what the functions say when Python runs them."""
    chosen = [*planted(tiny_matmul(8, 4, 12, peeled=True), 1, 2), ("", tiny_matmul()), ("", running_sum(4))]
    for what, s in chosen:
        sizes = trips(s)[0]
        told, memory, _ = judged(s, sizes, compiled=True)
        with pytest.MonkeyPatch.context() as m, np.errstate(over="raise"):
            m.setattr(flat_program, "walk", lambda: walk)
            again, other, _ = judged(s, sizes, compiled=True)
        assert told == again, what
        assert all(np.array_equal(a, other[k]) for k, a in memory.items()), what


@cache
def large() -> Schedule:
    job = compiled(isam.einsum("mk,kn->mn"), {"M": 192, "N": 192, "K": 192}, isam.load_system("toy"))
    assert job.schedule is not None
    return job.schedule


def test_all_steps_that_are_right_are_taken_by_the_compiled_walk():
    s = large()
    got = replayed(s)
    assert got.found == []
    assert got.steps == expected(s, {}) > MANY
    assert got.alone == 0


@pytest.mark.parametrize(("on", "types"), [("toy", "f32"), ("host", "f32"), ("gemmini", "i8")])
def test_where_every_step_is_another_one(on: str, types: str):
    """Loops written out: the same is said as of the loops, and as step by step, also where a step is left out or comes
    too early."""
    found = {"f32": ("f32", "f32"), "i8": ("i8", "i32")}[types]
    s = made(on, found, {"M": 18, "N": 17, "K": 3}, "schedule")[0].schedule
    assert s is not None
    written = unrolled(s)
    assert not any(isinstance(n, Loop) for n in distinct(written.call))
    assert replayed(written, compiled=True).steps == replayed(s, compiled=True).steps
    assert difference(written, {}) == ""
    steps, wrong = written.call.children, 0
    for i in random.Random(4).sample(range(len(steps) - 1), 3):
        for call in ((*steps[:i], *steps[i + 1 :]), (*steps[:i], steps[i + 1], steps[i], *steps[i + 2 :])):
            broken = replace(written, call=Seq(call))
            assert difference(broken, {}) == ""
            wrong += bool(replayed(broken, compiled=True).found)
    assert wrong > 1


def test_without_the_text_all_steps_are_judged_one_by_one():
    s = vec_matmul(13, 32, 60)
    assert replayed(s, compiled=True).alone < replayed(s).alone == replayed(s).steps

    def missing() -> None:
        raise OSError("no source text")

    with pytest.MonkeyPatch.context() as m:
        m.setattr(flat_program, "walk", missing)
        m.setattr("isam.proof.flat.MANY", 1)
        got = replayed(s)
    assert (got.found, got.alone) == ([], got.steps)


def test_numbers_beyond_64_bits_are_left_to_python():
    """A loop far away, whose steps take that back: right in Python, and not to be trusted to 64 bits."""
    s = tiny_matmul()
    assert isinstance(s.call, Loop)
    for far in (1 << 33, 1 << 64, 1 << 70):
        var, back = s.call.var, Affine.of(s.call.var) - far
        moved = {k: tuple(Bound(b.expr + far * b.div, b.div) for b in getattr(s.call, k)) for k in ("lo", "hi")}
        inner = replace(s.call, lo=(Bound(back),), hi=(Bound(back + 1),))
        outer = replace(s.call, var=f"{var}x", lo=moved["lo"], hi=moved["hi"], body=renamed(inner, var, f"{var}x"))
        apart = replace(s, call=replace(outer, enter=Seq(), first=None, last=None, exit=Seq()))
        assert check_flat(apart) == []
        assert not difference(apart, {}), far
    program = flat_program.Program(Replay(s, {}, Findings(), 100, compiled=True))
    assert program.takes(s.call, {})
    assert not program.takes(s.call, {"N": 1 << 40})


def renamed(n: Loop, old: str, new: str) -> Loop:
    """Its bounds under another name of the loop around."""
    bounds = {k: tuple(Bound(b.expr.substitute({old: Affine.of(new)}), b.div) for b in getattr(n, k))
              for k in ("lo", "hi")}  # fmt: skip
    return replace(n, **bounds)


def test_multiples():
    i, j = Affine.of("i"), Affine.of("j")
    inner = Loop("j", (Bound(i * 2 + 8),), (Bound(i * 2 + 40),), 12, Seq())
    halves = Loop("h", (Bound(i, 8), Bound(Affine((), 0))), (Bound(Affine((), 99)),), 2, Seq())
    outer = Loop("i", (Bound(Affine((), 32)),), (Bound(Affine.of("N")),), 16, Seq((inner, halves)))
    size = Loop("S", (Bound(Affine()),), (Bound(Affine((), 9)),), 4, outer)  # of the name of a size, which it hides
    of = Multiples(replace(tiny_matmul(), call=size), {"N": 100, "Z": 0, "S": 10})
    assert [of(Affine.of(n)) for n in "ijhNZxS"] == [16, 4, 2, 100, 0, 1, 2]
    assert of(i * 3 + j * 4 + 24) == 8
    assert of(Affine.of("Z") * 5) == 0


def old_copy() -> Schedule:
    """A tile of y is copied to the scratchpad when it has been filled, and not again when the products are in it."""
    job = compiled(isam.einsum("mk,kn->mn"), {"M": 13, "N": 20, "K": 40}, isam.load_system("toy"))
    s = job.schedule
    assert s is not None
    call = list(test_dealt.parts_of(s.call))
    copy = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.is_move
                and all(o.tile.buffer == "y" for o in n.operands) and n.operands[-1].place.memory == "sp")  # fmt: skip
    loop = next(i for i, n in enumerate(call) if isinstance(n, Loop) and n.axis == "k")
    late = test_dealt.edited(s, lambda n: Seq(tuple(c for c in n.children if c is not copy)) if type(n) is Seq else n)
    return replace(s, call=Seq((*call[:loop], copy, *test_dealt.parts_of(late.call)[loop:])))


def test_an_old_copy():
    """Elements of several groups of bytes, at an old version."""
    s = old_copy()
    assert {v.kind for v in check_flat(s)} == {"stale", "final"}
    assert not difference(s, {})


def test_what_bind_may_do_call_may_not():
    """The same step in both trees: it fills a slot that is kept, and is legal in one of them only."""
    s = vec_matmul(4, 16, 10, bound=True)
    again = replace(s, call=Seq((s.bind, s.call)))
    assert "base" in {v.kind for v in check_flat(again)}
    assert not difference(again, {})


def test_a_single_command_is_judged_too():
    """A loop whose body is one step and no sequence."""
    good = test_registers.good()
    needy = next(n for n in distinct(good.call) if isinstance(n, Issue)
                 and good.system.instructions[n.instruction].requires)  # fmt: skip
    loop = Loop("only", (Bound(Affine()),), (Bound(Affine((), 1)),), 1, needy)
    first = replace(good, call=Seq((loop, good.call)))
    assert next(v for v in check_flat(first)).kind == "register"
    assert not difference(first, {})


if __name__ == "__main__":
    for name in SMALL:
        chosen = planted(SMALL[name](), 10**9, 1)
        wrong = [what for what, m in islice(chosen, None) for t in trips(m) if difference(m, t)]
        print(f"{name}: {len(chosen)} mutants, judged otherwise by the compiled walk: {len(wrong)}", *wrong)
