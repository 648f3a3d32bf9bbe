"""``isam map``: which instructions carry a kernel out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isam.cli import given
from isam.cli.answer import Answer, answering
from isam.cli.options import Approach, AsJson, Kernel, On, Require, Sizes
from isam.diagnostics import did_you_mean, fail

if TYPE_CHECKING:
    from isam.ir.mapping import Mapping

ONE = Annotated[str, typer.Option("--instruction", "-i", help="Every mapping onto this instruction, no choice.")]
STRIDED = Annotated[bool, typer.Option("--strided", help="With --instruction: other coefficients than 1 are admitted.")]


@answering(
    "map", kernel="its name", system="its name", mappings="instruction, operands, axes, outer axes, tails, statements",
    steps="the transforms applied first", why="where the answer is no: the report", seconds="spent on mapping",
)  # fmt: skip
def map_(
    kernel: Kernel, on: On = "host", define: Sizes = None, instruction: ONE = "", strided: STRIDED = False,
    approach: Approach = "", require: Require = None, as_json: AsJson = False,
) -> Answer:  # fmt: skip
    """Chooses instructions of a machine that carry out every statement of a kernel, and says how.

    With --instruction: every mapping onto that one. Exit code 1, with the report, when there is none.
    """
    from isam.system.load import load_system

    k, _ = given.kernel(kernel)
    k = given.sized(k, given.sizes(define))
    system = load_system(on)
    start = time.perf_counter()
    if instruction:
        found, steps, why = _onto(k, _instruction(system, instruction), strided)
    else:
        found, steps, why = _cover(k, system, approach, require)
    seconds = time.perf_counter() - start
    data = {"kernel": k.name, "system": system.name, "mappings": [plain(m) for m in found], "steps": list(steps),
            "why": why, "seconds": seconds}  # fmt: skip
    if not found and why:
        return Answer(why, data, yes=False)
    return Answer(_text(k.name, system.name, found, steps, seconds, instruction), data)


def _text(kernel: str, system: str, found: list[Mapping], steps: list[str], seconds: float, one: str) -> str:
    ways = f"{len(found)} mapping{'s' if len(found) != 1 else ''}" + (f" onto {one}" if one else "")
    lines = [f"{kernel} on {system}: {ways}, {1e3 * seconds:.1f} ms"]
    lines += [f"  rewritten by {s}" for s in steps]
    return "\n".join(lines + [f"  {m}" for m in found])


def _onto(k: Any, instruction: Any, strided: bool) -> tuple[list[Mapping], list[str], str]:
    from isam.mapper import match
    from isam.mapper.match import Matches

    answer = match(k, instruction, strided=strided)
    if isinstance(answer, Matches):
        return list(answer), [], ""
    return [], [], str(answer)


def _cover(k: Any, system: Any, approach: str, require: list[str] | None) -> tuple[list[Mapping], list[str], str]:
    from isam.compiler import as_approach
    from isam.compiler.stages import Refused, new_job, run_stages

    job = new_job(k, system, {}, as_approach(approach or None), require=tuple(require or ()))
    try:
        run_stages(job, until="cover")
    except Refused as e:
        return [], [], str(e.answer)
    assert job.cover is not None
    return list(job.cover.mappings), [str(s) for s in job.cover.steps], ""


def _instruction(system: Any, name: str) -> Any:
    found = system.instructions.get(name)
    if found is None:
        hint = did_you_mean(name, system.instructions) or f"isam system show {system.name} lists them"
        raise fail("instruction-unknown", f"the system '{system.name}' has no instruction '{name}'", hint=hint)
    return found


def plain(m: Mapping) -> dict[str, Any]:
    """A mapping as JSON values."""
    operands = {o.operand: o.buffer or o.literal for o in m.operands}
    return {"instruction": m.instruction.name, "operands": operands, "axes": dict(m.axes), "outer": list(m.outer),
            "tails": dict(m.tails), "statements": list(m.statements)}  # fmt: skip
