"""Whether replicas, meshes, links, clusters and registers make sense: members that exist, moves that stay within an
instance, streams that can be one, values that somebody sets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from math import prod

from isam.diagnostics import Loc
from isam.ir.instruction import Instruction
from isam.system.faults import Faults, nearest
from isam.system.graph import System
from isam.system.groups import Cluster, Mesh, Replica

Places = Mapping[tuple[Hashable, ...], Loc]


def check_groups(system: System, faults: Faults, marks: Places, whole: bool = True) -> None:
    """Adds every fault. ``whole``: no instruction is missing, so that what nothing does can be said."""
    c = _Groups(system, faults, marks)
    c.replicas()
    c.moves()
    c.meshes()
    c.links()
    for cluster in system.clusters.values():
        c.cluster(cluster)
    c.clusters()
    for i in system.instructions.values() if whole else ():
        c.registers(i)


class _Groups:
    def __init__(self, system: System, faults: Faults, marks: Places):
        self.s, self.faults, self.marks = system, faults, marks
        members = [(n, r.name) for r in system.replicas.values() for n in (*r.memories, *r.units)]
        self.replica = dict(reversed(members))

    def at(self, *key: Hashable, otherwise: Loc) -> Loc:
        return self.marks.get(key, otherwise)

    def exist(self, group: str, kind: str, names: Iterable[str], loc: Loc) -> None:
        have = self.s.memories if kind == "memory" else self.s.units
        for n in names:
            if n not in have:
                self.faults.add(f"system-unknown-{kind}", f"there is no {kind} '{n[:60]}'",
                                self.at("member", group, n, otherwise=loc), nearest(n, have))  # fmt: skip

    def alone(self, kind: str, code: str, groups: Iterable[tuple[str, tuple[str, ...], Loc]]) -> None:
        """No name is a member of two groups."""
        first: dict[str, str] = {}
        for group, names, loc in groups:
            for n in names:
                if first.setdefault(n, group) != group:
                    self.faults.add(code, f"'{n}' is in the {kind} '{first[n]}' already",
                                    self.at("member", group, n, otherwise=loc),
                                    f"a node is in one {kind} at most")  # fmt: skip

    def replicas(self) -> None:
        all_ = self.s.replicas.values()
        for r in all_:
            self.exist(r.name, "memory", r.memories, r.loc)
            self.exist(r.name, "unit", r.units, r.loc)
            for n in r.memories:
                m = self.s.memories.get(n)
                if m is not None and m.home:
                    self.faults.add("system-replica", f"'{n}' is home: there is one of it",
                                    self.at("member", r.name, n, otherwise=r.loc),
                                    "take it out of the replica")  # fmt: skip
        self.alone("replica", "system-replica", [(r.name, (*r.memories, *r.units), r.loc) for r in all_])
        for m in self.s.memories.values():
            if m.of in self.s.memories and self.replica.get(m.of) not in (None, self.replica.get(m.name)):
                self.faults.add("system-replica", f"'{m.name}' stands in front of '{m.of}', of which there are several",
                                m.loc, f"put it into the replica '{self.replica[m.of]}'")  # fmt: skip

    def moves(self) -> None:
        """Within an instance, or between one and what is shared; operands where the unit's instance has them."""
        for m in self.s.moves:
            self.together(f"the move from '{m.source}' to '{m.target}'", (m.source, m.target), m.issuer,
                          self.at("move", m, "issuer", otherwise=m.loc))  # fmt: skip
        moving = {m.by for m in self.s.moves}
        for u in self.s.units.values() if self.replica else ():
            said = set[Loc]()  # a pattern stands for many that are wrong alike
            for name in u.runs:
                i, loc = self.s.instructions.get(name), self.at("unit", u.name, name, otherwise=u.loc)
                if i is not None and name not in moving and loc not in said:
                    homes = dict.fromkeys(h for a in i.body.arguments for h in self.s.homes(i, a.name))
                    if not self.together(f"'{name}'", tuple(homes), u.name, loc, computes=True):
                        said.add(loc)

    def together(self, what: str, memories: tuple[str, ...], unit: str, loc: Loc, computes: bool = False) -> bool:
        """Whether it is clear on which instance something is done; where not, that is said."""
        where = dict.fromkeys(self.replica[m] for m in memories if m in self.replica)
        own = self.replica.get(unit)
        if len(where) > 1:
            self.faults.add("system-replica", f"{what} is between the replicas {' and '.join(where)}", loc,
                            "go by a memory that is shared")  # fmt: skip
            return False
        if where and own not in where and (own is not None or computes):
            (there,) = where
            has = f"one of '{own}'" if own else "shared"
            self.faults.add("system-replica", f"{what} is in '{there}', the unit '{unit}' is {has}: which instance is "
                            "meant?", loc, f"put '{unit}' into the replica '{there}'")  # fmt: skip
            return False
        return True

    def meshes(self) -> None:
        """Every instance has a place; what is attached is shared, by one mesh, and something goes there or back."""
        first: dict[tuple[str, str], str] = {}
        for m in self.s.meshes.values():
            r = self.s.replicas.get(m.replica)
            if r is None:
                self.faults.add("system-unknown-replica", f"there is no replica '{m.replica[:60]}'",
                                self.at("mesh", m.name, "replica", otherwise=m.loc),
                                nearest(m.replica, self.s.replicas, "describe it in 'replicas:'"))  # fmt: skip
                continue
            if prod(m.shape) != r.count:
                what = f"'{m.name}' has {prod(m.shape)} places, there are {r.count} of '{r.name}'"
                self.faults.add("system-mesh", what, self.at("mesh", m.name, "shape", otherwise=m.loc),
                                "one instance stands on each place")  # fmt: skip
            for memory, places in m.ports:
                self.port(m, r, memory, places, first)
            if not m.ports:
                self.faults.add("system-mesh", f"nothing is attached to the mesh '{m.name}'", m.loc,
                                "for example 'ports: {dram: [[0, 0]]}'")  # fmt: skip

    def port(self, m: Mesh, r: Replica, memory: str, places: tuple[tuple[int, ...], ...],
             first: dict[tuple[str, str], str]) -> None:  # fmt: skip
        loc = self.at("port", m.name, memory, otherwise=m.loc)
        other = first.setdefault((r.name, memory), m.name)
        led = any((a in r.memories) != (b in r.memories) and memory in (a, b) for a, b in self.s.moves_by_edge)
        if memory not in self.s.memories:
            self.faults.add("system-unknown-memory", f"there is no memory '{memory[:60]}'", loc,
                            nearest(memory, self.s.memories))  # fmt: skip
        elif self.replica.get(memory) is not None:
            self.faults.add("system-mesh", f"there are several of '{memory}'", loc, "what is attached is shared")
        elif not led:
            self.faults.add("system-mesh", f"no move leads between '{memory}' and '{r.name}'", loc,
                            "describe it in 'moves:'")  # fmt: skip
        elif not places:
            self.faults.add("system-mesh", f"'{memory}' is attached nowhere", loc, "for example [[0, 0]]")
        elif other != m.name:
            self.faults.add("system-mesh", f"'{memory}' is attached to '{other}' already", loc,
                            "moves between two memories cross one mesh")  # fmt: skip

    def links(self) -> None:
        edges = {(m.source, m.target) for m in self.s.moves}
        for k in self.s.links.values():
            for a, b in k.edges:
                loc = self.at("link", k.name, (a, b), otherwise=k.loc)
                if unknown := [n for n in (a, b) if n not in self.s.memories]:
                    self.faults.add("system-unknown-memory", f"there is no memory '{unknown[0][:60]}'", loc,
                                    nearest(unknown[0], self.s.memories))  # fmt: skip
                elif (a, b) not in edges:
                    back = f"there is one from '{b}' to '{a}'" if (b, a) in edges else "describe it in 'moves:'"
                    self.faults.add("system-link", f"no move leads from '{a}' to '{b}'", loc, back)

    def clusters(self) -> None:
        self.alone("cluster", "system-cluster", [(c.name, c.units, c.loc) for c in self.s.clusters.values()])
        led = {u for c in self.s.clusters.values() for u in c.units}
        for i in self.s.instructions.values():
            shared = [o for o, c in i.operands.items() if c.shared]
            if shared and not any(i.name in self.s.units[u].runs for u in led if u in self.s.units):
                self.faults.add("system-cluster", f"'{shared[0]}' of '{i.name}' is shared, but no cluster runs it",
                                i.loc, "only members of a cluster share operands")  # fmt: skip

    def cluster(self, c: Cluster) -> None:
        """One stream: the same instructions, at the same clock, in the same replica."""
        self.exist(c.name, "unit", c.units, c.loc)
        units = [self.s.units[n] for n in c.units if n in self.s.units]
        for u in units[1:]:
            first = units[0]
            differs = sorted(set(first.runs) ^ set(u.runs))
            loc = self.at("member", c.name, u.name, otherwise=c.loc)
            if differs:
                self.faults.add("system-cluster", f"'{first.name}' and '{u.name}' follow one stream, but only one of "
                                f"them runs '{differs[0]}'", loc, "members run the same instructions")  # fmt: skip
            if first.clock != u.clock:
                self.faults.add("system-cluster",
                                f"'{first.name}' and '{u.name}' follow one stream at different clocks", loc,
                                "members have the same clock")  # fmt: skip
            if self.replica.get(first.name) != self.replica.get(u.name):
                self.faults.add("system-cluster", f"'{first.name}' and '{u.name}' are not in the same replica", loc,
                                "an instruction stream belongs to one instance")  # fmt: skip

    def registers(self, i: Instruction) -> None:
        """What is required can be reached; what computes nothing configures."""
        for key in (*i.requires, *i.sets):
            if key not in self.s.state:
                self.faults.add("system-unknown-register", f"there is no register '{key[:60]}'", i.loc,
                                nearest(key, self.s.state, "describe it in 'state:'"))  # fmt: skip
        for key, value in i.requires.items():
            r = self.s.state.get(key)
            setters = [x for x in self.s.instructions.values() if key in x.sets]
            if r is None or (r.reset == value and not setters):
                continue
            what, at = f"'{i.name}' requires '{key}' to be '{value}'", self.at("requires", i.name, key, otherwise=i.loc)
            fit = {x.name for x in setters if x.sets[key] == value or (r.bits and isinstance(x.sets[key], str))}
            running = [u for u in self.s.units.values() if i.name in u.runs]
            if not fit and r.reset != value:
                self.faults.add("system-state", f"{what}, which nothing sets", at,
                                f"describe an instruction with 'sets: {{{key}: {value}}}'")  # fmt: skip
            elif running and not any(fit & set(u.runs) for u in running):
                why = f"it is so at reset, but '{setters[0].name}' sets it" if r.reset == value else "others set it"
                self.faults.add("system-state", f"{what}: {why}, and '{running[0].name}' runs nothing that does", at,
                                "a register belongs to the unit that needs it: let that unit set it, too, or name "
                                "another register")  # fmt: skip
        if not i.body.body and not i.sets:
            self.faults.add("system-state", f"'{i.name}' computes nothing and sets nothing", i.loc,
                            "give it statements, or 'sets: {REGISTER: VALUE}'")  # fmt: skip
