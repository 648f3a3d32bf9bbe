"""Cover: legal regions, choices on the trace, honest refusals (SEL-1 to SEL-3, APP-1). The matcher is a stub here, so
that the rules of selection are tested alone; tests/systems and tests/paper use the real one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import isam.mapper
from isam.approach.choice import Approach, Trace
from isam.ir.affine import Affine
from isam.ir.instruction import Instruction, OperandContract
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Recurrence, Statement, Sym
from isam.ir.mapping import Mapping, OperandMap
from isam.ir.mismatch import Mismatch
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from tests.as_it_stands import cover_as_it_stands

ROWS = (Affine.of("i"), Affine.of("j"))


def dom(**extents: int | str) -> Domain:
    return Domain(tuple(Axis(n, Affine.lift(e)) for n, e in extents.items()))


def stmt(domain: Domain, dest: str, op: str, *sources: str | float, acc: bool = False) -> Statement:
    def access(text: str) -> Access:
        name, _, rest = text.partition("[")
        return Access(name, tuple(Affine.of(x) for x in rest.rstrip("]").split(",") if x))

    srcs = tuple(access(s) if isinstance(s, str) else Literal(s) for s in sources)
    return Statement(domain, access(dest), op, srcs, acc)


def buf(name: str, role: str, *shape: int) -> Buffer:
    return Buffer(name, tuple(Affine.lift(n) for n in shape), "f32", role)


def matmul(m: int = 8, n: int = 8, k: int = 8, *more: Statement) -> Kernel:
    d3 = dom(i=m, j=n, k=k)
    body = (
        stmt(dom(i=m, j=n), "C[i,j]", "copy", 0),
        stmt(d3, "T[i,j,k]", "mul", "A[i,k]", "B[k,j]"),
        stmt(d3, "C[i,j]", "add", "T[i,j,k]", acc=True),
        *more,
    )
    bufs = (buf("A", "in", m, k), buf("B", "in", k, n), buf("C", "out", m, n), buf("T", "temp", m, n, k))
    return Kernel("matmul", (), bufs, body)


def instr(name: str, limit: int | None, *body: Statement, **operands: OperandContract) -> Instruction:
    roles: dict[str, str] = {}
    rank: dict[str, int] = {}
    for s in body:
        for a in (s.dest, *(x for x in s.sources if isinstance(x, Access))):
            rank[a.buffer] = len(a.index)
            roles.setdefault(a.buffer, "temp" if a.buffer == "T" else "in")
        roles[s.dest.buffer] = "temp" if s.dest.buffer == "T" else "inout" if s.accumulate else "out"
    bufs = tuple(Buffer(n, tuple(Affine.of("X") for _ in range(rank[n])), "f32", r) for n, r in roles.items())
    axes = {a.name for s in body for a in s.domain.axes}
    syms = tuple(Sym(f"S{a}", hi=limit) for a in sorted(axes))
    return Instruction(name, Kernel(name, syms, bufs, body), dict(operands))


def d(*axes: str) -> Domain:
    return Domain(tuple(Axis(a, Affine.of(f"S{a}")) for a in axes))


ZERO = instr("zero", 16, stmt(d("i", "j"), "C[i,j]", "copy", 0))
MUL = instr("mul", 16, stmt(d("i", "j", "k"), "T2[i,j,k]", "mul", "A[i,k]", "B[k,j]"))
ADD = instr("add", 16, stmt(d("i", "j", "k"), "C[i,j]", "add", "X[i,j,k]", acc=True))
MM = instr("mm", 4, stmt(d("i", "j", "k"), "T[i,j,k]", "mul", "A[i,k]", "B[k,j]"),
           stmt(d("i", "j", "k"), "C[i,j]", "add", "T[i,j,k]", acc=True))  # fmt: skip
MMZ = instr("mmz", 4, ZERO.body.statements[0], *MM.body.statements)


@pytest.fixture
def stub(monkeypatch):
    """A matcher that maps statement for statement by operation, axes by name."""
    calls: list[str] = []

    def match(kernel, instruction, *, strided=False, swap=True, region=None, budget=None, normalise=True,
              why=True):  # fmt: skip
        calls.append(instruction.name)
        ss, want = kernel.statements, instruction.body.statements
        found = []
        for at in range(len(ss) - len(want) + 1):
            part = ss[at : at + len(want)]
            if region is not None and not set(range(at, at + len(want))) <= set(region):
                continue
            if all((p.op, p.accumulate, len(p.dest.index)) == (w.op, w.accumulate, len(w.dest.index))
                   for p, w in zip(part, want, strict=True)):  # fmt: skip
                names = sorted({a.name for w in want for a in w.domain.axes})
                outer = tuple(a for a in part[-1].domain.names if a not in names)
                operands = []
                for p, w in zip(part, want, strict=True):
                    for pa, wa in zip((p.dest, *p.sources), (w.dest, *w.sources), strict=True):
                        if isinstance(wa, Access) and isinstance(pa, Access) and wa.buffer != "T":
                            n = len(wa.index)
                            operands.append(OperandMap(wa.buffer, pa.buffer, pa.index, tuple(range(n)), (1,) * n))
                found.append(Mapping(instruction, tuple(range(at, at + len(want))), tuple(operands),
                                     tuple((n, n) for n in names), outer, orbit=str(at)))  # fmt: skip
        return found or Mismatch("operation", "nothing like it", "its statements", instruction=instruction.name)

    monkeypatch.setattr(isam.mapper, "match", match, raising=False)
    return calls


def names(c) -> list[str]:
    return [m.instruction.name for m in c.mappings]


def test_fused_instructions_compete_with_sequences(stub):
    big = matmul(8, 8, 8)
    t = Trace(Approach())
    c = cover(big, Demand([ZERO, MUL, ADD, MM, MMZ]), t)
    # 1 + 1 + 1 calls of the 16-limited ones against 8 calls of the fused 4x4x4
    assert names(c) == ["zero", "mul", "add"]
    assert c.gap is None
    assert c.notes["calls"] == 3
    fused = cover(matmul(4, 4, 4), Demand([ZERO, MUL, ADD, MM, MMZ]), Trace(Approach()))
    assert names(fused) == ["mmz"]
    point = next(x for x in t.decisions if x.point == "cover")
    assert point.count >= 3
    assert "zero(0) + mm(1, 2)" in point.context["options"]
    json.loads(t.to_json())


def test_an_approach_may_pick_another_cover_and_it_is_recorded(stub):
    class Last(Approach):
        def cover(self, choice):
            return next(o for o in choice.options if o.label == "mmz(0, 1, 2)")

    t = Trace(Last())
    assert names(cover(matmul(), Demand([ZERO, MUL, ADD, MM, MMZ]), t)) == ["mmz"]
    again = Trace.replaying(t.to_json())
    assert names(cover(matmul(), Demand([ZERO, MUL, ADD, MM, MMZ]), again)) == ["mmz"]
    assert again.to_json() == t.to_json()


def test_require_is_a_checked_demand(stub):
    assert names(cover(matmul(), Demand([ZERO, MUL, ADD, MM], require=["mm"]), Trace(Approach()))) == ["zero", "mm"]
    no = cover(matmul(), Demand([ZERO, MUL, ADD], require=["mm"]), Trace(Approach()))
    assert not no
    assert "'mm' was required" in str(no)


def test_what_nothing_covers_is_reported_with_what_would_do(stub):
    no = cover(matmul(), Demand([MM]), Trace(Approach()))
    assert not no
    assert [g.statement for g in no.gaps] == [0]
    assert no.gaps[0].missing
    pytest.importorskip("isam.ir.text")
    assert "write a constant" in str(no)
    assert {r.name for r in no.gaps[0].remedies} == {"fill_f32"}


def test_the_cheap_filter_keeps_the_matcher_from_being_asked(stub):
    others = [instr(f"e{n}", 16, stmt(d("i"), "D[i]", "exp", "S[i]")) for n in range(300)]
    cover(matmul(), Demand([ZERO, MM, *others]), Trace(Approach()))
    assert stub == ["zero", "mm"]


def test_a_region_with_a_statement_in_between_is_not_offered(stub, monkeypatch):
    # 0: a = exp(x); 1: b = log(a); 2: c = a + b. Region {0, 2} encloses 1.
    d1 = dom(i=4)
    body = (stmt(d1, "a[i]", "exp", "x[i]"), stmt(d1, "b[i]", "log", "a[i]"), stmt(d1, "c[i]", "add", "a[i]", "b[i]"))
    bufs = (buf("x", "in", 4), buf("a", "temp", 4), buf("b", "temp", 4), buf("c", "out", 4))
    kernel = Kernel("k", (), bufs, body)
    single = [instr(o, 16, stmt(d("i"), "D[i]", o, "S[i]")) for o in ("exp", "log")]
    single.append(instr("add", 16, stmt(d("i"), "D[i]", "add", "S[i]", "R[i]")))
    real = isam.mapper.match
    odd = instr("odd", None, stmt(d("i"), "D[i]", "exp", "S[i]"), stmt(d("i"), "E[i]", "add", "D[i]", "Q[i]"))

    def match(kernel, instruction, **k):
        if instruction is odd:
            return [Mapping(odd, (0, 2), (), (("i", "i"),), ())]
        return real(kernel, instruction, **k)

    monkeypatch.setattr(isam.mapper, "match", match)
    assert names(cover(kernel, Demand([odd, *single]), Trace(Approach()))) == ["exp", "log", "add"]


def test_unit_strides_win_and_constants_are_packed_for_free(stub, monkeypatch):
    # y[i, j] = x[i, j]: along j it is contiguous, along i it is not
    bufs = (buf("x", "in", 32, 32), buf("y", "out", 32, 32))
    kernel = Kernel("c", (), bufs, (stmt(dom(i=32, j=32), "y[i,j]", "neg", "x[i,j]"),))
    near = OperandContract(homes=("registers",))
    vec = instr("negate", 16, stmt(d("i"), "D[i]", "neg", "S[i]"), D=near, S=near)

    def along(axis: str, dim: int) -> Mapping:
        ops = tuple(OperandMap(o, b, ROWS, (dim,), (1,)) for o, b in (("D", "y"), ("S", "x")))
        return Mapping(vec, (0,), ops, (("i", axis),), ("j" if axis == "i" else "i",), orbit=axis)

    monkeypatch.setattr(isam.mapper, "match", lambda *a, **k: [along("i", 0), along("j", 1)])
    t = Trace(Approach())
    assert cover(kernel, Demand([vec]), t).mappings[0].axis_map == {"i": "j"}
    assert [x.count for x in t.decisions if x.point == "mapping"] == [2]
    in_place = instr("negate", 16, stmt(d("i"), "D[i]", "neg", "S[i]"))
    monkeypatch.setattr(isam.mapper, "match", lambda *a, **k: [replace(along("i", 0), instruction=in_place)])
    no = cover_as_it_stands(kernel, Demand([in_place]))
    assert not no
    assert "a stride of 32 elements along dimension 0 of y" in str(no)


def test_recurrent_bodies_stay_together_and_in_place(stub):
    d1 = dom(i=4)
    inner = (stmt(d1, "b[i]", "log", "a[i]"), stmt(d1, "a[i]", "exp", "b[i]"))
    loop = Recurrence(Axis("t", Affine.of("T")), inner)
    body = (stmt(d1, "a[i]", "exp", "x[i]"), loop, stmt(d1, "y[i]", "neg", "a[i]"))
    bufs = (buf("x", "in", 4), buf("a", "temp", 4), buf("b", "temp", 4), buf("y", "out", 4))
    kernel = Kernel("r", (Sym("T"),), bufs, body)
    ops = [instr(o, 16, stmt(d("i"), "D[i]", o, "S[i]")) for o in ("exp", "log", "neg")]
    c = cover(kernel, Demand(ops), Trace(Approach()))
    assert [m.statements for m in c.mappings] == [(0,), (1,), (2,), (3,)]
    assert c.notes["calls"] == 1 + 1000 + 1000 + 1
