"""The reference interpreter: what a kernel means, literally (IR-4). The judge of everything else; slow and simple.

:func:`run` follows :mod:`isam.ir.points`: whole statements in text order, accumulations in lexicographic order of the
``forall``'s axes with one rounding per operation (so ``permits exact`` and every other permission have the same
reference). What each operation means is in :mod:`isam.ir.arithmetic`.

Elements that nothing has written hold a marker (NaN, or the byte 0x5A repeated), so that a use of one is seen.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from isam.diagnostics import Diagnostic, IsamError, did_you_mean
from isam.ir.arithmetic import Numbers
from isam.ir.dtype import ANY, DTYPES, numpy_dtype
from isam.ir.kernel import Buffer, Kernel
from isam.ir.points import Array, Memory, check_sizes, execute, sizes_of


def run(kernel: Kernel, arrays: Mapping[str, Array], sizes: Mapping[str, int] | None = None) -> dict[str, Array]:
    """Outputs and inouts after one call, as fresh arrays by name; ``arrays`` is never modified.

    ``arrays`` holds every ``in``, ``const`` and ``inout``; an ``out`` or a temporary may be given to say what it holds
    beforehand. ``sizes`` not given are found from the shapes.
    Raises ``IsamError``: a missing or misshaped array, a size without a value, an index out of range.
    Cost: about 20 ns per domain point and access; temporaries are allocated as declared.
    """
    sizes = checked(kernel, arrays, sizes)
    memory = Memory({}, dtypes_of(kernel, arrays))
    for b in kernel.buffers:
        if b.name in arrays:
            memory.arrays[b.name] = np.array(arrays[b.name], order="C", ndmin=0)
        else:
            memory.arrays[b.name] = unwritten(sizes_of(b, sizes), memory.dtypes[b.name])
    with np.errstate(all="ignore"):
        execute(kernel, memory, sizes, Numbers())
    return {b.name: memory.arrays[b.name] for b in kernel.buffers if b.role in ("out", "inout")}


def checked(kernel: Kernel, arrays: Mapping[str, Array], sizes: Mapping[str, int] | None = None) -> dict[str, int]:
    """All sizes, after every array has been compared with its declaration. Raises ``IsamError`` with every fault."""
    given = sizes or {}
    _exist(kernel, given)
    known = infer_sizes(kernel, arrays, given)
    check_sizes(kernel, known)
    faults = [Diagnostic("I502", f"size {s.name} = {given[s.name]} is not {of} // {n} = {known[s.name]}", kernel.loc)
              for s, of, n in [(s, *s.whole) for s in kernel.follow if s.whole]
              if given.get(s.name, known[s.name]) != known[s.name]]  # fmt: skip
    faults += [f for b in kernel.buffers for f in _faults(b, arrays, known)]
    faults += [Diagnostic("I506", f"kernel '{kernel.name}' has no buffer '{n}'", kernel.loc)
               for n in arrays if n not in kernel.by_name]  # fmt: skip
    if faults:
        raise IsamError(faults)
    return known


def _exist(kernel: Kernel, sizes: Mapping[str, int]) -> None:
    """Raises ``IsamError`` for numbers that would have no effect."""
    constants, open_ = dict(kernel.params), [s.name for s in kernel.syms]
    faults = kernel.settled(sizes)
    for name in sizes:
        if name not in constants and name not in open_:
            hint = did_you_mean(str(name), open_) or f"open sizes: {', '.join(open_) or 'none'}"
            faults.append(Diagnostic("I509", f"kernel '{kernel.name}' has no open size '{name}'", kernel.loc, hint))
    if faults:
        raise IsamError(faults)


def unwritten(shape: tuple[int, ...], dtype: str) -> Array:
    """An array of markers: NaN, True, or the byte 0x5A repeated."""
    array = np.empty(shape, numpy_dtype(dtype))
    if DTYPES[dtype].kind == "f":
        array[...] = np.nan
    elif dtype == "bool":
        array[...] = True
    else:
        array.reshape(-1).view(np.uint8)[...] = 0x5A
    return array


def infer_sizes(kernel: Kernel, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> dict[str, int]:
    """``sizes`` completed from array shapes, wherever a dimension leaves a single size open."""
    known = kernel.sizes(sizes)
    dims = [(e, n) for b in kernel.buffers if b.name in arrays and arrays[b.name].ndim == len(b.shape)
            for e, n in zip(b.shape, arrays[b.name].shape, strict=True)]  # fmt: skip
    progress = True
    while progress:
        progress = False
        for e, n in dims:
            rest = e.substitute(known)
            if len(rest.terms) == 1:
                name, c = rest.terms[0]
                if (n - rest.const) % c == 0:
                    known = kernel.sizes({**known, name: (n - rest.const) // c})
                    progress = True
    return known


def dtypes_of(kernel: Kernel, arrays: Mapping[str, Array]) -> dict[str, str]:
    """The dtype of every buffer; ``any`` (a move's operand) becomes that of the array it was given."""
    names = {numpy_dtype(n): n for n in DTYPES}
    free = next((names[arrays[b.name].dtype] for b in kernel.buffers if b.dtype == ANY and b.name in arrays), "f32")
    return {b.name: free if b.dtype == ANY else b.dtype for b in kernel.buffers}


def _faults(b: Buffer, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> list[Diagnostic]:
    if b.name not in arrays:
        if b.role in ("out", "temp"):
            return []
        return [Diagnostic("I503", f"no array for '{b.name}'", b.loc)]
    a = arrays[b.name]
    shape = sizes_of(b, sizes)
    if a.shape != shape:
        return [Diagnostic("I504", f"'{b.name}' has shape {a.shape}, but needs {shape}", b.loc)]
    if b.dtype != ANY and a.dtype != numpy_dtype(b.dtype):
        return [Diagnostic("I505", f"'{b.name}' has dtype {a.dtype}, but needs {b.dtype}", b.loc)]
    return []
