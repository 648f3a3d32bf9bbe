"""``isam explain``: why an instruction, or a machine, does or does not fit a kernel."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from isam.cli import given
from isam.cli.answer import Answer, answering
from isam.cli.map import covered, named, plain
from isam.cli.options import AsJson, Kernel, On, Sizes

ONE = Annotated[str, typer.Option("--instruction", "-i", help="Explain this instruction alone.")]
STRIDED = Annotated[bool, typer.Option("--strided", help="With --instruction: other coefficients than 1 are admitted.")]


@answering(
    "explain", kernel="its name", on="the system's name", fits="whether every statement is carried out",
    mappings="how, where it fits", near="with --instruction: what was met on the way, deepest first",
    report="what is printed otherwise",
)  # fmt: skip
def explain(
    kernel: Kernel, on: On = "host", instruction: ONE = "", define: Sizes = None, strided: STRIDED = False,
    as_json: AsJson = False,
) -> Answer:  # fmt: skip
    """Says what stands in the way: which access depends on what, in both files, and an instruction that would do.

    Exit code 1 when it does not fit.
    """
    from isam.system.load import load_system

    k, source = given.kernel(kernel)
    k = given.sized(k, given.sizes(define))
    system = load_system(on)
    data: dict[str, Any] = {"kernel": k.name, "on": system.name, "fits": True, "mappings": [], "near": []}
    if instruction:
        from isam.mapper.explain import explain as compare

        found = compare(k, named(system, instruction, k), strided=strided, sources=(source.text, ""))
        told = json.loads(found.to_json())
        data |= {"fits": bool(found), "mappings": [plain(m) for m in found.mappings], "near": told["near"]}
        return Answer(str(found), data | {"report": str(found)}, yes=bool(found))
    answer = covered(k, system, "", None)
    lines = [f"every statement of {k.name} is carried out on {system.name}"]
    lines += [f"  rewritten by {s}" for s in answer.steps]
    report = answer.why or "\n".join([*lines, *(f"  {m}" for m in answer.mappings)])
    data |= {"fits": not answer.why, "mappings": [plain(m) for m in answer.mappings], "report": report}
    return Answer(report, data, yes=not answer.why)
