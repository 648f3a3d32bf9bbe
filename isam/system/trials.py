"""Whether a function does what is declared: calls on random data against the reference interpreter.

Sizes: 0, 1, small primes, and the limits of each size symbol. Layouts: contiguous, rows further apart than they are
long, and, where the contract leaves a dimension free, transposed, stepped and (inputs) repeated elements. Inputs may be
the same memory. Around and between the operands lie random bytes that must not change; inputs must not change;
outputs begin as rubbish, so that what is not written shows.

Kernels of exact operations are tried on whole numbers small enough that any order of summation is exact, and compared
with ``==``; others, and real data, within a bound that grows with the number of operations.
"""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, NoReturn

import numpy as np

from isam.classes import dataclass
from isam.diagnostics import Diagnostic, IsamError
from isam.ir.dtype import ANY, DTYPES, numpy_dtype
from isam.ir.instruction import Instruction
from isam.ir.kernel import Buffer, Sym

Array = np.ndarray[Any, Any]
Sizes = dict[str, int]
EXACT = frozenset({"copy", "cast", "cast_sat", "add", "sub", "mul", "max", "min", "neg", "abs", "floor", "ceil",
                   "round", "not", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "select"})  # fmt: skip
LAYOUTS = ("contiguous", "padded", "stepped", "turned", "repeated")
POINTS = 50_000  # largest domain tried
SECONDS = 120  # for all trials of a C function
PRIMES = (0, 1, 2, 3, 5, 7, 13, 17, 31)


@dataclass(frozen=True, slots=True)
class Trial:
    """One call: sizes, how operands lie, whether inputs share memory, which data."""

    sizes: tuple[tuple[str, int], ...]
    layout: str
    shared: bool
    real: bool
    seed: int

    def __str__(self) -> str:
        sizes = ", ".join(f"{n} = {v}" for n, v in self.sizes) or "no sizes"
        return f"{sizes}; operands {self.layout}" + ("; inputs share memory" if self.shared else "")


@dataclass
class Placed:
    """An operand in memory of its own (or shared): its view, the bytes around it and which of those are its."""

    view: Array
    raw: Array
    own: Array
    before: Array = field(default_factory=lambda: np.empty(0))


Fault = tuple[str, str, str]  # kind, what is wrong, the trial that shows it


def judge(instruction: Instruction, function: Callable[..., Any], *, seed: int = 0, shielded: bool = False) -> int:
    """The number of trials, all passed. ``shielded``: in a child process, which a wrong C function may crash; this
    process then never calls it. Raises ``IsamError``: one diagnostic per kind of disagreement, each with its smallest
    trial."""
    count, found = (_shielded if shielded and hasattr(os, "fork") else _judged)(instruction, function, seed)
    if found:
        raise IsamError([_diagnostic(instruction, *f) for f in found])
    return count


def _judged(instruction: Instruction, function: Callable[..., Any], seed: int) -> tuple[int, list[Fault]]:
    """How many trials there were, and one fault of each kind."""
    found: dict[str, Fault] = {}
    count = 0
    for trial in trials(instruction, seed):
        count += 1
        wrong = attempt(instruction, function, trial)
        if wrong and wrong[0] not in found:
            found[wrong[0]] = (*wrong, str(trial))
            if len(found) >= 4 or wrong[0] == "raises":
                break
    return count, list(found.values())


def _diagnostic(instruction: Instruction, kind: str, what: str, trial: str = "") -> Diagnostic:
    said = f"'{instruction.name}' {what}" + (f" ({trial})" if trial else "")
    return Diagnostic(f"instruction-{kind}", said, instruction.loc, _HINTS[kind])


_HINTS = {
    "raises": "the function is called with one array per operand, in order; outputs are written in place",
    "value": "the declaration and the function must compute the same: check indices, initialisation and element types",
    "unwritten": "an 'out' operand is written in full; declare it 'inout' if what was there counts",
    "outside": "write only the elements of the view: mind strides and sizes",
    "input": "an 'in' operand is only read; declare it 'inout' if it is written",
    "returns": "write results into the 'out' and 'inout' arrays, for example y[...] = A @ x",
    "crash": "the function is called as void f(int64_t size, ..., T *operand, int64_t stride, ...)",
}


def trials(instruction: Instruction, seed: int) -> Iterator[Trial]:
    """All trials, small ones first."""
    r = np.random.default_rng([seed, 20181018])
    sizes = sorted(set(_size_vectors(instruction, r)), key=lambda v: (_points(instruction, dict(v)), v))
    exact = all(s.op in EXACT for s in instruction.body.statements)
    floats = any(b.dtype == ANY or DTYPES[b.dtype].kind == "f" for b in instruction.body.arguments)
    inputs = [b for b in instruction.body.arguments if b.role in ("in", "const")]
    for number, v in enumerate(sizes):
        for at, layout in enumerate(LAYOUTS):
            real = floats and (not exact or (number + at) % 3 == 2)
            yield Trial(v, layout, False, real, 100 * number + at)
        if len(inputs) > 1:
            yield Trial(v, "contiguous", True, floats and not exact, 100 * number + 50)


def _size_vectors(instruction: Instruction, r: np.random.Generator) -> Iterator[tuple[tuple[str, int], ...]]:
    syms = instruction.syms
    choices = {s.name: _candidates(s) for s in syms}
    if not syms:
        yield ()
        return
    middle = {n: c[min(len(c) - 1, 3)] for n, c in choices.items()}
    for n, c in choices.items():
        for v in c:  # each edge alone, the others moderate
            yield _fitted(instruction, choices, {**middle, n: v})
    for pick in (min, max, lambda c: sorted(c)[min(1, len(c) - 1)]):
        yield _fitted(instruction, choices, {n: pick(c) for n, c in choices.items()})
    for _ in range(8):
        yield _fitted(instruction, choices, {n: int(r.choice(c)) for n, c in choices.items()})


def _candidates(s: Sym) -> list[int]:
    """Sizes to try: 0, 1, primes, the limits and their neighbours, as the symbol admits them."""
    hi = s.hi if s.hi is not None else 10**9
    near = [s.lo, s.lo + s.multiple_of, *PRIMES, *(p * s.multiple_of for p in PRIMES[:5])]
    near += [hi - 1, hi] if hi <= 64 * s.multiple_of else []
    least = -(-s.lo // s.multiple_of) * s.multiple_of
    return sorted({n for n in near if s.lo <= n <= hi and n % s.multiple_of == 0}) or [least]


def _fitted(instruction: Instruction, choices: dict[str, list[int]], sizes: Sizes) -> tuple[tuple[str, int], ...]:
    """The sizes, the largest made smaller until the domain is small enough."""
    sizes = dict(sizes)
    while _points(instruction, sizes) > POINTS:
        n = max(sizes, key=lambda k: sizes[k])
        smaller = [c for c in choices[n] if 0 < c < sizes[n]]
        if not smaller:
            break
        sizes[n] = smaller[-1]
    return tuple(sizes.items())


def size_of_trial(instruction: Instruction, trial: Trial) -> int:
    """Points of a call of these sizes."""
    return _points(instruction, dict(trial.sizes))


def _points(instruction: Instruction, sizes: Sizes) -> int:
    statements = instruction.body.with_sizes(sizes).statements
    return sum(math.prod(max(0, int(a.extent)) for a in s.domain.axes) for s in statements)


def attempt(instruction: Instruction, function: Callable[..., Any], trial: Trial) -> tuple[str, str] | None:
    """What is wrong with one call: kind and description; None when nothing is."""
    from isam.ir.interp import run

    r = np.random.default_rng([trial.seed, len(trial.layout), 7])
    body, sizes = instruction.body, dict(trial.sizes)
    placed = _operands(instruction, trial, sizes, r)
    expected = run(body, {n: np.array(p.view) for n, p in placed.items()}, sizes)
    for p in placed.values():
        p.before = p.raw.copy()
    try:
        with np.errstate(all="ignore"):
            answer = function(*[p.view for p in placed.values()])
    except Exception as e:
        return "raises", f"raises {type(e).__name__}: {str(e)[:200]}"
    if answer is not None and not any(answer is p.view for p in placed.values()):
        return "returns", f"returns {type(answer).__name__} instead of writing its outputs in place"
    for b in body.arguments:
        p = placed[b.name]
        if b.role in ("in", "const") and not np.array_equal(p.raw, p.before):
            return "input", f"changes its input {b.name}"
        if not np.array_equal(p.raw[~p.own], p.before[~p.own]):
            return "outside", f"writes outside of {b.name}"
    return _compare(instruction, trial, placed, expected)


def _compare(instruction: Instruction, trial: Trial, placed: dict[str, Placed],
             expected: dict[str, Array]) -> tuple[str, str] | None:
    permits, operations = instruction.body.permits, {s.op for s in instruction.body.statements}
    literal = not permits - {"exact"} and not instruction.ulp and operations <= EXACT | {"div", "sqrt"}
    for name, want in expected.items():
        p = placed[name]
        got = np.array(p.view)
        good, a, b = got == want, got, want
        if got.dtype.kind == "f" or got.dtype.kind == "V":
            a, b = got.astype(np.float64), want.astype(np.float64)
            good |= np.isnan(a) & np.isnan(b)
            if trial.real and not literal:
                with np.errstate(invalid="ignore"):  # of two infinities; where they are one, they are equal
                    good |= np.abs(a - b) <= _bound(instruction, trial, placed, b)
        if good.all():
            continue
        at = tuple(int(i) for i in np.argwhere(~good)[0])
        shown = f"{name}[{', '.join(map(str, at))}]"
        held = np.ndarray(got.shape, got.dtype, p.before.data, _offset(p), p.view.strides)
        if instruction.body.buffer(name).role == "out" and got[at].tobytes() == held[at].tobytes():
            return "unwritten", f"does not write {shown}, which should be {want[at]}"
        near = ""
        if got.dtype.kind in "fV" and not trial.real and np.abs(a - b)[at] <= _bound(instruction, trial, placed, b)[at]:
            near = ": whole numbers are compared with ==, as every operation declared is exact"
        return "value", f"gives {shown} = {got[at]}, the declaration {want[at]}{near}"
    return None


def _offset(p: Placed) -> int:
    return p.view.__array_interface__["data"][0] - p.raw.__array_interface__["data"][0]


def _bound(instruction: Instruction, trial: Trial, placed: dict[str, Placed], want: Array) -> Array:
    """An absolute error that any order of evaluation keeps: data is positive and of the size of one, so sums and
    products are well conditioned; functions may magnify an argument's error by its size."""
    floats = [b.dtype for b in instruction.body.buffers if b.dtype != ANY and DTYPES[b.dtype].kind == "f"]
    eps = max((float(_finfo(d)) for d in floats), default=2**-23)
    statements = instruction.body.with_sizes(dict(trial.sizes)).statements
    depth = sum(math.prod(max(1, int(s.domain.extent(a))) for a in s.reduces if s.accumulate) for s in statements)
    largest = max((float(np.abs(p.view.astype(np.float64)).max(initial=1.0)) for p in placed.values()
                   if p.view.dtype.kind in "fV"), default=1.0)  # fmt: skip
    inexact = any(s.op not in EXACT for s in instruction.body.statements)
    scale = np.maximum(np.abs(want), largest * (16.0 if inexact else 1.0))
    return eps * (depth + 4 + instruction.ulp) * scale


def _finfo(dtype: str) -> float:
    return {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}[dtype]


def operands(instruction: Instruction, trial: Trial) -> dict[str, Placed]:
    """Random operands for a call."""
    return _operands(instruction, trial, dict(trial.sizes), np.random.default_rng(trial.seed))


def _operands(instruction: Instruction, trial: Trial, sizes: Sizes, r: np.random.Generator) -> dict[str, Placed]:
    out: dict[str, Placed] = {}
    shared: dict[tuple[Any, ...], Placed] = {}
    for b in instruction.body.arguments:
        shape = tuple(max(0, e.evaluate(sizes)) for e in b.shape)
        read_only = b.role in ("in", "const")
        key = (shape, b.dtype)
        if trial.shared and read_only and key in shared:
            out[b.name] = shared[key]
            continue
        p = _place(b, shape, _strides(instruction, b, shape, trial.layout, r), r)
        if b.role != "out":
            p.view[...] = _data(b, shape, trial, instruction, r)
        if read_only:
            shared.setdefault(key, p)
            p.view.flags.writeable = False
        out[b.name] = p
    return out


def _strides(instruction: Instruction, b: Buffer, shape: tuple[int, ...], layout: str,
             r: np.random.Generator) -> list[int]:
    """Strides in elements that the contract allows, as the layout wants them."""
    contract = instruction.contract(b.name).strides
    order = list(range(len(shape)))
    free = [d for d, s in enumerate(contract) if s is None]
    if layout == "turned" and len(free) == len(shape):
        order.reverse()
    out, step = [0] * len(shape), 1
    for d in reversed(order):
        fixed = contract[d]
        if fixed is not None:
            out[d] = fixed
        elif layout == "repeated" and b.role in ("in", "const") and d == free[0]:
            out[d] = 0
        else:
            step += int(r.integers(1, 4)) * (layout in ("padded", "stepped")) * (step > 1 or layout == "stepped")
            out[d] = step
        step = max(step, abs(out[d]) * max(1, shape[d]))
    return out


def _place(b: Buffer, shape: tuple[int, ...], strides: list[int], r: np.random.Generator) -> Placed:
    """A view with these strides in the middle of random bytes."""
    kind = numpy_dtype("f32" if b.dtype == ANY else b.dtype)
    size = kind.itemsize
    span = sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True) if n) * size + size
    edge = 16 * size
    raw = r.integers(0, 256, span + 2 * edge, dtype=np.uint8)
    begin = edge + sum((n - 1) * -s for n, s in zip(shape, strides, strict=True) if s < 0 and n) * size
    steps = tuple(s * size for s in strides)
    view = np.ndarray(shape, kind, raw.data, begin, steps)
    if b.dtype == "bool":
        raw &= 1
    own = np.zeros(len(raw), bool)
    np.ndarray((*shape, size), bool, own.data, begin, (*steps, 1))[...] = True
    return Placed(view, raw, own)


def _data(b: Buffer, shape: tuple[int, ...], trial: Trial, instruction: Instruction, r: np.random.Generator) -> Array:
    d = DTYPES["f32" if b.dtype == ANY else b.dtype]
    kind = numpy_dtype(d.name)
    if d.kind == "b":
        return r.integers(0, 2, shape).astype(bool)
    if d.kind == "f":
        if trial.real:
            return r.uniform(0.5, 1.5, shape).astype(kind)
        narrow = any(x.dtype in ("f16", "bf16") for x in instruction.body.buffers)
        return r.integers(-2 if narrow else -8, 3 if narrow else 9, shape).astype(kind)
    limits = np.iinfo(kind)
    small = trial.seed % 2 == 0
    low, high = (max(-9, limits.min), 9) if small else (limits.min, limits.max)
    return r.integers(low, high, shape, dtype=kind, endpoint=True)


def _shielded(instruction: Instruction, function: Callable[..., Any], seed: int) -> tuple[int, list[Fault]]:
    """The same in a forked child. Only what the child says counts: one that ends without a word, for whatever reason,
    has proved nothing."""
    ours, its = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _in_child(instruction, function, seed, its)
    os.close(its)
    with open(ours, "rb") as answer:
        said = answer.read()
    _, status = os.waitpid(child, 0)
    if not said:
        return 0, [("crash", _ended(status), "")]
    count, found = json.loads(said)
    return count, [(kind, what, trial) for kind, what, trial in found]


def _ended(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"ends the process that calls it (exit code {os.WEXITSTATUS(status)})"
    end = signal.Signals(os.WTERMSIG(status))
    return "does not return" if end == signal.SIGALRM else f"crashes ({end.name})"


def _in_child(instruction: Instruction, function: Callable[..., Any], seed: int, out: int) -> NoReturn:
    import faulthandler
    import resource

    code = 1
    try:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        answer = json.dumps(_judged(instruction, function, seed)).encode()
        with open(out, "wb") as pipe:
            pipe.write(answer)
        code = 0
    finally:
        os._exit(code)
