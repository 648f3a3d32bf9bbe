"""What two kernels have at their beginning and end alike is left out, and no more."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from isam.ir.kernel import Item, Kernel, Recurrence, Statement
from isam.ir.text import parse_kernel
from isam.proof.local import between

HEAD = "kernel k()\n  in x: f32[4]\n  inout y: f32[4]\n  out z: f32[4]\n  temp s: f32[4]\n  temp t: f32[{}]\n"
ITEMS = [
    "forall i < 4\n    s[i] = x[i]", "forall i < 4\n    t[i] = s[i]", "forall i < 4\n    y[i] = t[i] + s[i]",
    "loop q < 2\n    forall i < 4\n      s[i] = s[i] + x[q]", "forall i < 4\n    z[i] = y[i]",
    "loop q < 2\n    loop r < 2\n      t[q] = x[r]", "forall i < 4\n    y[i] = x[i]",
]  # fmt: skip


def made(items: list[str], wide: int) -> Kernel:
    return parse_kernel(HEAD.format(wide) + "".join(f"  {x}\n" for x in items))


def statements(items: tuple[Item, ...]) -> list[Statement]:
    return [s for it in items for s in (statements(it.body) if isinstance(it, Recurrence) else [it])]


@pytest.mark.parametrize("seed", range(2))
def test_what_stands_between(seed: int) -> None:
    rng, said = random.Random(seed), Counter[str]()
    for _ in range(120):
        first, last, one, two = ([rng.choice(ITEMS) for _ in range(rng.choice((0, 0, 1, 2)))] for _ in range(4))
        wide = rng.choice((4, 4, 5))
        a, b = made(first + one + last, 4), made(first + two + last, wide)
        alike = {n for n in ("x", "y", "z", "s", "t") if n != "t" or wide == 4}

        def same(x: Item, y: Item, alike: set[str] = alike) -> bool:
            named = {r.buffer for s in statements((x,)) for r in (s.dest, *s.reads)}
            return x == y and named <= alike

        begin = 0
        while begin < min(len(a.body), len(b.body)) and same(a.body[begin], b.body[begin]):
            begin += 1
        end = 0
        while end < min(len(a.body), len(b.body)) - begin and same(a.body[-1 - end], b.body[-1 - end]):
            end += 1
        found = between(a, b)
        said["none" if found is None else "begin" if not end else "end" if not begin else "both"] += 1
        if not begin + end:
            assert found is None
            continue
        assert found is not None
        assert found[0].body == a.body[begin : len(a.body) - end]
        assert found[1].body == b.body[begin : len(b.body) - end]
        rest = statements(a.body[len(a.body) - end :])
        assert found[2] == {"y", "z"} | {r.buffer for s in rest for r in s.reads}
    assert min(said.values()) > 5, said
    assert len(said) == 4


def test_a_statement_of_all_buffers_is_left_out() -> None:
    k = parse_kernel("kernel k()\n  in x: f32[4]\n  out y: f32[4]\n  forall i < 4\n    y[i] = x[i]\n")
    found = between(k, k)
    assert found is not None
    assert found[0].body == found[1].body == ()
    assert found[2] == {"y"}
