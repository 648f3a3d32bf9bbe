"""What ISAM is compared with: one module per library, all of them listed here.

A library that is not installed is absent: it is imported when it is first asked for something, and the results say that
it was not there. Everything runs on one thread. Whether a result is right is judged elsewhere (``measure``), the same
way for all.
"""

from __future__ import annotations

from functools import cache

from ..shapes import Shape
from . import jax, libxsmm, mkl, onednn, onnxruntime, openvino, torch
from . import numpy as blas
from . import scipy as lapack
from .library import Form, Given, Library

__all__ = ["LIBRARIES", "Form", "Given", "Library", "absent", "library_of", "of", "present", "printed", "versions"]

LIBRARIES: tuple[Library, ...] = tuple(m.LIBRARY for m in (
    blas, lapack, mkl, onednn, torch, onnxruntime, openvino, jax, libxsmm))  # fmt: skip


@cache
def version(library: Library) -> str | None:
    """Which version is there; None where the library is absent."""
    try:
        return library.version()
    except ImportError:
        return None


def present() -> list[Library]:
    return [x for x in LIBRARIES if version(x) is not None]


def absent() -> list[str]:
    """Names of the libraries that are not there."""
    return [x.name for x in LIBRARIES if version(x) is None]


def of(shape: Shape, given: Given) -> dict[str, Form]:
    """Every form of every library that is there, by the library's name and its own."""
    return {f"{x.name} {n}".strip(): form for x in present() for n, form in x.of(shape, given).items()}


def library_of(name: str) -> Library | None:
    """Whose form that is; None: ours."""
    return next((x for x in LIBRARIES if x.name == name.partition(" ")[0]), None)


def printed(name: str) -> str:
    """How a library's name, or that of one of its forms, is printed; what is none of them stays as it is."""
    library = library_of(name)
    return library.printed if library else name


def versions() -> dict[str, str]:
    """Of everything that runs."""
    import llvmlite.binding as llvm

    import isam

    out = {"isam": isam.__version__, "llvm": ".".join(map(str, llvm.llvm_version_info))}
    return out | {x.name: v for x in LIBRARIES if (v := version(x))}
