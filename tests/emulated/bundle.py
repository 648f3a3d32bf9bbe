"""Products as one program: the objects as the compiler left them but for their symbols' names, a table in C, and what
carries it (`linux.c`, or `bare.c` for an emulator's empty machine)."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.emulated.products import Argument, Product, Written

CYLINDER = 16 * 63 * 512  # bytes of the disk that a program lies on
HERE = Path(__file__).parent
FLAGS = ("-O2", "-mno-red-zone", "-fno-stack-protector", "-fno-pic", "-fno-pie", "-Wall",
         "-fno-tree-loop-distribute-patterns", "-fno-asynchronous-unwind-tables")  # fmt: skip


def linux(products: Sequence[Product], folder: Path) -> Path:
    """A program for Linux on a CPU with AMX."""
    made = folder / "products"
    tool("gcc", "-static", "-no-pie", *common(products, folder), *built(folder, "linux.c"), "-o", made)
    return made


def bare(products: Sequence[Product], folder: Path, permit: bool = True) -> tuple[Path, Path]:
    """The disk of a machine that has nothing else, and its ROM, which loads it. Without ``permit`` tiles stay off."""
    program, image, rom = folder / "bare.elf", folder / "bare.bin", folder / "rom.bin"
    own = built(folder, "boot.S") + built(folder, "bare.c", f"-DPERMIT={int(permit)}", "-ffreestanding")
    tool("ld", "-static", "-z", "norelro", "-T", HERE / "bare.ld", *own, *common(products, folder), "-o", program)
    tool("objcopy", "-O", "binary", "--set-section-flags", "all=alloc,load,contents", program, image)
    content = image.read_bytes()
    image.write_bytes(content + bytes(-len(content) % CYLINDER))
    sectors = f"--defsym=sectors={-(-len(content) // 512)}"
    tool("ld", sectors, "-Ttext", "0", "--oformat", "binary", "-e", "0", *built(folder, "rom.S"), "-o", rom)
    return image, rom


def common(products: Sequence[Product], folder: Path) -> list[Path]:
    """The objects of both."""
    table = folder / "table.c"
    table.write_text(tabled(products, folder))
    return [*objects(products, folder), *built(folder, "run.c"), *built(folder, "probe.c", "-mamx-tile", "-mamx-int8"),
            *built(folder, table)]  # fmt: skip


def objects(products: Sequence[Product], folder: Path) -> list[Path]:
    """Each product's code once, its entries under names of their own."""
    out = []
    for n, p in numbered(products):
        path = folder / f"object{n}.o"
        path.write_bytes(p.artifact.parts["object.o"])
        names = {name: f"{name}{n}" for name in ("call", "bind")}  # bind is there even where it does nothing
        for symbol, name in p.artifact.externals:
            assert name.startswith("isam:fork/"), name
            names[symbol] = "isam_fork"
        tool("objcopy", *(f"--redefine-sym={a}={b}" for a, b in names.items()), path)
        out.append(path)
    return out


def numbered(products: Sequence[Product]) -> list[tuple[int, Product]]:
    """Those that are the first to use their code."""
    return [(n, p) for n, p in enumerate(products) if n == code_of(products, p)]


def code_of(products: Sequence[Product], p: Product) -> int:
    return next(n for n, q in enumerate(products) if q.artifact is p.artifact)


def tabled(products: Sequence[Product], folder: Path) -> str:
    """The table of ``run.h``."""
    lines, rows = ['#include "run.h"'], []
    for n, p in enumerate(products):
        arrays = ", ".join(row(a, f"x{n}_{k}", lines, folder) for k, a in enumerate(p.arguments))
        lines.append(f"static const struct array x{n}[] = {{{arrays}}};")
        code, of, first = code_of(products, p), p.artifact, int(any(a.constant for a in p.arguments))
        if code == n:
            lines.append(f"extern entry call{n}, bind{n};")
        rows.append(f'{{"{p.name}", {f"bind{code}" if of.bind else 0}, call{code}, x{n}, {len(p.arguments)}, '
                    f"{first}, {of.workspace}, {of.bound}, {p.signs}}}")
    needed = ", ".join(f'"{n}"' for n in sorted({n for p in products for n in p.artifact.needs}))
    return "\n".join([*lines, "const struct product products[] = {", ",\n".join(rows), "};",
                      f"const uint64_t product_count = {len(products)};",
                      f"const char *const needs[] = {{{needed}, 0}};", ""])  # fmt: skip


def row(a: Argument, name: str, lines: list[str], folder: Path) -> str:
    """One argument, its numbers as files that the assembler takes in."""

    def kept(content: bytes, kind: str, dtype: str) -> str:
        if not content:
            return "0"
        path, symbol = folder / f"{name}.{kind}", f"{name}_{kind}"
        path.write_bytes(content)
        lines.append(f'__asm__(".section .rodata\\n.balign 8\\n{symbol}: .incbin \\"{path}\\"\\n.text\\n");')
        lines.append(f"extern const {dtype} {symbol}[];")
        return symbol

    w = a.written or Written()
    kind = "READ" if a.written is None else "WHOLE" if w.whole else "FLOAT"
    parts = [kept(a.first, "first", "unsigned char"), kept(w.whole, "want", "unsigned char"),
             kept(w.value, "value", "double"), kept(w.bound, "bound", "double")]  # fmt: skip
    return f"{{{kind}, {int(a.constant)}, {len(a.first)}, {', '.join(parts)}}}"


def built(folder: Path, source: str | Path, *flags: str) -> list[Path]:
    """The object of one of our sources."""
    path = HERE / source if isinstance(source, str) else source
    out = folder / f"{path.stem}.o"
    tool("gcc", "-c", *FLAGS, *flags, f"-I{HERE}", path, "-o", out)
    return [out]


def tool(*words: object) -> None:
    """Raises what the tool said."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stderr.strip()[-2000:]}")
