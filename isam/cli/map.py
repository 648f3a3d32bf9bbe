"""``isam map``: which instructions carry a kernel out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from isam.classes import dataclass
from isam.cli import given
from isam.cli.answer import Answer, answering
from isam.cli.onward import onward
from isam.cli.options import Approach, AsJson, Kernel, On, Require, Sizes
from isam.diagnostics import Diagnostic, IsamError, fail

if TYPE_CHECKING:
    from isam.compiler.job import Job
    from isam.ir.mapping import Cover, Mapping

ONE = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--instruction", "-i", help="Every mapping onto this one (or family), no choice."),
]
DECISIONS = Annotated[bool, typer.Option("--decisions", help="With what was decided, among what, and why.")]
CERTIFY = Annotated[bool, typer.Option("--certify", help="Prove what is answered; the certificates are in the JSON.")]
STRIDED = Annotated[bool, typer.Option("--strided", help="With --instruction: other coefficients than 1 are admitted.")]


@dataclass(frozen=True, slots=True)
class Found:
    """``mappings`` after the transforms ``steps``, or ``why`` there are none; ``decisions``: their printed form.
    ``covers``: what a certificate is asked for, one by one; ``others``: those that schedules are compared with;
    ``job``: what permissions are worth to."""

    mappings: tuple[Mapping, ...] = ()
    steps: tuple[str, ...] = ()
    why: str = ""
    decisions: str = ""
    covers: tuple[Cover, ...] = ()
    others: tuple[Cover, ...] = ()
    job: Job | None = None

    @property
    def beside(self) -> tuple[str, ...]:
        """The instructions of other covers that these mappings have not."""
        mine = {m.instruction.name for m in self.mappings}
        return tuple(dict.fromkeys(m.instruction.name for c in self.others for m in c.mappings
                                   if m.instruction.name not in mine))  # fmt: skip

    @property
    def errors(self) -> tuple[str, ...]:
        """How far results may be from exact ones, where the transforms are inexact."""
        return tuple(e for c in self.covers for e in c.errors)


@answering(
    "map", kernel="its name", system="its name",
    mappings="instruction, operands, axes, outer axes, tails, statements, conditions (on open sizes, where it holds)",
    steps="the transforms applied first", errors="how far results may be from exact ones, of inexact transforms",
    why="where the answer is no: the report", seconds="spent on mapping",
    others="instructions of other covers, whose schedules are compared with this one's",
    grants="permissions that the kernel does not give, and what they are worth",
    decisions="what was decided, and why", certificates="with --certify: one for the whole, or one per mapping",
)  # fmt: skip
def map_(
    kernel: Kernel, on: On = "host", define: Sizes = None, instruction: ONE = None, strided: STRIDED = False,
    approach: Approach = "", require: Require = None, decisions: DECISIONS = False, certify: CERTIFY = False,
    as_json: AsJson = False,
) -> Answer:  # fmt: skip
    """Chooses instructions of a machine that carry out every statement of a kernel, and says how.

    With --instruction: every mapping onto that one. Exit code 1, with the report, when there is none.

    Exit code 0 says that the instructions suffice, not yet that the machine can hold and move what they need: that
    `isam schedule` says, and `isam explain` where all sizes are given.
    """
    from isam.system.load import load_system

    if instruction is None:
        demand_one(strided)
    else:
        _choosing({"--approach": approach, "--require": require, "--decisions": decisions})
    k, _ = given.kernel(kernel)
    k = given.sized(k, given.sizes(define))
    system = load_system(on)
    start = time.perf_counter()
    if instruction is not None:
        found = onto(k, named(system, instruction, k), strided)
    else:
        found = covered(k, system, approach, require, certify)
    seconds = time.perf_counter() - start
    more = worth(found.job)
    data = {"kernel": k.name, "system": system.name, "mappings": [plain(m) for m in found.mappings], "why": found.why,
            "steps": list(found.steps), "errors": list(found.errors), "seconds": seconds,
            "others": list(found.beside), "grants": more, "decisions": found.decisions.splitlines(),
            "certificates": certificates(found.covers) if certify else []}  # fmt: skip
    if found.why:
        return Answer(found.why, data, yes=False)
    text = _text(k.name, system.name, found, seconds, instruction or "")
    if certify:
        text += f"\nproved: obligations 1 to 7, {len(found.covers)} certificate{'s' if len(found.covers) != 1 else ''}"
    if instruction is None:
        others = ["--approach", approach] if approach else []
        others += [word for r in require or () for word in ("--require", r)]
        text += "".join(f"\n{m}" for m in more)
        text += "\n" + onward(k, system, kernel, on, define, others, (len(found.others), found.beside))
    return Answer(text + (f"\ndecisions\n{found.decisions}" if decisions else ""), data)


def demand_one(strided: bool) -> None:
    """Raises ``IsamError`` for --strided where no instruction is named: it is about one."""
    if strided:
        raise fail("cli-option", "--strided is for one instruction, and none is named",
                   hint="--instruction NAME, or no --strided")  # fmt: skip


def _choosing(options: dict[str, Any]) -> None:
    """Refuses what only a choice of instructions can heed. Raises ``IsamError``."""
    why = "is for a choice of instructions: with --instruction there is none"
    if refused := [option for option, value in options.items() if value]:
        raise IsamError(Diagnostic("cli-option", f"{option} {why}", hint=f"no {option}, or no --instruction")
                        for option in refused)  # fmt: skip


def certificates(covers: tuple[Cover, ...]) -> list[dict[str, Any]]:
    from isam.proof.mapped import certify

    return [certify(c) for c in covers]


def _text(kernel: str, system: str, found: Found, seconds: float, one: str) -> str:
    count = len(found.mappings)
    ways = f"{count} mapping{'s' if count != 1 else ''}" + (f" onto {one}" if one else "")
    lines = [f"{kernel} on {system}: {ways}, {1e3 * seconds:.1f} ms"]
    lines += [f"  rewritten by {s}" for s in found.steps]
    lines += [f"  error of {e}" for e in found.errors]
    return "\n".join(lines + [f"  {m}" for m in found.mappings])


def onto(k: Any, instruction: Any, strided: bool) -> Found:
    """Every mapping onto one instruction."""
    from isam.ir.mapping import Cover
    from isam.ir.normal import normal_form
    from isam.mapper import match
    from isam.mapper.match import Matches
    from isam.mapper.nearest import nearest

    answer = match(k, instruction, strided=strided)
    if isinstance(answer, Matches):
        found, n = tuple(answer), normal_form(k)
        return Found(found, covers=tuple(Cover(n, n, (m,)) for m in found))
    return Found(why=str(nearest(k, instruction, strided=strided)[0]))


def covered(k: Any, system: Any, approach: str, require: list[str] | None, sure: bool) -> Found:
    """The instructions chosen for the whole kernel; ``sure``: so that this can be proved."""
    from isam.compiler import as_approach
    from isam.compiler.feasible import as_far
    from isam.compiler.stages import new_job

    new = new_job(k, system, {}, as_approach(approach or None), require=tuple(require or ()), sure=sure)
    job, refused = as_far(new, "cover")
    if job.cover is None:
        return Found(why=str(refused), decisions=str(job.trace))
    others = tuple(c for c in (job.plain, *job.others) if c is not None)
    return Found(job.cover.mappings, tuple(map(str, job.cover.steps)), "", str(job.trace), (job.cover,), others, job)


def worth(job: Job | None) -> list[str]:
    """What further permissions are worth, a line each."""
    from isam.compiler.grants import grants

    return list(map(str, grants(job))) if job is not None else []


def named(system: Any, name: str, k: Any) -> Any:
    """The instruction of this name; of a family, the first member that fits, or the one that comes nearest. Raises
    ``IsamError`` with the closest name."""
    from isam.mapper.nearest import closest
    from isam.system.names import named as members

    return closest(k, members(system, name))


def plain(m: Mapping) -> dict[str, Any]:
    """A mapping as JSON values."""
    operands = {o.operand: o.buffer or o.literal for o in m.operands}
    return {"instruction": m.instruction.name, "operands": operands, "axes": dict(m.axes), "outer": list(m.outer),
            "tails": dict(m.tails), "statements": list(m.statements),
            "conditions": list(map(str, m.conditions))}  # fmt: skip
