"""Functions that a caller hands over when an artifact is loaded: what may be one, and which of them are called.

The object code calls each with integers: sizes, addresses, strides in elements. A C function takes these itself. What
``isam.instruction`` returns takes them whether it is of Python or of C (``by_integers``), and says which instruction it
was checked against. Anything else is refused before the code is linked: a wrong value would be jumped to.
"""

from __future__ import annotations

import ctypes
import json
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

from isam.artifact import Artifact
from isam.diagnostics import IsamError, Loc, did_you_mean, fail

LOWEST = 4096  # no code lies in the first page
KINDS = {"c": "C function", "python": "Python function"}
DECLARATIONS = "functions.json"  # the part with the instruction that each of them is, by name


class Checked:
    """A function that was checked against the ``instruction`` that it is: what ``isam.instruction`` makes. ``address``:
    of a C function, which takes the integers of a call itself."""

    instruction: Any
    address: int | None

    @property
    def count(self) -> int:
        """How many integers a call has."""
        raise NotImplementedError


class Called(NamedTuple):
    """A function that object code calls: its kind (``c``, ``python``), its name, how many integers a call passes."""

    kind: str
    name: str
    integers: int

    def __str__(self) -> str:
        return f"the {KINDS[self.kind]} '{self.name}'"

    @property
    def wanted(self) -> str:
        """What may be handed over for it."""
        own = "a ctypes function or an address" if self.kind == "c" else f"a function of {self.integers} integers"
        return f"what isam.instruction returned for it, or {own}"


def called(symbol: str) -> Called | None:
    """The function behind an external symbol (``c:NAME/N``, ``python:NAME/N``); None: no caller provides it."""
    kind, _, rest = symbol.partition(":")
    name, _, count = rest.partition("/")
    return Called(kind, name, int(count or 0)) if kind in KINDS else None


def all_called(artifact: Artifact) -> tuple[Called, ...]:
    """All that the artifact's code calls."""
    return tuple(c for _, symbol in artifact.externals if (c := called(symbol)) is not None)


def declaration(instruction: Any) -> str:
    """An instruction as text, and how its operands have to lie: what a function has to agree with."""
    contracts = {b.name: instruction.contract(b.name) for b in instruction.body.arguments}
    lines = [f"  {n}: strides {' '.join('*' if s is None else str(s) for s in c.strides)}, align {c.align}"
             for n, c in contracts.items()]  # fmt: skip
    apart = [f"  apart: {' '.join(group)}" for group in instruction.apart]
    return "\n".join([str(instruction).rstrip(), "operands", *lines, *apart])


def declarations(artifact: Artifact) -> dict[str, str]:
    """The instructions that they are, as text by name."""
    return json.loads(artifact.parts[DECLARATIONS]) if DECLARATIONS in artifact.parts else {}


def address_of(function: Any) -> int | None:
    """The address of a C function, 0 for one that points nowhere; None for anything else."""
    if isinstance(function, numbers.Integral) and not isinstance(function, bool):
        return int(function)
    kind = getattr(ctypes, "_CFuncPtr", ctypes.c_void_p)
    if isinstance(function, (kind, ctypes.c_void_p)):
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    return None


def is_code(address: int | None) -> bool:
    """Whether code can lie there."""
    return address is not None and LOWEST <= address < 1 << 64


def callee(wanted: Called, provided: Mapping[str, Any], declared: Mapping[str, str]) -> int | Callable[..., Any]:
    """What is provided for a function: an address, or a callable that takes its integers. ``declared``: instructions by
    name, as text. Raises ``IsamError``."""
    if wanted.name not in provided:
        raise fail("external-missing", f"this artifact calls {wanted}",
                   hint=f"isam.load(FILE, functions={{'{wanted.name}': ...}}): {wanted.wanted}")  # fmt: skip
    given = provided[wanted.name]
    function: Any = made if isinstance(made := getattr(given, "by_integers", None), Checked) else given
    reason = _unfit(function, wanted, declared.get(wanted.name))
    if reason:
        raise fail("external-function", f"{wanted} is given {reason}", hint=wanted.wanted)
    address = function.address if isinstance(function, Checked) else address_of(function)
    return cast("Callable[..., Any]", function) if address is None else address


def _unfit(function: Any, wanted: Called, declared: str | None) -> str:
    """Why a value cannot be called in its place; nothing where it can."""
    if isinstance(function, Checked):
        text = declaration(function.instruction)
        other = function.count != wanted.integers or (declared is not None and text != declared)
        return f"a function of another instruction than it was compiled with:\n{text}" if other else ""
    address = address_of(function)
    if address is not None:
        known = getattr(function, "argtypes", None)
        if known is not None and is_code(address) and len(known) != wanted.integers:
            return f"a C function of {len(known)} arguments, not of {wanted.integers} integers"
        return "" if is_code(address) else f"the address {address:#x}, where no code lies"
    if not callable(function):
        return f"{function!r:.60}, which is no function"
    if not _takes(function, wanted.integers):
        return f"a Python function that does not take {wanted.integers} integers (sizes, addresses, strides of a call)"
    return ""


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether it can be called with so many values; one that does not tell is believed to."""
    import inspect

    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def refuse_unknown(artifact: Artifact, functions: Any, at: Loc) -> None:
    """Names that the artifact's code does not call are misspelt or meant for another. Raises ``IsamError``."""
    if not isinstance(functions, Mapping):
        raise fail("external-function", f"functions= is no {type(functions).__name__}", at,
                   "a dictionary from names to functions")  # fmt: skip
    names = [c.name for c in all_called(artifact)]
    otherwise = f"it calls: {', '.join(names)}" if names else "it calls none: load it without functions="
    found = [fail("external-unknown", f"'{artifact.name}' calls no function {name!r:.60}", at,
                  did_you_mean(str(name), names) or otherwise) for name in functions if name not in names]  # fmt: skip
    _raise(found)


def _raise(found: Iterable[IsamError]) -> None:
    faults = [d for e in found for d in e.diagnostics]
    if faults:
        raise IsamError(faults)
