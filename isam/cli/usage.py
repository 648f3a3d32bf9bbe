"""What is wrong with a command line that no verb was asked with, and the right form where it can be told: one way for
all verbs, from the options that they have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from isam.cli.answer import Form, misused
from isam.diagnostics import MOST_MEANT, Diagnostic, closest, did_you_mean

CALLED = {  # options, by what else they may be called
    "-D": ("size", "sizes", "shape", "dims", "define", "param"),
    "--on": ("system", "machine", "target", "device"),
}
SIZE = re.compile(r"(-D|-+\w+=)?([A-Za-z_]\w*=\d+(?:,[A-Za-z_]\w*=\d+)*),?")  # M=4,N=4, and what it is joined to


def refused(e: Any, top: Any, arguments: Sequence[str]) -> int:
    """Tells what is wrong, with a hint, and returns the exit code. ``e``: a ``UsageError`` of the parser; ``top``: the
    command that the arguments are of."""
    command, path, word = _asked(top, arguments)
    e.possibilities = None  # the parser's own guesses: hints are ours
    message = e.format_message().strip()
    asked = e.ctx is None or e.ctx.command_path == path  # else what stands before the verb was refused
    hint = _hint(e, command, arguments, word) if asked else _too_early(e, path, command)
    d = Diagnostic("cli-usage", message, hint=hint or f"{path} --help")
    usage = e.ctx.get_usage() if e.ctx is not None else ""
    if usage and message.startswith(usage):
        e.show()  # no arguments at all: the help is what is told
        usage = None
    form = getattr(getattr(command, "callback", None), "form", None) or Form("usage", {})
    return misused(d, form, usage, "--json" in arguments)


def _asked(top: Any, arguments: Sequence[str]) -> tuple[Any, str, str]:
    """The command that the arguments name, how it is called, and the word that names none there."""
    command, path = top, "isam"
    for word in (a for a in arguments if not a.startswith("-")):
        if word not in getattr(command, "commands", {}):
            return command, path, word
        command, path = command.commands[word], f"{path} {word}"
    return command, path, ""


def _too_early(e: Any, path: str, command: Any) -> str:
    """An option that stands before its verb, where the verb has it."""
    name = getattr(e, "option_name", "")
    known = next((p for p in command.params if name in p.opts), None)
    return f"it stands behind the verb: {path} {_shown(known, name)}" if known is not None else ""


def _hint(e: Any, command: Any, arguments: Sequence[str], word: str) -> str:
    """The right form, or the empty string where nothing is known of it."""
    verbs = getattr(command, "commands", None)
    if verbs is not None and not hasattr(e, "option_name"):
        return _verb(word, verbs)
    options = {name: p for p in command.params for name in p.opts if name.startswith("-")}
    parameter = getattr(e, "param", None) or options.get(getattr(e, "option_name", ""))
    if parameter is not None:  # it is there, but its value is missing, or none that it takes
        return f"{_shown(parameter)}: {parameter.help}"
    name = getattr(e, "option_name", "")
    meant = _meant(name, options) if name else []
    sizes = _sizes(arguments)
    if sizes and "-D" in options and meant in ([], ["-D"]):
        return f"sizes are written -D {','.join(sizes)}"
    return f"did you mean {' or '.join(_shown(options[o], o) for o in meant)}?" if meant else ""


def _sizes(arguments: Sequence[str]) -> list[str]:
    """All sizes among the arguments, where some are not written as ``-D`` has them."""
    found = [(m, before) for before, a in zip(("", *arguments), arguments, strict=False) if (m := SIZE.fullmatch(a))]
    stray = any(m[1] != "-D" and before != "-D" for m, before in found)
    return [m[2] for m, _ in found] if stray else []


def _verb(word: str, verbs: Iterable[str]) -> str:
    if word.endswith(".isam"):
        return f"a verb stands before it: isam check {word}"
    return did_you_mean(word, verbs) if word else ""


def _meant(name: str, options: Iterable[str]) -> list[str]:
    """Which options a name that is none may mean, by its letters or by another name of them."""
    names = {o.lstrip("-"): o for o in options} | {n: o for o, called in CALLED.items() if o in options for n in called}
    bare = name.lstrip("-")
    meant = list(dict.fromkeys(names[n] for n in ([bare] if bare in names else closest(bare, names))))
    return meant if len(meant) <= MOST_MEANT else []


def _shown(parameter: Any, name: str = "") -> str:
    """A parameter as it is written: ``-D NAME=NUMBER``, ``KERNEL``."""
    takes = "" if getattr(parameter, "is_flag", False) else parameter.metavar or "VALUE"
    options = [o for o in parameter.opts if o.startswith("-")]
    return " ".join(w for w in (name or (options or [""])[0], takes) if w)
