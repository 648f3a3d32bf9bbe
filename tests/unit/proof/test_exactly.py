"""Small parts of the provers against what their docstrings say, by enumeration."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from operator import mul
from typing import Any

import islpy
import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.ir.relation import Rel, TooMuch
from isam.ir.text import parse_kernel
from isam.proof.bounds import _address, _tile, check_bounds
from isam.proof.context import Context, Var
from isam.proof.digits import _factor
from isam.proof.equivalence import equivalent, granted_numerics
from isam.proof.fibres import fibres
from isam.proof.legal import Legality
from isam.proof.progressions import _finer
from isam.proof.sets import Isl
from isam.proof.value import Ring
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Issue, Operand, Place, Slot, Tile, distinct
from tests.edits import put
from tests.unit.proof.handmade import tiny_matmul

V = Affine.of


def bound(e: Affine | int, div: int = 1) -> Bound:
    return Bound(Affine.lift(e), div)


# progressions ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("origin", [Affine(), V("o"), V("o") + 3])
def test_between_the_values_of_a_variable(origin: Affine) -> None:
    """With a step of so many parts it takes the values of before, and those between them and behind the last."""
    seen = 0
    for last, step, count in product((0, 1, 5, 6, 12), (1, 2, 3), (2, 3)):
        v = Var("v", (bound(origin),), (bound(origin + last),), step * count, origin)
        made = _finer(v, step, count)
        assert made is not None
        assert (made.name, made.lo, made.step, made.origin) == ("v", v.lo, step, origin)
        (hi,) = made.hi
        values = range(0, last + 1, step * count)
        assert range(0, (hi.expr - origin).const + 1, step) == range(0, values[-1] + step * count, step)
        seen += 1
    assert seen == 30


def test_between_the_values_of_a_variable_whose_last_one_is_not_known() -> None:
    def finer(lo: tuple[Bound, ...], hi: tuple[Bound, ...], origin: Affine | None, step: int = 6) -> Var | None:
        return _finer(Var("v", lo, hi, step, origin), 2, 3)

    zero, o = (bound(0),), V("o")
    assert finer(zero, (bound(11),), Affine()) is not None
    assert finer(zero, (bound(11), bound(V("n"))), Affine()) is None
    assert finer(zero, (bound(V("n")),), Affine()) is None
    assert finer(zero, (bound(11, 2),), Affine()) is None
    assert finer(zero, (bound(-1),), Affine()) is None
    assert finer(zero, (bound(-1), bound(11)), Affine()) is None
    assert finer(zero, (), Affine()) is None
    assert finer(zero, (bound(11),), None) is None
    assert finer((bound(1),), (bound(11),), Affine()) is None
    assert finer((bound(0), bound(o)), (bound(11),), Affine()) is None
    assert finer(zero, (bound(11),), Affine(), 5) is None
    two = finer((bound(o),), (bound(o + 13), bound(o + 20)), o)
    assert two is not None
    assert two.hi == (bound(o + 16),)


# digits ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_factors(seed: int) -> None:
    choose, found = random.Random(seed), 0
    for _ in range(150):
        apart = V("a", choose.randint(-3, 3)) + V("b", choose.randint(-2, 2)) + choose.randint(-4, 4)
        k = choose.randint(-3, 3)
        rest = apart * k + choose.choice((Affine(), Affine(), V("a", 1), V("c", 1), Affine((), 1)))
        right = [n for n in range(-40, 41) if apart * n == rest]
        made = _factor(rest, apart)
        assert made in right if right and apart != Affine() else made is None
        found += made is not None
    assert found > 50


# how many terms are added ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        "{ [i] -> [j] : 0 <= i < 3 and 0 <= j < 20 }",
        "{ [i] -> [j, j] : 0 <= i < 3 and 0 <= j < 20 }",
        "{ [i] -> [j, i + j] : 0 <= i < 3 and 0 <= j < 20 }",
        "{ [i] -> [j, 2j, k] : 0 <= i < 3 and 0 <= j < 20 and 0 <= k < 2 }",
        "{ [i] -> [j, k] : 0 <= i < 3 and 0 <= j < 5 and 0 <= k <= j }",
        "{ [i] -> [j] : 0 <= i < 5 and 0 <= j <= i }",
        "{ [i] -> [i] : 0 <= i < 5 }",
        "{ [i] -> [j] : 0 <= i < 3 and 0 <= j < 12 and j mod 3 = 0 and i <= j }",
        "{ [i] -> [j] : 0 <= i < 3 and 0 <= j < 12 and (j + i) mod 5 = 0 }",
        "{ [i] -> [j, k] : 0 <= i < 3 and 0 <= j < 6 and 0 <= k < 6 and (j + k) mod 4 = i }",
        "{ [i] -> [j] : 0 <= i < 3 and (0 <= j < 20 or 30 <= j < 60) }",
        "{ [i] -> [j, k] : 0 <= i < 3 and 0 <= j < 24 and j mod 3 = 0 and 0 <= k < 4 }",
        "{ [i] -> [k, j] : 0 <= i < 3 and 0 <= j < 24 and j mod 3 = 0 and 0 <= k < 4 }",
        "{ [i] -> [j] : 0 <= i < 16 and 0 <= j <= i }",  # as many lengths as are told apart
        "{ [i] -> [j] : 0 <= i < 3 and 0 <= j < 48 and j mod 3 = 0 }",  # as many outputs
    ],
)
def test_how_many_outputs_inputs_have(text: str) -> None:
    points, said, counted = Rel(islpy.Map(text)), Counter[str](), Counter[str]()

    def adding(n: int) -> Callable[[Any], None]:
        return lambda p: said.update({str(p): n})

    def count(p: Any) -> None:
        counted[str(p)] = points.raw.intersect_domain(islpy.Set.from_point(p)).range().count_val().to_python()

    for n, more, region in fibres(points):
        assert not more
        region.raw.foreach_point(adding(n))
    points.raw.domain().foreach_point(count)
    assert said == counted


# loops one after the other --------------------------------------------------------------------------------------------
LOOPS = """kernel k(T)
  in x: f32[T]
  inout h: f32
  out y: f32[T]
  out z: f32[T]
  loop t < T
    {}
    h[] = tanh(h[] + x[t])
    y[t] = h[]
  loop t < T
    {}
    h[] = tanh(h[] * x[t])
    z[t] = h[]
"""


def test_every_loop_counts() -> None:
    """Of two loops one after the other, each changed."""
    k = LOOPS.replace("    {}\n", "")
    right = parse_kernel(k)
    assert equivalent(right, parse_kernel(k.replace("h[] + x[t]", "x[t] + h[]").replace("h[] * x[t]", "x[t] * h[]")))
    for old, new in (("h[] + x[t]", "h[] - x[t]"), ("h[] * x[t]", "h[] - x[t]"), ("y[t] = h[]", "y[t] = x[t]"),
                     ("z[t] = h[]", "z[t] = x[t]")):  # fmt: skip
        assert not equivalent(right, parse_kernel(k.replace(old, new)))
        assert not equivalent(parse_kernel(k.replace(old, new)), right)


# numbers without a buffer ---------------------------------------------------------------------------------------------
def test_numbers_have_the_type_that_holds_them() -> None:
    """2 to the 53 and 1 is no float."""

    def of(value: str, dtype: str, cast: bool = False) -> Kernel:
        k = parse_kernel(f"kernel k()\n  permits exact\n  out y: {dtype}[2]\n  forall i < 2\n    y[i] = {value}\n")
        return put(k, 0, [replace(k.statements[0], op="cast")]) if cast else k

    large, less = "9007199254740993", "9007199254740992"
    assert equivalent(of(large, "i64", cast=True), of(large, "i64"))
    assert not equivalent(of(large, "i64", cast=True), of(less, "i64"))
    assert not equivalent(of(f"{less} < {large}", "bool"), of(f"{less} < {less}", "bool"))
    assert equivalent(of("2.0", "i64", cast=True), of("2", "i64"))


# addresses ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_places_leave_neither_their_cell_nor_their_memory(seed: int) -> None:
    """Nor their slot, nor the bytes below the slots, and begin where they may, for every value of a loop's variable."""
    s, choose = tiny_matmul(), random.Random(seed)
    cells = replace(s.system.memories["ra"], capacity=1 << 20, align=64)  # neither counts in cells
    system = replace(s.system, memories={**s.system.memories, "ra": cells})
    s = replace(s, system=system, workspace=(Slot("C", "sp", 144, 16),))
    lg, isl, said = Legality(s), Isl(), Counter[str]()
    issue = next(n for n in distinct(s.call) if isinstance(n, Issue))
    for _ in range(120):
        last, cell = choose.randint(0, 3), choose.choice((None, None, 0, 1, 7, 8))
        memory = s.system.memories["sp" if cell is None else "ra"]
        v = Var("v", (bound(0),), (bound(last),), 1, Affine())
        strides = tuple(choose.choice((-16, -4, 0, 4, 16)) for _ in range(2))
        shape, steps = (tuple(choose.randint(1, n) for _ in range(2)) for n in (4, 2))
        base = "C" if cell is None and choose.random() < 0.4 else ""
        end = 64 if cell is not None else 144 if base else memory.capacity - 144
        offset = V("v", choose.choice((-16, -4, 0, 4, 16))) + choose.choice((0, 0, 4, 16, 48, end - 64, end - 16))
        place, align = Place(memory.name, base, offset, strides, cell), choose.choice((1, 4, 32))
        tile = Tile("C", (Affine(), Affine()), shape, steps)
        out = Findings()
        _address(Operand("C", tile, place, (0, 1)), lg, Context().with_var(v), isl, issue, out, align)
        bytes_ = [offset.evaluate({"v": n}) + sum(map(mul, strides, map(mul, steps, at))) for n in range(last + 1)
                  for at in product(*map(range, shape))]  # fmt: skip
        low, high = min(bytes_), max(bytes_) + 4
        want = set()
        if any(offset.evaluate({"v": n}) % (align if cell is not None else max(16, align)) for n in range(last + 1)):
            want.add("align")
        if cell is not None:
            assert memory.cells is not None
            if offset.terms and not 0 <= low < high <= 64:
                want.add("cell")
            low, high, end = low + 64 * cell, high + 64 * cell, 64 * memory.cells
        if not 0 <= low < high <= end:
            want.add("address")
        found = {x.kind for x in out.found}
        assert found - {"align"} == want - {"align"}
        assert found == want or (found > want and not last)  # a variable of one value is not known to be that
        assert {(x.obligation, x.kind) for x in out.found} <= {(9, "align"), (9, "cell"), (7, "address")}
        assert all(f"leaves '{base or memory.name}'" in x.message for x in out.found if x.kind == "address")
        said.update(want or {"inside"})
    assert min(said.values()) > 8
    assert len(said) == 4


def test_an_argument_is_where_the_caller_puts_it() -> None:
    """Nothing is known of its end; a home is aligned as its parts ask."""
    s = tiny_matmul()
    s = replace(s, system=replace(s.system, memories={**s.system.memories, "dram": replace(
        s.system.memories["dram"], align=64)}))  # fmt: skip
    lg, issue = Legality(s), next(n for n in distinct(s.call) if isinstance(n, Issue))
    tile = Tile("C", (Affine(), Affine()), (8, 8), (1, 1))
    for base, offset, align, want in (
        ("C", 1 << 21, 1, set()), ("C", 4, 4, set()), ("C", 4, 16, {"align"}), ("", 64, 1, set()),
        ("", 4, 1, {"align"}), ("", 1 << 21, 1, {"address"}),
    ):  # fmt: skip
        out, place = Findings(), Place("dram", base, Affine((), offset), (32, 4))
        _address(Operand("C", tile, place, (0, 1)), lg, Context(), Isl(), issue, out, align)
        assert {x.kind for x in out.found} == want


def test_what_is_kept_is_written_when_constants_are_bound() -> None:
    s = tiny_matmul()
    slots = (Slot("kept", "sp", 4096, bound=True), Slot("lost", "sp", 4096))
    issue = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.is_move)
    source, target = (o.name for o in issue.operands)
    for base, phase, name in product(("", "kept", "lost"), ("bind", "call"), (source, target)):
        operands = tuple(replace(o, place=replace(o.place, base=base)) if o.name == name else o for o in issue.operands)
        out = Findings()
        step = replace(issue, operands=operands)
        check_bounds(step, Legality(replace(s, workspace=slots)), Context(), Isl(), phase, out)
        wrong = [(v.obligation, v.kind) for v in out.found if "is kept from bind on" in v.message]
        assert wrong == [(8, "bind")] * ((base, phase, name) == ("kept", "call", target))


def test_what_is_known_of_one_tile_is_not_said_of_another() -> None:
    """Whatever was asked before in this context."""
    ctx, isl, issue = Context(), Isl(), next(n for n in distinct(tiny_matmul().call) if isinstance(n, Issue))
    asked = 0
    for start, n, step, full in product((-1, 0, 1, 2), (1, 2, 3, 4), (1, 2, 3), (1, 2, 3, 5, 8)):
        tile = Tile("C", (Affine.lift(start),), (n,), (step,))
        out, o = Findings(), Operand("C", tile, Place("sp", "", Affine(), (4,)), (0,))
        _tile(o, (Affine.lift(full),), ctx, isl, issue, out)
        assert bool(out.found) == (start < 0 or start + (n - 1) * step >= full)
        asked += bool(out.found)
    assert asked > 30


# what takes too long --------------------------------------------------------------------------------------------------
def test_what_takes_too_long_is_not_equal() -> None:
    k = "kernel k()\n  in x: f32[8]\n  in z: f32[8]\n  out y: f32[8]\n  forall i < 8\n    y[i] = x[i] + z[i]\n"
    assert equivalent(parse_kernel(k), parse_kernel(k.replace("x[i] + z[i]", "z[i] + x[i]")))

    def endless(*_: Any) -> bool:
        raise TooMuch("too many pieces")

    with pytest.MonkeyPatch.context() as m:
        m.setattr(Ring, "equal", endless)
        assert not equivalent(parse_kernel(k), parse_kernel(k.replace("+", "-")))


def test_exact_is_exact_whatever_else_is_permitted() -> None:
    k = parse_kernel("kernel k()\n  in x: f32[8]\n  out y: f32[8]\n  forall i < 8\n    y[i] = x[i]\n")
    for finite in ((), ("finite",)):
        always = {"exact", "integers", *finite}
        for permits in (("exact",), ("exact", "reassociate"), ()):
            assert granted_numerics(replace(k, permits=frozenset((*permits, *finite)))) == always
        free = granted_numerics(replace(k, permits=frozenset(("reassociate", *finite))))
        assert free == always | {"reassociates", "rounding"}
