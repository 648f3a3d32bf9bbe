"""``isam system test``: every instruction of a machine against what its description says it does."""

from __future__ import annotations

import re
import time
from collections import Counter
from fnmatch import fnmatch
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.diagnostics import IsamError, fail

if TYPE_CHECKING:
    from isam.system.graph import System

SYSTEM = Annotated[str, typer.Argument(metavar="SYSTEM", help="A shipped system or the path of a YAML description.")]
ONLY = Annotated[str, typer.Option("--instruction", "-i", help="Only these, or this family; * and ? match several.")]
PROGRAMS = Annotated[int, typer.Option("--programs", help="So many random programs, after all instructions.")]
SEED = Annotated[int, typer.Option("--seed", help="Of the random programs.")]
REASONS = 5  # told, of those for which programs were refused, the most frequent first
SECONDS = Annotated[float, typer.Option("--seconds", help="Stop after this long and say what was left.")]


@answering(
    "system test", system="its name", right="instructions that did what their bodies say", wrong="name to fault",
    refused="name to why the machine could not be made to run it alone", left="not reached within --seconds",
    programs="random ones: how many right, the text and the reason of refused ones, the text and the fault of wrong "
    "ones; given_up: why there were fewer than asked for, or an empty text",
    unused="instructions, edges and units that no program used",
)  # fmt: skip
def trial(system: SYSTEM, instruction: ONLY = "*", seconds: SECONDS = 60.0, programs: PROGRAMS = 20, seed: SEED = 0,
          as_json: AsJson = False) -> Answer:  # fmt: skip
    """Compiles every compute instruction's body as a kernel that must use it, runs it on random data and compares.

    Sizes: the limits of the instruction (of large ones a part), one less, and 1. Then random programs of several
    instructions, simulated and compared with the exact oracle; what of the machine they used is counted. Exit code 1
    when anything is computed wrong.
    """
    if programs < 0 or not seconds >= 0:
        raise fail("cli-number", "--programs and --seconds are not negative", hint="0 programs: instructions alone")
    from isam.compiler.alone import fault_alone
    from isam.system.load import load_system
    from isam.system.names import named

    s = load_system(system)
    s.demand_backend()
    chosen = [i for i in s.compute if fnmatch(i.name, instruction)] or named(s, instruction)
    right, left = [], []
    wrong: dict[str, str] = {}
    refused: dict[str, str] = {}
    end = time.perf_counter() + seconds
    for i in chosen:
        if time.perf_counter() > end:
            left.append(i.name)
            continue
        try:
            fault = fault_alone(s, i)
        except IsamError as e:
            refused[i.name] = str(e).splitlines()[0]
            continue
        if fault:
            wrong[i.name] = fault
        else:
            right.append(i.name)
    lines = [f"{s.name}: {len(right)} of {len(chosen)} instructions do what their bodies say"]
    lines += [f"  wrong: {n}: {why}" for n, why in wrong.items()]
    lines += [f"  not run alone: {n}: {why}" for n, why in refused.items()]
    lines += [f"  {len(left)} not reached in {seconds:g} s (--seconds)"] if left else []
    data: dict[str, Any] = {"system": s.name, "right": right, "wrong": wrong, "refused": refused, "left": left}
    whole = programs if instruction == "*" and not wrong and time.perf_counter() < end else 0
    found, unused, said = _programs(s, whole, seed, end)
    data |= {"programs": found, "unused": unused}
    return Answer("\n".join(lines + said), data, yes=not wrong and not found["wrong"])


def _programs(s: System, count: int, seed: int, end: float) -> tuple[dict[str, Any], dict[str, list[str]], list[str]]:
    """Outcomes of random programs, what they left unused, and lines that say both."""
    from isam.compiler.programs import TRIES, Use, programs

    use, right = Use(), 0
    refused: list[dict[str, str]] = []
    reasons: list[str] = []
    wrong: list[dict[str, str]] = []
    for o in islice(programs(s, seed, use, end), count):
        right += o.verdict == "right"
        if o.verdict == "no":
            refused.append({"program": str(o), "reason": o.whole})
            reasons.append(o.reason + "".join(f"\n    {r.strip(' -')}" for r in o.whole.splitlines()[1:2]))
        wrong += [{"program": str(o), "fault": o.reason}] if o.verdict == "wrong" else []
    unused = use.unused(s) if right else {}
    tried = right + len(refused) + len(wrong)
    none = tried < count and time.perf_counter() <= end
    lines = [f"{tried} random programs: {right} right, {len(refused)} refused with a reason, {len(wrong)} wrong"]
    totals = {"instructions": len(s.compute), "edges": len({(m.source, m.target, m.by) for m in s.moves}),
              "units": len(s.units)}  # fmt: skip
    lines += _told(reasons)
    used = [f"{n - len(unused[what])} of {n} {what}" for what, n in totals.items() if what in unused]
    lines += [f"  they used {', '.join(used)}"] if used else []
    lines += [f"  never: {x}" for what in ("units", "edges") for x in unused.get(what, ())]
    lines += [f"  wrong: {w['fault']}\n{w['program']}" for w in wrong]
    given_up = f"its instructions made no program in {TRIES} tries in a row" if none else ""
    lines = (lines if tried else []) + ([f"  no more programs: {given_up}"] if none else [])
    return {"right": right, "refused": refused, "wrong": wrong, "given_up": given_up}, unused, lines


def _told(reasons: list[str]) -> list[str]:
    """Lines that say for what programs were refused: of reasons that differ in operands alone the first."""
    first: dict[str, str] = {}
    alike = Counter[str]()
    for reason in reasons:
        kind = re.sub(r"\bb\d+(\[[^]]*\])?", "", reason.split("\n")[0])
        first.setdefault(kind, reason)
        alike[kind] += 1
    lines = [f"  {n} refused: {first[kind]}" for kind, n in alike.most_common(REASONS)]
    rest = len(reasons) - sum(n for _, n in alike.most_common(REASONS))
    lines += [f"  {rest} refused for other reasons"] if rest else []
    return lines + (["  --json has these programs and all that was said"] if lines else [])
