"""Obligation 9 for what is fixed before anything runs: slots, homes, capacities."""

from __future__ import annotations

from isam.proof.geometry import resolve
from isam.proof.legal import Legality
from isam.proof.violation import Findings
from isam.schedule.tree import Schedule


def check_workspace(schedule: Schedule, legality: Legality, out: Findings) -> None:
    """Slots have names of their own, fit their memories and are aligned as those ask; homes are whole and apart."""
    s = schedule.system
    used: dict[str, int] = {}
    names: set[str] = {b.name for b in schedule.cover.kernel.buffers if b.role != "temp"}
    for w in schedule.workspace:
        memory = s.memories.get(w.memory)
        if w.name in names:
            out.add(9, "slot", f"two things are called '{w.name}'")
        names.add(w.name)
        if memory is None or memory.cells is not None or memory.kind != "managed":
            out.add(9, "slot", f"the slot '{w.name}' lies in '{w.memory}', which is no memory for slots")
            continue
        if w.bytes < 0 or w.align < 1 or w.align % memory.align:
            out.add(9, "slot", f"the slot '{w.name}' ({w.bytes} bytes at {w.align}) does not fit '{w.memory}'")
            continue
        at = resolve(s, w.memory)
        used[at] = used.get(at, 0) + -(-w.bytes // w.align) * w.align
    for b in legality.buffers.values():
        _home(schedule, b.name, legality, used, out)
    for name, n in used.items():
        if n > s.memories[name].capacity:
            out.add(
                9,
                "capacity",
                f"{n} bytes of arguments and workspace in '{name}', which has {s.memories[name].capacity}",
            )


def _home(schedule: Schedule, name: str, legality: Legality, used: dict[str, int], out: Findings) -> None:
    b = legality.buffers[name]
    if b.home is None:
        if b.role != "temp":
            out.add(9, "home", f"the buffer '{name}' has no place at home")
        return
    own = b.role not in ("temp", "literal")
    if len(b.home.strides) != len(b.shape) or not b.home.offset.is_constant:
        out.add(9, "home", f"the home of '{name}' has not its rank")
        return
    if own and (
        b.home.base != name or b.home.offset.const or resolve(schedule.system, b.home.memory) != schedule.system.home
    ):
        out.add(9, "home", f"the argument '{name}' does not lie where the caller puts it")
    elif not own and b.home.base not in legality.slots:
        out.add(9, "home", f"the home of '{name}' is no slot")
    rows = [(n, k) for n, k in zip(b.shape, b.home.strides, strict=True) if n.terms or n.const > 1]
    rows = rows[::-1] if own else sorted(rows, key=lambda p: (p[1], bool(p[0].terms)))  # arguments: C order
    want = 1
    for left, (n, k) in zip(range(len(rows) - 1, -1, -1), rows, strict=True):
        if k != want * b.bytes:
            out.add(9, "home", f"the elements of '{name}' do not lie side by side at home")
            return
        if n.terms and left:
            out.add(9, "home", f"'{name}': where an element lies depends on {n}, which is a run-time value")
        if n.terms:
            return  # the slowest dimension: its size does not matter
        want *= n.const
    if own:
        used[schedule.system.home] = used.get(schedule.system.home, 0) + want * b.bytes
    elif want * b.bytes > legality.slots.get(b.home.base, 0) and all(n.const > 0 for n in b.shape):
        out.add(9, "home", f"'{name}' does not fit its slot '{b.home.base}'")
