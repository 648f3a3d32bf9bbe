"""What every law offers, on record: ``python -m tests.laws.offers`` writes ``offers.txt`` anew, with the names of laws
it prints every site and offer of theirs.

That a law keeps the meaning wherever it is offered is tested elsewhere, and that some kernel profits; a law that is
offered at fewer sites, or answers other reports than it did, is still right, and nothing else sees it. Per law: how
many sites it has on the kernels of the tests, what it makes of some of them, what it offers for the reports of
instructions that do not fit, each with a hash; names that a law makes up do not count.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from isam.diagnostics import IsamError
from isam.ir.hashing import structural_hash
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mismatch import Mismatch
from isam.ir.normal import normal_form
from isam.ir.text import parse, parse_file, parse_instruction
from isam.mapper.goals import with_limits
from isam.mapper.match import probe
from isam.transforms import ALL
from isam.transforms.law import Site, Transform
from tests.corpus import CASES
from tests.laws import test_chosen, test_mutants
from tests.laws.examples import HOLDS, REFUSED
from tests.laws.test_laws import OWN

FILE = Path(__file__).with_name("offers.txt")
FILES = ("unit/transforms/test_chosen.py", "laws/test_hard.py", "laws/test_tiny.py", "unit/mapper/test_search.py")
APPLIED = 2  # sites per law and kernel whose results are recorded
LAWS = {t.law: t for t in ALL}


@cache
def texts(file: str, head: str) -> tuple[str, ...]:
    """Kernels or instructions that stand as a whole in a file of tests."""
    tree = ast.parse((Path(__file__).parents[1] / file).read_text(encoding="utf-8"))
    found = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return tuple(x for x in dict.fromkeys(f.strip() + "\n" for f in found) if x.startswith(f"{head} ") and whole(x))


def mark(text: str) -> int:
    """A number that stays when others are added."""
    return zlib.crc32(text.encode())


def whole(text: str) -> bool:
    try:
        parse_file(text)
    except IsamError:
        return False
    return True


@cache
def kernels() -> dict[str, Kernel]:
    """Examples and refusals of all laws, kernels made for laws, and the corpus, sizes left open."""
    found = [t for rows in (HOLDS, REFUSED) for some in rows.values() for t in some]
    found += [*(t for f in FILES for t in texts(f, "kernel")), *(t for *_, t in test_mutants.MUTANTS)]
    out = {f"{mark(text):08x}": parse(text) for text in found}
    out |= {f"own {name}": k for name, k in OWN.items()}
    return out | {f"corpus {name}": normal_form(c.load().with_sizes(c.small[0])) for name, c in CASES.items()}


@cache
def instructions() -> tuple[Instruction, ...]:
    found = [i for _, some in test_chosen.CHOSEN.values() for i in some] + [i for _, i in test_chosen.REACHED.values()]
    found += [parse_instruction(text) for f in FILES for text in texts(f, "instruction")]
    return tuple({i.name: i for i in found}.values())


@cache
def reports() -> tuple[tuple[Kernel, Mismatch], ...]:
    """Why some instructions do not fit some kernels: theirs on those made for them, and after the first step that each
    law offers there; every fifth one on the others."""
    made = [(k, i) for k, some in test_chosen.CHOSEN.values() for i in some]
    made += list(test_chosen.REACHED.values())
    made += [(parse(k), parse_instruction(i)) for f in FILES for k in texts(f, "kernel")
             for i in texts(f, "instruction")]  # fmt: skip
    pairs = [*made, *((k, i) for name, k in kernels().items() for i in instructions()[mark(name) % 5 :: 5])]
    pairs += [(after, i) for k, i in made for after in steps(k, near(k, i))]
    return tuple((k, r) for k, i in pairs for r in near(k, i))


def near(k: Kernel, i: Instruction) -> list[Mismatch]:
    return [with_limits(r, i) for r in probe(k, i).near]


def steps(k: Kernel, found: list[Mismatch]) -> Iterator[Kernel]:
    for law in ALL:
        yield from (law.apply(k, s).kernel for s in [s for r in found for s in law.sites_for(k, r)][:1])


def sites(law: Transform) -> Iterator[tuple[str, Kernel, Site]]:
    for name, k in kernels().items():
        for s in law.sites(k):
            yield name, k, s


def made(law: Transform) -> Iterator[str]:
    """Kernels after the law."""
    seen: dict[str, int] = {}
    for name, k, s in sites(law):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= APPLIED:
            done = law.apply(k, s)
            yield f"{name}, {s}: {structural_hash(done.kernel)} {done.back.statements}"


def offers(law: Transform) -> Iterator[str]:
    for k, r in reports():
        for s in law.sites_for(k, r):
            yield f"{r.instruction}, {r.kind}: {s}"


def digest(lines: list[str]) -> str:
    return f"{len(lines)} {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:8]}"


def line(law: Transform) -> str:
    places = [f"{name}, {s}" for name, _, s in sites(law)]
    return f"{law.law}: sites {digest(places)}, made {digest(list(made(law)))}, offers {digest(list(offers(law)))}"


def recorded() -> dict[str, str]:
    return {x.split(":")[0]: x for x in FILE.read_text(encoding="utf-8").splitlines()}


def main() -> None:
    for name in sys.argv[1:]:
        law = LAWS[name]
        print(*(f"{where}, {s}" for where, _, s in sites(law)), *made(law), *offers(law), sep="\n")
    if not sys.argv[1:]:
        FILE.write_text("".join(f"{line(t)}\n" for t in ALL), encoding="utf-8")


if __name__ == "__main__":
    main()
