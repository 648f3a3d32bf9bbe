"""What was found for an unchanged statement is taken over, and is what would be found anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.dataflow import order_of
from isam.ir.kernel import Kernel
from isam.ir.text import parse
from isam.mapper.candidates import Gathered, gather
from isam.mapper.pricing import Pricing
from isam.mapper.recalled import follow
from isam.system.load import load_system

SHORT = """
kernel one(N=24)
  in  x: f32[N]
  in  z: f32[N]
  out y: f32[N]
  temp t: f32[N]
  forall i < N
    t[i] = x[i] * z[i]
  forall i < N
    y[i] = t[i] + x[i]
"""
LONG = SHORT.replace("  forall i < N\n    t[i]", "  temp u: f32[N]\n  forall i < N\n    u[i] = exp(x[i])\n"
                     "  forall i < N\n    t[i]", 1).replace("t[i] + x[i]", "t[i] + u[i]")  # fmt: skip
WIDER = SHORT.replace("out y: f32[N]", "out y: f32[N + 8]")


def gathered(kernel: Kernel) -> Gathered:
    instructions = load_system("host-avx512").compute
    return gather(kernel, instructions, order_of(kernel.statements), Pricing(kernel))


@pytest.mark.parametrize("text", [SHORT, LONG, WIDER, SHORT.replace("x[i] * z", "z[i] * z"),
                                  SHORT.replace("f32", "f64"), SHORT.replace("in  x", "const x")])  # fmt: skip
def test_what_is_taken_over_is_what_would_be_found(text):
    first, kernel = parse(SHORT), parse(text)
    gathered(first)
    fresh = gathered(replace(kernel))
    follow(kernel, first)
    assert gathered(kernel) == fresh
    assert fresh.candidates


def test_unchanged_statements_are_not_matched_again(monkeypatch):
    import isam.mapper

    first, kernel = parse(SHORT), parse(LONG)
    gathered(first)
    asked, real = [], isam.mapper.match

    def match(kernel, instruction, **options):
        asked.append(options["region"])
        return real(kernel, instruction, **options)

    monkeypatch.setattr(isam.mapper, "match", match)
    follow(kernel, first)
    gathered(kernel)
    alone = [r for r in asked if r is not None]
    assert (0,) in alone
    assert (1,) not in alone  # t[i] = x[i] * z[i], which stood first before
