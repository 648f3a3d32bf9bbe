"""Faults in machine code: in tiles' configuration, or one byte of a load, a store or a product. A verdict that does not
see them says nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tests.emulated.products import Product, changed

CONFIGURATION = bytes([1, *[0] * 15, *[64, 0] * 8, *[0] * 16, *[16] * 8, *[0] * 8])
CONFIGURE = re.compile(rb"\xc4\xe2\x78\x49\x05", re.DOTALL)  # LDTILECFG, relative to the next instruction
EVERY = 15  # of the tile products of bytes (`run.h`)
LOAD = re.compile(rb"\xc4[\xe2\xc2\xa2\x82]\x7b\x4b[\x04-\xbc]", re.DOTALL)  # TILELOADD; behind it the SIB byte
STORE = re.compile(rb"\xc4[\xe2\xc2\xa2\x82]\x7a\x4b[\x04-\xbc]", re.DOTALL)  # TILESTORED
TIMES = re.compile(rb"\xc4\xe2[\x00-\x7f][\x5c\x5e]", re.DOTALL)  # TDPBF16PS, TDPBSSD and its like
BYTES = re.compile(rb"\xc4\xe2[\x00-\x7f]\x5e", re.DOTALL)


def written(code: bytes, at: int, what: bytes) -> bytes:
    return code[:at] + what + code[at + len(what) :]


def configured(offset: int, what: bytes) -> Callable[[bytes], bytes]:
    """Something else in every configuration."""
    return lambda code: code.replace(CONFIGURATION, written(CONFIGURATION, offset, what))


def found(pattern: re.Pattern[bytes], change: Callable[[bytes], bytes], more: int = 0,
          which: int = 0) -> Callable[[bytes], bytes]:  # fmt: skip
    """One such instruction (``which``: the first, or -1), and ``more`` bytes behind what the pattern tells, changed."""

    def fault(code: bytes) -> bytes:
        places = [m.span() for m in pattern.finditer(code)]
        begin, end = places[which] if places else (0, 0)
        return written(code, begin, change(code[begin : end + more])) if places else code

    return fault


def stride(x: bytes) -> bytes:
    """The distance of rows is taken twice."""
    return x[:-1] + bytes([x[-1] ^ 0x40])


def other_tile(x: bytes) -> bytes:
    """The second factor is another tile."""
    return x[:2] + bytes([x[2] ^ 0x08]) + x[3:]


def other_signs(x: bytes) -> bytes:
    """Of the four products of bytes, another one."""
    return x[:2] + bytes([x[2] ^ 0x03]) + x[3:]


FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "rows": configured(48, bytes([15] * 8)),
    "columns": configured(16, bytes([60, 0] * 8)),
    "palette": configured(0, b"\0"),
    "reserved": configured(2, b"\1"),
    "not configured": found(CONFIGURE, lambda x: b"\x66\x0f\x1f\x84\x00", which=-1),
    "distance in a load": found(LOAD, stride, 1),
    "distance in a store": found(STORE, stride, 1),
    "another tile": found(TIMES, other_tile),
    "other signs": found(BYTES, other_signs),
}


def mutants(p: Product) -> Iterator[Product]:
    """Every fault that finds a place in the product's code. Other signs are none to bytes below 128."""
    code, signed = p.artifact.parts["object.o"], any(max(a.first) > 127 for a in p.arguments if not a.written)
    for name, fault in FAULTS.items():
        if (other := fault(code)) != code and (signed or name != "other signs"):
            yield changed(p, f"{p.name}, {name}", other, EVERY if name == "other signs" else p.signs)
