"""Literals that an instruction reads from memory: buffers of one element, named by their dtype and value."""

from __future__ import annotations

from isam.ir.kernel import Kernel


def literal_name(dtype: str, value: float | int | bool) -> str:
    """The buffer that holds the literal: no name that a kernel can give to one of its own."""
    return f"#{dtype}:{value}"


def is_literal(buffer: str) -> bool:
    """Whether a buffer holds a literal, and is none of the kernel's."""
    return buffer.startswith("#")


def literal_dtype(buffer: str) -> str:
    """The element type of a literal."""
    return buffer[1:].split(":", 1)[0]


def literal_value(buffer: str) -> float | int | bool:
    """The value of a literal, as the language writes it."""
    dtype, text = buffer[1:].split(":", 1)
    if text in ("True", "False"):
        return text == "True"
    return float(text) if dtype.startswith(("f", "bf")) or not text.lstrip("-").isdigit() else int(text)


class Dtypes(dict[str, str]):
    """The element types of a kernel's buffers and of literals, each found once."""

    def __init__(self, kernel: Kernel):
        super().__init__()
        self.kernel = kernel

    def __missing__(self, buffer: str) -> str:
        self[buffer] = literal_dtype(buffer) if is_literal(buffer) else self.kernel.buffer(buffer).dtype
        return self[buffer]
