"""A recorded trace read back in: whether a text is what ``Trace.to_json`` writes, and what in it is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from isam.approach import SCHEMA
from isam.diagnostics import NOWHERE, Diagnostic, IsamError, Loc, fail

HINT = "`isam schedule KERNEL --trace OUT.json` writes one"
MOST = 20  # faults of one recording that are told


def _is_text(v: Any) -> bool:
    return isinstance(v, str)


def _is_number(v: Any) -> bool:
    return isinstance(v, int | float) and not isinstance(v, bool)


def _is_whole(v: Any) -> bool:
    return isinstance(v, int) and not isinstance(v, bool)


def _is_texts(v: Any) -> bool:
    return isinstance(v, list) and all(map(_is_text, v))


def _is_facts(v: Any) -> bool:
    return isinstance(v, dict)


def _is_digests(v: Any) -> bool:
    return isinstance(v, dict) and all(map(_is_text, v.values()))


def _is_costs(v: Any) -> bool:
    return isinstance(v, list) and all(map(_is_number, v))


Kinds = dict[str, tuple[Callable[[Any], bool], str]]
HEAD: Kinds = {
    "approach": (_is_text, "a text"), "subject": (_is_digests, "an object of texts"),
    "decisions": (lambda v: isinstance(v, list), "a list"),
}  # fmt: skip
DECISION: Kinds = {
    "point": (_is_text, "a text"), "context": (_is_facts, "an object"), "count": (_is_whole, "a whole number"),
    "chosen": (_is_whole, "a whole number"), "label": (_is_text, "a text"), "why": (_is_text, "a text"),
    "costs": (_is_costs, "a list of numbers"), "options": (_is_texts, "a list of texts"),
}  # fmt: skip


def read(text: str, loc: Loc = NOWHERE) -> dict[str, Any]:
    """The document, with ``approach``, ``subject`` and ``decisions``, rows of all parts of a decision, lists as tuples.
    Raises ``IsamError`` (``trace-read``) with what is not as it has to be; ``loc``: where the text was read."""
    at = loc if loc != NOWHERE else Loc("<trace>", 1, 1)
    try:
        data = json.loads(text)
    except json.JSONDecodeError as e:
        raise fail("trace-read", f"this is no trace: {e.msg}", Loc(at.file, e.lineno, e.colno), HINT) from None
    except ValueError:
        raise fail("trace-read", "this is no trace: a number in it is too large", at, HINT) from None
    except RecursionError:
        raise fail("trace-read", "this is no trace: it is nested too deeply", at, HINT) from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise fail("trace-read", f"this is no trace of schema {SCHEMA}, its schema is {schema!r}", at, HINT)
    faults = _faults("", {n: v for n, v in data.items() if n != "schema"}, HEAD)
    for n, row in enumerate(() if faults else data["decisions"]):
        faults += _decision(f"decision {n}: ", row)
        if len(faults) >= MOST:
            break
    if faults:
        raise IsamError(Diagnostic("trace-read", f"this is no trace: {f}", at, HINT) for f in faults[:MOST])
    data["decisions"] = [{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
                         for row in data["decisions"]]  # fmt: skip
    return data


def _decision(where: str, row: Any) -> list[str]:
    if not isinstance(row, dict):
        return [f"{where}not an object"]
    faults = _faults(where, row, DECISION)
    if not faults and not 0 <= row["chosen"] < row["count"]:
        faults = [f"{where}option {row['chosen']} of {row['count']} is chosen"]
    return faults


def _faults(where: str, given: dict[str, Any], kinds: Kinds) -> list[str]:
    faults = [f"{where}'{n}' is missing" for n in kinds if n not in given]
    faults += [f"{where}there is no '{n}'" for n in given if n not in kinds]
    wrong = {n: what for n, (fits, what) in kinds.items() if n in given and not fits(given[n])}
    return faults + [f"{where}'{n}' is not {what}" for n, what in wrong.items()]
