"""``isam print``: kernels as isam reads them."""

from __future__ import annotations

from typing import Annotated

import typer

from isam.cli import given
from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson, Sizes

FILE = Annotated[str, typer.Argument(metavar="FILE", help="FILE.isam, FILE.isam:NAME, or - for standard input.")]
NORMAL = Annotated[bool, typer.Option("--normal", help="In normal form: what the mapper sees.")]
HASH = Annotated[bool, typer.Option("--hash", help="With the structural hash of each kernel.")]


@answering("print", text="the text of all items", items="name, keyword and structural hash of every item")
def print_(
    file: FILE, define: Sizes = None, normal: NORMAL = False, hashes: HASH = False, as_json: AsJson = False
) -> Answer:
    """Prints kernels and instructions in three-operand form; what is printed reads back in."""
    from isam.ir.hashing import structural_hash
    from isam.ir.normal import normal_form
    from isam.ir.text import print_kernel
    from isam.ir.verify import require

    chosen, _, _ = given.bodies(file)
    numbers = given.sizes(define)
    texts, items = [], []
    for word, k in chosen:
        k = given.sized(require(k), numbers)
        k = normal_form(k) if normal else k
        text = print_kernel(k, word)
        items.append({"name": k.name, "keyword": word, "hash": structural_hash(k)})
        texts.append((f"# {items[-1]['hash']}\n" if hashes else "") + text)
    return Answer("\n".join(texts), {"text": "\n".join(texts), "items": items})
