"""Random machines made of `toy`'s instructions: memories, edges, issuers, ports, copies, clusters, links, rows,
what members share drawn anew.

``machine(seed)`` is a function of its seed. Some cannot run anything much: a memory that nothing leads to, a unit that
is missing, too little room. Then the compiler has to say so.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import lcm

from isam.ir.instruction import Instruction
from isam.system.graph import Memory, Move, System, Unit
from isam.system.groups import Cluster, Link, Ports, Replica
from isam.system.load import load_system

FILES = ("ra", "rb")


@cache
def toy() -> System:
    return replace(load_system("toy"), backend="simulator")


class Machines:
    """Draws one machine."""

    def __init__(self, seed: int):
        self.random, self.base = random.Random(f"machine {seed}"), toy()
        self.later = random.Random(f"contract {seed}")  # of what was added to a machine that is drawn as before
        self.name = f"random{seed}"

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def machine(self) -> System:
        memories = self.memories()
        units = self.units()
        issuers = [u for u in units if u.startswith("dma")]
        moves = tuple(Move(a, b, "copy", self.random.choice(issuers)) for a, b in self.edges(list(memories)))
        near = tuple(m for m in memories if m != "dram")
        replicas, clusters, links = {}, {}, {}
        if self.chance(30):
            replicas["core"] = Replica("core", self.random.randint(2, 4), near, tuple(units))
        twins = [(u, f"{u}2") for u in ("mm", "vec") if f"{u}2" in units]
        if twins and self.chance(60):
            clusters["pair"] = Cluster("pair", self.random.choice(twins))
        if self.chance(30):
            outer = tuple((m.source, m.target) for m in moves if "dram" in (m.source, m.target))
            links["bus"] = Link("bus", self.random.choice((1e9, 40e9)), outer)
        return replace(self.base, name=self.name, memories=self.in_rows(memories), units=units, moves=moves,
                       replicas=replicas, clusters=clusters, links=links,
                       instructions=self.sharing(clusters, units))  # fmt: skip

    def in_rows(self, memories: dict[str, Memory]) -> dict[str, Memory]:
        """Some that have addresses are addressed by rows."""
        out = dict(memories)
        for name, m in memories.items():
            if m.cells is None and not m.home and self.later.randrange(100) < 20:
                row = self.later.choice((8, 16, 32, 64, 64))
                out[name] = replace(m, row=row, align=lcm(m.align, row))
        return out

    def sharing(self, clusters: dict[str, Cluster], units: dict[str, Unit]) -> Mapping[str, Instruction]:
        """Members of a cluster take some of what they read from the same place."""
        table = dict(self.base.instructions)
        for name in sorted({r for c in clusters.values() for u in c.units for r in units[u].runs}):
            reads = [b.name for b in table[name].body.arguments if b.role in ("in", "const")]
            if reads and self.later.randrange(100) < 50:
                one, i = self.later.choice(reads), table[name]
                table[name] = replace(i, operands={**i.operands, one: replace(i.contract(one), shared=True)})
        return table

    def memories(self) -> dict[str, Memory]:
        r = self.random
        out = {"dram": self.base.memories["dram"]}
        for n in ("sp", "sp2")[: r.choice((0, 1, 1, 1, 2))]:
            room = r.choice((64, 256, 1024, 4096, 16384))
            out[n] = Memory(n, "managed", room, align=r.choice((1, 4, 16)))
        for n in FILES:
            ports = Ports(r.choice((None, None, 1, 2)), r.choice((None, None, 1)))
            if self.chance(80):
                cells, cell = r.choice((1, 2, 3, 4, 8, 16, 32)), r.choice((16, 32, 64, 64, 64, 128))
                out[n] = Memory(n, "managed", cells * cell, cells=cells, cell=cell, ports=ports)
            else:
                out[n] = Memory(n, "managed", r.choice((64, 128, 512, 2048)), align=r.choice((4, 8, 16)), ports=ports)
        return out

    def units(self) -> dict[str, Unit]:
        base, out = self.base.units, {}
        for n in ("mm", "vec"):
            if self.chance(95):
                out[n] = replace(base[n], clock=self.random.choice((1e9, 1e9, 5e8)))
                if self.chance(30):
                    out[f"{n}2"] = replace(out[n], name=f"{n}2")
        if "vec" in out and "vec2" not in out and self.chance(20):  # one unit for vectors, one for the rest
            runs = out["vec"].runs
            out["vec"] = replace(out["vec"], runs=tuple(i for i in runs if i.startswith("v_")))
            out["odd"] = replace(out["vec"], name="odd", runs=tuple(i for i in runs if not i.startswith("v_")))
        for k in range(self.random.choice((1, 1, 2, 3))):
            out[f"dma{k}"] = replace(base["dma"], name=f"dma{k}")
        return out

    def edges(self, names: list[str]) -> list[tuple[str, str]]:
        """From home inwards; now and then a short cut, a way that is missing, a move within or between files."""
        inner = [n for n in names if n.startswith("sp")]
        hub = inner[-1] if inner else "dram"
        pairs = list(zip(["dram", *inner], inner, strict=False))
        pairs += [(hub, f) for f in FILES]
        if inner and self.chance(20):
            pairs.append(("dram", self.random.choice(FILES)))
        if self.chance(15):
            pairs.append(FILES)
        both = [e for a, b in pairs for e in ((a, b), (b, a)) if not self.chance(2)]
        return list(dict.fromkeys(both))


def machine(seed: int) -> System:
    return Machines(seed).machine()


def deeper(seed: int) -> System:
    """The same with one more memory between home and all that is next to it, which instances share where there are
    several."""
    r, system = random.Random(f"deeper {seed}"), machine(seed)
    far = Memory("far", "managed", r.choice((256, 1024, 4096, 16384, 65536)), align=r.choice((1, 4, 16)))
    count = r.randint(2, 6) if not system.replicas and r.randrange(100) < 50 else 0
    return replace(behind(system, far, count), name=f"deeper{seed}")


def behind(system: System, far: Memory, count: int = 0) -> System:
    """A machine with a memory between home and all others. Of everything behind it there are ``count`` instances, where
    that is given."""
    home, near = system.home, tuple(m for m in system.memories if m != system.home)

    def there(memory: str) -> str:
        return far.name if memory == home else memory

    inner = [replace(m, source=there(m.source), target=there(m.target)) for m in system.moves]
    moves = (Move(home, far.name, "copy", "dmaf"), Move(far.name, home, "copy", "dmaf"), *inner)
    return replace(
        system,
        memories={home: system.memories[home], far.name: far, **{n: system.memories[n] for n in near}},
        units={**system.units, "dmaf": replace(toy().units["dma"], name="dmaf")},
        moves=moves,
        replicas={"core": Replica("core", count, near, tuple(system.units))} if count else system.replicas,
        links={n: replace(k, edges=((home, far.name), (far.name, home))) for n, k in system.links.items()},
    )
