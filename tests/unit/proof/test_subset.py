"""Functions that are compiled do what Python does with them; what is outside the subset is refused."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from isam.classes import dataclass
from isam.proof import flat_walk
from isam.proof.flat_program import ARRAYS
from isam.proof.subset import Compiled, Outside, module_text

KINDS = {"a": "int64", "b": "int32", "c": "uint8"}
FACTOR = 3


@dataclass(slots=True)
class Memory:
    a: Any
    b: Any
    c: Any


def divided(m: Memory, x: int, y: int) -> int:
    """Downwards, for every combination of signs."""
    return x // y * 1000 + x % y


def chosen(m: Memory, x: int) -> int:
    if (x > 5 and m.a[x % 8] > 0) or not (x % 2 and x < 9):
        x = -x
    elif x < -20 or x == 4:
        x += FACTOR
    else:
        x = min(x, 7) if m.b[1] >= 0 else max(x, -7)
    return x


def counted(m: Memory, n: int) -> int:
    total = 0
    for i in range(n):
        if i % 3 == 1:
            continue
        for j in range(i, n):
            total += m.c[(i + j) % 8] | (j != i)
        i += 100
        total -= i
    while total > 50:
        total -= 17
        if total % 5 == 0:
            return total
    return total


def all_of_it(m: Memory) -> int:
    for i in range(8):
        m.a[i] = divided(m, m.a[i], m.b[i])
        m.b[i] = chosen(m, m.b[i]) & 0
        m.c[i] = (m.c[i] + counted(m, i)) & 255
        m.a[i] += chosen(m, i - 4) - counted(m, i) * 7 + (m.a[0] <= m.a[i])
    chosen(m, 1)
    return m.a[7]


@pytest.mark.parametrize("seed", range(20))
def test_the_same_numbers(seed):
    choose = random.Random(seed)
    one = Memory(np.array([choose.randint(-99, 99) for _ in range(8)], np.int64),
                 np.array([choose.choice((-1, 1)) * choose.randint(1, 9) for _ in range(8)], np.int32),
                 np.array([choose.randint(0, 20) for _ in range(8)], np.uint8))  # fmt: skip
    two = Memory(one.a.copy(), one.b.copy(), one.c.copy())
    wide = Memory(one.a.tolist(), one.b.tolist(), one.c.tolist())  # Python's own numbers
    got = Compiled((divided, chosen, counted, all_of_it), KINDS)(two)
    assert got == all_of_it(wide)
    assert two.a.tolist() == wide.a
    assert two.b.tolist() == wide.b
    assert two.c.tolist() == wide.c


def power(m: Memory) -> int:
    return m.a[0] ** 2


def strided(m: Memory) -> int:
    for i in range(0, 8, 2):
        m.a[i] = 0
    return 0


def between(m: Memory) -> int:
    return 1 < m.a[0] < 3


def member(m: Memory) -> int:
    return m.a[0] in (1, 2)


def fraction(m: Memory) -> int:
    return m.a[0] / 2  # type: ignore[return-value]


def foreign(m: Memory) -> int:
    return abs(m.a[0])


def truth(m: Memory) -> int:
    return True


def other_field(m: Memory) -> int:
    return m.d[0]  # type: ignore[attr-defined]


def shadowed(m: Memory) -> int:
    FACTOR = m.a[0]
    return FACTOR + 1


@pytest.mark.parametrize("f", [power, strided, between, member, fraction, foreign, truth, other_field, shadowed])
def test_outside(f):
    with pytest.raises(Outside):
        module_text((f,), KINDS)


def test_arrays_of_another_type_are_refused():
    compiled = Compiled((divided, chosen, counted, all_of_it), KINDS)
    ones = np.ones(8, np.int64)
    with pytest.raises(AssertionError):
        compiled(Memory(ones, ones, np.ones(8, np.uint8)))
    with pytest.raises(AssertionError):
        compiled(Memory(np.ones(16, np.int64)[::2], np.ones(8, np.int32), np.ones(8, np.uint8)))


def test_every_array_of_the_walk_has_a_type():
    assert list(ARRAYS) == list(flat_walk.Memory.__dataclass_fields__)
    assert "@walk(" in module_text(flat_walk.FUNCTIONS, ARRAYS)
