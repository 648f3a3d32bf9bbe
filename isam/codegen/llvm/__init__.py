"""Schedule to native code through LLVM. ``emit`` gives what :mod:`isam.runtime` needs to load and run it."""

from __future__ import annotations

from dataclasses import dataclass

from isam.schedule.tree import Issue, Schedule, distinct


@dataclass(frozen=True)
class Code:
    """An object file for this CPU. Entries ``bind`` and ``call``: ``void (ptr* arguments, ptr workspace, i64* sizes)``.

    ``workspace``: bytes of the block that both entries get (64-byte aligned); ``slots`` its parts. ``sizes``: names of
    run-time sizes in the order of the third argument. ``symbols``: names in the object to what the loader resolves them
    to (``blas:sgemm``, ``libm:erf``). ``features``: what the CPU must have.
    """

    object: bytes
    text: str
    entries: tuple[str, ...]
    symbols: dict[str, str]
    workspace: int
    slots: dict[str, int]
    sizes: tuple[str, ...]
    features: str
    assembly: str = ""


def to_ir(schedule: Schedule) -> tuple[str, dict[str, str]]:
    """The schedule as LLVM IR, and its external symbols."""
    from isam.codegen.llvm.irtext import Module
    from isam.codegen.llvm.lower import Lowering

    module = Module()
    lowering = Lowering(schedule, module)
    lowering.main("bind", schedule.bind)
    lowering.main("call", schedule.call)
    return str(module), dict(module.externals)


def generate(schedule: Schedule, assembly: bool = False) -> Code:
    """Native code of a schedule. Raises ``IsamError`` when this CPU lacks what the machine or an instruction needs."""
    from isam.codegen.llvm.lower import slot_offsets
    from isam.codegen.llvm.machine import check_features, compile_object, features

    system = schedule.system
    used = {n.instruction for root in (schedule.bind, schedule.call) for n in distinct(root) if isinstance(n, Issue)}
    check_features(system.needs, f"the system '{system.name}'")
    for name in sorted(used):
        check_features(system.instructions[name].needs, f"the instruction '{name}'")
    text, symbols = to_ir(schedule)
    blob, listing = compile_object(text, assembly)
    offsets = slot_offsets(schedule)
    total = max((offsets[s.name] + s.bytes for s in schedule.workspace if s.name in offsets), default=0)
    sizes = tuple(sorted(s.name for s in schedule.kernel.syms))
    return Code(blob, text, ("bind", "call"), symbols, total, offsets, sizes, features(), listing)
