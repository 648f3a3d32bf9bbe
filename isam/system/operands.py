"""What a description says of an instruction's operands."""

from __future__ import annotations

from isam.diagnostics import Loc
from isam.ir.instruction import Burst, OperandContract, packed
from isam.ir.kernel import Buffer
from isam.system.check import Marks
from isam.system.faults import Faults, nearest
from isam.system.fields import Values
from isam.system.source import Scalar


class Operands:
    """The contract fields of one instruction: every operand they name must be one."""

    def __init__(self, name: str, buffers: dict[str, Buffer], faults: Faults, marks: Marks):
        self.name, self.buffers, self.known, self.faults, self.marks = name, buffers, list(buffers), faults, marks

    def ok(self, operand: Scalar) -> bool:
        if operand.text in self.known:
            return True
        self.faults.add("system-operand", f"'{self.name}' has no operand '{operand.text[:40]}'", operand.loc,
                        nearest(operand.text, self.known, f"operands: {', '.join(self.known)}"))  # fmt: skip
        return False

    def burst(self, v: Values, at: Loc) -> Burst:
        given = v.get("burst", {})
        most, step = given.get("most", 1), given.get("step", {})
        if most < 1:
            self.faults.add("system-value", f"one command of '{self.name}' carries out no call", at, "at least 1")
        return Burst(most, tuple((o.text, n) for o, n in step.items() if self.ok(o)))

    def contracts(self, v: Values, at: Loc) -> dict[str, OperandContract]:
        homes: dict[str, tuple[str, ...]] = {}
        for operand, memories in v.get("homes", {}).items():
            if operand is not None and not self.ok(operand):
                continue
            if not memories:
                where = operand.loc if operand is not None else at
                self.faults.add("system-no-home", f"an operand of '{self.name}' has no home", where, "name a memory")
            for o in self.known if operand is None else [operand.text]:
                homes[o] = tuple(dict.fromkeys(m.text for m in memories))
                for m in memories:
                    self.marks["home", self.name, o, m.text] = m.loc
        aligns = {k.text: b for k, b in v.get("align", {}).items() if self.ok(k)}
        strides: dict[str, tuple[int | None, ...]] = {}
        for k, s in v.get("strides", {}).items():
            if self.ok(k):
                strides[k.text] = s if s is not None else packed(self.buffers[k.text].shape)
                self.marks["strides", self.name, k.text] = k.loc
        shared = {w.text for w in v.get("shared", ()) if self.ok(w)}
        named = [o for o in self.known if o in homes or o in aligns or o in strides or o in shared]
        return {o: OperandContract(homes.get(o, ()), strides.get(o, ()), aligns.get(o) or 1, o in shared)
                for o in named}  # fmt: skip

    def apart(self, v: Values) -> tuple[tuple[str, ...], ...]:
        out: list[tuple[str, ...]] = []
        for group in v.get("apart", ()):
            known = [self.ok(o) for o in group]
            if all(known):
                self.marks["apart", self.name, len(out)] = group[0].loc
                out.append(tuple(o.text for o in group))
        return tuple(out)
