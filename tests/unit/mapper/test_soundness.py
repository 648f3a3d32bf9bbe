"""Every mapping the mapper returns is carried out block by block and must give what the kernel gives (MAP-9)."""

from __future__ import annotations

import zlib

import pytest

from isam.ir.text import parse_instruction
from isam.mapper import match
from tests.blocks import initial, run_kernel, run_mapped, visible
from tests.unit.mapper.catalogue import KERNELS, instruction, instruction_names, kernel, named

SIZES = {"M": 4, "N": 2, "K": 2, "C": 2, "H": 3, "W": 2, "R": 2, "S": 2, "T": 3, "B": 2}


@pytest.mark.parametrize("name", KERNELS)
def test_blocks_of_calls_give_what_the_kernel_gives(name: str):
    kernel = named(name).with_sizes(SIZES)
    want = run_kernel(kernel, initial(kernel, 1))
    tried = 0
    for i in instruction_names():
        for strided in (False, True):
            for mapping in match(kernel, instruction(i), strided=strided) or ():
                seed = zlib.crc32(str(mapping).encode())
                got = run_mapped(kernel, mapping, initial(kernel, 1), seed)
                assert visible(kernel, mapping, got) == visible(kernel, mapping, want), str(mapping)
                tried += 1
    assert tried


def test_a_region_with_statements_between_beside_a_recurrent_loop():
    k = kernel("k()\n in x: f32[2, 3]\n out y: f32[2]\n inout h: f32[2]\n forall i < 2\n  y[i] = 0\n"
               " forall i < 2, j < 3\n  t[i, j] = exp(x[i, j])\n  y[i] += t[i, j]\n"
               " loop n < 2\n  forall i < 2\n   h[i] = tanh(h[i])")  # fmt: skip
    sums = parse_instruction("instruction sums(N)\n  in A: f32[N]\n  out d: f32\n  d[] = 0\n  forall j < N\n"
                             "    d[] += A[j]\n")  # fmt: skip
    (m,) = match(k, sums)
    assert m.statements == (0, 2)
    want, got = run_kernel(k, initial(k, 1)), run_mapped(k, m, initial(k, 1), 1)
    assert visible(k, m, got) == visible(k, m, want)
