"""Loops over a size and the same loops in parts, compared by value: what is equal is accepted, what is not is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from isam.ir.kernel import Item, Kernel, Recurrence, Sym, recurrences
from isam.ir.text import parse, parse_kernel
from isam.proof.equivalence import equivalent
from isam.proof.parted import parted

HEAD = """  in x: f32[T, 3]
  in w: f32[3, 3]
  inout h: f32[3]
  out ys: f32[T, 3]
"""
STEP = """
forall j < 3
  {a}[j] = 0
forall j < 3, k < 3
  {a}[j] += x[{t}, k] * w[k, j]
forall j < 3
  h[j] = tanh({a}[j] + h[j])
  ys[{t}, j] = h[j]
"""


def step(indent: int, t: str, a: str = "a") -> str:
    return STEP.format(t=t, a=a).replace("\n", "\n" + " " * indent).rstrip()


WRITTEN = f"kernel k(T)\n{HEAD}  loop t < T{step(4, 't')}\n"
PARTS = f"""kernel k(T, Q = T // 4)
{HEAD}  loop c < Q
    loop s < 4{step(6, "4*c + s")}
  loop r < T - 4*Q{step(4, "4*Q + r", "b")}
"""
AHEAD = f"""kernel k(T, Q = T // 4)
{HEAD}  loop c < Q
    forall s < 4, j < 3
      p[s, j] = 0
    forall s < 4, j < 3, k < 3
      p[s, j] += x[4*c + s, k] * w[k, j]
    loop s < 4
      forall j < 3
        h[j] = tanh(p[s, j] + h[j])
        ys[4*c + s, j] = h[j]
  loop r < T - 4*Q{step(4, "4*Q + r", "b")}
"""


@pytest.mark.parametrize("text", [PARTS, AHEAD], ids=["in parts", "products of a part ahead"])
def test_the_same_steps_in_parts_are_the_same(text: str) -> None:
    assert equivalent(parse(WRITTEN), parse(text))


@pytest.mark.parametrize(("old", "new"), [
    ("x[4*Q + r", "x[4*Q"), ("x[4*Q + r", "x[r"), ("ys[4*Q + r", "ys[r"), ("T - 4*Q", "0"), ("T - 4*Q", "T"),
    ("x[4*c + s", "x[4*c"), ("x[4*c + s", "x[c + s"), ("ys[4*c + s", "ys[4*c"), ("p[s, j] + h", "p[0, j] + h"),
    ("T // 4", "T // 5"), ("T // 4", "T // 3"), ("(T, Q = T // 4)", "(T, Q)"), ("c < Q", "c < T"),
])  # fmt: skip
def test_other_steps_are_not(old: str, new: str) -> None:
    assert old in AHEAD
    assert not equivalent(parse(WRITTEN), parse(AHEAD.replace(old, new)))


def test_what_is_handed_from_a_part_to_what_is_left_over_is_followed() -> None:
    written = "kernel k(T)\n  in x: f32[T]\n  inout h: f32\n  loop t < T\n    h[] = h[] * 2 + x[t]\n"
    parts = """kernel k(T, Q = T // 4)
  in x: f32[T]
  inout h: f32
  loop c < Q
    loop s < 4
      h[] = h[] * 2 + x[4*c + s]
  loop r < T - 4*Q
    h[] = {} * 2 + x[4*Q + r]
"""
    assert equivalent(parse(written), parse(parts.format("h[]")))
    assert not equivalent(parse(written), parse(parts.format("x[r]")))


# the loops themselves -------------------------------------------------------------------------------------------------
TWO = """kernel k(S, T{size})
  in x: f32[T, T]
  inout h: f32[T]
  inout g: f32[S]
{loops}
"""
LOOPS = """  loop u < S
    g[u] = g[u] + 1
  loop v < 3
    loop t < T
      h[t] = h[t] * 2 + x[v, t]
  loop w < T
    h[w] = h[w] + x[w, 0]"""
IN_PARTS = """  loop u < S
    g[u] = g[u] + 1
  loop v < 3
    loop c < Q
      loop e < 3
        g[0] = 1
      loop s < 4
        h[4*c + s] = x[v, s]
    loop r < T - 4*Q
      h[4*Q + r] = x[v, r]
  loop d < Q
    loop f < 4
      h[4*d + f] = x[f, 0]
  loop p < T - 4*Q
    h[4*Q + p] = x[p, 0]"""


def steps(items: tuple[Item, ...], env: dict[str, int]) -> Iterator[tuple[str, list[tuple[str, list[int]]]]]:
    """What is done in turn: the operation, and the elements that it touches."""
    for it in items:
        if isinstance(it, Recurrence):
            for n in range(it.axis.extent.evaluate(env)):
                yield from steps(it.body, {**env, it.axis.name: n})
        else:
            yield it.op, [(a.buffer, [r.evaluate(env) for r in a.index]) for a in (it.dest, *it.reads)]


def cut(old: str = "", new: str = "") -> Kernel:
    assert old in IN_PARTS
    return parse_kernel(TWO.format(size=", Q = T // 4", loops=IN_PARTS.replace(old, new)))


@pytest.mark.parametrize(("like", "names"), [
    (cut(), ["u", "v", "c", "s", "r", "d", "f", "p"]),
    (cut("s < 4", "s < 5"), ["u", "v", "d", "f", "p", "w"]),  # no loop over the steps of a part
    (cut("e < 3", "e < 4"), ["u", "v", "d", "f", "p", "w"]),  # two of them
    (cut("loop p < T - 4*Q", "loop p < T"), ["u", "v", "c", "s", "r", "w"]),
    (cut("loop d < Q", "loop d < T"), ["u", "v", "c", "s", "r", "w"]),
])  # fmt: skip
def test_loops_over_a_size_are_the_same_steps_in_parts(like: Kernel, names: list[str]) -> None:
    """Of that size and no other, in turn, as they are called there."""
    plain = parse_kernel(TWO.format(size="", loops=LOOPS))
    made = parted(plain, like)
    assert [n.name for n in made.syms] == ["S", "T", "Q"]
    assert [r.axis.name for r in recurrences(made.body)] == names
    for n in range(10):
        env = {"S": 2, "T": n, "Q": n // 4}
        assert list(steps(made.body, env)) == list(steps(plain.body, env))


def test_what_is_no_number_of_whole_parts_is_left() -> None:
    """A size that says more of itself than follows, one of a size that is not there."""
    plain, like = parse_kernel(TWO.format(size="", loops=LOOPS)), cut()
    q = like.syms[-1]
    assert parted(plain, like) != plain
    for other in (replace(q, lo=1), replace(q, hi=7), replace(q, multiple_of=2), Sym.times("Q", Sym("Z"), 4)):
        assert parted(plain, replace(like, syms=(*like.syms[:-1], other))) == plain
    assert parted(plain, replace(like, syms=like.syms[:-1])) == plain


# loops of a known number of steps -------------------------------------------------------------------------------------
KNOWN = """kernel k()
  inout g: f32[5]
  inout h: f32[6, 4]
  loop u < 6
    loop v < 4
      h[u, v] = h[u, v] * 2
  g[1] = 3
  loop w < 5
    g[w] = g[w] + 1
"""
IN_BLOCKS = """kernel k()
  inout g: f32[5]
  inout h: f32[6, 4]
  loop c < 3
    g[0] = 1
    loop s < 2
      loop d < 2
        loop e < 2
          h[c + s, d + e] = 1
  loop w < 5
    g[w] = 4
"""


@pytest.mark.parametrize(("old", "new", "names"), [
    ("loop c", "loop c", ["c", "s", "d", "e", "w"]),
    ("loop d < 2", "loop d < 1", ["c", "s", "v", "w"]),
    ("loop s < 2", "loop s < 1", ["u", "v", "w"]),
    ("g[0] = 1", "loop x < 1\n      g[0] = 1", ["u", "v", "w"]),  # which of two loops is over a block, nothing says
    ("  loop w < 5\n    g[w] = 4\n", "  g[0] = 4\n", ["u", "v", "w"]),
])  # fmt: skip
def test_loops_of_a_known_number_of_steps_are_the_same_steps_in_blocks(old: str, new: str, names: list[str]) -> None:
    plain = parse_kernel(KNOWN)
    made = parted(plain, parse_kernel(IN_BLOCKS.replace(old, new, 1)))
    assert [r.axis.name for r in recurrences(made.body)] == names
    assert list(steps(made.body, {})) == list(steps(plain.body, {}))
    assert (made is plain) == ("c" not in names)


def test_a_counter_of_blocks_takes_no_name_of_an_axis() -> None:
    """``y[2*c + s, s]`` of an axis ``s`` is not what a loop over steps ``s`` writes."""
    written = "kernel k()\n  inout y: f32[4, 2]\n  loop t < 4\n    forall s < 2\n      y[t, s] = 1\n"
    other = ("kernel k()\n  inout y: f32[4, 2]\n  loop c < 2\n    loop s < 2\n      forall j < 2\n"
             "        y[2*c + {}, j] = 1\n")  # fmt: skip
    assert not equivalent(parse(written), parse(other.format("j")))
    assert equivalent(parse(written.replace("s", "r")), parse(other.format("s")))
