"""Entries of ``replicas``, ``meshes``, ``links``, ``clusters`` and ``state`` to values; and what instructions say of
registers."""

from __future__ import annotations

from typing import Any

from isam.diagnostics import Loc
from isam.ir.instruction import Instruction
from isam.system.check import Marks
from isam.system.families import Entry
from isam.system.faults import Faults, nearest
from isam.system.fields import Values, read_fields
from isam.system.groups import Cluster, Link, Mesh, Ports, Register, Replica
from isam.system.schema import CLUSTER, LINK, MESH, REGISTER, REPLICA
from isam.system.source import Mapping, Scalar
from isam.system.units import Rate

MAX_BITS = 64
MAX_INSTANCES = 4096
MAX_PORTS = 256


class Groups:
    """Reads one entry after another; ``marks`` gets the places of the names in them."""

    def __init__(self, faults: Faults, marks: Marks):
        self.faults, self.marks = faults, marks

    def _names(self, e: Entry, words: tuple[Scalar, ...]) -> tuple[str, ...]:
        """Names, each once."""
        out: dict[str, None] = {}
        for w in words:
            if w.text in out:
                self.faults.add("system-duplicate", f"'{w.text[:60]}' is in '{e.name}' twice", w.loc, "name it once")
            self.marks["member", e.name, w.text] = w.loc
            out[w.text] = None
        return tuple(out)

    def replica(self, e: Entry) -> Replica | None:
        v = read_fields(e.node, REPLICA, f"the replica '{e.name}'", self.faults, e.key.loc)
        if "count" not in v:
            return None
        if not 1 <= v["count"] <= MAX_INSTANCES:
            self.faults.add("system-replica", f"there cannot be {v['count']} instances of '{e.name}'",
                            _at(e, "count"), f"from 1 to {MAX_INSTANCES}")  # fmt: skip
        return Replica(e.name, v["count"], self._names(e, v.get("memories", ())), self._names(e, v.get("units", ())),
                       v.get("threads", False), e.key.loc)  # fmt: skip

    def link(self, e: Entry) -> Link | None:
        v = read_fields(e.node, LINK, f"the link '{e.name}'", self.faults, e.key.loc)
        if "bandwidth" not in v or "edges" not in v:
            return None
        bandwidth = self._rate(e, v, "system-link", "link")
        edges: dict[tuple[str, str], None] = {}
        for a, b in v["edges"]:
            if (a.text, b.text) in edges:
                self.faults.add("system-duplicate", f"'{e.name}' has the edge from '{a.text}' to '{b.text}' twice",
                                a.loc, "name it once")  # fmt: skip
            self.marks["link", e.name, (a.text, b.text)] = a.loc
            edges[a.text, b.text] = None
        return Link(e.name, bandwidth, tuple(edges), e.key.loc)

    def _rate(self, e: Entry, v: Values, code: str, kind: str) -> float:
        """Bytes per second."""
        bandwidth = v["bandwidth"]
        if not bandwidth:
            self.faults.add(code, f"nothing passes the {kind} '{e.name}'", _at(e, "bandwidth"),
                            "for example '16 GB/s'")  # fmt: skip
        if not isinstance(bandwidth, Rate):
            if not v.get("clock"):
                self.faults.add(code, f"the bandwidth of '{e.name}' is per cycle, of no clock",
                                _at(e, "bandwidth"), "add 'clock: 1 GHz', or state bytes per second")  # fmt: skip
            bandwidth *= v.get("clock", 1.0)
        return float(bandwidth)

    def mesh(self, e: Entry) -> Mesh | None:
        v = read_fields(e.node, MESH, f"the mesh '{e.name}'", self.faults, e.key.loc)
        if any(key not in v for key in ("replica", "shape", "bandwidth", "ports")):
            return None
        bandwidth, shape = self._rate(e, v, "system-mesh", "mesh"), v["shape"]
        if v.get("hop") and not v.get("clock"):
            self.faults.add("system-mesh", f"a hop of '{e.name}' takes cycles of no clock", _at(e, "hop"),
                            "add 'clock: 1 GHz'")  # fmt: skip
        if 0 in shape or not shape:
            self.faults.add("system-mesh", f"there is no place on '{e.name}'", _at(e, "shape"),
                            "a mesh has at least one place along each dimension")  # fmt: skip
        ports: dict[str, tuple[tuple[int, ...], ...]] = {}
        for memory, places in v["ports"].items():
            self.marks["port", e.name, memory.text] = memory.loc
            ports[memory.text] = tuple(dict.fromkeys(p for p, _ in places))
            if len(places) > MAX_PORTS:
                self.faults.add("system-mesh", f"'{memory.text}' is attached to more than {MAX_PORTS} places",
                                memory.loc, "leave some out")  # fmt: skip
            for p, loc in places:
                if len(p) != len(shape) or any(not i < n for i, n in zip(p, shape, strict=True)):
                    what = f"there is no place {list(p)} on a mesh of {' by '.join(map(str, shape))}"
                    self.faults.add("system-mesh", what, loc, "places are counted from 0 along each dimension")
        self.marks["mesh", e.name, "replica"] = v["replica"].loc
        self.marks["mesh", e.name, "shape"] = _at(e, "shape")
        hop = v.get("hop", 0.0) / (v.get("clock") or 1.0)
        return Mesh(e.name, v["replica"].text, shape, bandwidth, tuple(ports.items()), hop, v.get("wrap", False),
                    e.key.loc)  # fmt: skip

    def cluster(self, e: Entry) -> Cluster | None:
        v = read_fields(e.node, CLUSTER, f"the cluster '{e.name}'", self.faults, e.key.loc)
        if "units" not in v:
            return None
        names = self._names(e, v["units"])
        if len(names) < 2:
            self.faults.add("system-cluster", f"the cluster '{e.name}' has fewer than two units", _at(e, "units"),
                            "a unit alone has a stream of its own and needs no cluster")  # fmt: skip
        return Cluster(e.name, names, e.key.loc)

    def register(self, e: Entry) -> Register | None:
        v = read_fields(e.node, REGISTER, f"the register '{e.name}'", self.faults, e.key.loc)
        if ("values" in v) == ("bits" in v):
            self.faults.add("system-state",
                            f"the register '{e.name}' holds either one of 'values' or a number of 'bits'", e.key.loc,
                            "write 'values: [a, b]' or 'bits: 16'")  # fmt: skip
            return None
        bits = v.get("bits")
        if "values" in v and not v["values"]:
            self.faults.add("system-state", f"the register '{e.name}' can hold nothing", _at(e, "values"),
                            "for example 'values: [a, b]'")  # fmt: skip
        if bits is not None and not 1 <= bits <= MAX_BITS:
            self.faults.add("system-state", f"a register has 1 to {MAX_BITS} bits, not {bits}", _at(e, "bits"),
                            "for example 'bits: 16'")  # fmt: skip
        made = Register(e.name, tuple(w.text for w in v.get("values", ())), bits, None, e.key.loc)
        if "reset" not in v:
            return made
        value = _value(v["reset"].text, made, ())
        if value is None or not made.holds(value):
            self._no_value(made, v["reset"])
        return Register(made.name, made.values, made.bits, value, made.loc)

    def _no_value(self, r: Register, at: Scalar) -> None:
        meant = nearest(at.text, r.values) if r.bits is None else f"a whole number below 2^{r.bits}"
        self.faults.add("system-state", f"the register '{r.name}' cannot hold '{at.text[:40]}'", at.loc, meant)

    def settings(self, given: dict[Scalar, Scalar], registers: dict[str, Register], sizes: tuple[str, ...],
                 declared: frozenset[str], measures: frozenset[str] = frozenset()) -> dict[str, str | int]:  # fmt: skip
        """What an instruction requires or sets: each of these registers with a value that it can hold, or with one of
        the instruction's sizes, or of its ``measures``. ``declared``: registers whose entries may be faulty."""
        out: dict[str, str | int] = {}
        for key, at in given.items():
            r = registers.get(key.text)
            if r is None and key.text not in declared:
                self.faults.add("system-unknown-register", f"there is no register '{key.text[:60]}'", key.loc,
                                nearest(key.text, registers) if registers else "describe it in 'state:'")  # fmt: skip
            if r is None:
                continue
            value = at.text if at.text in measures else _value(at.text, r, sizes)
            if value is None or not (r.holds(value) or (r.bits is not None and (value in sizes or value in measures))):
                self._no_value(r, at)
            else:
                out[key.text] = value
        return out


def measures(i: Instruction) -> frozenset[str]:
    """What of its operands an instruction may require registers to hold."""
    ranks = {a.name: len(a.shape) for a in i.body.arguments}
    strides = {f"stride {o} {d}" for o, n in ranks.items() for d in range(n)}
    return frozenset(strides | {f"step {o}" for o in ranks})


def read_ports(v: Values, at: Loc, faults: Faults) -> Ports:
    """The ports of a memory: at least one of each kind, where they are counted."""
    for does, n in v.items():
        if n < 1:
            faults.add("system-ports", f"a memory with {n} ports to {does} cannot be used", at,
                       f"leave '{does}' out where any number may be used at once")  # fmt: skip
    return Ports(v.get("read"), v.get("write"))


def _value(text: str, r: Register, sizes: tuple[str, ...]) -> str | int | None:
    """What a text means in a register: a word of its values, a number, a size of the instruction."""
    if r.bits is None or text in sizes:
        return text
    return int(text) if len(text) <= 20 and text.isascii() and text.isdecimal() else None


def _at(e: Entry, field: str) -> Loc:
    node: Any = e.node.get(field) if isinstance(e.node, Mapping) else None
    return node.loc if node is not None else e.key.loc
