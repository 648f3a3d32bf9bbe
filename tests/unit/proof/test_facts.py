"""Random writes and moves of tiles, followed by facts and byte by byte: what facts say holds does; how much, on record.

Every byte holds a part of an element at a version, for each value of the loop variable that the tiles are about. A move
puts elements somewhere as they are now, a computing write gives them a new version. A tile is held where all its bytes
are there and current.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.proof.context import Context, Var
from isam.proof.facts import Facts
from isam.proof.induction import add, implied, meet
from isam.proof.legal import Legality
from isam.proof.sets import Isl
from isam.proof.state import Fact, State, Target
from isam.schedule.tree import Bound, Operand, Place, Tile
from tests.unit.proof.handmade import tiny_matmul
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_witness import var
from tests.unit.proof.verdicts import on_record

SIZE, CELL = 4, 64
V = Affine.of("v")
CTX = Context((var("v", 0, 3, 1, 0),))
ENVS = [{"v": v} for v in range(4)]
Byte = tuple[str, str, int]  # memory, base, byte


@dataclass
class Bytes:
    """A memory for one value of the variable, and the version of every element."""

    env: dict[str, int]
    at: dict[Byte, tuple[str, tuple[int, ...], int, int]] = field(default_factory=dict)
    version: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)

    def copy(self) -> Bytes:
        return Bytes(self.env, dict(self.at), dict(self.version))

    def places(self, o: Operand) -> list[tuple[tuple[int, ...], Byte]]:
        """The elements of a tile and their first bytes."""
        t, p = o.tile, o.place
        first = p.offset.evaluate(self.env) + (p.cell or 0) * CELL
        out = []
        for d in product(*map(range, t.shape)):
            rel = [i * k for i, k in zip(d, t.steps, strict=True)]
            element = tuple(s.evaluate(self.env) + r for s, r in zip(t.start, rel, strict=True))
            byte = first + sum(r * k for r, k in zip(rel, p.strides, strict=True))
            out.append((element, (p.memory, p.base, byte)))
        return out

    def write(self, o: Operand, compute: bool) -> None:
        b, places = o.tile.buffer, self.places(o)
        if compute:
            for e, _ in places:
                self.version[b, e] = self.version.get((b, e), 0) + 1
        if o.place.cell is not None:
            cells = {byte // CELL for _, (_, _, byte) in places}
            gone = [k for k in self.at if k[0] == o.place.memory and k[2] // CELL in cells]
            for k in gone:
                del self.at[k]
        for e, (memory, base, byte) in places:
            for i in range(SIZE):
                self.at[memory, base, byte + i] = (b, e, i, self.version.get((b, e), 0))

    def holds(self, o: Operand) -> bool:
        b = o.tile.buffer
        return all(self.at.get((m, base, byte + i)) == (b, e, i, self.version.get((b, e), 0))
                   for e, (m, base, byte) in self.places(o) for i in range(SIZE))  # fmt: skip


def apart(o: Operand) -> bool:
    """Whether a tile lies in its buffer and its elements in bytes of their own, for all values."""
    for env in ENVS:
        if any(not 0 <= x < 8 for e, _ in Bytes(env).places(o) for x in e):
            return False
        bytes_ = [byte + i for _, (_, _, byte) in Bytes(env).places(o) for i in range(SIZE)]
        if len(set(bytes_)) < len(bytes_) or min(bytes_) < 0:
            return False
    return True


def at_home(buffer: str) -> Operand:
    whole = Tile(buffer, (lit(0), lit(0)), (8, 8), (1, 1))
    return Operand("D", whole, Place("dram", buffer, lit(0), (32, 4)), (0, 1))


def tile(rng: random.Random, simple: bool) -> Tile:
    shape = (rng.choice((1, 1, 2, 4)), rng.choice((1, 2, 4, 4)))
    steps = (1, 1) if simple or rng.random() < 0.8 else (rng.choice((1, 2)), rng.choice((1, 2)))
    start = tuple(rng.choice((lit(0), lit(0), lit(2), lit(4), V, V * 2, V + 1)) for _ in shape)
    return Tile(rng.choice("AAC"), start, shape, steps)


def operand(rng: random.Random, simple: bool = False) -> Operand:
    t = tile(rng, simple)
    where = rng.random()
    if where < 0.3:  # at home
        place = Place("dram", t.buffer, t.start[0] * 32 + t.start[1] * 4, (32, 4))
    elif where < 0.8:
        strides = rng.choice(((16, 4), (16, 4), (32, 4), (4, 16)))
        by_rule = t.start[0] * strides[0] + t.start[1] * strides[1]
        place = Place("sp", "", rng.choice((lit(0), lit(64), lit(16), V * 16, V * 64, by_rule)), strides)
    else:
        place = Place("ra", "", rng.choice((lit(0), lit(0), lit(16), V * 16)), (16, 4), rng.randrange(3))
    return Operand("D", t, place, (0, 1))


def like(rng: random.Random, o: Operand) -> Operand:
    """The same tile, a part of it, one beside it in the same layout, or the same elsewhere."""
    what, t, p = rng.random(), o.tile, o.place
    if what < 0.3:
        return o
    if what < 0.5 and p.cell is None:
        by = rng.choice((1, 2, t.shape[0]))
        beside = Place(p.memory, p.base, p.offset + by * p.strides[0], p.strides)
        return Operand("D", t._replace(start=(t.start[0] + by, t.start[1])), beside, (0, 1))
    if what < 0.8:
        return Operand("D", t._replace(shape=(max(1, t.shape[0] // 2), t.shape[1])), p, (0, 1))
    return Operand("D", t, Place("sp", "", rng.choice((lit(0), lit(128), V * 64)), (16, 4)), (0, 1))


def text(f: Fact) -> str:
    holes = sorted(f"{h.box} {len(h.over)}" for h in f.holes)
    return f"{f.buffer} {f.spot} {f.cells} {f.offset} {f.strides} {f.box} {len(f.over)} {holes}"


def shown(state: State) -> list[str]:
    return sorted(map(text, state))


@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_what_facts_say_holds(seed: int, cuts: bool) -> None:
    rng, said, yes, true = random.Random(seed), [], 0, 0
    s = tiny_matmul(8, 8, 8)
    for _ in range(6):
        fs, state, kept = Facts(Legality(s), Isl(), cuts), State(), list[Operand]()
        memories = [Bytes(e) for e in ENVS]
        for b in "AC":
            whole = fs.home(b)
            assert whole is not None
            state.put(whole)
            for m in memories:
                m.write(at_home(b), False)
        for _ in range(9):
            o = like(rng, rng.choice(kept)) if kept and rng.random() < 0.4 else operand(rng, seed % 3 == 0)
            if not apart(o):
                continue
            kept.append(o)  # operands are known by identity
            compute = rng.random() < 0.5
            fs.write(state, fs.target(o), compute, CTX)
            for m in memories:
                m.write(o, compute)
            for q in [*kept, *(like(rng, x) for x in rng.sample(kept, min(3, len(kept))))]:
                kept += [q] if not any(q is x for x in kept) else []
                if apart(q):
                    held, there = fs.holds(state, fs.target(q), CTX), all(m.holds(q) for m in memories)
                    assert there or not held, (q, shown(state))
                    yes, true = yes + held, true + there
                    said.append(held)
            kept = kept[-12:]
            said += shown(state)
    assert 3 * yes > true > 40
    on_record(f"facts: {seed} {cuts}", said)


@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_what_two_states_share(seed: int, cuts: bool) -> None:
    """Of two ways to the same place only what both have left; added to a state that holds, facts stay true."""
    rng, said = random.Random(seed), []
    s = tiny_matmul(8, 8, 8)
    for _ in range(6):
        fs, kept = Facts(Legality(s), Isl(), cuts), list[Operand]()
        before = State()
        whole = fs.home("A")
        assert whole is not None
        before.put(whole)
        start = [Bytes(e) for e in ENVS]
        for m in start:
            m.write(at_home("A"), False)
        ends: list[tuple[State, list[Bytes]]] = []
        for _ in range(2):
            state, memories = before.copy(), [m.copy() for m in start]
            for _ in range(rng.choice((1, 2, 3))):
                o = like(rng, rng.choice(kept)) if kept and rng.random() < 0.6 else operand(rng)
                if apart(o):
                    kept.append(o)
                    compute = rng.random() < 0.3
                    fs.write(state, fs.target(o), compute, CTX)
                    for m in memories:
                        m.write(o, compute)
            ends.append((state, memories))
        (one, first), (two, second) = ends
        both = meet(one, two, fs, CTX)
        said += [*shown(both), "", *shown(meet(one, two, fs, CTX, both=False))]
        for q in [*kept, *(like(rng, x) for x in kept)]:
            kept += [q] if not any(q is x for x in kept) else []
            if apart(q):
                held = fs.holds(both, fs.target(q), CTX)
                said.append(held)
                assert not held or all(m.holds(q) for m in (*first, *second)), (q, shown(one), shown(two), shown(both))
        again = State()
        for f in rng.sample(sorted(one, key=text), len(list(one))):
            add(again, f, fs, CTX)
        said += shown(again)
        said += [implied(again, f, fs, CTX) for f in sorted(one, key=text)]
    on_record(f"facts: shared {seed} {cuts}", said)


def test_a_new_version_makes_every_copy_stale() -> None:
    """Also where it is written where it lies already: not only the first write after a copy was made."""
    s = tiny_matmul(8, 8, 8)
    fs, state = Facts(Legality(s), Isl()), State()
    t = Tile("C", (lit(0), lit(0)), (4, 4), (1, 1))
    reg = Operand("D", t, Place("ra", "", lit(0), (16, 4), 0), (0, 1))
    copy = Operand("D", t, Place("sp", "", lit(0), (16, 4)), (0, 1))

    def held() -> list[bool]:
        return [fs.holds(state, target(o), CTX) for o in (reg, copy)]

    def target(o: Operand) -> Target:
        return fs.target(o)

    steps: list[tuple[Operand, bool, list[bool]]] = [
        (reg, True, [True, False]), (reg, True, [True, False]), (copy, False, [True, True]),
        (reg, True, [True, False]), (reg, True, [True, False]), (copy, False, [True, True]),
        (copy, True, [False, True]), (reg, False, [True, True]), (copy, True, [False, True]),
    ]  # fmt: skip
    for o, compute, said in steps:
        fs.write(state, target(o), compute, CTX)
        assert held() == said


def test_a_tile_with_steps_is_brought_back() -> None:
    """Every second element is made anew elsewhere: of the whole copy those are stale, until they are stored there."""
    s = tiny_matmul(8, 8, 8)
    fs, state = Facts(Legality(s), Isl()), State()
    second = Tile("A", (lit(0), lit(0)), (4, 4), (1, 2))
    copy, home = at_home("A"), fs.home("A")
    made = Operand("D", second, Place("sp", "", lit(512), (32, 4)), (0, 1))
    there = Operand("D", second, Place("dram", "A", lit(0), (32, 4)), (0, 1))
    columns = [Tile("A", (lit(0), lit(k)), (4, 1), (1, 1)) for k in (0, 1)]
    first, rest = (Operand("D", t, Place("dram", "A", lit(4 * k), (32, 4)), (0, 1)) for k, t in enumerate(columns))

    def held() -> list[bool]:
        return [fs.holds(state, fs.target(o), CTX) for o in (copy, made, first, rest)]

    assert home is not None
    state.put(home)
    assert held() == [True, False, True, True]
    fs.write(state, fs.target(made), True, CTX)
    assert held() == [False, True, False, True]
    fs.write(state, fs.target(there), False, CTX)
    assert held() == [True, True, True, True]
    assert home in list(state)
    fs.write(state, fs.target(made), True, CTX)
    assert held() == [False, True, False, True]


def test_variables_of_a_fact_are_not_those_outside() -> None:
    """A fact whose rule moves with one of its own variables says nothing of an operand that moves with another."""
    s = tiny_matmul(64, 8, 8)
    facts = Facts(Legality(s), Isl())
    v, w = Affine.of("v"), Affine.of("w")
    own = tuple(Var(n, (Bound(Affine()),), (Bound(Affine((), 3)),), 1, Affine()) for n in ("v", "w"))
    ctx = Context((own[0],))
    for far in (0, 16):
        box = ((v, v + 1), (w, w + 1))
        f = facts.make("A", ("sp", ""), None, v * (64 + far) + w * 4, (64, 4), box, own)
        place = Place("sp", "", v * far, (64, 4))
        o = Operand("D", Tile("A", (Affine(), Affine()), (1, 1), (1, 1)), place, (0, 1))
        assert (facts._everywhere(f, facts.target(o), ctx) is None) is bool(far)


def test_families_whose_variables_have_the_same_names() -> None:
    """One goes from 0 to 3, the other from 1 to 4: what bounds a variable of one is none of the other's."""
    s = tiny_matmul(8, 8, 8)
    fs = Facts(Legality(s), Isl())
    a, b = var("a", 0, 3, 1, 0), Var("b", (Bound(Affine.of("a")),), (Bound(Affine.of("a")),))
    one = fs.hole(((Affine.of("a"), Affine.of("a", 1, 1)),), (a,))
    for apart in (1, 3, 4, 5):
        two = fs.hole(((Affine.of("b", 1, apart), Affine.of("b", 1, apart + 1)),), (a, b))
        assert fs.parted(one, two, Context()) is fs.parted(two, one, Context()) is (apart > 3)
