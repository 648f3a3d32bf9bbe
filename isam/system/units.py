"""Numbers with units. A quantity without its unit is an error, never a guess (SYS-6)."""

from __future__ import annotations

import re

_BINARY = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_DECIMAL = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

# dimension -> unit -> factor to the base unit, which comes first
UNITS: dict[str, dict[str, float]] = {
    "bytes": {**_BINARY, **_DECIMAL},
    "frequency": {"Hz": 1, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    "cycles": {"cycles": 1, "cycle": 1},
    "bandwidth": {f"{u}/cycle": f for u, f in {**_BINARY, **_DECIMAL}.items()},
    "rate": {f"{u}/s": f for u, f in {**_BINARY, **_DECIMAL}.items()},
    "error": {"ulp": 1},
}
EXAMPLES = {"bytes": "16 KiB", "frequency": "1 GHz", "cycles": "4 cycles", "bandwidth": "16 B/cycle", "rate": "16 GB/s",
            "error": "4 ulp"}  # fmt: skip
LIMITS = {"bytes": 1 << 50, "frequency": 1e12, "cycles": 1e12, "bandwidth": 1 << 50, "rate": 1 << 60, "error": 1e6,
          "count": 1 << 20}  # fmt: skip
WHOLE = frozenset({"bytes", "count"})

NUMBER = re.compile(r"([+-]?)([0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)")


class Rate(float):
    """Bytes per second: a bandwidth that knows no clock."""


class QuantityError(ValueError):
    """The text is no quantity of the dimension asked for; ``hint`` says what would be one."""

    def __init__(self, message: str, hint: str):
        super().__init__(message)
        self.hint = hint


def parse_quantity(text: str, dimension: str) -> float | int:
    """The value in the base unit of ``dimension`` (bytes, Hz, cycles, bytes per cycle or second, ulp).

    >>> parse_quantity("16 KiB", "bytes"), parse_quantity("1.5 GHz", "frequency")
    (16384, 1500000000.0)
    """
    text = text.strip()
    example = f"for example '{EXAMPLES[dimension]}'"
    m = NUMBER.match(text) if len(text) <= 64 else None
    if m is None:
        raise QuantityError(f"expected a number with a unit ({dimension}), found '{text[:40]}'", example)
    if m[1] == "-":
        raise QuantityError(f"'{text}' is negative", example)
    unit = text[m.end() :].strip()
    known = UNITS[dimension]
    if not unit:
        raise QuantityError(f"'{text}' has no unit ({dimension})", _guess(m[2], dimension))
    if unit not in known:
        raise QuantityError(f"'{unit}' is not a unit of {dimension}", _closest(unit, known, example))
    return _bounded(_number(m[2]) * known[unit], text, dimension)


def parse_throughput(text: str) -> float:
    """A bandwidth in bytes per cycle, or a :class:`Rate`.

    >>> parse_throughput("16 B/cycle"), parse_throughput("1.5 GB/s")
    (16.0, 1500000000.0)
    """
    if text.strip().endswith("/s"):
        return Rate(parse_quantity(text, "rate"))
    try:
        return parse_quantity(text, "bandwidth")
    except QuantityError as e:
        raise QuantityError(str(e), f"{e.hint}; of a second: '{EXAMPLES['rate']}'") from None


def parse_count(text: str) -> int:
    """A pure number: decimal digits, no unit."""
    text = text.strip()
    m = NUMBER.fullmatch(text) if len(text) <= 64 else None
    if m is None:
        also = NUMBER.match(text) if len(text) <= 64 else None
        hint = f"a count has no unit: write {also[2]}" if also else "for example 8"
        raise QuantityError(f"expected a whole number, found '{text[:40]}'", hint)
    if m[1] == "-":
        raise QuantityError(f"'{text}' is negative", "for example 8")
    return int(_bounded(_number(m[2]), text, "count"))


def _number(digits: str) -> float | int:
    digits = digits.replace("_", "")
    if len(digits) > 40:
        return float("inf")
    return int(digits) if digits.isdigit() else float(digits)


def _bounded(value: float, text: str, dimension: str) -> float | int:
    if value > LIMITS[dimension]:
        base = next(iter(UNITS[dimension])) if dimension in UNITS else ""
        raise QuantityError(f"'{text}' is too large", f"at most {LIMITS[dimension]:,.0f} {base}".strip())
    if dimension in WHOLE:
        if value != int(value):
            what = "a whole number of bytes" if dimension == "bytes" else "a whole number"
            raise QuantityError(f"'{text}' is not {what}", "round it")
        return int(value)
    return float(value)


def _guess(number: str, dimension: str) -> str:
    base = next(iter(UNITS[dimension]))
    return f"write '{number} {base}' if that is meant; units: {', '.join(UNITS[dimension])}"


def _closest(unit: str, known: dict[str, float], example: str) -> str:
    folded = {k.lower().replace("i", ""): k for k in reversed(known)}  # of 'kB' and 'KiB' the one that memories have
    near = folded.get(unit.lower().replace("i", ""))
    if near:
        return f"did you mean '{near}'?"
    return f"units: {', '.join(known)}; {example}"
