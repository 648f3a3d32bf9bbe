"""Functions as instructions: ``@isam.instruction("instruction dgemv ...")`` over any Python or C function.

The declared semantics is checked against the function before it may be used (:mod:`isam.system.trials`): random data,
edge sizes, strides, aliased inputs, bytes around and between the operands.

A Python function is called with one NumPy array per operand, in the order of the declaration; outputs are written in
place (``y[...] = A @ x``). A C function (a ctypes function, or an address) is called as
``void f(int64_t size, ..., T *operand, int64_t stride,
         ...)``: the sizes in order of the head, then for each operand its
address and its strides in elements. :func:`integers` is the same call for a Python function, for emitted code.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import numpy as np

from isam.classes import dataclass
from isam.diagnostics import Diagnostic, IsamError, Loc, fail
from isam.ir.dtype import ANY, numpy_dtype
from isam.ir.instruction import Cost, Instruction, OperandContract
from isam.ir.kernel import Kernel
from isam.runtime.handed import Checked, address_of, is_code
from isam.system.numerics import contradictions, meaningful

Array = np.ndarray[Any, Any]
_PERMITS = re.compile(r"^\s*permits\b", re.MULTILINE)
Strides = Mapping[str, Sequence[int | None]]


@dataclass(frozen=True, eq=False, repr=False)
class Registered:
    """A checked function. ``instruction`` goes to ``System.extended``; calling this object calls the function.

    ``trials``: how many calls agreed with the declaration before it was accepted. ``seconds``: what a call took then,
    at the largest sizes; None where a cost is stated.
    """

    instruction: Instruction
    function: Callable[..., Any]
    address: int | None = None
    trials: int = 0
    seconds: float | None = None

    @property
    def name(self) -> str:
        return self.instruction.name

    @property
    def by_integers(self) -> OnViews:
        """The function as emitted code calls it."""
        return self.instruction.emission["python"]

    @property
    def __wrapped__(self) -> Callable[..., Any]:  # signatures and sources are those of the function
        return self.function

    def __repr__(self) -> str:
        name = "a C function" if self.address is not None else getattr(self.function, "__qualname__", "a callable")
        return f"{self.instruction!r} by {name}"

    def __call__(self, *arrays: Array, **named: Array) -> Any:
        """One call on arrays of the declared shapes, outputs in place."""
        return self.function(*arrays, **named)


def instruction(text: str, *, homes: Mapping[str, Sequence[str]] | None = None, strides: Strides | None = None,
                align: Mapping[str, int] | None = None, apart: Sequence[Sequence[str]] = (),
                cost: Cost | Mapping[str, Any] | None = None, needs: Sequence[str] = (), ulp: float = 0.0,
                seed: int = 0) -> Callable[[Any], Registered]:  # fmt: skip
    """Declares what the function below computes. ``text``: one instruction in the language.

    A text without ``permits`` lets the function sum and round as it likes: only kernels which grant that use it. With
    ``permits exact`` (or ``nothing``) it is held to the interpreter's result bit by bit.

    ``strides``: per operand and dimension, in elements; None is free, a number is that number (default: free, and 1 for
    the last dimension). ``homes``: memories an operand may live in (default: home). ``ulp``: the declared error of
    functions that are not exact. ``cost``: ``{"issue": "1000 cycles", "latency": "1200 cycles",
    "per": {"N": "0.5 cycles"}}`` as in a description, or a :class:`Cost`; without one, what calls take is measured.
    Raises ``IsamError``: the text is wrong, or the function does something else.
    """
    caller = sys._getframe(1)
    here = Loc(caller.f_code.co_filename, caller.f_lineno, 1)
    unplaced = _declared(text, homes or {}, strides or {}, align or {}, apart, cost, needs, ulp, here)

    def register(given: Any) -> Registered:
        from isam.system.trials import judge

        function = given
        declared = replace(unplaced, loc=place_of(function, here))
        if isinstance(function, Registered):
            function = function.address if function.address is not None else function.function
        address = address_of(function) or None
        called = OnArrays(declared, address, given) if address is not None and is_code(address) else function
        if not callable(called):
            raise fail("instruction-function", f"{function!r} is no function", declared.loc,
                       "a Python function, a ctypes function or an address")  # fmt: skip
        trials = judge(declared, called, seed=seed, shielded=address is not None)
        emission: dict[str, Any] = {"python": OnViews(declared, called, address), "llvm": llvm_call(declared, address)}
        if address is not None:
            emission["c"] = address
        made = replace(declared, emission=emission)
        seconds = None if made.cost != Cost() else _measured(made, seed)
        return Registered(made, called, address, trials, seconds)

    return register


def _declared(text: str, homes: Mapping[str, Sequence[str]], strides: Strides, align: Mapping[str, int],
              apart: Sequence[Sequence[str]], cost: object, needs: Sequence[str], ulp: float,
              at: Loc) -> Instruction:  # fmt: skip
    from isam.ir.text import parse_instruction
    from isam.ir.verify import verify
    from isam.system.costs import stated

    body = parse_instruction(text).body
    if not _PERMITS.search(text):  # nobody says that the function rounds as the text does
        body = replace(body, permits=meaningful(body))
    faults = [*verify(body), *_misfits(body, homes, strides, align, apart, at)]
    price = stated(cost, body, at, faults)
    if faults:
        raise IsamError(faults)
    contracts = {a.name: OperandContract(tuple(homes.get(a.name, ())), tuple(strides.get(a.name, ())),
                                         align.get(a.name, 1))
                 for a in body.arguments if a.name in homes or a.name in strides or a.name in align}  # fmt: skip
    made = Instruction(body.name, body, contracts, tuple(tuple(g) for g in apart), price, {}, tuple(needs), ulp,
                       body.loc)  # fmt: skip
    wrong = [Diagnostic("system-numerics", message, body.loc, hint) for _, message, hint in contradictions(made)]
    if wrong:
        raise IsamError(wrong)
    return made


def _misfits(body: Kernel, homes: Mapping[str, Sequence[str]], strides: Strides, align: Mapping[str, int],
             apart: Sequence[Sequence[str]], at: Loc) -> Iterator[Diagnostic]:  # fmt: skip
    """What is said about operands and cannot be of these. ``at``: where it stands."""
    from isam.system.faults import nearest

    operands = {a.name: a for a in body.arguments}
    for name in dict.fromkeys((*homes, *strides, *align, *(o for group in apart for o in group))):
        if name not in operands:
            yield Diagnostic("system-operand", f"'{body.name}' has no operand '{name}'", at, nearest(name, operands))
    for name, given in strides.items():
        if name in operands and len(given) != (rank := len(operands[name].shape)):
            yield Diagnostic("system-strides", f"'{name}' has {rank} dimensions, {len(given)} strides are given", at,
                             "one stride per dimension: a number or None")  # fmt: skip
    for name, size in align.items():
        if size < 1 or size & (size - 1):
            yield Diagnostic("system-align", f"the alignment of '{name}' is a power of two, not {size} B", at,
                             "for example 64")  # fmt: skip


def place_of(function: Any, otherwise: Loc) -> Loc:
    """Where a Python function stands."""
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    return Loc(code.co_filename, code.co_firstlineno, 1) if code is not None else otherwise


def _measured(made: Instruction, seed: int) -> float:
    """What a call takes, as emitted code makes it: a Python function gets views first."""
    from isam.system.costs import measured

    address = made.emission.get("c")
    if address is None:
        return measured(made, made.emission["python"], seed, alone=False)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(parameters(made)))(address)
    return measured(made, call, seed, alone=True)


def parameters(instruction: Instruction) -> tuple[tuple[str, str, int], ...]:
    """The integers of a call: ``("size", name, 0)``, ``("address", operand, 0)``, ``("stride", operand, d)``."""
    out: list[tuple[str, str, int]] = [("size", s.name, 0) for s in instruction.syms]
    for a in instruction.body.arguments:
        out.append(("address", a.name, 0))
        out += [("stride", a.name, d) for d in range(len(a.shape))]
    return tuple(out)


def llvm_call(instruction: Instruction, address: int | None) -> str:
    """The template of a call with these integers, through a symbol that the loader resolves to the function, a C
    function if it has an address."""
    order = parameters(instruction)
    forms = {"size": "i64 ${0}", "address": "ptr %{0}", "stride": "i64 $stride({0}.{1})"}
    arguments = ", ".join(forms[kind].format(name, d) for kind, name, d in order)
    kind = "python" if address is None else "c"
    return f"call void @{kind}:{instruction.name}/{len(order)}({arguments})"


class OnArrays(Checked):
    """A C function as a Python function on arrays. ``kept``: what has to stay for its address to be one."""

    def __init__(self, instruction: Instruction, address: int, kept: object):
        self.kept = kept
        self.instruction, self.address, self.order = instruction, address, parameters(instruction)
        self.names = [a.name for a in instruction.body.arguments]
        self.call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * self.count)(address)

    @property
    def count(self) -> int:
        return len(self.order)

    def __call__(self, *arrays: Array) -> None:
        from isam.ir.interp import infer_sizes

        views = dict(zip(self.names, arrays, strict=True))
        sizes = infer_sizes(self.instruction.body, views, {})
        value = {
            "size": lambda n, d: sizes[n],
            "address": lambda n, d: views[n].ctypes.data,
            "stride": lambda n, d: views[n].strides[d] // views[n].itemsize,
        }
        self.call(*[value[kind](name, d) for kind, name, d in self.order])


@dataclass(frozen=True)
class OnViews(Checked):
    """A function on arrays that can also be called with the integers of :func:`parameters`, as emitted code does."""

    instruction: Instruction = field(repr=False)
    function: Callable[..., Any]
    address: int | None = None  # of a C function that takes these integers itself

    @cached_property
    def shapes(self) -> tuple[tuple[str, tuple[Any, ...], str], ...]:
        return tuple((a.name, a.shape, a.dtype) for a in self.instruction.body.arguments)

    @property
    def count(self) -> int:
        return len(parameters(self.instruction))

    def __call__(self, *values: Any) -> Any:
        if any(not isinstance(v, int) for v in values) or len(values) != self.count:
            return self.function(*values)
        sizes = {s.name: v for s, v in zip(self.instruction.syms, values, strict=False)}
        rest = list(values[len(sizes) :])
        views: list[Array] = []
        for _, shape, dtype in self.shapes:
            address, strides = rest[0], rest[1 : 1 + len(shape)]
            rest = rest[1 + len(shape) :]
            extents = [max(0, e.evaluate(sizes)) for e in shape]
            views.append(view_at(address, extents, strides, "f32" if dtype == ANY else dtype))
        return self.function(*views)


def view_at(address: int, shape: Sequence[int], strides: Sequence[int], dtype: str) -> Array:
    """An array over memory that somebody else owns; ``strides`` in elements."""
    kind = numpy_dtype(dtype)
    if not all(shape):
        return np.empty(shape, kind)
    steps = [s * kind.itemsize for s in strides]
    low = sum((n - 1) * s for n, s in zip(shape, steps, strict=True) if s < 0)
    high = sum((n - 1) * s for n, s in zip(shape, steps, strict=True) if s > 0) + kind.itemsize
    raw = (ctypes.c_char * (high - low)).from_address(address + low)
    return np.ndarray(tuple(shape), kind, memoryview(raw), -low, tuple(steps))
