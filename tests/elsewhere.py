"""Code from descriptions for other CPUs, run on this one: the few instructions that they tell LLVM by name are carried
out by functions written from the manual (Arm Architecture Reference Manual for A-profile, DDI 0487, C7.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from isam.codegen.llvm import machine
from isam.system import features

SIGNS = {"sdot": ("sext", "sext"), "udot": ("zext", "zext"), "usdot": ("zext", "sext")}
NAMED = re.compile(r"@llvm\.aarch64\.neon\.(\w+)\.v4i32\.v16i8")


def dot(name: str) -> str:
    """SDOT, UDOT and USDOT: in each lane of 32 bits the products of four bytes are added to what is there."""
    a, b = SIGNS[name]
    lines = [f"define internal <4 x i32> @emulated.{name}(<4 x i32> %c, <16 x i8> %a, <16 x i8> %b) {{",
             f"%x = {a} <16 x i8> %a to <16 x i32>", f"%y = {b} <16 x i8> %b to <16 x i32>",
             "%p = mul <16 x i32> %x, %y", "%s0 = add <4 x i32> %c, zeroinitializer"]  # fmt: skip
    for n in range(4):
        at = ", ".join(f"i32 {4 * lane + n}" for lane in range(4))
        lines += [f"%q{n} = shufflevector <16 x i32> %p, <16 x i32> poison, <4 x i32> <{at}>",
                  f"%s{n + 1} = add <4 x i32> %s{n}, %q{n}"]  # fmt: skip
    return "\n".join([*lines, "ret <4 x i32> %s4", "}"])


def emulated(text: str) -> str:
    """The module with functions of its own in place of another CPU's instructions."""
    used = sorted(set(NAMED.findall(text)))
    kept = "\n".join(x for x in text.splitlines() if not (x.startswith("declare") and NAMED.search(x)))
    return "\n".join([NAMED.sub(r"@emulated.\1", kept), *map(dot, used)]) + "\n"


@contextmanager
def elsewhere() -> Iterator[None]:
    """While this lasts, nobody asks whether this CPU has what a description needs."""
    real = machine.compile_object
    with ExitStack() as patched:
        patched.enter_context(mock.patch.object(machine, "check_features"))
        patched.enter_context(mock.patch.object(features, "lacking", return_value=()))
        patched.enter_context(mock.patch.object(
            machine, "compile_object", lambda text, *others: real(emulated(text), *others)))  # fmt: skip
        yield
