"""What a verb answers and how it is shown: text or JSON on standard output, diagnostics on standard error.

A verb returns an :class:`Answer`; what it raises becomes one too. Every JSON document has ``schema``
(``isam.<verb>/1``) and ``verdict`` (``yes``, ``no``, ``input``, ``internal``); the keys of a verb stand in its
``Form``; a verdict other than yes or no has ``diagnostics`` or ``message`` instead.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import field
from typing import Any

from isam.classes import dataclass
from isam.cli.interrupts import held
from isam.diagnostics import Diagnostic, InternalError, IsamError

EXIT = {"yes": 0, "no": 1, "input": 2, "internal": 3}
SUBJECT: ContextVar[str] = ContextVar("isam_subject", default="")  # the kernel at hand, for reports of our own faults
TRACEBACK: ContextVar[bool] = ContextVar("isam_traceback", default=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """``text``: for standard output; ``notes``: for standard error; ``data``: the JSON document's own keys."""

    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    yes: bool = True
    notes: str = ""

    @property
    def verdict(self) -> str:
        return "yes" if self.yes else "no"


@dataclass(frozen=True, slots=True)
class Form:
    """The JSON document of a verb: ``keys`` with their meaning, beside ``schema`` and ``verdict``."""

    verb: str
    keys: Mapping[str, str]
    version: int = 1

    @property
    def schema(self) -> str:
        return f"isam.{self.verb.replace(' ', '-')}/{self.version}"


def answering(verb: str, **keys: str) -> Callable[[Callable[..., Answer]], Callable[..., None]]:
    """Makes a command of a function that returns an :class:`Answer`. ``keys``: its JSON document, name to meaning; the
    command has the :class:`Form` as its attribute ``form``."""
    form = Form(verb, keys)

    def decorate(f: Callable[..., Answer]) -> Callable[..., None]:
        @functools.wraps(f)
        def command(*args: Any, **kwargs: Any) -> None:
            as_json = bool(kwargs.get("as_json"))
            code = show(form, as_json, functools.partial(f, *args, **kwargs))
            if code:
                raise SystemExit(code)

        command.form = form  # type: ignore[attr-defined]
        return command

    return decorate


def show(form: Form, as_json: bool, ask: Callable[[], Answer]) -> int:
    """Asks, prints the answer, or what went wrong, and returns the exit code. Lets nothing out but an interrupt."""
    SUBJECT.set("")
    try:
        answer = ask()
    except Exception as e:
        if TRACEBACK.get():
            raise
        return _failure(form, as_json, e)
    if answer.notes:
        _err(answer.notes)
    if as_json:
        _whole(_document(form, answer.verdict, answer.data))
    elif answer.text:
        _out(answer.text)
    return EXIT[answer.verdict]


def misused(d: Diagnostic, form: Form, usage: str | None, as_json: bool) -> int:
    """Tells what is wrong with a command line that no verb was asked with, and returns the exit code. ``usage``: how
    the verb is asked; None: that, and what is wrong, is told already."""
    if usage is not None:
        _err(f"{usage}\n{d}" if usage else str(d))
    if as_json:
        _whole(_document(form, "input", {"diagnostics": [plain(d)]}))
    return EXIT["input"]


def _failure(form: Form, as_json: bool, e: Exception) -> int:
    verdict, data, text = _told(e)
    _err(text)
    if as_json:
        _whole(_document(form, verdict, data))
    return EXIT[verdict]


def _document(form: Form, verdict: str, data: Mapping[str, Any]) -> str:
    return json.dumps({"schema": form.schema, "verdict": verdict, **data}, indent=1, ensure_ascii=False)


def _told(e: Exception) -> tuple[str, dict[str, Any], str]:
    """Verdict, JSON keys and text for an exception."""
    if isinstance(e, IsamError):
        verdict = "no" if _honest(e) else "input"
        return verdict, {"diagnostics": [plain(d) for d in e.diagnostics]}, _listed(e.diagnostics)
    if isinstance(e, OSError) and e.filename is not None:
        d = Diagnostic("cli-file", f"{e.filename}: {e.strerror or e}")
        return "input", {"diagnostics": [plain(d)]}, str(d)
    if isinstance(e, MemoryError):
        d = Diagnostic("cli-memory", "not enough memory", hint="smaller sizes (-D NAME=NUMBER)")
        return "input", {"diagnostics": [plain(d)]}, str(d)
    message = str(e) if isinstance(e, InternalError) else f"{type(e).__name__}: {e}"
    subject = SUBJECT.get()
    if subject and subject not in message:
        message += f"\nwhile working on\n{subject}"
    text = f"isam is wrong here, not its input; please report this\n{message}\n(isam --traceback VERB ... shows where)"
    return "internal", {"message": message}, text


def _honest(e: IsamError) -> bool:
    """A refusal by mapper or scheduler carries the answer that says why."""
    return getattr(e, "answer", None) is not None


def _listed(found: Iterable[Diagnostic]) -> str:
    return "\n".join(map(str, found))


def plain(d: Diagnostic) -> dict[str, Any]:
    """A diagnostic as JSON values."""
    place = {"file": d.loc.file, "line": d.loc.line, "column": d.loc.column}
    return {"code": d.code, "message": d.message, **place, "hint": d.hint}


def _whole(document: str) -> None:
    """Prints all of a document or, when it was interrupted before, nothing."""
    with held():
        _out(document)


def _out(text: str) -> None:
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough: `isam ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _err(text: str) -> None:
    sys.stderr.write(text if text.endswith("\n") else text + "\n")
    sys.stderr.flush()
