"""Certificates of mappings and rewritings: what the small checker accepts, and what it refuses."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import replace
from functools import cache

import pytest

from isam.compiler import as_approach
from isam.compiler.stages import new_job, run_stages
from isam.diagnostics import InternalError
from isam.ir.affine import Affine
from isam.ir.kernel import Literal
from isam.ir.mapping import Cover
from isam.ir.text import parse_instruction, parse_kernel
from isam.mapper import match
from isam.proof.carried import carried
from isam.proof.chain import check_chain
from isam.proof.checker import hash_of, judged_mappings, refusals, sealed
from isam.proof.mapped import certify, document
from isam.system.load import load_system
from tests.corpus import CASES
from tests.edits import put
from tests.unit.proof.rewritings import FORGED as REWRITINGS
from tests.unit.proof.verdicts import on_record

SIZES = {
    "sepconv": {"H": 5, "W": 4, "C": 3, "Q": 2, "K": 6, "R": 3, "S": 3},
    "conv_same": {"N": 2, "H": 5, "W": 4, "C": 3, "K": 6},
    "matmul": {"M": 6, "N": 5, "K": 7},
    "gru": {"T": 3, "B": 2, "X": 3, "H": 4},
}


@cache
def cover(name: str) -> Cover:
    job = new_job(CASES[name].load(), load_system("toy"), SIZES[name], as_approach(None))
    run_stages(job, until="cover")
    assert job.cover is not None
    return job.cover


@cache
def genuine(name: str) -> dict:
    return certify(cover(name))


def forged(c: Cover) -> dict:
    """A certificate that says that everything holds, whatever it is."""
    verdicts = [{"law": s.law, "site": s.site, "claims": sorted(s.needs), "numerics": ["reassociates", "rounding"],
                 "kernel": "", "hash": document(Cover(s.kernel, s.kernel, ()), [], ())["kernel"]["hash"],
                 "verdict": "equal"} for s in c.chain]  # fmt: skip
    return document(c, verdicts, tuple(genuine("matmul")["numerics"]))


@pytest.mark.parametrize("name", SIZES)
def test_genuine_certificates_are_accepted(name):
    c = genuine(name)
    assert refusals(c) == []
    assert refusals(json.dumps(c)) == []
    assert [o["number"] for o in c["obligations"]] == list(range(1, 8))


def test_a_chain_is_in_the_certificate():
    c = genuine("sepconv")
    assert [s["law"] for s in c["chain"]] == ["factor"]
    assert c["chain"][0]["numerics"] == ["reassociates", "rounding"]


@pytest.mark.parametrize("symbolic", [False, True])
def test_single_mappings_are_certified(symbolic):
    from isam.ir.normal import normal_form
    from isam.proof.mapped import of_mapping

    k = CASES["conv_same"].load()
    k = normal_form(k if symbolic else k.with_sizes(SIZES["conv_same"]))
    found = [m for i in load_system("toy").compute for m in match(k, i) or ()]
    assert len(found) > 10
    for m in found[::5]:
        assert refusals(certify(of_mapping(m, k))) == []


def test_an_instruction_of_a_fixed_size_is_certified():
    from isam.proof.mapped import of_mapping

    ins = parse_instruction("instruction add4()\n  in A: f32[4]\n  in B: f32[4]\n  out D: f32[4]\n  forall i < 4\n"
                            "    D[i] = A[i] + B[i]\n")  # fmt: skip
    k = parse_kernel("kernel k()\n  in x: f32[4]\n  in z: f32[4]\n  out y: f32[4]\n  forall i < 4\n"
                     "    y[i] = z[i] + x[i]\n")  # fmt: skip
    found = list(match(k, ins) or ())
    assert found
    for m in found:
        assert refusals(certify(of_mapping(m, k))) == []


STENCIL = ("in A: f32[N + 1]", "out D: f32[N]", "forall i < N", "  D[i] = A[i + 1] - A[i]")
SHIFTED = ("in A: f32[N]", "out D: f32[N]", "temp t: f32[N + 1]", "t[0] = 0", "forall i < N", "  t[i + 1] = A[i] * 2",
           "forall i < N", "  D[i] = t[i] + A[i]")  # fmt: skip
ADDED = ("in A: f32[N]", "inout D: f32[N]", "forall i < N", "  D[i] += A[i]")


def made(*lines: str) -> str:
    return "".join(f"  {x}\n" for x in lines)


@pytest.mark.parametrize(("body", "lines"), [
    (STENCIL, ("in x: f32[9]", "out y: f32[8]", "forall i < 8", "  y[i] = x[i + 1] - x[i]")),
    (SHIFTED, ("in x: f32[8]", "out y: f32[8]", "temp s: f32[9]", "s[0] = 0", "forall i < 8", "  s[i + 1] = x[i] * 2",
               "forall i < 8", "  y[i] = s[i] + x[i]")),
    (ADDED, ("in x: f32[5, 8]", "inout h: f32[8]", "out y: f32[5, 8]", "loop t < 5", "  forall i < 8",
             "    h[i] += x[t, i]", "    y[t, i] = tanh(h[i])")),
], ids=("neighbours", "a temporary written in two pieces", "in a loop"))  # fmt: skip
def test_addresses_temporaries_and_loops_are_certified(body, lines):
    from isam.proof.mapped import of_mapping

    ins = parse_instruction(f"instruction own(N)\n{made(*body)}")
    k = parse_kernel(f"kernel k()\n{made(*lines)}")
    found = list(match(k, ins) or ())
    assert found, match(k, ins)
    for m in found:
        assert refusals(certify(of_mapping(m, k))) == []
        n = next(n for n, o in enumerate(m.operands) if o.buffer == "x")
        moved = replace(m.operands[n], index=(*m.operands[n].index[:-1], m.operands[n].index[-1] - 1))
        wrong = replace(m, operands=(*m.operands[:n], moved, *m.operands[n + 1 :]))
        assert judged_mappings(k, (wrong,))[1]


def test_what_adds_once_a_call_adds_up_over_calls():
    """An instruction without a sum carries one out: ``D = D + A``, call after call."""
    from isam.proof.mapped import of_mapping

    own = made("in A: f32[N]", "inout D: f32[N]", "forall i < N", "  D[i] = D[i] + A[i]")
    body = made("in x: f32[3, 8]", "inout y: f32[8]", "forall k < 3, i < 8", "  y[i] += x[k, i]")
    ins, k = parse_instruction(f"instruction more(N)\n{own}"), parse_kernel(f"kernel k()\n{body}")
    found = list(match(k, ins) or ())
    assert any(m.outer == ("k",) for m in found)
    for m in found:
        assert refusals(certify(of_mapping(m, k))) == []


def test_a_statement_by_itself_stays_between_those_it_depends_on():
    """Each of a chain of statements carried out by an instruction, the others left as they are; in a loop too."""
    from isam.proof.mapped import of_mapping

    add = parse_instruction("instruction add4()\n  in A: f32[4]\n  in B: f32[4]\n  out D: f32[4]\n  forall i < 4\n"
                            "    D[i] = A[i] + B[i]\n")  # fmt: skip
    plain = ("y[i] = x[i] + z[i]",
             "u[i] = y[i] + x[i]", "y[i] = u[i] + u[i]", "x[i] = y[i] + z[i]", "u[i] = x[i] + y[i]")  # fmt: skip
    head = ("inout x: f32[4]", "in z: f32[4]", "inout y: f32[4]", "inout u: f32[4]")
    straight = (x for s in plain for x in ("forall i < 4", f"  {s}"))
    looped = ("loop t < 3", *(f"  {x}" for s in plain[:3] for x in ("forall i < 4", f"  {s}")),
              *(x for s in plain[3:] for x in ("forall i < 4", f"  {s}")))  # fmt: skip
    before = ("forall i < 4", f"  {plain[0]}", "loop t < 3", "  forall i < 4", f"    {plain[1]}")
    for body in (tuple(straight), looped, before):
        k = parse_kernel(f"kernel k()\n{made(*head, *body)}")
        found = list(match(k, add) or ())
        assert {m.statements for m in found} == {(i,) for i in range(len(k.statements))}
        for m in found:
            assert refusals(certify(of_mapping(m, k))) == []
            assert [s.dest.buffer for s in carried(k, (m,)).statements] == [s.dest.buffer for s in k.statements]


# forged documents -----------------------------------------------------------------------------------------------------
def documents():
    """(what is forged, how): every field of a genuine certificate of sepconv."""

    def at(*path, value):
        def change(d):
            for p in path[:-1]:
                d = d[p]
            assert d[path[-1]] != value
            d[path[-1]] = value

        return change

    yield "schema", at("schema", value="isam.mapping-certificate/3")
    yield "kernel name", at("kernel", "name", value="other")
    yield "kernel text", at("kernel", "text", value="kernel k()")
    yield "kernel hash", at("kernel", "hash", value="0" * 64)
    yield "kernel value a number", at("kernel", "value", value=3)
    yield "kernel gone", lambda d: d.pop("kernel")
    yield "no law", lambda d: d["chain"][0].pop("law")
    yield "step hash", at("chain", 0, "hash", value="0" * 64)
    yield "step verdict", at("chain", 0, "verdict", value="sure")
    yield "step numerics", at("chain", 0, "numerics", value=[])
    yield "step kernel a text", at("chain", 0, "kernel", value="kernel k()")
    yield "step twice, otherwise said", lambda d: d["chain"].append({**d["chain"][0], "numerics": ["finite"]})
    yield "step left out", at("chain", value=[])
    yield "mapping text", at("mappings", 0, "text", value="C = A * B")
    yield "mapping gone", lambda d: d["mappings"].pop()
    yield "mapping twice", lambda d: d["mappings"].append(d["mappings"][0])
    yield "mapping a kernel", lambda d: at("mappings", 0, "value", value=d["kernel"]["value"])(d)
    yield "mappings in another order", lambda d: d["mappings"].reverse()
    yield "something added to a step", lambda d: d["chain"][0].update(approved=True)
    yield "something added to a mapping", lambda d: d["mappings"][0].update(approved=True)
    yield "more is carried out", lambda d: d["carried"]["statements"].append(99)
    yield "of fewer statements", at("carried", "of", value=1)
    yield "numerics", at("numerics", value=["finite"])
    yield "an obligation gone", lambda d: d["obligations"].pop()
    yield "an obligation assumed", at("obligations", 2, "verdict", value="assumed")
    yield "an obligation renamed", at("obligations", 0, "statement", value="it is fast")
    yield "all obligations gone", at("obligations", value=[])
    yield "something added", lambda d: d.update(approved=True)


DOCUMENTS = dict(documents())


@pytest.mark.parametrize("what", DOCUMENTS)
@pytest.mark.parametrize("resealed", [False, True])
def test_forged_documents_are_refused(what, resealed):
    data = copy.deepcopy(genuine("sepconv"))
    DOCUMENTS[what](data)
    if resealed:
        data = sealed({k: v for k, v in data.items() if k != "seal"})
    found = refusals(data)
    assert found
    on_record(f"document: {what}{', resealed' if resealed else ''}", found)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "1", "{}", "[" * 100_000, '{"schema": "x"}'])
def test_no_certificate_at_all(text):
    assert refusals(text)


# forged mappings ------------------------------------------------------------------------------------------------------
def places(value, way=()):
    for n, v in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(v, (*way, n))
    if isinstance(value, int | str):
        yield way


@pytest.mark.parametrize("to", [0, 7, "x"])
def test_documents_of_which_one_entry_is_another_are_refused_without_a_fault(to):
    """A coefficient of nothing, a size of another name, and the like, with a seal that fits."""
    data = genuine("matmul")
    every = [w for w in places(data) if w != ("seal",)]
    for way in every[:: max(1, len(every) // 80)]:
        changed = copy.deepcopy(data)
        at = changed
        for step in way[:-1]:
            at = at[step]
        if type(at[way[-1]]) is type(to) and at[way[-1]] != to:
            at[way[-1]] = to
            changed["seal"] = sealed({k: v for k, v in changed.items() if k != "seal"})
            assert refusals(changed), way


def altered(change):
    """The cover of matmul with the mapping of its product changed."""
    c = cover("matmul")
    n = next(i for i, m in enumerate(c.mappings) if len(m.operands) == 3)
    m = c.mappings[n]
    return replace(c, mappings=(*c.mappings[:n], change(m), *c.mappings[n + 1 :]))


def operand(m, name, **to):
    return replace(m, operands=tuple(replace(o, **to) if o.operand == name else o for o in m.operands))


def exchanged(m):
    a, b = (m.operand(n) for n in ("A", "B"))
    return replace(m, operands=tuple(
        replace(b, operand="A") if o.operand == "A" else replace(a, operand="B") if o.operand == "B" else o
        for o in m.operands))  # fmt: skip


def shifted(m, name):
    o = m.operand(name)
    return operand(m, name, index=(o.index[0] + 1, *o.index[1:]))


MAPPINGS = {
    "operands exchanged": exchanged,
    "another axis map": lambda m: replace(m, axes=tuple(zip([i for i, _ in m.axes], [k for _, k in m.axes][::-1],
                                                          strict=True))),
    "one axis for two": lambda m: replace(m, axes=tuple((i, m.axes[0][1]) for i, _ in m.axes)),
    "an axis that is not there": lambda m: replace(m, axes=tuple((i, "zz") for i, _ in m.axes)),
    "an axis forgotten": lambda m: replace(m, axes=m.axes[1:]),
    "an outer axis too many": lambda m: replace(m, outer=(*m.outer, "zz")),
    "a mapped axis outer as well": lambda m: replace(m, outer=(m.axes[0][1],)),
    "dimensions exchanged": lambda m: operand(m, "A", dims=m.operand("A").dims[::-1]),
    "a dimension twice": lambda m: operand(m, "A", dims=(0, 0)),
    "a step of two": lambda m: operand(m, "B", steps=(2, 1)),
    "another buffer": lambda m: operand(m, "A", buffer="B"),
    "a buffer that is not there": lambda m: operand(m, "A", buffer="Z"),
    "a number for a buffer": lambda m: operand(m, "A", buffer="", literal=1),
    "an address one further": lambda m: shifted(m, "A"),
    "another statement": lambda m: replace(m, statements=tuple(range(len(m.statements)))),
    "a statement forgotten": lambda m: replace(m, statements=m.statements[:1]),
    "no statement": lambda m: replace(m, statements=()),
    "an operand forgotten": lambda m: replace(m, operands=m.operands[1:]),
    "another instruction": lambda m: replace(m, instruction=replace(m.instruction, body=_other(m.instruction.body))),
    "numerics that it takes": lambda m: replace(m, instruction=replace(m.instruction, body=replace(
        m.instruction.body, permits=frozenset({"finite"})))),
}  # fmt: skip


def _other(body):
    """The body with its accumulation overwriting."""
    at = len(body.statements) - 1
    s = body.statements[at]
    return put(body, at, [replace(s, accumulate=False, op="copy", sources=s.sources[-1:])])


@pytest.mark.parametrize("what", MAPPINGS)
def test_forged_mappings_are_refused(what):
    c = altered(MAPPINGS[what])
    with pytest.raises(InternalError):
        certify(c)
    found = refusals(forged(c))
    assert any("the seal" not in why for why in found)
    on_record(f"mapping: {what}", found)


def test_covers_that_leave_something_out_or_turn_the_order_are_refused():
    c = cover("matmul")
    assert refusals(forged(replace(c, mappings=c.mappings[::-1])))
    zeroing = next(m for m in c.mappings if len(m.operands) < 3)
    literal = replace(zeroing, operands=tuple(replace(o, literal=1) if o.literal == 0 else o for o in zeroing.operands))
    others = tuple(m for m in c.mappings if m is not zeroing)
    assert refusals(forged(replace(c, mappings=(literal, *others))))
    assert refusals(forged(replace(c, mappings=(zeroing, *others)))) == []


# forged chains --------------------------------------------------------------------------------------------------------
def relinked(change) -> Cover:
    """The cover of sepconv with its one rewritten kernel changed, and everything else made to fit."""
    c = cover("sepconv")
    k = change(c.chain[0].kernel)
    return replace(c, kernel=k, chain=(replace(c.chain[0], kernel=k),), mappings=())


def number(k, op):
    return next(i for i, s in enumerate(k.statements) if s.op == op and (op != "copy" or s.sources == (Literal(0),)))


CHAINS = {
    "a statement dropped": lambda k: put(k, len(k.statements) - 1, []),
    "no zeroing of the new sum": lambda k: put(k, number(k, "copy"), []),
    "zeroed with a one": lambda k: put(k, number(k, "copy"), [replace(k.statements[number(k, "copy")],
                                                                     sources=(Literal(1),))]),
    "an operation exchanged": lambda k: put(k, number(k, "mul"), [replace(k.statements[number(k, "mul")], op="add")]),
    "the user's statements in front again": lambda k: replace(k, body=(*cover("sepconv").original.body, *k.body[1:])),
    "an extent one short": lambda k: put(k, number(k, "mul"), [_short(k.statements[number(k, "mul")])]),
    "a kernel of fewer permissions": lambda k: replace(k, permits=frozenset({"exact"})),
    "another argument": lambda k: replace(k, buffers=tuple(replace(b, role="inout") if b.name == "y" else b
                                                           for b in k.buffers)),
}  # fmt: skip


def _short(s):
    axes = s.domain.axes
    return replace(s, domain=replace(s.domain, axes=(replace(axes[0], extent=axes[0].extent - 1), *axes[1:])))


@pytest.mark.parametrize("what", CHAINS)
def test_forged_chains_are_refused(what):
    c = relinked(CHAINS[what])
    assert any(v.kind == "rewriting" for v in check_chain(c)[1])
    found = refusals(forged(c))
    assert found
    on_record(f"chain: {what}", found)


@pytest.mark.parametrize("pair", REWRITINGS, ids=lambda p: p.what)
def test_forged_rewritings_have_no_certificate(pair):
    before, after = parse_kernel(pair.text(pair.before)), parse_kernel(pair.text(pair.after))
    step = replace(cover("sepconv").chain[0], kernel=after)
    assert refusals(forged(Cover(after, before, (), ("factor",), chain=(step,))))


def test_a_chain_must_lead_to_the_kernel_that_is_carried_out():
    c = cover("sepconv")
    for wrong in (replace(c, chain=()), replace(c, steps=()), replace(c, kernel=c.original)):
        assert check_chain(wrong)[1]
    moved = replace(c.original, buffers=tuple(replace(b, shape=(*b.shape[:-1], b.shape[-1] + Affine()))
                                              for b in c.original.buffers))  # fmt: skip
    assert not check_chain(replace(c, original=moved))[1]


def test_more_than_sixty_kinds_are_forged():
    assert len(DOCUMENTS) + len(MAPPINGS) + len(CHAINS) + len(REWRITINGS) >= 100


def test_hashes_are_those_that_anyone_can_work_out() -> None:
    """SHA-256 of a kernel's text; the seal that of the document with its names in order, as UTF-8."""
    kernel = CASES["matmul"].load()
    assert hash_of(kernel) == hashlib.sha256(str(kernel).encode()).hexdigest()
    seal = hashlib.sha256('{"a": 1, "b": "ω"}'.encode()).hexdigest()
    assert sealed({"b": "ω", "a": 1}) == sealed({"a": 1, "b": "ω"}) == {"a": 1, "b": "ω", "seal": seal}
