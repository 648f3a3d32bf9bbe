"""``isam code``: what a diagnostic's code means."""

from __future__ import annotations

from typing import Annotated

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.diagnostics import all_codes, did_you_mean, fail

CODE = Annotated[str, typer.Argument(metavar="CODE", help="Such as V401; without it, all codes are listed.")]


@answering("code", codes="code to explanation")
def code(code: CODE = "", as_json: AsJson = False) -> Answer:
    """Explains the code of a diagnostic, the word between the brackets of ``error[...]``."""
    codes = all_codes()
    if code:
        word = code.strip().removeprefix("error").strip("[]")
        if word not in codes:
            hint = did_you_mean(word, codes) or "isam code lists all"
            raise fail("cli-code", f"no diagnostic has the code '{word[:60]}'", hint=hint)
        codes = {word: codes[word]}
    codes = dict(sorted(codes.items()))
    return Answer("\n".join(f"{c}: {text}" for c, text in codes.items()), {"codes": codes})
