"""The kernel and the sizes that belong to a shape."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import isam
from isam.ir.sizes import with_constants

from .shapes import Case, Gemm, Shape


@cache
def sources() -> dict[str, Any]:
    """The kernels of ``kernels.isam`` by name."""
    path = Path(__file__).with_name("kernels.isam")
    return {k.name: k for k in isam.parse_file(path.read_text(encoding="utf-8"), path.name).kernels}


def kernel_of(shape: Shape, bound: bool = False) -> tuple[Any, dict[str, int]]:
    """The kernel of a shape and its sizes; ``bound``: the second factor of a product is constant."""
    if isinstance(shape, Case):
        return with_constants(sources()[shape.source], dict(shape.sizes))
    kind = "" if shape.kind == "f32" else f"_{shape.kind}"
    if isinstance(shape, Gemm):
        return sources()[f"product{kind}{'_bound' if bound else ''}"], {"M": shape.m, "N": shape.n, "K": shape.k}
    sizes = {"H": shape.out, "W": shape.out, "C": shape.channels, "K": shape.filters, "R": shape.taps, "S": shape.taps,
             "stride": shape.stride}  # fmt: skip
    sizes["over"] = shape.size + 2 * shape.pad - (shape.stride * (shape.out - 1) + shape.taps)
    several = "" if shape.batch == 1 else "s"
    sizes |= {"B": shape.batch} if several else {}
    if shape.pad:
        return with_constants(sources()[f"convolution{several}_padded{kind}"], {**sizes, "pad": shape.pad})
    return with_constants(sources()[f"convolution{several}{kind}"], sizes)
