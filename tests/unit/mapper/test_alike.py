"""Parts of a kernel that are the same but for names: looking at one of each kind finds what looking at all finds."""

from __future__ import annotations

from dataclasses import fields

import pytest

import isam
from benchmarks.mapping import independent
from isam.ir.dataflow import order_of
from isam.ir.normal import normal_form
from isam.ir.text import parse, parse_instruction
from isam.mapper import alike
from isam.mapper.alike import kinds, parts
from isam.mapper.candidates import gather
from isam.mapper.pricing import Pricing

MM = parse_instruction("""instruction mm(M, N, K)
  in    A: f32[M, K]
  in    B: f32[K, N]
  inout C: f32[M, N]
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
""")
BOTH = parse_instruction("""instruction both(N)
  in  A: f32[N]
  out B: f32[N]
  out C: f32[N]
  forall i < N
    B[i] = A[i] * 2
    C[i] = A[i] + 1
""")
ADD = parse_instruction("""instruction add(N)
  in  A: f32[N]
  in  B: f32[N]
  out D: f32[N]
  forall i < N
    D[i] = A[i] + B[i]
""")


def kernel(head: list[str], line: str, times: int = 5, last: str = ""):
    """``line`` again and again, ``#`` in it the number; ``last`` in the place of the last one."""
    text = ["kernel k()", *(f"  {h}" for h in head)]
    text += [f"  inout y{n}: f32[8, 8]\n  in a{n}: f32[8, 8]" for n in range(times)]
    lines = [line] * (times - 1) + [last or line]
    return parse("\n".join([*text, *(s.replace("#", str(n)) for n, s in enumerate(lines))]) + "\n")


SUM = "  forall i < 8, j < 8\n    y#[i, j] = a#[i, j] + s[i, j]"
PRODUCT = "  forall i < 8, j < 8, k < 8\n    y#[i, j] += a#[i, k] * s[k, j]"
SHARED = ["in s: f32[8, 8]"]


def found(k, instructions):
    order = order_of(k.statements)
    made = gather(k, instructions, order, Pricing(k))
    return {(named(c.mapping), c.mask, c.price) for c in made.candidates}, set(map(str, made.refused)), made.cut


def named(m):
    """Everything that a mapping says, with the instruction by its name."""
    return m.instruction.name, *(getattr(m, f.name) for f in fields(m) if f.name != "instruction")


@pytest.mark.parametrize("machine", ["toy", "host", "blas"])
def test_nothing_is_found_otherwise_than_one_by_one(machine, monkeypatch):
    instructions = list(isam.load_system(machine).instructions.values())
    k = normal_form(independent(24).with_sizes({"M": 8, "N": 16, "K": 4}))
    assert len(kinds(k)[0]) == 2
    quick = found(k, instructions)
    assert len(quick[0]) >= 24
    monkeypatch.setattr(alike, "MANY", 1000)
    assert kinds(k)[0] == []
    assert found(k, instructions) == quick


def test_names_of_buffers_and_their_order_do_not_count():
    k = kernel(SHARED, SUM)
    (kind,), rest = kinds(k)
    assert (kind.first, len(kind.others), rest) == ((0,), 4, ())
    assert kind.others[2] == ({0: 3}, {"y0": "y3", "a0": "a3", "s": "s"})


@pytest.mark.parametrize(
    ("what", "last"),
    [
        ("an operation", SUM.replace("+", "*")),
        ("an axis", SUM.replace("j < 8", "j < 7")),
        ("a condition", SUM.replace("j < 8", "j < 8 where i <= j")),
        ("a place", SUM.replace("s[i, j]", "s[j, i]")),
        ("one buffer for two", SUM.replace("s[i, j]", "a#[i, j]")),
        ("a role", SUM.replace("a#", "c")),
        ("a shape", SUM.replace("a#", "w")),
        ("a number", SUM.replace("s[i, j]", "2")),
        ("an accumulation", SUM.replace("=", "+=")),
        ("a loop around it", "  loop t < 3\n  " + SUM.replace("\n", "\n  ")),
    ],
)
def test_what_differs_is_another_kind(what, last):
    k = kernel([*SHARED, "const c: f32[8, 8]", "in w: f32[8, 9]"], SUM, last=last)
    (kind,), rest = kinds(k)
    assert kind.first == (0,)
    assert len(kind.others) == 3
    assert rest == (4,) or len(k.statements) > 5


def test_what_is_written_joins_and_what_is_read_does_not():
    assert parts(kernel(SHARED, SUM)) == [(0,), (1,), (2,), (3,), (4,)]
    assert parts(kernel(SHARED, SUM, last=SUM.replace("s[i, j]", "y1[i, j]"))) == [(0,), (1, 4), (2,), (3,)]
    assert len(parts(kernel(["inout s: f32[8, 8]"], SUM, last=SUM.replace("y#", "s")))) == 1
    assert parts(kernel(SHARED, PRODUCT))[0] == (0, 1)  # by the product's temporary


def test_an_instruction_of_two_things_finds_them_in_different_parts(monkeypatch):
    head = ["in a: f32[8]", *(f"out {x}{n}: f32[8]" for n in range(5) for x in "bc")]
    body = [f"  forall i < 8\n    b{n}[i] = a[i] * 2\n    c{n}[i] = a[i] + 1" for n in range(5)]
    k = parse("\n".join(["kernel k()", *(f"  {h}" for h in head), *body]) + "\n")
    assert [len(kind.others) for kind in kinds(k)[0]] == [4, 4]
    quick = found(k, [BOTH, ADD])
    monkeypatch.setattr(alike, "MANY", 1000)
    assert found(k, [BOTH, ADD]) == quick
    assert sum(c[1].bit_count() == 2 for c in quick[0]) == 25


def test_products_beside_one_that_is_different(monkeypatch):
    k = kernel(SHARED, PRODUCT, last=PRODUCT.replace("a#[i, k]", "a#[k, i]"))
    quick = found(k, [MM])
    assert len({c[1] for c in quick[0]}) == 5
    monkeypatch.setattr(alike, "MANY", 1000)
    assert found(k, [MM]) == quick


def test_conditions_on_open_sizes_are_those_of_every_part():
    text = ["kernel k(T)", "  in s: f32[T]"]
    text += [f"  inout y{n}: f32[T]\n  in a{n}: f32[T]" for n in range(5)]
    text += [f"  forall i < T\n    y{n}[i] = a{n}[i] + s[i]" for n in range(5)]
    k = parse("\n".join(text) + "\n")
    eights = parse_instruction(str(ADD).replace("add(N)", "eights(N == 8)"))
    made = gather(k, [eights, ADD], order_of(k.statements), Pricing(k)).candidates
    assert len({c.mask for c in made}) == 5
    told = {(c.mapping.instruction.name, *map(str, c.mapping.conditions)) for c in made}
    assert told == {("add",), ("eights", "T % 8 == 0")}
