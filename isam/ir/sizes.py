"""Sizes of a kernel: which may stay open in its code, which have to be given, which numbers each admits."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

from isam.diagnostics import Diagnostic, IsamError, did_you_mean, fail
from isam.ir.kernel import Kernel, Sym


def run_time(kernel: Kernel) -> frozenset[str]:
    """Sizes that may stay open in the code: trips of recurrent loops that bound nothing else and on which neither
    an address nor workspace depends (of an argument's shape, the first dimension decides no address)."""
    elsewhere = {n for s in kernel.statements for a in s.domain.axes for n in a.extent.names}
    elsewhere |= {n for s in kernel.statements for w in s.domain.where for n in w.names}
    elsewhere |= {n for b in kernel.buffers for d in b.shape[b.role != "temp" :] for n in d.names}
    whole = {s.name: s.whole[0] for s in kernel.follow if s.whole}
    elsewhere |= {n for b in kernel.arguments for d in b.shape[:1] for n in d.names if n in whole}
    return kernel.trips - elsewhere - {of for n, of in whole.items() if n in elsewhere}


def unsized(kernel: Kernel) -> tuple[str, ...]:
    """The sizes that have to be given before there can be a schedule."""
    free = run_time(kernel)
    return tuple(s.name for s in kernel.given if s.name not in free)


def with_constants(kernel: Kernel, numbers: Mapping[str, int]) -> tuple[Kernel, dict[str, int]]:
    """The kernel with the compile-time constants among ``numbers`` put in, and the sizes that are left. Raises
    ``IsamError`` for a name that is neither and for a size that is not admitted."""
    if not isinstance(numbers, Mapping):
        raise fail("size-unknown", f"sizes are a mapping of names to numbers, not {type(numbers).__name__}")
    plain = {n: index(v) if hasattr(v, "__index__") and not isinstance(v, bool) else v for n, v in numbers.items()}
    constants = {n: v for n, v in plain.items() if n in dict(kernel.params)}
    rest = {n: v for n, v in plain.items() if n not in constants}
    kernel = kernel.with_params(**constants)
    check_sizes(kernel, rest)
    return kernel, rest


def check_sizes(kernel: Kernel, sizes: Mapping[str, Any]) -> None:
    """Every size given exists and is admitted. Raises ``IsamError`` with all faults."""
    known = {s.name: s for s in kernel.given}
    faults: list[Diagnostic] = []
    for name, v in sizes.items():
        s = known.get(name)
        if not isinstance(name, str):
            what = f"sizes are named by texts, not {type(name).__name__}"
            faults.append(Diagnostic("size-unknown", what, kernel.loc))
        elif s is None:
            constants = [n for n, _ in kernel.params]
            hint = did_you_mean(name, [*known, *constants]) or f"sizes: {', '.join(known) or 'none'}"
            hint += f"; constants: {', '.join(constants)}" if constants and not hint.startswith("did") else ""
            faults.append(Diagnostic("size-unknown", f"'{kernel.name}' has no size '{name}'", kernel.loc, hint))
        elif isinstance(v, bool) or not hasattr(v, "__index__"):
            what = f"the size {name} = {v!r} is no whole number"
            faults.append(Diagnostic("size-range", what, kernel.loc, "sizes are of the type int"))
        elif v < s.lo or (s.hi is not None and v > s.hi) or v % s.multiple_of:
            limits = f"{s.lo} <= {name}" + (f" <= {s.hi}" if s.hi is not None else "")
            limits += f", a multiple of {s.multiple_of}" if s.multiple_of > 1 else ""
            what, near = f"the size {name} = {v} is not admitted: {limits}", _nearest(s, index(v))
            faults.append(Diagnostic("size-range", what, kernel.loc, f"the nearest is {name} = {near}"))
    if faults:
        raise IsamError(faults)


def _nearest(s: Sym, number: int) -> int:
    """The number that the size admits and that is nearest to one it does not, a smaller one first."""
    step = s.multiple_of
    low = -(-s.lo // step) * step
    high = number + step if s.hi is None else s.hi // step * step
    below = number // step * step
    return min((max(low, min(n, high)) for n in (below, below + step)), key=lambda n: abs(n - number))
