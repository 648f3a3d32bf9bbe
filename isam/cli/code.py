"""``isam code``: what the code of a diagnostic, the reason of a "no", or what is found of a schedule, means."""

from __future__ import annotations

from typing import Annotated

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.diagnostics import all_codes, did_you_mean, fail
from isam.ir.mismatch import KINDS as REASONS
from isam.proof.kinds import KINDS as FOUND

CODE = Annotated[str, typer.Argument(metavar="CODE", help="Such as V401 or axis-missing; without it, all are listed.")]


@answering("code", codes="code or reason to explanation")
def code(code: CODE = "", as_json: AsJson = False) -> Answer:
    """Explains the code of a diagnostic, the word between the brackets of ``error[...]``, or the reason for which an
    instruction does not fit or a schedule is not proved: a word in brackets in what ``isam map``, ``isam explain`` and
    ``isam verify`` report."""
    codes = all_codes()
    for word, told in (*REASONS.items(), *FOUND.items()):  # one word may stand in reports of both
        codes[word] = f"{codes[word]} {told}" if word in codes else str(told)
    if code:
        word = code.strip().removeprefix("error").strip("[]")
        if word not in codes:
            hint = did_you_mean(word, codes) or "isam code lists all"
            raise fail("cli-code", f"no diagnostic has the code '{word[:60]}', and no report has that word", hint=hint)
        codes = {word: codes[word]}
    codes = dict(sorted(codes.items()))
    return Answer("\n".join(f"{c}: {text}" for c, text in codes.items()), {"codes": codes})
