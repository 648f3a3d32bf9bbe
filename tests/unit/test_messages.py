"""What a reader was told and could not use: each message says where to look and what to write."""

from __future__ import annotations

import random

import pytest

from isam.compiler import Refused
from isam.diagnostics import IsamError
from isam.ir.text import parse_kernel, print_kernel
from isam.system.load import parse_system
from isam.system.units import QuantityError, parse_quantity
from tests.pipeline import compiled
from tests.property.test_small_memories import in_bytes

CENTER = """kernel center(M, N)
  in   x: f32[M, N]
  out  y: f32[M, N]
  temp s: f32[M]
  forall i < M
    s[i] = 0
  forall i < M, j < N
    s[i] += x[i, j]
  forall i < M, j < N
    y[i, j] = x[i, j] - s[i]
"""


def test_only_pointwise_statements_are_printed_under_one_forall():
    assert print_kernel(parse_kernel(CENTER)) == CENTER
    joined = CENTER.replace("  forall i < M, j < N\n    y", "    y")
    assert print_kernel(parse_kernel(joined)) == CENTER


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("y[i] = x[i]", "z[i] = y[i]", True),
        ("y[i] = x[i]", "z[i] = x[i]", True),
        ("y[i] = x[i]", "z[i] = y[0]", False),
        ("y[i] = x[0]", "x[i] = z[i]", False),
        ("y[0] += x[i]", "z[i] = y[0]", False),
        ("y[0] += x[i]", "z[i] = x[i]", True),
        ("y[i] = x[i]", "y[i] += z[i]", True),
    ],
)
def test_statements_that_meet_elsewhere_have_their_own(first, second, together):
    head = "kernel k(N)\n  inout x: f32[N]\n  inout y: f32[N]\n  inout z: f32[N]\n"
    text = f"{head}  forall i < N\n    {first}\n    {second}\n"
    printed = print_kernel(parse_kernel(text))
    assert printed.count("forall") == (1 if together else 2)
    assert parse_kernel(printed) == parse_kernel(text)


def test_the_memory_that_is_short_is_pointed_at():
    system = parse_system(SHORT, "short.yaml")
    with pytest.raises(Refused) as no:
        compiled(parse_kernel("kernel k(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = -x[i]\n"),
                 {"N": 8}, system)  # fmt: skip
    kernel, memory = no.value.diagnostics
    assert kernel.message.startswith("no schedule: memory 'r'")
    assert (memory.loc.file, memory.loc.line) == ("short.yaml", 5)
    assert memory.message == "this is what memory 'r' has"


SHORT = """isam: 1
system: short
memories:
  ram: {kind: managed, capacity: 1 MiB, home: true}
  r:   {kind: managed, capacity: 8 B, align: 8 B}
units:
  u: {runs: ["*"], clock: 1 GHz}
moves:
  - {from: ram, to: r, by: copy, issuer: u, both_ways: true}
instructions:
  neg:
    body: |
      instruction neg(N <= 4)
        in  A: f32[N]
        out D: f32[N]
        forall i < N
          D[i] = -A[i]
    homes: [r]
  copy:
    body: |
      instruction copy(N)
        in  A: any[N]
        out D: any[N]
        forall i < N
          D[i] = A[i]
"""


@pytest.mark.parametrize(("given", "meant"), [("64 kb", "KiB"), ("1 mb", "MiB"), ("2 GIB", "GiB"), ("3 b", "B")])
def test_the_unit_that_memories_have_is_suggested(given, meant):
    with pytest.raises(QuantityError) as e:
        parse_quantity(given, "bytes")
    assert e.value.hint == f"did you mean '{meant}'?"


def test_a_file_indented_with_tabs_is_told_so_once():
    with pytest.raises(IsamError) as e:
        parse_kernel(CENTER.replace("  ", "\t"))
    assert [d.code for d in e.value.diagnostics] == ["L104"]


def test_what_the_instruction_goes_on_to_do_is_written_out():
    kernel = parse_kernel("kernel k(N)\n  in a: f32[N]\n  in b: f32[N]\n  out y: f32[N]\n  forall i < N\n"
                          "    y[i] = a[i] * b[i]\n")  # fmt: skip
    fused = SHORT.replace("D[i] = -A[i]", "D[i] = A[i] * A[i] + A[i]").replace("capacity: 8 B", "capacity: 1 KiB")
    with pytest.raises(Refused, match="needs to go on in the same call, with D"):
        compiled(kernel, {"N": 8}, parse_system(fused.replace("A[i] * A[i]", "A[i] * 2 * A[i]")))


def test_victims_print_as_tiles():
    job = compiled(parse_kernel(CENTER), {"M": 3, "N": 200}, in_bytes(random.Random(4)))
    victims = [d.label for d in job.trace.decisions if d.point == "victim"]
    assert victims
    assert all(v.split(" in ")[1] in ("ra", "rb", "sp") for v in victims)
