"""Recurrent loops compared, by enumeration: no statement is overlooked, and what was there before a loop counts."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.proof import numbering
from isam.proof.equivalence import Equivalence, _Pair, equivalent
from isam.proof.execution import RECENT
from isam.proof.value import ONE, Value
from tests.unit.proof.pointwise import pairs, region, relation, ring

HEAD = """kernel k(T)
  permits {permits}
  in x: f32[T]
  in z: f32[2]
  inout g: f32
  out y: f32
"""
FIRST = {"0": lambda z: 0.0, "1": lambda z: 1.0, "z[0]": lambda z: z[0]}
EACH = {"h[] + x[t]": lambda h, x: h + x, "h[] * x[t]": lambda h, x: h * x, "x[t]": lambda h, x: x,
        "h[]": lambda h, x: h}  # fmt: skip


def looped(first: str, each: str) -> Kernel:
    return parse_kernel(f"{HEAD.format(permits='exact')}  temp h: f32\n  h[] = {first}\n  loop t < T\n"
                        f"    h[] = {each}\n  y[] = h[]\n")  # fmt: skip


def run(first: str, each: str) -> list[float]:
    """With several inputs, of no, one and three steps."""
    rng, out = random.Random(1), []
    for steps in (0, 1, 3):
        z = [rng.randint(2, 9) + 0.5, 1.25]
        h = FIRST[first](z)
        for _ in range(steps):
            h = EACH[each](h, rng.randint(2, 9))
        out.append(h)
    return out


@pytest.mark.parametrize("each", EACH)
def test_what_was_there_before_a_loop_counts(each: str) -> None:
    """Also where its steps do the same."""
    judge = Equivalence()
    for first, (other, then) in product(FIRST, product(FIRST, EACH)):
        verdict = judge.judge(looped(first, each), looped(other, then))
        if (first, each) == (other, then):
            assert verdict
        if run(first, each) != run(other, then):
            assert not verdict, (first, each, other, then)


STATEMENTS = """
  temp a: f32
  temp b: f32[2]
  a[] = z[0] + 1
  loop t < T
    a[] = a[] * x[t]
  b[0] = a[] + z[1]
  b[1] = z[0] * 2
  loop t < T
    g[] = g[] * b[0]
    loop u < 3
      b[1] = b[1] * g[]
    g[] = g[] - b[1]
  a[] = a[] * b[1]
  y[] = a[] + g[]
"""


STATED = HEAD.format(permits="exact") + STATEMENTS.lstrip("\n")


@pytest.mark.parametrize("line", [i for i, text in enumerate(STATED.split("\n")) if "] = " in text])
def test_every_statement_counts(line: int) -> None:
    """Before, in, between and behind loops: with one more in it, a kernel is another one."""
    lines = STATED.split("\n")
    lines[line] = lines[line].replace("= ", "= 1 + ")
    assert not equivalent(parse_kernel(STATED), parse_kernel("\n".join(lines)))


def test_a_kernel_of_many_loops_is_itself() -> None:
    assert equivalent(parse_kernel(STATED), parse_kernel(STATED))


LAID = """kernel k(T)
  permits {permits}
  in x: f32[T, 2]
  out y: f32
  temp m: f32[{n}]
  forall i < {n}
    m[i] = 1
  loop t < T
    {step}
  y[] = {out}
"""


def laid(n: int, step: str, out: str) -> Kernel:
    return parse_kernel(LAID.format(permits="reassociate", n=n, step=step.replace("\n", "\n    "), out=out))


def test_one_element_for_several_is_no_other_layout() -> None:
    """Two that begin alike and go on by themselves are not the one that has both their sums."""
    two = laid(2, "forall i < 2\n  m[i] += x[t, i]", "m[0] + m[1]")
    one, sums = (laid(1, "m[0] += x[t, 0]\nm[0] += x[t, 1]", out) for out in ("m[0]", "m[0] + 1"))
    for k in (one, sums):
        for other in (k, parse_kernel(str(k).replace("m[", "r[").replace("m:", "r:"))):
            assert bool(equivalent(one, other)) is (k is one)
            for a, b in ((two, other), (other, two)):
                assert not equivalent(a, b) or k is sums
    for out in ("0", "1"):  # nor is it one of them
        one = parse_kernel(str(laid(1, f"m[0] += x[t, {out}]", "m[0]")).replace("m[", "r[").replace("m:", "r:"))
        for k in range(2):
            said = equivalent(laid(2, "forall i < 2\n  m[i] += x[t, i]", f"m[{k}]"), one)
            assert not said or str(k) == out
    turned = laid(2, "forall i < 2\n  m[1 - i] += x[t, 1 - i]", "m[1] + m[0]")
    assert equivalent(two, turned)


TWO = """kernel k(T)
  in x: f32[T, 2]
  out y: f32
  temp a: f32[2]
  temp m: f32[2]
  a[0] = 0
  a[1] = 5
  m[0] = 0
  m[1] = 7
  loop t < T
    forall i < 2
      a[i] = a[i] * x[t, i]
    forall i < 2
      m[i] = m[i] + x[t, i]
  y[] = a[0] * a[1] + m[0] * m[1]
"""


def test_a_buffer_of_another_name_is_sought_among_all_that_hold_as_much() -> None:
    """One that begins alike in some elements only is not it."""
    k = parse_kernel(TWO)
    for new in "br":
        other = parse_kernel(TWO.replace("m[", f"{new}[").replace("m:", f"{new}:"))
        assert equivalent(k, other)
        assert equivalent(other, k)
        wrong = TWO.replace("= 7", "= 6").replace("m[", f"{new}[").replace("m:", f"{new}:")
        assert not equivalent(k, parse_kernel(wrong))


def test_another_layout_has_all_elements_of_the_first() -> None:
    r = ring()
    execution: Any = SimpleNamespace(operations=SimpleNamespace(numbers=SimpleNamespace(ring=r)))
    k = parse_kernel(TWO)
    pair = _Pair(execution, k, k)

    def value(elements: list[int]) -> Value:
        over = [(i,) for i in range(len(elements))]
        return Value(region(over, 1), {(0,): ((ONE, relation([((i,), (x,)) for i, x in enumerate(elements)], 1, 1)),)})

    for own, other in product(([0, 1], [0, 1, 2], [2], [0, 0]), ([0, 1], [1, 0], [0, 5], [0], [1], [0, 0], [2, 1, 0])):
        found = pair._path(value(own), value(other))
        same = [((i,), (j,)) for i, x in enumerate(own) for j, y in enumerate(other) if x == y]
        there = len({i for i, _ in same}) == len(same) and {j for _, (j,) in same} == {*range(len(other))}
        assert (found is not None) is there, (own, other)
        assert found is None or pairs(found) == same


def test_of_several_that_begin_alike_the_one_that_stays_so_is_found() -> None:
    text = TWO.replace("a[1] = 5", "a[1] = 7")
    for new in "br":
        other = text.replace("m[", f"{new}[").replace("m:", f"{new}:")
        for one, two in ((text, other), (other, text)):
            assert equivalent(parse_kernel(one), parse_kernel(two))
            assert not equivalent(parse_kernel(one), parse_kernel(two.replace("* m[1]", "* a[1]").replace(
                f"* {new}[1]", "* a[1]")))  # fmt: skip


COUNTED = """kernel k(T)
  in x: f32[T]
  inout g: f32
  out y: f32[T]
  temp m: f32[T]
  forall i < T
    m[i] = 0
  loop t < T
    {each}
  loop t < T
    y[t] = m[t]
"""


def test_a_loop_with_the_counter_of_another_finds_what_all_its_steps_left() -> None:
    """And what only one of the kernels has in its steps, though it leaves all as it is."""
    judge, loops = Equivalence(), ("m[t] = x[t]", "m[t] = x[t] + 1", "m[t] = x[t]\n    g[] = g[]", "m[t] = m[t]")
    for a, b in product(range(len(loops)), repeat=2):
        one, two = (parse_kernel(COUNTED.format(each=loops[k])) for k in (a, b))
        assert bool(judge.judge(one, two)) is (a == b or {a, b} == {0, 2}), (a, b)


def test_the_last_step_counts_and_a_name_of_another_shape_is_another() -> None:
    """A step that does something else; a temporary of one number or two."""
    k = parse_kernel(COUNTED.format(each="m[t] = x[t]").replace("< T\n    m[t]", "< 3\n    m[t]").replace("[T]", "[3]")
                     .replace("< T", "< 3"))  # fmt: skip
    for step in range(3):
        more = f"m[t] = x[t]\n    forall q < {step + 1} where q >= t, t >= {step}\n      g[] = x[q]"
        text = str(k).replace("m[t] = x[t]", more)
        assert more in text
        assert not equivalent(k, parse_kernel(text)), step
    one = COUNTED.replace("temp m", "temp h: f32\n  temp m").format(each="h[] = x[t]\n    m[t] = h[]")
    two = COUNTED.replace("temp m", "temp h: f32[2]\n  temp m").format(each="h[1] = x[t]\n    m[t] = h[1]")
    assert equivalent(parse_kernel(one), parse_kernel(two))


def test_other_loops_are_no_comparison() -> None:
    one, two = (parse_kernel(COUNTED.format(each=e)) for e in ("m[t] = x[t]", "loop u < T\n      m[t] = x[t]"))
    assert equivalent(one, two).why == ("the kernels have different recurrent loops",)
    k = parse_kernel(COUNTED.format(each="m[t] = x[t]"))
    assert equivalent(k, replace(k, body=k.body[:-1])).why == ("the kernels have different recurrent loops",)
    longer = parse_kernel(COUNTED.format(each="m[t] = x[t]").replace("y[t] = m[t]", "y[t] = m[t]\n  g[] = g[]"))
    assert equivalent(k, longer)


BETWEEN = """kernel k()
  in x: f32[2]
  in z: f32[2]
  out y: f32[2]
  out w: f32[2]
  temp a: f32[2]
  temp b: f32[2]
  forall i < 2
    a[i] = {first}
  forall i < 2
    b[i] = exp(a[i])
  forall i < 2
    b[i] = exp(b[i])
  forall i < 2
    y[i] = exp(b[i])
  forall i < 2
    w[i] = {last}
"""


def test_what_is_not_followed_is_told_where_something_differs() -> None:
    """A statement beyond what is numbered: the same in both, it stands in the way of nothing."""
    def made(first: str, last: str) -> Kernel:
        return parse_kernel(BETWEEN.format(first=first, last=last))

    with patch.object(numbering, "KNOWN", 1):
        k = made("x[i] + z[i]", "x[i] + z[i]")
        assert equivalent(k, made("x[i] + z[i]", "x[i] + z[i]"))
        assert equivalent(k, made("z[i] + x[i]", "z[i] + x[i]"))
        why = equivalent(k, made("z[i] + x[i]", "z[i] - x[i]")).why
        assert why == ("'w' was not shown to be the same", "y[i]: too many different arrays of 'exp f32'")


def test_equal_ends_are_left_out() -> None:
    """Of values that are equal the same is made, even where they are no longer recognised."""
    def made(text: str, least: int) -> Kernel:
        before = "".join(f"  forall i < 2\n    a[i] = x[i] * {n}\n" for n in range(least, least + RECENT))
        begin, end = BETWEEN.format(first=text, last="x[i]").split("  forall i < 2\n    a[i]")
        return parse_kernel(f"{begin}{before}  forall i < 2\n    a[i]{end}")

    with patch.object(numbering, "KNOWN", 1):
        assert equivalent(made("x[i] * 2 + z[i]", 10), made("z[i] + x[i] + x[i]", 20))


def test_what_is_claimed_is_tried_with_what_is_permitted() -> None:
    """A step that claims to need numerics is judged with those there are."""
    for dtype, permits in product(("f32", "i32"), ("exact", "reassociate", "finite", "reassociate, finite")):
        k = parse_kernel(f"kernel k()\n  permits {permits}\n  in x: {dtype}[8]\n  out y: {dtype}[8]\n"
                         "  forall i < 8\n    y[i] = x[i] * 3\n")  # fmt: skip
        for claims in ((), ("exact",), ("integers",), ("reassociates",), ("reassociates", "rounding", "finite")):
            assert Equivalence().judge(k, k, claims)


@pytest.mark.parametrize("permits", ["exact", "reassociate"])
def test_sums_of_as_many_as_a_size_says(permits: str) -> None:
    """Of equal terms, added in one order of axes or the other, and once more."""
    outs = "  out y: i32[4]\n  out w: f32[4]\n  out p: i32[4]\n"
    head = f"kernel k(N)\n  permits {permits}\n  in x: i32[4]\n  in z: f32[4]\n{outs}"
    body = "  forall i < 4\n    y[i] = 0\n    w[i] = 0\n    p[i] = 1\n  forall {}\n    p[i] *= x[i]\n"
    body += "  forall {}\n    y[i] += x[i]\n    w[i] += z[i]\n"
    one = parse_kernel(head + body.format(*["i < 4, j < N"] * 2))
    other = parse_kernel(head + body.format(*["j < N, i < 4"] * 2))
    more = parse_kernel(head + body.format(*["i < 4, j < N"] * 2) + "  forall i < 4\n    y[i] += x[i]\n")
    less, fewer = (parse_kernel(head + body.format(*x)) for x in (
        ("i < 4, j < N", "i < 4, j < 2 * N"), ("i < 4, j < 2 * N", "i < 4, j < N")))  # fmt: skip
    assert equivalent(one, other)
    assert not equivalent(one, more)
    assert not equivalent(one, less)
    assert not equivalent(one, fewer)


TWICE = """kernel k(T, M)
  in  a: f32[T, M]
  out y: f32[M]
  out z: f32[T, M]
  temp t: f32[M]
  temp u: f32[M]
  forall i < M
    y[i] = 0
    t[i] = 0
    u[i] = {start}
  loop s < T
    forall i < M
      t[i] = t[i] * 2
      u[i] = u[i] * {by}
      t[i] = t[i] + a[s, i]
      u[i] = u[i] + a[s, i]
      y[i] = y[i] + {read}[i]
      z[s, i] = t[i] * a[s, i]
"""


@pytest.mark.parametrize(("start", "by", "equal"), [(0, 2, True), (1, 2, False), (0, 3, False)])
def test_a_temporary_made_twice_in_a_loop_is_the_same_from_the_start_on(start: int, by: int, equal: bool) -> None:
    """Both begin alike, and each step makes of both the same."""
    two = parse_kernel(TWICE.format(start=start, by=by, read="u"))
    once = TWICE.format(start=start, by=by, read="t").splitlines(keepends=True)
    one = parse_kernel("".join(x for x in once if " u[" not in x and " u:" not in x))
    assert bool(equivalent(one, two)) == equal
    assert bool(equivalent(two, one)) == equal
