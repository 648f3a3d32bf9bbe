"""``isam code``: what the code of a diagnostic, or the reason of a "no", means."""

from __future__ import annotations

from typing import Annotated

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.diagnostics import all_codes, did_you_mean, fail
from isam.ir.mismatch import KINDS

CODE = Annotated[str, typer.Argument(metavar="CODE", help="Such as V401 or axis-missing; without it, all are listed.")]


@answering("code", codes="code or reason to explanation")
def code(code: CODE = "", as_json: AsJson = False) -> Answer:
    """Explains the code of a diagnostic, the word between the brackets of ``error[...]``, or the reason for which an
    instruction does not fit, a word in brackets in the reports of ``isam map`` and ``isam explain``."""
    codes = all_codes() | {kind: str(reason) for kind, reason in KINDS.items()}
    if code:
        word = code.strip().removeprefix("error").strip("[]")
        if word not in codes:
            hint = did_you_mean(word, codes) or "isam code lists all"
            raise fail("cli-code", f"no diagnostic has the code '{word[:60]}', and no reason has that name", hint=hint)
        codes = {word: codes[word]}
    codes = dict(sorted(codes.items()))
    return Answer("\n".join(f"{c}: {text}" for c, text in codes.items()), {"codes": codes})
