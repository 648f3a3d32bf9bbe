"""Kernels one or two small edits away from those that laws are tested with: where a condition of a law decides.

An example shows that a law holds, or refuses; a neighbour of it differs in what some condition asks about: a statement
in between, another number, type, role, order, size, a loop around, a second reader. ``python -m tests.laws.neighbours
[LAW...]`` draws them, keeps those that are well formed, judges what the law makes of each (the meaning is kept, the
kernel well formed, a site that is none refused) and, if all is right, puts on record in ``neighbours.txt`` what the law
does there: its sites, what it makes, what it offers for reports drawn at random, what it refuses. Tests compare that
only, which takes no time: a law that does anything else has to be judged again.
"""

from __future__ import annotations

import inspect
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Kernel
from isam.ir.mismatch import Mismatch
from isam.ir.text import parse, print_kernel
from isam.ir.verify import verify
from isam.transforms import ALL
from isam.transforms.edit import names_in
from isam.transforms.law import Site, Transform
from tests.edits import pick
from tests.laws import offers, test_inverse
from tests.laws.examples import HOLDS, REFUSED
from tests.laws.judges import same
from tests.laws.law_edits import TYPES, edited
from tests.laws.test_examples import sized
from tests.random_kernels import Chooser, Seeded, random_kernel

FILE = Path(__file__).with_name("neighbours.txt")
DRAWS, KEPT = 900, 120  # per law
MADE, ASKED, REFUSED_AT = 2, 6, 4  # per kernel
WORD = re.compile(r"[A-Za-z_]\w*")
NUMBERED = ("statement", "sum", "product", "inner", "outer", "cast", "first", "second", "compare", "start", "choose")
OTHERS = 12  # kernels that were not made for a law but have a site of it
RANDOM, DRAWN = 60, 4  # random kernels, and how many of those with a site


@cache
def written() -> dict[str, Kernel]:
    """Every kernel that laws are tested with; sizes left open, and small."""
    more = {f"{offers.mark(t):08x}": parse(t) for t in test_inverse.KERNELS.values()}
    found = more | offers.kernels() | {f"random {n}": random_kernel(n)[0] for n in range(RANDOM)}
    return found | {f"{name} small": sized(k)[0] for name, k in found.items() if k.syms}


def examples(law: Transform) -> list[str]:
    """Those made for a law, and some others where it has a site, among them some that are random."""
    own = [f"{offers.mark(t):08x}" for t in (*HOLDS.get(law.law, ()), *REFUSED.get(law.law, ()))]
    sites = [n for n, k in written().items() if n not in own and not n.endswith("small") and law.sites(k)]
    chance = [n for n in sites if n.startswith("random ")]
    others = [n for n in sites if n not in chance] or sorted(written())
    others.sort(key=lambda n: (len(written()[n].statements), n))
    found = list(dict.fromkeys((*own, *others[:OTHERS], *chance[:DRAWN])))
    return [*found, *(f"{n} small" for n in found if f"{n} small" in written())]


def drawn(name: str, k: Kernel, seed: int) -> Kernel | None:
    """A kernel one or two edits away, well formed or not; None where there is nothing to edit."""
    choose = Seeded(offers.mark(f"{name}/{seed}"))
    new = edited(k, choose)
    if new is not None and seed % 3 == 0:
        new = edited(new, choose)
    return None if new == k else new


def chosen(law: Transform) -> str:
    """Which of those drawn are recorded: per example a number with a bit per seed. All at which the law has other sites
    than at the example, as far as there is room, and some at which it has the same; and those on record."""
    own, kept, was = examples(law), [], numbers(recorded().get(law.law, ("", ""))[1])
    for name in dict.fromkeys((*own, *was)):
        k, bits = written()[name], was.get(name, 0)
        for n in range(DRAWS // len(own) if name in own and name not in was else 0):
            new = drawn(name, k, n)
            room = bits.bit_count() < KEPT // len(own) + 1
            if new is not None and room and (n % 4 == 0 or law.sites(new) != law.sites(k)) and not verify(new):
                bits |= 1 << n
        kept.append(f"{name} {bits:x}")
    return " | ".join(kept)


def numbers(which: str) -> dict[str, int]:
    """Per example which of those drawn, as bits."""
    found = (x.rpartition(" ") for x in which.split(" | ")) if which else ()
    return {name: int(bits, 16) for name, _, bits in found if name in written()}


def neighbours(which: str, wanted: Callable[[str], bool] | None = None) -> Iterator[tuple[str, Kernel]]:
    """Those on record, or those of them whose names are ``wanted``; others are not drawn."""
    for name, bits in numbers(which).items():
        for n in range(bits.bit_length()):
            drawing = bits >> n & 1 and (wanted is None or wanted(f"{name}/{n}"))
            new = drawn(name, written()[name], n) if drawing else None
            if new is not None:
                yield f"{name}/{n}", new


@dataclass
class Done:
    """What a law does with some kernels, in words."""

    law: Transform
    judging: bool = False
    sites: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    offers: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def at(self, name: str, k: Kernel) -> None:
        law, rng = self.law, random.Random(f"{self.law.law}/{name}")
        found = law.sites(k)
        self.sites += [f"{name}, {s}: {law.demand(s)} {law.saves(k, s)} {law.error(k, s)}" for s in found]
        for site in rng.sample(found, min(MADE, len(found))):
            self.made.append(f"{name}, {site}: {self.told(name, k, site)}")
        near = rng.choices(found, k=REFUSED_AT) if found and k.statements and refuses(law) else ()
        for site in dict.fromkeys(other(k, s, rng) for s in near):
            if site not in found:
                self.refused.append(f"{name}, {site}: {self.told(name, k, site, refused=True)}")
        for r in reports(law, name, k, ASKED):
            offered = law.sites_for(k, r)
            self.offers.append(f"{name}, {r.kind} {r.subject}: {' | '.join(map(str, offered))}")
            for site in [s for s in offered if s not in found][:1]:
                self.made.append(f"{name}, {r.subject}, {site}: {self.told(name, k, site)}")

    def told(self, name: str, k: Kernel, site: Site, refused: bool = False) -> str:
        """The kernel after the law, with numbers for names it made up, and the way back; or that it refuses."""
        try:
            done = self.law.apply(k, site)
        except Exception as e:
            self.wrong += [] if refused else [f"{self.law.law} at {site} of {name}: {e!r}\n{k}"]
            return type(e).__name__
        if self.judging and not k.syms and (verify(done.kernel) or not same(self.law, k, done.kernel)):
            self.wrong.append(f"{self.law.law} at {site} of {name}:\n{k}\n{done.kernel}")
        text = f"{print_kernel(done.kernel)} {done.back}"
        old, new = names_in(k), {}
        return WORD.sub(lambda m: m[0] if m[0] in old or m[0] not in names else new.setdefault(m[0], f"new{len(new)}"),
                        text) if (names := names_in(done.kernel)) else text  # fmt: skip

    def __str__(self) -> str:
        parts = {"sites": self.sites, "made": self.made, "offers": self.offers, "refused": self.refused}
        return ", ".join(f"{what} {offers.digest(lines)}" for what, lines in parts.items())


def refuses(law: Transform) -> bool:
    """Does the law say of a site that is none that it is none? (Others are only asked at their sites.)"""
    return _refuses(type(law))


@cache
def _refuses(law: type[Transform]) -> bool:
    return "raise NoSite" in inspect.getsource(law.apply)


def other(k: Kernel, site: Site, rng: random.Random) -> Site:
    """A site with one of its values changed."""
    at = dict(site.at)
    key = rng.choice(sorted(at))
    value = at[key]
    if isinstance(value, bool):
        at[key] = not value
    elif isinstance(value, int):
        at[key] = rng.randrange(len(k.statements)) if key in NUMBERED else abs(value + rng.choice((-1, 1)))
    elif isinstance(value, str):
        s = rng.choice(k.statements)
        at[key] = rng.choice([b.name for b in k.buffers] if value in k.by_name else [*s.domain.names, value])
    elif isinstance(value, tuple) and all(isinstance(x, int) for x in value):
        at[key] = tuple(sorted({*value[1:], rng.randrange(len(k.statements))}))
    return Site.of(**at)


def what(law: Transform, which: str, judging: bool = False) -> Done:
    done = Done(law, judging)
    for name, k in neighbours(which):
        done.at(name, k)
    return done


def recorded() -> dict[str, tuple[str, str]]:
    """Per law what it does, and with which of the kernels drawn."""
    lines = (x.split(": ", 1) for x in FILE.read_text(encoding="utf-8").splitlines()) if FILE.exists() else ()
    return {law: (rest.rsplit("; ", 1)[0], rest.rsplit("; ", 1)[1]) for law, rest in lines}


def main(names: list[str]) -> int:
    found, wrong = recorded(), 0
    for law in ALL:
        if not names or law.law in names:
            which = chosen(law)
            done = what(law, which, judging=True)
            found[law.law] = (str(done), which)
            print(f"{law.law}: {done}", *done.wrong[:3], sep="\n")
            wrong += len(done.wrong)
    if wrong:
        return 1
    write(found)
    return 0


def write(found: dict[str, tuple[str, str]]) -> None:
    FILE.write_text("".join(f"{t.law}: {'; '.join(found[t.law])}\n" for t in ALL if t.law in found), encoding="utf-8")


def take(law: Transform, names: Iterable[str]) -> None:
    """On record, too, without a judgement yet."""
    said, which = (found := recorded())[law.law]
    bits = numbers(which)
    for name, _, n in (x.rpartition("/") for x in names):
        bits[name] = bits.get(name, 0) | 1 << int(n)
    write(found | {law.law: (said, " | ".join(f"{name} {x:x}" for name, x in bits.items()))})


def reports(law: Transform, name: str, k: Kernel, count: int) -> Iterator[Mismatch]:
    """What an instruction might say about the kernel, to a law of these kinds."""
    kinds = sorted(law.kinds)
    for seed in range(count if kinds and k.statements else 0):
        choose = Seeded(offers.mark(f"{law.law}/{name}/{seed}"))
        kind: Any = pick(choose, kinds)
        yield Mismatch(kind, "", "", subject=tuple((x, v) for x, v in facts(k, kind, choose).items() if v is not None))


def facts(k: Kernel, kind: str, choose: Chooser) -> dict[str, Any]:
    def one(*options: Any) -> Any:
        return pick(choose, options)

    def some(options: list[Any]) -> tuple[Any, ...]:
        return tuple(x for x in options if choose.integer(0, 1))

    at = choose.integer(0, len(k.statements) - 1)
    s = k.statements[at]
    mine = [s.dest, *(x for x in s.sources if isinstance(x, Access))]
    a: Any = pick(choose, mine)
    row = choose.integer(0, max(0, len(a.index) - 1))
    names = list(s.domain.names)
    inside = [n for n in a.index[row].names if n in names] if a.index else []
    axis = one(*inside, *names)
    others = list(dict.fromkeys(x.buffer for t in k.statements for x in (t.dest, *t.reads)))
    ops = [(t.op, t.accumulate) for t in k.statements] + [("add", True), ("mul", False), ("add", False), ("max", False)]
    buffers = [x.buffer for x in mine]
    roles = tuple((f"O{n}", b) for n, b in enumerate(buffers))
    out: dict[str, Any] = {"statement": one(*[at] * 7, None), "instruction_statement": 0, "roles": roles, "axes": ()}
    if kind in ("operation", "escapes"):
        out |= {"need": one(*ops), "have": one((s.op, s.accumulate), None), "does": one(some(ops), some(ops), None),
                "missing": one(True, None, None), "after": one(None, choose.integer(0, at)),
                "dtypes": one(None, some(list(TYPES)))}  # fmt: skip
        if kind == "escapes":
            out |= {"buffer": one(*buffers), "outside": some(list(range(len(k.statements))))}
    elif kind == "dtype":
        out |= {"buffer": a.buffer, "need": one(*TYPES), "have": k.buffer(a.buffer).dtype}
    elif kind == "aliasing":
        out |= {"buffer": one(*others), "need": one(*others, None), "have": one(*others, None)}
    elif kind == "literal":
        out |= {"rank": one(0, 1, 2, None), "buffer": one(None, None, a.buffer), "missing": one(True, None)}
    elif kind == "extent":
        n = s.domain.extent(axis) if axis else Affine()
        out |= {"axis": axis, "padded": one(n.const + 1, n.const + 3, n.const, 4, None), "limit": one(None, 2, 4)}
    elif kind == "domain":
        relation = one("left-over", "elements", "conditions", "instruction-where", "guard")
        wheres = [(n, w) for n, t in enumerate(k.statements) for w in (*t.domain.where, Affine.of(axis or "x") - 1)]
        out |= {"axis": axis, "relation": relation, "conditions": some(wheres) if relation == "conditions" else None}
    else:
        have = a.index[row].coefficient(axis) if a.index and axis else 1
        out |= {"axis": one(axis, axis, axis, None), "buffer": one(a.buffer, a.buffer, a.buffer, *others), "row": row,
                "limit": one(None, 2, 3, 4), "lacking": some([o for o, _ in roles]),
                "fixed": one(None, (("i", 4), ("j", 6)), (("i", 7),))}  # fmt: skip
        if kind == "coefficient":
            out |= {"have": have or 1, "need": one(1, 1, -1, 2, 3, 4, 8, 12, 16), "layout": one(True, None, None)}
        if kind == "extra-dependence":
            out |= {"shares": one(axis, None), "have": have} if choose.integer(0, 5) else {"row": None, "axis": None}
    return out


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
