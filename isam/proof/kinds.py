"""The words in brackets of what a checker finds: which obligations each may violate, and what it means."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """``obligations``: those that it may stand for; 0: the check itself."""

    obligations: tuple[int, ...]
    meaning: str

    def __str__(self) -> str:
        numbers = " or ".join(map(str, self.obligations))
        return f"Of a proof, obligation {numbers}: {self.meaning}"


KINDS: dict[str, Kind] = {
    "absent": Kind((8,), "A step reads elements that do not lie where it reads them."),
    "access": Kind((2,), "The tile of an operand does not follow the kernel's access along an axis."),
    "address": Kind((2, 7, 9), "An operand lies where other elements are, beyond its memory, slot or argument, or so "
                               "that its elements share bytes."),
    "alias": Kind((9,), "Operands of one step overlap, one of which is written."),
    "align": Kind((9,), "An address may be no multiple of what the instruction or the memory demands."),
    "apart": Kind((9,), "Operands that have to lie in different memories share one."),
    "axes": Kind((2,), "The axes of an instruction are not each mapped to one of the kernel's."),
    "base": Kind((8, 9), "An operand lies at a place that the schedule does not define, that is of another memory, or "
                         "that may not be written."),
    "bind": Kind((8,), "What is kept from binding on depends on what a call brings, or a call overwrites it."),
    "bounds": Kind((7,), "A tile may leave its buffer."),
    "budget": Kind((0, 3, 4, 5), "There are more steps than can be executed one by one (0), or to judge their order "
                                 "takes more work than it may."),
    "buffer": Kind((2, 7), "A tile is of a buffer that does not exist, or is not the one of the kernel's access."),
    "burst": Kind((10,), "The calls of one command are too many, of two kinds, or at distances that it does not have."),
    "capacity": Kind((9,), "Arguments and workspace are more than the memory holds."),
    "cell": Kind((9,), "An operand leaves its cell, or says a cell where there are none."),
    "certificate": Kind((0,), "The certificate is damaged, or is not that of the schedule."),
    "schedule": Kind((0,), "The schedule that was read makes no sense: parts of it contradict each other."),
    "closed": Kind((11,), "What is known at the end of a loop's body is never what was assumed at its begin."),
    "coverage": Kind((1,), "Some point of a statement's domain is not executed, or more than once."),
    "deal": Kind((8, 10, 11), "A loop is dealt to instances that the machine does not have, or whose steps depend on "
                              "each other."),
    "dims": Kind((2,), "The dimensions of an operand do not name those of its buffer once each."),
    "domain": Kind((1, 3), "A step executes a statement outside its domain, or the instruction has a condition on "
                           "its own."),
    "dtype": Kind((3,), "The buffer has another type of element than the operand."),
    "edge": Kind((10,), "A move goes where no edge leads by that instruction and unit."),
    "escapes": Kind((6,), "A temporary that lives inside an instruction is used outside."),
    "final": Kind((8,), "An output is not known to be whole and current at home after the call."),
    "foreign": Kind((8,), "A buffer is written into the memory of another one."),
    "form": Kind((11,), "A loop does not say which iterations it has, and in which order, in a form that is judged."),
    "home": Kind((9,), "A buffer has no place, or an impossible one, at home, or an operand lives in a memory that the "
                       "instruction does not admit."),
    "instruction": Kind((3, 10), "The instruction is not one of the machine, or not the one that is mapped."),
    "literal": Kind((2,), "An operand is not the number that stands in the kernel."),
    "mapping": Kind((3,), "A mapping is none: see what it says after the word."),
    "memory": Kind((9,), "An operand lies in a memory that does not exist, or that holds nothing of its own."),
    "move": Kind((2, 10), "A step that belongs to no nest computes, or a move puts elements in the places of others."),
    "nest": Kind((1, 3), "A step belongs to no nest of the mapping, or to one that does not exist."),
    "numerics": Kind((3,), "The instruction takes numerics that the kernel does not permit."),
    "operand": Kind((2,), "An operand plays no access of the kernel."),
    "operands": Kind((3,), "A step does not give the instruction the operands it takes."),
    "operation": Kind((3,), "The instruction does another operation than the statements."),
    "order": Kind((4, 5), "A step may run before one that it depends on: of a sum (4), or of anything else (5)."),
    "point": Kind((1,), "A step does not say at which point of its nest it stands."),
    "ports": Kind((9,), "A call takes more operands from a memory, or puts more there, than it has ports."),
    "race": Kind((8,), "A call waits for too little: it may start before one that touches the same bytes is done."),
    "rank": Kind((7,), "A tile or its strides have not as many dimensions as the buffer."),
    "read-only": Kind((8,), "An input is written."),
    "reassociate": Kind((3,), "Terms of a sum are added in another order than the kernel's, which permits no other."),
    "register": Kind((10,), "A configuration register is not known to hold what the instruction requires."),
    "rewriting": Kind((3,), "A step from the kernel to the one that is carried out is not known to keep its values."),
    "row": Kind((9,), "The strides of an operand do not suit the rows of its memory."),
    "scope": Kind((11,), "A name has no value where it is used, or two."),
    "shape": Kind((2,), "A tile has not as many elements, along some dimension, as the operand."),
    "sizes": Kind((0, 9), "The sizes of a call are not those that the instruction has or admits, or one is not given."),
    "slot": Kind((9,), "A slot does not fit its memory, or has the name of another thing."),
    "stale": Kind((8,), "An operand is not known to lie, at its current version, where a step reads it."),
    "step": Kind((8, 10), "Calls that begin together meet in what they write, or may not begin together."),
    "stride": Kind((9,), "The elements of an operand lie at other distances than the instruction demands."),
    "trip": Kind((11,), "A loop has bodies that run once, and does not run as often as they say."),
    "unit": Kind((10,), "The unit does not run the instruction."),
    "wait": Kind((10,), "A step waits for calls that there are not."),
    "write": Kind((3,), "An instruction does not write every element of the tile that it is said to write."),
}  # fmt: skip
