"""Code from descriptions for other CPUs, run on this one: the few instructions that they tell LLVM by name are carried
out by functions written from the manuals (Arm Architecture Reference Manual for A-profile, DDI 0487, C7.2; Intel SDM
volume 2, VPDPBUSD, TILELOADD, TILELOADDT1, TILESTORED, TILEZERO, TDPBSSD and its like, TDPBF16PS)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from isam.codegen.llvm import machine
from isam.system import features

SIGNS = {"sdot": ("sext", "sext"), "udot": ("zext", "zext"), "usdot": ("zext", "sext"), "vpdpbusd": ("zext", "sext")}
LANES = {"vpdpbusd": 8}  # of 32 bits; Arm's have four
TILE_SIGNS = {"s": "sext", "u": "zext"}
NAMED = re.compile(r"@llvm\.(?:aarch64\.neon\.(\w+)\.v4i32\.v16i8|"
                   r"x86\.(?:avx512\.)?(vpdpbusd(?=\.256)|ldtilecfg|tile\w+|tdp\w+))(?:\.256)?\b")  # fmt: skip


def dot(name: str) -> str:
    """SDOT, UDOT, USDOT and VPDPBUSD: in each lane of 32 bits the products of four bytes are added to what is there."""
    a, b = SIGNS[name]
    lanes = LANES.get(name, 4)
    sums, given, wide = f"<{lanes} x i32>", f"<{4 * lanes} x i8>", f"<{4 * lanes} x i32>"
    lines = [f"define internal {sums} @emulated.{name}({sums} %c, {given} %a, {given} %b) {{",
             f"%x = {a} {given} %a to {wide}", f"%y = {b} {given} %b to {wide}",
             f"%p = mul {wide} %x, %y", f"%s0 = add {sums} %c, zeroinitializer"]  # fmt: skip
    for n in range(4):
        at = ", ".join(f"i32 {4 * lane + n}" for lane in range(lanes))
        lines += [f"%q{n} = shufflevector {wide} %p, {wide} poison, {sums} <{at}>",
                  f"%s{n + 1} = add {sums} %s{n}, %q{n}"]  # fmt: skip
    return "\n".join([*lines, f"ret {sums} %s4", "}"])


def tile(name: str) -> str:
    """Of the eight tiles of 16 rows of 64 bytes: all rows, whatever was configured."""
    if name == "ldtilecfg":  # every tile is cleared
        return "\n".join([f"define internal void @emulated.{name}(ptr %from) {{",
                          "call void @llvm.memset.p0.i64(ptr @emulated.tiles, i8 0, i64 8192, i1 false)",
                          "ret void", "}"])  # fmt: skip
    if name == "tilezero":
        return "\n".join([f"define internal void @emulated.{name}(i8 %t) {{", at("p", "t", "0"),
                          "store <1024 x i8> zeroinitializer, ptr %p, align 1", "ret void", "}"])  # fmt: skip
    if name in ("tileloadd64", "tileloaddt164", "tilestored64"):
        ways = ("r", "q") if name == "tilestored64" else ("q", "r")
        return loop(f"{name}(i8 %t, ptr %base, i64 %step)", [
            at("r", "t", "%row"), "%far = mul i64 %row, %step", "%q = getelementptr i8, ptr %base, i64 %far",
            f"%v = load <64 x i8>, ptr %{ways[0]}, align 1",
            f"store <64 x i8> %v, ptr %{ways[1]}, align 1"])  # fmt: skip
    return loop(f"{name}(i8 %c, i8 %a, i8 %b)", halves() if name == "tdpbf16ps" else bytes_(name))


def at(to: str, tile: str, row: str) -> str:
    """The address of a row of a tile."""
    return f"%{to} = getelementptr [8 x [16 x [64 x i8]]], ptr @emulated.tiles, i64 0, i8 %{tile}, i64 {row}"


def loop(head: str, body: list[str]) -> str:
    """A function that does the same for each of 16 rows."""
    return "\n".join([f"define internal void @emulated.{head} {{", "entry:", "br label %next", "next:",
                      "%row = phi i64 [0, %entry], [%more, %next]", *body, "%more = add i64 %row, 1",
                      "%again = icmp ult i64 %more, 16", "br i1 %again, label %next, label %done", "done:",
                      "ret void", "}"])  # fmt: skip


def bytes_(name: str) -> list[str]:
    """One row of TDPBSSD, TDPBSUD, TDPBUSD or TDPBUUD: every sum of 32 bits takes 64 products."""
    a, b = TILE_SIGNS[name[4]], TILE_SIGNS[name[5]]
    return products(16, "i8", "i32", [f"= {a} i8", "to i32"], [f"= {b} <16 x i8>", "to <16 x i32>"], "mul", "add")


def halves() -> list[str]:
    """One row of TDPBF16PS."""
    return products(16, "bfloat", "float", ["= fpext bfloat", "to float"],
                    ["= fpext <16 x bfloat>", "to <16 x float>"], "fmul", "fadd")  # fmt: skip


def products(groups: int, narrow: str, wide: str, one: list[str], many: list[str], times: str, plus: str) -> list[str]:
    per = 4 if narrow == "i8" else 2
    row = f"<{16 * per} x {narrow}>"
    out = [at("pc", "c", "%row"), at("pa", "a", "%row"), f"%s0 = load <16 x {wide}>, ptr %pc, align 1",
           f"%va = load {row}, ptr %pa, align 1"]  # fmt: skip
    for k in range(groups):
        out += [at(f"pb{k}", "b", str(k)), f"%vb{k} = load {row}, ptr %pb{k}, align 1"]
        for q in range(per):
            n = k * per + q
            lanes = ", ".join(f"i32 {per * j + q}" for j in range(16))
            out += [f"%e{n} = extractelement {row} %va, i64 {n}", f"%w{n} {one[0]} %e{n} {one[1]}",
                    f"%i{n} = insertelement <16 x {wide}> poison, {wide} %w{n}, i64 0",
                    f"%x{n} = shufflevector <16 x {wide}> %i{n}, <16 x {wide}> poison, <16 x i32> zeroinitializer",
                    f"%h{n} = shufflevector {row} %vb{k}, {row} poison, <16 x i32> <{lanes}>",
                    f"%y{n} {many[0]} %h{n} {many[1]}", f"%p{n} = {times} <16 x {wide}> %x{n}, %y{n}",
                    f"%s{n + 1} = {plus} <16 x {wide}> %s{n}, %p{n}"]  # fmt: skip
    return [*out, f"store <16 x {wide}> %s{groups * per}, ptr %pc, align 1"]


def emulated(text: str) -> str:
    """The module with functions of its own in place of another CPU's instructions."""
    used = sorted({m[1] or m[2] for m in NAMED.finditer(text)})
    kept = "\n".join(x for x in text.splitlines() if not (x.startswith("declare") and NAMED.search(x)))
    named = NAMED.sub(lambda m: f"@emulated.{m[1] or m[2]}", kept)
    made = [dot(n) if n in SIGNS else tile(n) for n in used]
    if any(n not in SIGNS for n in used):
        made.append("@emulated.tiles = internal global [8 x [16 x [64 x i8]]] zeroinitializer, align 64")
    if "ldtilecfg" in used and "@llvm.memset.p0.i64" not in kept:
        made.append("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    return "\n".join([named, *made]) + "\n"


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
