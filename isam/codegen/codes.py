"""What the diagnostics of the code generators mean."""

from __future__ import annotations

CODES: dict[str, str] = {
    "codegen-features": "The description needs CPU features that the CPU which code is made for lacks.",
    "codegen-target": "LLVM makes no code for the target that the description names.",
    "emission-cell": "An operand begins within a register that a template can only name whole.",
    "emission-increment": "A template needs a distance in elements where the distance in bytes is no multiple of them.",
    "emission-instances": "Commands as text are those of one instance, and the schedule deals loops to several.",
    "emission-lanes": "A tile does not fit the vector of a template, or registers do not say what they hold.",
    "emission-leading": "A template needs a leading dimension that holds the rows of the tile.",
    "emission-long": "A machine that runs no loops would need more commands than can be spelled out.",
    "emission-missing": "The instruction has no emission template for this code generator.",
    "emission-open": "A machine whose code is commands as text needs all sizes, also trips of loops.",
    "emission-name": "An emission template uses a value, a type, a verb or a snippet that does not exist.",
    "emission-operand": "An emission template leaves an operand out, or asks for what the operand does not have.",
    "emission-refused": "No code can be made of an emission template: LLVM refuses it, also where the instruction is "
                        "called alone.",
    "emission-rows": "An operand does not fit the rows of a register, or its own do not lie in one piece.",
    "emission-type": "An emission template takes or gives a value as another type than it has.",
    "emission-value": "An emission template computes something else than the instruction's body, also where the "
                      "instruction is called alone.",
    "emission-wait": "Commands have to wait for others, and the description does not say how that is written.",
    "simulator-loop": "The body of an instruction has a recurrent loop: an instruction is one step.",
}  # fmt: skip
