"""Reads the fields of one entry by its table: unknown keys, wrong kinds and missing units are reported with a hint."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from isam.diagnostics import Loc
from isam.system.faults import MAX_FAULTS, Faults, nearest
from isam.system.schema import BURST, COST, PORTS, TARGET, WORD, Field, Table
from isam.system.source import Mapping, Node, Scalar, Sequence, describe
from isam.system.units import QuantityError, parse_count, parse_quantity, parse_throughput

_WORD = re.compile(WORD)
_INT = re.compile(r"[+-]?[0-9]{1,18}")
_FLOAT = re.compile(r"[+-]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?")
_FLAGS = {"true": True, "false": False}
_SAID = {"yes": "true", "on": "true", "no": "false", "off": "false", "1": "true", "0": "false"}

Values = dict[str, Any]


def read_fields(node: Node, table: Table, what: str, faults: Faults, at: Loc | None = None) -> Values:
    """The values of an entry's known fields; absent and faulty ones are left out. Words stay :class:`Scalar`, so that
    later checks can point at them."""
    if not isinstance(node, Mapping):
        faults.add("system-kind", f"expected the fields of {what}, found {describe(node)}", node.loc,
                   f"fields: {', '.join(table)}")  # fmt: skip
        return {}
    out: Values = {}
    unknown = [key.text for key, _ in node.items[:MAX_FAULTS] if key.text not in table]
    misspelt = {meant for word in unknown if (meant := misspelling(word, table))}
    for key, value in node.items:
        f = table.get(key.text)
        if f is None and faults.full:
            continue
        if f is None:
            faults.add("system-unknown-key", f"{what} has no field '{key.text}'", key.loc,
                       nearest(key.text, table, f"fields: {', '.join(table)}"))  # fmt: skip
            continue
        got = _READ[f.kind](value, f, faults) if f.kind in _READ else _quantity(value, f, faults)
        if got is not None:
            out[key.text] = got
    for name, f in table.items():
        if f.required and node.get(name) is None and name not in misspelt:
            faults.add("system-missing", f"{what} lacks '{name}' ({f.meaning})", at or node.loc,
                       f"add '{name}: {'1' if name == 'isam' else '...'}'")  # fmt: skip
    return out


def misspelling(word: str, table: Table) -> str:
    """The field that an unknown key probably means, or the empty string."""
    hint = nearest(word, table, "-")
    return next((n for n in table if f"'{n}'" in hint), "")


def _leaf(node: Node, expected: str, faults: Faults, hint: str = "") -> Scalar | None:
    if isinstance(node, Scalar) and node.text.strip():
        return node
    faults.add("system-kind", f"expected {expected}, found {describe(node)}", node.loc, hint or "write one value")
    return None


def _quantity(node: Node, f: Field, faults: Faults) -> float | int | None:
    leaf = _leaf(node, f"a quantity ({'bandwidth' if f.kind == 'throughput' else f.kind})", faults)
    if leaf is None:
        return None
    try:
        return parse_throughput(leaf.text) if f.kind == "throughput" else parse_quantity(leaf.text, f.kind)
    except QuantityError as e:
        faults.add("system-unit", str(e), leaf.loc, e.hint)
        return None


def _count(node: Node, f: Field, faults: Faults) -> int | None:
    leaf = _leaf(node, "a whole number", faults)
    if leaf is None:
        return None
    try:
        return parse_count(leaf.text)
    except QuantityError as e:
        faults.add("system-count", str(e), leaf.loc, e.hint)
        return None


def _flag(node: Node, f: Field, faults: Faults) -> bool | None:
    leaf = _leaf(node, "true or false", faults)
    if leaf is None:
        return None
    if leaf.quoted or leaf.text not in _FLAGS:
        said = _SAID.get(leaf.text.lower()) or (leaf.text.lower() if leaf.text.lower() in _FLAGS else "")
        what = "the text " if leaf.quoted else ""
        faults.add("system-flag", f"expected true or false, found {what}'{leaf.text[:40]}'", leaf.loc,
                   f"write {said}" if said else "write true or false")  # fmt: skip
        return None
    return _FLAGS[leaf.text]


def read_word(node: Node, f: Field, faults: Faults) -> Scalar | None:
    leaf = _leaf(node, "a name", faults)
    if leaf is None:
        return None
    if f.values and leaf.text not in f.values:
        faults.add("system-value", f"'{leaf.text[:40]}' is not one of {', '.join(f.values)}", leaf.loc,
                   nearest(leaf.text, f.values, f"write {' or '.join(f.values)}"))  # fmt: skip
        return None
    return leaf


def words(node: Node, f: Field, faults: Faults) -> tuple[Scalar, ...] | None:
    """One name, or a list of names."""
    if isinstance(node, Sequence):
        found = [read_word(i, f, faults) for i in node.items]
        return tuple(w for w in found if w is not None)
    one = read_word(node, f, faults)
    return (one,) if one is not None else None


def _text(node: Node, f: Field, faults: Faults) -> Scalar | None:
    return node if isinstance(node, Scalar) else _leaf(node, "a text", faults)


def _block(node: Node, f: Field, faults: Faults) -> Scalar | None:
    leaf = _leaf(node, "the text of an instruction", faults, "begin with 'body: |' and indent the text below it")
    if leaf is not None and not leaf.block:
        faults.add("system-block", "the text of an instruction must keep its lines", leaf.loc,
                   "begin with 'body: |' and indent the text below it")  # fmt: skip
        return None
    return leaf


def _homes(node: Node, f: Field, faults: Faults) -> Any:
    """``{operand: memories}``, or memories alone, which serve every operand (under the key None)."""
    if not isinstance(node, Mapping):
        got = words(node, f, faults)
        return None if got is None else {None: got}
    return {k: got for k, v in node.items if (got := words(v, f, faults)) is not None}


def _groups(node: Node, f: Field, faults: Faults) -> tuple[tuple[Scalar, ...], ...] | None:
    if not isinstance(node, Sequence) or any(not isinstance(i, Sequence) for i in node.items):
        faults.add("system-kind", f"expected groups of operands, found {describe(node)}", node.loc,
                   "for example [[A, B]]")  # fmt: skip
        return None
    out: list[tuple[Scalar, ...]] = []
    for group in node.items:
        got = words(group, f, faults) or ()
        if len(got) < 2:
            faults.add("system-value", "a group has at least two operands", group.loc, "for example [[A, B]]")
        else:
            out.append(got)
    return tuple(out)


def _aligns(node: Node, f: Field, faults: Faults) -> dict[Scalar, int] | None:
    if not isinstance(node, Mapping):
        faults.add("system-kind", f"expected an alignment per operand, found {describe(node)}", node.loc,
                   "for example {A: 64 B}")  # fmt: skip
        return None
    return {k: got for k, v in node.items if (got := _alignment(v, f, faults)) is not None}


def _alignment(node: Node, f: Field, faults: Faults) -> int | None:
    got = _quantity(node, Field("bytes", f.meaning), faults)
    if got is None:
        return None
    if got < 1 or int(got) & (int(got) - 1):
        below = 1 << max(0, int(got).bit_length() - 1)
        faults.add("system-align", f"an alignment is a power of two, not {int(got)} B", node.loc,
                   f"write {below} B or {2 * below} B" if got else "leave it out")  # fmt: skip
        return None
    return int(got)


PACKED = "packed"


def _strides(node: Node, f: Field, faults: Faults) -> dict[Scalar, tuple[int | None, ...] | None] | None:
    """Per operand a stride for each dimension (None: free); None for a packed operand: its shape says them."""
    hint = "for example {A: [free, 1]} or {A: packed}"
    if not isinstance(node, Mapping):
        faults.add("system-kind", f"expected strides per operand, found {describe(node)}", node.loc, hint)
        return None
    out: dict[Scalar, tuple[int | None, ...] | None] = {}
    for k, v in node.items:
        if isinstance(v, Scalar) and v.text == PACKED:
            out[k] = None
        elif not isinstance(v, Sequence):
            faults.add("system-kind", f"expected strides, found {describe(v)}", v.loc, hint)
        else:
            leaves = [_leaf(i, "a stride", faults, hint) for i in v.items]
            if all(x is not None for x in leaves):
                out[k] = tuple(None if x.text == "free" else _count(x, f, faults) for x in leaves if x is not None)
    return out


def _cost(node: Node, f: Field, faults: Faults) -> Values:
    return read_fields(node, COST, "a cost", faults)


def _burst(node: Node, f: Field, faults: Faults) -> Values:
    return read_fields(node, BURST, "a burst", faults)


def _target(node: Node, f: Field, faults: Faults) -> Values:
    return read_fields(node, TARGET, "a target", faults)


def _ports(node: Node, f: Field, faults: Faults) -> Values:
    return read_fields(node, PORTS, "the ports of a memory", faults)


def _edges(node: Node, f: Field, faults: Faults) -> tuple[tuple[Scalar, Scalar], ...] | None:
    """Pairs of memories."""
    hint = "for example [[dram, sp], [sp, dram]]"
    if not isinstance(node, Sequence) or any(not isinstance(i, Sequence) for i in node.items):
        faults.add("system-kind", f"expected pairs of memories, found {describe(node)}", node.loc, hint)
        return None
    out: list[tuple[Scalar, Scalar]] = []
    for pair in node.items:
        ends = words(pair, f, faults) or ()
        if len(ends) == 2:
            out.append((ends[0], ends[1]))
        elif isinstance(pair, Sequence) and len(ends) == len(pair.items):
            faults.add("system-value", f"an edge leads from one memory to another, here are {len(ends)} names",
                       pair.loc, hint)  # fmt: skip
    return tuple(out)


def _counts(node: Node, f: Field, faults: Faults, example: str = "[4, 6]") -> tuple[int, ...] | None:
    """A row of whole numbers."""
    if not isinstance(node, Sequence):
        faults.add("system-kind", f"expected whole numbers in brackets, found {describe(node)}", node.loc,
                   f"for example {example}")  # fmt: skip
        return None
    found = [_count(i, f, faults) for i in node.items]
    return tuple(n for n in found if n is not None)


def _places(node: Node, f: Field, faults: Faults) -> dict[Scalar, list[tuple[tuple[int, ...], Loc]]] | None:
    """Places per memory, each with where it is written."""
    hint = "for example {dram: [[0, 0], [3, 5]]}"
    if not isinstance(node, Mapping):
        faults.add("system-kind", f"expected places per memory, found {describe(node)}", node.loc, hint)
        return None
    out: dict[Scalar, list[tuple[tuple[int, ...], Loc]]] = {}
    for key, some in node.items:
        if not isinstance(some, Sequence):
            faults.add("system-kind", f"expected places, found {describe(some)}", some.loc, hint)
            continue
        found = [(_counts(p, f, faults, "[[0, 0]]"), p.loc) for p in some.items]
        out[key] = [(p, at) for p, at in found if p is not None]
    return out


def _settings(node: Node, f: Field, faults: Faults) -> dict[Scalar, Scalar] | None:
    """A value per configuration register."""
    if not isinstance(node, Mapping):
        faults.add("system-kind", f"expected a value per register, found {describe(node)}", node.loc,
                   "for example {dataflow: ws}")  # fmt: skip
        return None
    return {k: leaf for k, v in node.items if (leaf := _leaf(v, "a value", faults)) is not None}


def _per(node: Node, f: Field, faults: Faults) -> dict[Scalar, float] | None:
    """Cycles per size."""
    if not isinstance(node, Mapping):
        faults.add("system-kind", f"expected cycles per size, found {describe(node)}", node.loc,
                   "for example {M: 1 cycle}")  # fmt: skip
        return None
    return {k: got for k, v in node.items if (got := _quantity(v, Field("cycles", f.meaning), faults)) is not None}


def _narrow(node: Node, f: Field, faults: Faults) -> dict[Scalar, dict[int, float]] | None:
    """Cycles per number of lanes, per size."""
    hint, out = "for example {J: {8: 1 cycle}}", dict[Scalar, dict[int, float]]()
    if not isinstance(node, Mapping):
        what = f"expected cycles per number of lanes of a size, found {describe(node)}"
        faults.add("system-kind", what, node.loc, hint)
        return None
    for size, forms in node.items:
        if not isinstance(forms, Mapping) or not forms.items:
            found = "none" if isinstance(forms, Mapping) else describe(forms)
            what = f"expected cycles per number of lanes of '{size.text[:40]}', found {found}"
            faults.add("system-kind", what, forms.loc, hint)
            continue
        taken = _per(forms, f, faults) or {}
        out[size] = {}
        for k, most in ((k, _count(k, f, faults)) for k, _ in forms.items):
            if most in out[size]:
                what = f"two forms of '{size.text[:40]}' take up to {most}"
                faults.add("system-duplicate", what, k.loc, "leave one out")
            elif most is not None and k in taken:
                out[size][most] = taken[k]
    return out


def free(node: Node, f: Field | None = None, faults: Faults | None = None) -> Any:
    """Free data: quoted text and words are strings; true, false, null and numbers are what they look like."""
    if isinstance(node, Sequence):
        return [free(i) for i in node.items]
    if isinstance(node, Mapping):
        return {k.text: free(v) for k, v in node.items}
    text = node.text
    if node.quoted or len(text) > 64:
        return text
    if text in ("", "~", "null"):
        return None
    if text in _FLAGS:
        return _FLAGS[text]
    if _INT.fullmatch(text):
        return int(text)
    value = float(text) if _FLOAT.fullmatch(text) else math.inf
    return value if math.isfinite(value) else text


def _keep(node: Node, f: Field, faults: Faults) -> Node:
    return node


_READ: dict[str, Callable[[Any, Field, Faults], Any]] = {
    "count": _count, "flag": _flag, "word": read_word, "words": words, "text": _text, "block": _block, "homes": _homes,
    "groups": _groups, "aligns": _aligns, "alignment": _alignment, "strides": _strides, "cost": _cost, "free": free,
    "burst": _burst, "target": _target,
    "ports": _ports, "edges": _edges, "settings": _settings, "per": _per,
    "narrow": _narrow,
    "counts": _counts, "places": _places,
    "entries": _keep, "moves": _keep, "variants": _keep, "lists": _keep,
}  # fmt: skip


NAMED = "first a letter or _, then letters, digits, _ - ."


def is_word(text: str) -> bool:
    """Whether ``text`` may name an entry."""
    return len(text) <= 100 and _WORD.fullmatch(text) is not None
