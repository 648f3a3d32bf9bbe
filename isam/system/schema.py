"""What may stand in a description: one table per kind of entry. The reader and the JSON schema both come from these."""

from __future__ import annotations

from typing import Any

from isam.classes import dataclass
from isam.system.units import EXAMPLES, UNITS

WORD = r"^[A-Za-z_][A-Za-z0-9_.\-]*$"


@dataclass(frozen=True, slots=True)
class Field:
    """``kind``: a dimension of ``units.UNITS``, or count, flag, word, words, text, block, free, cost, homes, groups,
    alignment, aligns, strides, throughput, ports, edges, settings, counts, places,
    per. ``values``: the only words allowed."""

    kind: str
    meaning: str
    required: bool = False
    values: tuple[str, ...] = ()


Table = dict[str, Field]

PORTS: Table = {
    "read": Field("count", "operands of one call that may be read from it"),
    "write": Field("count", "operands of one call that may be written to it"),
}
MEMORY: Table = {
    "kind": Field("word",
         "managed: explicit addresses; counted: registers the code generator allocates; cached: in front of another",
                  True, ("managed", "counted", "cached")),
    "capacity": Field("bytes", "size of a byte-addressed memory"),
    "cells": Field("count", "number of cells; an operand occupies whole cells"),
    "cell": Field("bytes", "size of one cell"),
    "lanes": Field("count", "elements that a register of a counted memory is for, whatever their type"),
    "masks": Field("word", "what registers with lanes do under masks: loads (of some elements of four bytes and more), "
                   "or all (loads, stores, gathers, scatters, of some of any); absent: nothing", False,
                   ("loads", "all")),
    "lane": Field("bytes", "of a lane that holds as many elements of an operand's last dimension as fit, not one"),
    "shares": Field("word", "the counted memory whose registers these are, too"),
    "align": Field("alignment", "addresses are multiples of this, a power of two"),
    "row": Field("bytes", "an operand's last dimension lies within a row, along the others it goes whole rows"),
    "ports": Field("ports", "how many operands of one call it serves; absent: any number"),
    "home": Field("flag", "arguments live here (exactly one memory)"),
    "of": Field("word", "the memory a cached one stands in front of"),
    "bandwidth": Field("rate", "at which a cached one is read; absent: not known"),
    "description": Field("text", "for readers"),
}  # fmt: skip
UNIT: Table = {
    "runs": Field("words", "instructions this unit executes; * and ? match several", True),
    "clock": Field("frequency", "its cycles are those of all costs on it"),
    "driver": Field("word", "who runs its loops; expanded: nobody, every call is spelled out; absent: host",
                    values=("host", "sequencer", "expanded")),
    "counters": Field("count", "loop counters of its sequencer"),
    "hazards": Field("word", "who waits for operands: the hardware (resolved), or tokens; absent: tokens",
                     values=("resolved", "tokens")),
    "description": Field("text", "for readers"),
}  # fmt: skip
REPLICA: Table = {
    "count": Field("count", "how many there are", True),
    "memories": Field("words", "memories that each instance has"),
    "units": Field("words", "units that each instance has"),
    "threads": Field("flag", "whether threads of a process stand for them; then whoever compiles says how many"),
    "description": Field("text", "for readers"),
}
MESH: Table = {
    "replica": Field("word", "whose instances stand on its places, one on each", True),
    "shape": Field("counts", "how many places there are along each dimension, for example [4, 6]", True),
    "bandwidth": Field("throughput", "of the channel from a place to its neighbour, each way", True),
    "clock": Field("frequency", "of which cycles bandwidth and hop speak"),
    "hop": Field("cycles", "through one channel; absent: none"),
    "wrap": Field("flag", "whether each dimension is a ring; absent: not"),
    "ports": Field("places", "beside which places shared memories are attached: {dram: [[0, 0], [3, 5]]}", True),
    "description": Field("text", "for readers"),
}
LINK: Table = {
    "bandwidth": Field("throughput", "of all moves along these edges together, in every instance", True),
    "clock": Field("frequency", "of which cycles the bandwidth speaks; bytes per second need none"),
    "edges": Field("edges", "moves that share it: [[FROM, TO], ...]", True),
    "description": Field("text", "for readers"),
}
CLUSTER: Table = {
    "units": Field("words", "units that follow one instruction stream", True),
    "description": Field("text", "for readers"),
}
REGISTER: Table = {
    "values": Field("words", "words it can hold"),
    "bits": Field("count", "width of a number it holds"),
    "reset": Field("word", "what it holds at the start; absent: nobody knows"),
    "description": Field("text", "for readers"),
}
MOVE: Table = {
    "from": Field("words", "memory (or memories) read", True),
    "to": Field("words", "memory (or memories) written", True),
    "by": Field("words", "instructions that carry it out", True),
    "issuer": Field("word", "the unit that issues it", True),
    "both_ways": Field("flag", "also from 'to' to 'from'"),
    "computes": Field("flag", "kernels may be mapped onto its instructions, too"),
    "streams": Field("flag", "what they bring need not stay near; each may take the place of one with the same body"),
    "description": Field("text", "for readers"),
}
INSTRUCTION: Table = {
    "body": Field("block", "what it does, in the language of kernels", True),
    "homes": Field("homes", "memories in which each operand may live, best first; one list serves all operands"),
    "shared": Field("words", "operands that all members of a cluster take from the same place"),
    "requires": Field("settings", "registers and the value each must have: {REGISTER: VALUE}"),
    "sets": Field("settings", "registers and the value each has afterwards; one of the sizes, for a number of bits"),
    "burst": Field("burst", "calls, at even distances, that one command carries out"),
    "apart": Field("groups", "groups of operands that must lie in different memories"),
    "align": Field("aligns", "alignment per operand"),
    "strides": Field("strides", "element strides per operand and dimension: a number or 'free'; or 'packed'"),
    "cost": Field("cost", "cycles; bytes per cycle or second"),
    "emission": Field("free", "templates, by back end"),
    "needs": Field("words", "CPU features it needs"),
    "ulp": Field("error", "declared error of an approximation"),
    "family": Field("word", "what the members of a family are called together; absent: its key without the holes"),
    "description": Field("text", "for readers"),
}
COST: Table = {
    "issue": Field("cycles", "until the unit takes the next call"),
    "latency": Field("cycles", "until the result is there"),
    "setup": Field("cycles", "before the first byte of a move"),
    "bandwidth": Field("throughput", "of a move"),
    "per": Field("per", "cycles on top of issue and latency for each unit of a size: {M: 1 cycle}"),
    "prefetch": Field("cycles", "of asking a cache, with a move, for what a later one moves; absent: it cannot"),
    "narrow": Field("narrow", "forms for calls of few elements, on so many lanes in so many cycles: {J: {8: 1 cycle}}"),
}
BURST: Table = {
    "most": Field("count", "so many calls at most", True),
    "step": Field("aligns", "bytes from one operand to the next, where that is fixed: {S: 16 B}"),
}
TARGET: Table = {
    "triple": Field("word", "LLVM's name for architecture and system: aarch64-unknown-linux-gnu", True),
    "cpu": Field("word", "LLVM's name of the CPU; absent: any"),
    "features": Field("words", "what it has besides, by LLVM's names; what the machine needs must be among them"),
}
VARIANT: Table = {
    "system": Field("word", "the system to take", True),
    "needs": Field("words", "CPU features that this takes; the first variant whose needs are met is taken"),
}
TOP: Table = {
    "isam": Field("count", "version of the format: 1", True),
    "system": Field("word", "name of the machine"),
    "description": Field("text", "for readers"),
    "needs": Field("words", "CPU features without which the machine cannot run"),
    "target": Field("target", "the CPU that code is made for, where it is not the one we run on"),
    "backend": Field("word", "emitter of code (simulator, llvm, ...); none: semantics only"),
    "approach": Field("word", "the Approach whose opinions suit this machine"),
    "facts": Field("free", "`snippets...` and `stream` for back ends, the rest for Approaches and reports"),
    "include": Field("words", "further files of this description, relative to this one"),
    "extends": Field("word", "another system, by name or by its path from here; entries here are added to its entries "
                     "or override their fields"),
    "select": Field("variants", "takes one of several systems, by CPU features"),
    "lists": Field("lists", "values that several families share"),
    "memories": Field("entries", "where data can be"),
    "units": Field("entries", "what executes instructions"),
    "moves": Field("moves", "along which edges data can go"),
    "instructions": Field("entries", "what units execute, moves included"),
    "replicas": Field("entries", "memories and units that there are several times over"),
    "meshes": Field("entries", "grids on which the instances of a replica stand"),
    "links": Field("entries", "bandwidth that several edges share"),
    "clusters": Field("entries", "units with one instruction stream"),
    "state": Field("entries", "configuration registers"),
}
SECTIONS: dict[str, Table] = {"memories": MEMORY, "units": UNIT, "instructions": INSTRUCTION, "replicas": REPLICA,
                              "meshes": MESH, "links": LINK, "clusters": CLUSTER, "state": REGISTER}  # fmt: skip


def json_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a description, for editors."""
    any_lists = {"type": "object", "additionalProperties": {"type": ["array", "object"]}}
    special: dict[str, Any] = {
        "entries": {"type": "object"},
        "lists": any_lists,
        "moves": {"type": "array", "items": _family(MOVE)},
        "variants": {"type": "array", "items": _object(VARIANT), "minItems": 1},
    }
    top = _object(TOP, special)
    whole: dict[str, Any] = {}  # what an entry must have, unless it overrides fields of another file's
    for section, table in SECTIONS.items():
        entry = _family(table)
        whole[section] = {"additionalProperties": {"required": entry.pop("required", [])}}
        top["properties"][section] = {"type": "object", "additionalProperties": entry,
                                      "description": TOP[section].meaning}  # fmt: skip
    top |= {"if": {"anyOf": [{"required": ["extends"]}, {"required": ["include"]}]}, "else": {"properties": whole}}
    top["properties"]["isam"] = {"const": 1, "description": TOP["isam"].meaning}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "ISAM system description, version 1"}
    return {**head, **top}


def _family(table: Table) -> dict[str, Any]:
    """An entry that may be a family."""
    out = _holed(table)
    out["properties"]["for"] = {"type": "object", "additionalProperties": {"type": ["array", "object", "string"]},
                                "description": "parameters of a family and their values"}  # fmt: skip
    out["properties"]["when"] = {"type": ["string", "array"], "description": "which members there are"}
    return out


def _holed(table: Table) -> dict[str, Any]:
    """In a family a text with a hole may stand wherever a number or a word does."""
    out = _object(table)
    hole = {"type": "string", "pattern": r"\{[A-Za-z_]\w*\}"}
    for k, p in out["properties"].items():
        if table[k].kind not in ("text", "block", "free"):
            meaning = p.pop("description")
            out["properties"][k] = {"anyOf": [p, hole], "description": meaning}
    return out


def _object(table: Table, special: dict[str, Any] | None = None) -> dict[str, Any]:
    out: dict[str, Any] = {
        "type": "object",
        "properties": {k: {**_json(f, special or {}), "description": f.meaning} for k, f in table.items()},
        "additionalProperties": False,
    }
    required = [k for k, f in table.items() if f.required]
    return {**out, "required": required} if required else out


def _json(f: Field, special: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "string"}
    names = {"type": "array", "items": text}
    if f.kind in special:
        return special[f.kind]
    if f.kind == "alignment":
        f = Field("bytes", f.meaning)
    dimensions = ("bandwidth", "rate") if f.kind == "throughput" else (f.kind,)
    if dimensions[0] in UNITS:
        units = "|".join(u for d in dimensions for u in UNITS[d])
        return {"type": "string", "pattern": rf"^\s*[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*({units})\s*$",
                "examples": [EXAMPLES[d] for d in dimensions]}  # fmt: skip
    cycles = {"type": "string"} if f.kind not in ("per", "narrow") else _json(Field("cycles", f.meaning), special)
    counts = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
    kinds: dict[str, dict[str, Any]] = {
        "count": {"type": "integer", "minimum": 0},
        "flag": {"type": "boolean"},
        "word": {"enum": list(f.values)} if f.values else text,
        "words": {"anyOf": [text, names]},
        "text": text,
        "block": text,
        "free": {},
        "homes": {"anyOf": [text, names, {"type": "object", "additionalProperties": {"anyOf": [text, names]}}]},
        "groups": {"type": "array", "items": {**names, "minItems": 2}},
        "aligns": {"type": "object", "additionalProperties": text},
        "strides": {"type": "object",
                    "additionalProperties": {"anyOf": [{"type": "array", "items": {"type": ["string", "integer"]}},
                                                       {"const": "packed"}]}},
        "edges": {"type": "array", "items": {**names, "minItems": 2, "maxItems": 2}},
        "per": {"type": "object", "additionalProperties": cycles},
        "narrow": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": cycles}},
        "counts": counts,
        "places": {"type": "object", "additionalProperties": {"type": "array", "items": counts, "minItems": 1}},
        "settings": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
    }
    inside = {"cost": COST, "ports": PORTS, "burst": BURST, "target": TARGET}
    return _holed(inside[f.kind]) if f.kind in inside else kinds[f.kind]
