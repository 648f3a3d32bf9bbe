"""What facts and states say of themselves, and which outputs they say are at home: by enumeration."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import islpy
import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Recurrence, Statement
from isam.ir.mapping import Cover
from isam.ir.text import parse_kernel
from isam.proof.boxes import Box, Family
from isam.proof.context import Context, Var
from isam.proof.facts import Facts
from isam.proof.final import at_home
from isam.proof.legal import Legality
from isam.proof.reached import reached
from isam.proof.sets import Isl
from isam.proof.state import Fact, Hole, State, Target, rule_of
from isam.schedule.tree import Schedule, Seq
from tests.unit.proof.handmade import home, tiny_matmul
from tests.unit.proof.test_prover import V, bounds, box, inside, values_of
from tests.unit.proof.test_witness import var

Point = tuple[int, ...]


# facts ----------------------------------------------------------------------------------------------------------------
def test_first_and_last_bytes_and_names() -> None:
    """Of rows in every direction, in cells or not; bounds of own variables mention names, too."""
    for strides, shape, cells in product(product((-8, 0, 4), repeat=2), product((1, 3), repeat=2), (None, (2, 4))):
        sides = tuple((Affine.lift(1), Affine.lift(1 + n)) for n in shape)
        f = Fact("x", ("m", "b"), cells, Affine.lift(40), strides, 4, sides)
        at = [40 + sum(i * k for i, k in zip(p, strides, strict=True)) for p in product(*map(range, shape))]
        assert (f.low, f.high) == (Affine.lift(min(at)), Affine.lift(max(at) + 4))
        assert f.keys == ((("m", "b"),) if cells is None else (("m", 2), ("m", 3), ("m", 4)))
    for name in ("a", "b", "c", "d", "e", "f", "g"):
        own = Var("v", bounds(V("a"), V("b")), bounds(V("c"), V("d")), 1, V("a"))
        f = Fact("x", ("m", ""), None, V("e"), (4,), 4, ((V("f"), V("g")),), (own,))
        assert f.mentions(name)
        assert not f.mentions("h")


def test_what_moves_with_a_variable() -> None:
    still, moving = Affine.lift(3), V("v", 2)
    for sides in product((still, moving), repeat=4):
        assert Hole((sides[:2], sides[2:])).moves("v") is (moving in sides)
        assert not Hole((sides[:2], sides[2:])).moves("w")


def test_the_rule_of_other_strides() -> None:
    for mine, theirs in product(product((4, 8, -4), repeat=2), repeat=2):
        b = box((2, 5), (3, 4))
        t = Target("x", ("m", ""), None, V("o"), mine, b, (), b, V("o"), V("o"), (True, False), Hole(b))
        assert t.rule_by(theirs) == rule_of(V("o"), theirs, b) == V("o") - 2 * theirs[0] - 3 * theirs[1]


# states ---------------------------------------------------------------------------------------------------------------
def test_a_state_is_a_set_of_facts() -> None:
    choose = random.Random(1)
    places = [("m", ""), ("m", "b"), ("n", "")]
    every = [Fact(b, p, c, Affine(), (4,), 4, box((0, 4))) for b, p in product("xy", places)
             for c in (None, (0, 0), (1, 3), (3, 4))]  # fmt: skip
    state, want = State(), dict[Fact, None]()
    for _ in range(300):
        f = choose.choice(every)
        if choose.random() < 0.5:
            state.put(f)
            want[f] = None
        else:
            state.drop(f)
            want.pop(f, None)
        assert sorted(map(id, state)) == sorted(map(id, want))
        for p in places:
            assert Counter(state.near(p, None)) == Counter(f for f in want if f.spot == p and f.cells is None)
            for first, last in ((0, 0), (1, 1), (2, 5), (4, 4), (0, 3), (5, 6)):
                meet = [f for f in want if f.cells and f.spot[0] == p[0] and f.cells[0] <= last and first <= f.cells[1]]
                assert Counter(state.near(p, (first, last))) == Counter(meet)
        if choose.random() < 0.1:
            before, state = state, state.copy()
            before.put(every[0])
            before.drop(every[1])


# outputs --------------------------------------------------------------------------------------------------------------
OUTPUT = """kernel k()
  in x: f32[4, 4]
  {role} y: f32[4, 4]
  {role} z: f32[4, 4]
  {role} q: f32[4, 4]
  forall i < 3, j < 4 where j >= 1
    y[i, j] = x[i, j]
  forall i < 4
    z[i, 0] = x[i, i]
  loop t < 3
    forall j < 2
      y[t, j] = x[j, j]
"""
WRITTEN = {"y": set(product(range(3), range(4))), "z": set(product(range(4), range(1)))}
WHOLE = set(product(range(4), repeat=2))


def output(role: str) -> Schedule:
    k = parse_kernel(OUTPUT.format(role=role))
    homes = {b: home(k, "dram", b) for b in "xyzq"}
    return Schedule(k, tiny_matmul().system, Cover(k, k, ()), (), Seq(), Seq(), (), homes)


def part(choose: random.Random) -> Box:
    lo = [choose.choice((0, 0, 0, 0, 1, 2)) for _ in range(2)]
    return box(*((a, choose.choice((4, 4, 4, 3, a + 1))) for a in lo))


def fact(choose: random.Random, fs: Facts, buffer: str) -> tuple[Fact, bool]:
    """Some of the buffer, with what is out of date, at its home or not; and whether it is said of its home."""
    b, wrong = part(choose), choose.random() < 0.15
    over: tuple[Var, ...] = ()
    if choose.random() < 0.4:  # every second row, or every row
        over = (var("v", 0, choose.choice((1, 3)), choose.choice((1, 2)), 0),)
        b = ((V("v"), V("v") + 1), b[1])
    strides, at = (16, 4), b[0][0] * 16 + b[1][0] * 4
    if wrong and choose.random() < 0.5:
        strides, at = choose.choice((((4, 16), b[0][0] * 4 + b[1][0] * 16), ((16, 8), b[0][0] * 16 + b[1][0] * 8)))
    elif wrong:
        at = at + choose.choice((4, 16, -16))
    f = fs.make(choose.choice((buffer,) * 9 + ("x",)), ("dram", buffer), None, at, strides, b, over)
    if not over and choose.random() < 0.3:
        holes = [fs.hole(part(choose)) for _ in range(choose.choice((1, 2)))]
        if choose.random() < 0.4:
            w = var("w", 0, 2, 2, 0)
            holes.append(fs.hole(((V("w"), V("w") + 1), b[1]), (w,)))
        f = fs.with_holes(f, frozenset(holes))
    return f, not wrong and f.buffer == buffer


def there(f: Fact, buffer: str) -> set[Point]:
    """Elements that it says lie where they have their home."""
    out = set[Point]()
    for env in [{"v": x} for x in values_of(f.over[0], {})] if f.over else [{}]:
        for p in inside(Family(f.box), env) if f.buffer == buffer else ():
            if f.address(map(Affine.lift, p)).evaluate(env) == 16 * p[0] + 4 * p[1]:
                out.add(p)
    return out.difference(*(inside(Family(h.box, h.over), {}) for h in f.holes))


@pytest.mark.parametrize("role", ["out", "inout"])
@pytest.mark.parametrize("buffer", ["y", "z", "q"])
def test_outputs_that_are_at_home(role: str, buffer: str) -> None:
    """All elements of what is changed, the written ones of what is made; nobody vouches for what nobody writes."""
    s, choose, said = output(role), random.Random(f"{role} {buffer}"), Counter[bool]()
    want = WRITTEN.get(buffer, WHOLE) if role == "out" else WHOLE
    for _ in range(200):
        fs, state, have, simple = Facts(Legality(s), Isl()), State(), set[Point](), True
        for _ in range(choose.choice((1, 2, 3, 4))):
            f, here = fact(choose, fs, buffer)
            state.put(f)
            have |= there(f, buffer)
            simple = simple and here and not any(h.over for h in f.holes)
        own = fs.home(buffer)
        assert own is not None
        got = at_home(fs, own, state, Context(), s, fs.isl)
        assert want <= have or not got
        if simple and (role, buffer) != ("out", "q"):
            assert got is (want <= have)
        said[got] += 1
    assert min(said.values()) > 12


def test_two_corners_that_are_out_of_date() -> None:
    """Neither takes more than itself, whichever is taken out first."""
    s = output("out")
    for sides, right in (((0, 1), (1, 2)), True), (((0, 1), (0, 1)), False):
        fs, state = Facts(Legality(s), Isl()), State()
        own = fs.home("z")
        assert own is not None
        state.put(fs.with_holes(own, frozenset((fs.hole(box(*sides)), fs.hole(box((3, 4), (3, 4)))))))
        assert at_home(fs, own, state, Context(), s, fs.isl) is right


# recurrent loops ------------------------------------------------------------------------------------------------------
LOOP = """kernel k()
  in x: f32[9, 9]
  inout y: f32[9, 9]
  inout z: f32[9, 9]
  loop t < 4
    forall i < 3
      y[t, i] = x[i, t]
    loop u < 2
      forall i < 4 where i - u >= 0, t - i >= 1
        y[t + 4, u + i] = x[i, u]
      z[u, t] = x[u, t]
"""


@pytest.mark.parametrize("whole", [False, True])
def test_what_the_steps_of_a_loop_have_written(whole: bool) -> None:
    """All of them, or those before the present one; of every statement in it."""
    k = parse_kernel(LOOP)
    (loop,) = k.body
    assert isinstance(loop, Recurrence)
    found = reached(loop, k.syms, whole)
    assert found.keys() == {"y", "z"}
    written: list[dict[str, set[Point]]] = []

    def run(items: tuple[Statement | Recurrence, ...], env: dict[str, int]) -> None:
        for it in items:
            if isinstance(it, Recurrence):
                for n in range(it.axis.extent.evaluate(env)):
                    if it is loop:
                        written.append({b: set(written[-1][b]) if written else set() for b in "yz"})
                    run(it.body, {**env, it.axis.name: n})
                continue
            for p in product(*(range(a.extent.evaluate(env)) for a in it.domain.axes)):
                at = {**env, **dict(zip(it.domain.names, p, strict=True))}
                if all(w.evaluate(at) >= 0 for w in it.domain.where):
                    written[-1][it.dest.buffer].add(tuple(r.evaluate(at) for r in it.dest.index))

    run((loop,), {})
    assert all(found[b].raw.dim(islpy.dim_type.param) == (not whole) for b in "yz")  # only then of the present step
    for b, t in product("yz", range(4)):
        want = written[3][b] if whole else written[t - 1][b] if t else set[Point]()
        at = found[b].raw if whole else found[b].raw.fix_val(islpy.dim_type.param, 0, islpy.Val(t))
        have = {p for p in product(range(9), repeat=2) if not at.intersect(
            islpy.Set(f"{{ [{p[0]}, {p[1]}] }}")).is_empty()}  # fmt: skip
        assert have == want
