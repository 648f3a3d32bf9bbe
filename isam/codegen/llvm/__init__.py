"""Schedule to native code through LLVM: ``emit`` makes the artifact that :mod:`isam.runtime.native` loads and runs."""

from __future__ import annotations

import json

from isam.artifact import Artifact
from isam.classes import dataclass
from isam.codegen.llvm.spills import Spills, spills
from isam.schedule.tree import Issue, Schedule, distinct


@dataclass(frozen=True)
class Code:
    """An object file for a CPU. Entries ``bind`` and ``call``: ``void (ptr* arguments, ptr workspace, i64* sizes)``.

    ``workspace``: bytes of the block that both entries get; its first ``bound`` bytes are filled by ``bind`` and kept.
    ``sizes``: names of run-time sizes in the order of the third argument. ``symbols``: names in the object to what the
    loader resolves them to (``blas:sgemm``, ``libm:erf``). ``needs``: what the CPU must have. ``spills``: vectors that
    an innermost loop saves to the stack. ``assembly``: where it was asked for, or told of those.
    """

    object: bytes
    text: str
    entries: tuple[str, ...]
    symbols: dict[str, str]
    workspace: int
    bound: int
    sizes: tuple[str, ...]
    needs: tuple[str, ...]
    assembly: str = ""
    spills: Spills | None = None


def to_ir(schedule: Schedule) -> tuple[str, dict[str, str]]:
    """The schedule as LLVM IR, and its external symbols."""
    from isam.codegen.llvm.irtext import Module
    from isam.codegen.llvm.lower import Lowering
    from isam.runtime.linking import vscale
    from isam.schedule.sharing import shared

    module, schedule = Module(vscale(schedule.system.needs)), shared(schedule)
    lowering = Lowering(schedule, module)
    lowering.main("bind", schedule.bind)
    lowering.main("call", schedule.call)
    return str(module), dict(module.externals)


def generate(schedule: Schedule, assembly: bool = False) -> Code:
    """Native code of a schedule, for this CPU or the one that the machine's description names. Raises ``IsamError``
    when the CPU lacks what the machine or an instruction needs."""
    from isam.codegen.llvm.lower import slot_offsets, workspace_bytes
    from isam.codegen.llvm.machine import check_features, compile_object, features

    system = schedule.system
    used = schedule.called()
    check_features(system.needs, f"the system '{system.name}'", system.target)
    for name in sorted(used):
        check_features(system.instructions[name].needs, f"the instruction '{name}'", system.target)
    text, symbols = to_ir(schedule)
    blob, listing = compile_object(text, assembly, system.target)
    offsets = slot_offsets(schedule)
    kept = max((offsets[s.name] + s.bytes for s in schedule.workspace if s.bound and s.name in offsets), default=0)
    sizes = tuple(s.name for s in schedule.kernel.given)
    entries = ("bind", "call") if any(isinstance(n, Issue) for n in distinct(schedule.bind)) else ("call",)
    needs = tuple(sorted(system.target.features if system.target else features()))
    return Code(blob, text, entries, symbols, workspace_bytes(schedule), kept, sizes, needs, listing, spills(listing))


def emit(schedule: Schedule) -> Artifact:
    """The artifact of a schedule: its object code and what a loader has to know."""
    from isam import __version__
    from isam.codegen.llvm.machine import version
    from isam.ir.signature import arguments_of, points_of, sizes_of

    kernel, code = schedule.kernel, generate(schedule)
    text = str(schedule.cover.original).encode()
    spilled = {"spills": [code.spills.saved, code.spills.instructions]} if code.spills else {}
    return Artifact(
        name=kernel.name,
        backend="llvm",
        arguments=arguments_of(schedule.cover.original),
        sizes=sizes_of(kernel),
        entry="call",
        bind="bind" if "bind" in code.entries else "",
        workspace=code.workspace,
        bound=code.bound,
        needs=code.needs,
        externals=tuple(sorted(code.symbols.items())),
        points=points_of(kernel),
        provenance={"isam": __version__, "system": schedule.system.name, "llvm": version(), **spilled},
        parts={"object.o": code.object, "kernel.isam": text, **_declared(schedule, code)},
    )


def _declared(schedule: Schedule, code: Code) -> dict[str, bytes]:
    """The part that says which instructions the functions are that the code calls; none where it calls none."""
    from isam.runtime.handed import DECLARATIONS, called, declaration

    known = schedule.system.instructions
    names = sorted(c.name for symbol in code.symbols.values() if (c := called(symbol)) is not None)
    texts = {n: declaration(known[n]) for n in names if n in known}
    return {DECLARATIONS: json.dumps(texts, indent=1).encode()} if texts else {}
