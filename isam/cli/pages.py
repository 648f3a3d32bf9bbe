"""The generated pages: ``python -m isam.cli.pages DOCS`` writes them, the tables within other pages, and the maps of
large packages beside their modules."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isam.cli.maps import READING, page

if TYPE_CHECKING:
    from isam.cli.answer import Form

REMARKS = """\
`isam --version` and `isam VERB --help` exist; `isam --traceback VERB ...`, before the verb only, shows where in isam
something was raised instead of a message. A kernel is `FILE.isam`, `FILE.isam:NAME` where the file has several, or
`-`. With `--json` the answer is one document with `schema` (`isam.VERB/VERSION`) and `verdict` (`yes`, `no`, `input`,
`internal`); `input` and a refusal carry `diagnostics`, `internal` a `message`. That holds for every exit code,
also where the command line itself is wrong (`cli-usage`; `isam.usage/1` where it names no verb), but 130: a command
that was interrupted (Ctrl-C) says so on standard error, prints no document and leaves no file half-written. Progress is
shown on a terminal only."""
CHOICES = """\
An Approach is a class with a method per choice point ([approaches.md](approaches.md)). The method gets a `Choice`:
`options`, all legal, of the classes named here; `costs`, one per option, where the core predicts them; `context`, a
dictionary. It returns one of the options. Values under keys with an underscore are live objects, to be read, not
changed; the others are recorded in the trace."""
OFFERED = """\
Equivalent kernels that are offered beside the one as it is covered, in this order (`isam/compiler/offers/`). `partial`
is asked once more of each of them as it is covered, unless it has partial sums already; what that makes comes last:"""
TIMED = "where the first option is taken, the schedule with the second is made, too, and offered at `variant` as '{}'{}"
UNLESS = ", unless its costs are lower already."
REASONS = """\
The word in brackets in the reports of `isam map` and `isam explain`: what keeps an instruction from fitting."""
FOUND = """\
The word in brackets where a schedule is not proved, with the numbers of the obligations ([proof.md](proof.md)) that it
may stand for; 0 is the check itself."""
HEAD = "<!-- generated: python -m isam.cli.pages docs -->\n"
END = "<!-- end of what is generated -->\n"


def cli_page() -> str:
    """The reference of the command line."""
    import typer

    from isam.cli.app import app, top

    group = typer.main.get_command(app)
    intro = inspect.cleandoc(top.__doc__ or "")
    lines = [HEAD, "# The command line", "", intro, "", REMARKS]
    for name, command in _leaves(group, ""):
        lines += ["", *_verb(name, command)]
    return "\n".join(lines) + "\n"


def _leaves(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, c in group.commands.items():
        if hasattr(c, "commands"):
            yield from _leaves(c, f"{prefix}{name} ")
        else:
            yield prefix + name, c


def forms() -> dict[str, Form]:
    """The JSON document of every verb."""
    import typer

    from isam.cli.app import app

    return {name: command.callback.form for name, command in _leaves(typer.main.get_command(app), "")}


def _verb(name: str, command: Any) -> list[str]:
    given = [p for p in command.params if not p.opts[0].startswith("-")]
    options = [p for p in command.params if p.opts[0].startswith("-") and p.name != "help"]
    usage = " ".join(["isam", name, *(_argument(p) for p in given)])
    lines = [f"## `{usage}`", inspect.cleandoc(command.callback.__doc__ or "")]
    lines.append("")
    lines += [f"* {_option(p)}" for p in options if p.name != "as_json"]
    form = command.callback.form
    keys = "; ".join(f"`{k}` {v}" for k, v in form.keys.items())
    return [*lines, f"* `--json`: `{form.schema}`; {keys}"]


def _option(p: Any) -> str:
    """An option as it is spelled, both ways where it has two, with what it is for and what holds without it."""
    spelled = ", ".join(p.opts) + (f" {p.metavar}" if p.metavar else "" if p.is_flag else " VALUE")
    default = p.default if isinstance(p.default, str | int | float) else ""
    if p.is_flag:
        spelled += "".join(f" / {o}" for o in p.secondary_opts)
        default = (p.opts if p.default else p.secondary_opts)[0] if p.secondary_opts else ""
    told = default != "" and (default or "default" not in p.help)  # 0 may stand for a default that the help tells
    return f"`{spelled}`: {p.help}{f' (default `{default}`)' if told else ''}"


def _argument(p: Any) -> str:
    shown = p.metavar or p.name.upper()
    return shown if p.required else f"[{shown}]"


def codes_page() -> str:
    """Every reason of a "no", and every diagnostic's code by the part that gives it."""
    from isam.diagnostics import CODE_TABLES
    from isam.ir.mismatch import KINDS
    from isam.proof.kinds import KINDS as FINDINGS

    lines = [HEAD, "# Codes of diagnostics", "", "`isam code CODE` prints the same."]
    lines += ["", "## Why the mapper says no", REASONS, "", "| reason | meaning | what helps |", "|---|---|---|"]
    lines += [f"| `{kind}` | {_cell(r.meaning)} | {_cell(r.helps)} |" for kind, r in KINDS.items()]
    lines += ["", "## Why a schedule is not proved", FOUND, "", "| word | obligation | meaning |", "|---|---|---|"]
    lines += [f"| `{w}` | {', '.join(map(str, k.obligations))} | {_cell(k.meaning)} |" for w, k in FINDINGS.items()]
    for module in CODE_TABLES:
        found = import_module(module)
        lines += ["", f"## {module.removeprefix('isam.').removesuffix('.codes')}", (found.__doc__ or "").strip(), "",
                  "| code | meaning |", "|---|---|"]  # fmt: skip
        lines += [f"| `{c}` | {_cell(text)} |" for c, text in sorted(found.CODES.items())]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "&#124;")


def choices_page() -> str:
    """What is asked at each choice point."""
    from isam.approach.choice import IDLE
    from isam.approach.questions import QUESTIONS

    lines = [HEAD, "# What an Approach is asked", "", CHOICES]
    for q in QUESTIONS:
        names = ", ".join(f"`{o.removeprefix('builtins.')}`" for o in q.options)
        lines += ["", f"## `{q.point}`", f"{q.asks[0].upper()}{q.asks[1:]}.", ""]
        lines += [f"* options: {names}. {q.note}".rstrip(), f"* costs: {q.costs or 'none'}"]
        lines += [f"* context `{key}`: {meaning}" for key, meaning in q.context.items()]
        lines += [f"* timed: {TIMED.format(q.timed, UNLESS if q.unless_cheaper else '.')}"] if q.timed else []
        lines += ["", *_offers()] if q.point == "variant" else []
    lines += ["", "## Never asked today", "A class that overrides one is warned about.", ""]
    return "\n".join([*lines, *(f"* `{p}`: {instead}." for p, instead in IDLE.items())]) + "\n"


def _offers() -> list[str]:
    """The equivalent kernels that may be among the options at ``variant``."""
    from isam.compiler.offers import OFFERS

    lines = [OFFERED, "", "| offer | what is otherwise | asked | the reason for its place |", "|---|---|---|---|"]
    asked = ((o, " ".join((o.asked.__doc__ or "").split()).rstrip(".")) for o in OFFERS)
    return lines + [f"| {o.name} | {o.makes} | {when[0].lower()}{when[1:]} | {o.why} |" for o, when in asked]


def points_table() -> str:
    """The choice points, and who asks."""
    from isam.approach.choice import IDLE
    from isam.approach.questions import QUESTIONS

    lines = ["| point | what is decided | asked by |", "|---|---|---|"]
    lines += [f"| `{q.point}` | {_cell(q.asks)} | the {q.by} |" for q in QUESTIONS]
    return "\n".join([*lines, *(f"| `{p}` | {_cell(instead)} | nobody, today |" for p, instead in IDLE.items())]) + "\n"


def stages_table() -> str:
    """The stages of a compilation, in order."""
    from isam.compiler.stages import STAGES

    lines = ["| stage | what it does | the reason for its place |", "|---|---|---|"]
    return "\n".join(lines + [f"| {s.name} | {_sentence(s.run)} | {s.why} |" for s in STAGES]) + "\n"


def _sentence(function: Any) -> str:
    text = " ".join((function.__doc__ or "").split()).rstrip(".")
    return text[:1].lower() + text[1:]


def finishes_table() -> str:
    """What is done to a schedule after the dry run, in order."""
    from isam.scheduler.finishing import FINISHES

    lines = ["| module | what it leaves | decided by | the reason for its place |", "|---|---|---|---|"]
    for f in FINISHES:
        module = f.run.__module__.removeprefix("isam.scheduler.").partition(".")[0]
        what, by = _sentence(f.run).partition(". ")[0], "the Approach" if f.asks else "rule"
        lines.append(f"| `scheduler.{module}` | {what} | {by} | {f.why} |")
    return "\n".join(lines) + "\n"


def filled(text: str, *tables: str) -> str:
    """A page with the tables that belong between its marks, in order."""
    out, *rest = text.split(f"{HEAD}\n")
    if len(rest) != len(tables) or not all(END in part for part in rest):
        raise ValueError(f"not {len(tables)} times '{HEAD.strip()}' with '{END.strip()}' behind it")
    for table, part in zip(tables, rest, strict=True):
        out += "".join((HEAD, "\n", table, "\n", END, part.partition(END)[2]))
    return out


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page, "codes.md": codes_page, "choices.md": choices_page,
    **{f"../isam/{p}/README.md": partial(page, p, HEAD) for p in READING},
}  # fmt: skip
TABLES: dict[str, tuple[Callable[[], str], ...]] = {
    "approaches.md": (points_table,), "design.md": (stages_table, finishes_table),
}  # fmt: skip
"""Within pages that are written by hand."""


def write(folder: Path) -> None:
    """Writes every generated page and table into ``folder``, that of the documentation, and the maps beside it."""
    for name, whole in PAGES.items():
        (folder / name).write_text(whole(), encoding="utf-8")
    for name, tables in TABLES.items():
        text = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_text(filled(text, *(table() for table in tables)), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
