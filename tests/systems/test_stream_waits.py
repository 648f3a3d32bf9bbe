"""Streams for units that do not wait by themselves: carried out in any order that the text allows, they are right."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import isam
from isam.codegen.stream import stream
from isam.cost.timeline import timeline
from isam.diagnostics import IsamError
from isam.schedule.tree import Issue, Node, Schedule, mapped
from isam.system.load import load_system, parse_system
from tests.systems.gemmini_model import commands

TOKENS = """isam: 1
system: tokens
backend: stream
memories:
  dram: {kind: managed, capacity: 1 MiB, home: true}
  sp: {kind: managed, capacity: 512 B}
units:
  ld: {runs: [load], clock: 1 GHz}
  st: {runs: [store], clock: 1 GHz}
  vec: {runs: ["v*"], clock: 1 GHz}
facts: {stream: {wait: "wait {unit}, {stream}, {lag}", end: [halt]}}
moves:
  - {from: dram, to: sp, by: [load], issuer: ld, both_ways: false}
  - {from: sp, to: dram, by: [store], issuer: st, both_ways: false}
instructions:
  load:
    body: |
      instruction load(N <= 8)
        in  S: i32[N]
        out D: i32[N]
        forall i < N
          D[i] = S[i]
    cost: {issue: 4 cycles, latency: 20 cycles}
    emission: {stream: "load {S}, {D}, {N}"}
  store:
    body: |
      instruction store(N <= 8)
        in  S: i32[N]
        out D: i32[N]
        forall i < N
          D[i] = S[i]
    cost: {issue: 4 cycles, latency: 20 cycles}
    emission: {stream: "store {S}, {D}, {N}"}
  vadd:
    body: |
      instruction vadd(N <= 8)
        in  X: i32[N]
        in  Y: i32[N]
        out Z: i32[N]
        forall i < N
          Z[i] = X[i] + Y[i]
    cost: {issue: 2 cycles, latency: 6 cycles}
    emission: {stream: "vadd {X}, {Y}, {Z}, {N}"}
    homes: [sp]
  vmul:
    body: |
      instruction vmul(N <= 8)
        in  X: i32[N]
        in  Y: i32[N]
        out Z: i32[N]
        forall i < N
          Z[i] = X[i] * Y[i]
    cost: {issue: 2 cycles, latency: 6 cycles}
    emission: {stream: "vmul {X}, {Y}, {Z}, {N}"}
    homes: [sp]
"""
KERNEL = """kernel f(M, N)
  in  x: i32[M, N]
  in  y: i32[M, N]
  in  b: i32[N]
  out z: i32[M, N]
  temp t: i32[M, N]
  forall i < M, j < N
    t[i, j] = x[i, j] * y[i, j]
    z[i, j] = t[i, j] + b[j]
"""
UNIT = {"load": "ld", "store": "st", "vadd": "vec", "vmul": "vec"}
DOES = {"load": np.array, "store": np.array, "vadd": np.add, "vmul": np.multiply}


@dataclass
class Given:
    """A command, and per unit how many of its commands have to be done before."""

    name: str
    operands: list[str]
    needs: dict[str, int] = field(default_factory=dict)


def queues(text: str, units: dict[str, str]) -> dict[str, list[Given]]:
    """The commands of each unit, loops run through."""
    out: dict[str, list[Given]] = {u: [] for u in units.values()}
    waits: dict[str, dict[str, int]] = {u: {} for u in out}
    for name, operands in commands(text):
        if name == "wait":
            unit, of, lag = operands
            waits[unit][of] = max(len(out[of]) - int(lag), waits[unit].get(of, 0))
        elif name != "halt":
            unit = units[name]
            out[unit].append(Given(name, operands, waits[unit]))
            waits[unit] = {}
    return out


def carried_out(text: str, arrays: dict[str, np.ndarray], choose: random.Random, units: dict[str, str] = UNIT) -> None:
    """Units begin their commands in order, which take effect as late or early as drawn: what has begun and is not done
    has read nothing yet, or has read all and not written."""
    given = queues(text, units)
    begun, done = dict.fromkeys(given, 0), {u: set[int]() for u in given}
    spad, busy = np.zeros(128, np.int32), list[tuple[str, int, bool]]()
    results: dict[tuple[str, int], np.ndarray] = {}

    def at(operand: str, n: int) -> np.ndarray:
        base, _, more = operand.partition("+")
        if base in arrays:
            first = int(more.strip("()") or 0) // 4
            return arrays[base].reshape(-1)[first : first + n]
        first = int(operand.strip("()"), 0) // 4
        return spad[first : first + n]

    while any(begun[u] < len(q) for u, q in given.items()) or busy:
        def whole(u: str, n: int) -> bool:
            return all(k in done[u] for k in range(n))

        ready = [u for u, q in given.items()
                 if begun[u] < len(q) and all(whole(w, n) for w, n in q[begun[u]].needs.items())]  # fmt: skip
        assert ready or busy, "nothing can go on"
        if ready and (not busy or choose.random() < 0.6):
            u = choose.choice(ready)
            busy.append((u, begun[u], False))
            begun[u] += 1
            continue
        k = choose.randrange(len(busy))
        u, n, read = busy[k]
        g = given[u][n]
        *sources, target, count = g.operands
        if not read:
            parts = [at(s, int(count)).copy() for s in sources]
            results[u, n] = DOES[g.name](*parts)
            busy[k] = u, n, True
        else:
            at(target, int(count))[:] = results.pop((u, n))
            done[u].add(n)
            busy.pop(k)


@pytest.fixture(scope="module")
def made() -> Schedule:
    fn = isam.compile(KERNEL, on=parse_system(TOKENS), sizes={"M": 5, "N": 52})
    schedule = fn.schedule
    assert isinstance(schedule, Schedule)
    assert fn.artifact.text("stream.s") == stream(schedule)
    return schedule


def results(text: str, seeds: range) -> Iterator[bool]:
    for seed in seeds:
        numbers = np.random.default_rng(seed)
        a = {n: numbers.integers(-9, 9, s, np.int32) for n, s in (("x", (5, 52)), ("y", (5, 52)), ("b", (52,)))}
        a["z"] = np.full((5, 52), 77, np.int32)
        want = a["x"] * a["y"] + a["b"]
        carried_out(text, a, random.Random(seed))
        yield bool((a["z"] == want).all())


@pytest.mark.parametrize("expanded", [False, True])
def test_every_order_that_the_text_allows_is_right(made: Schedule, expanded: bool) -> None:
    text = stream(made, expanded)
    assert "wait vec, ld, " in text
    assert all(results(text, range(20)))


def test_without_one_of_its_waits_some_order_is_wrong(made: Schedule) -> None:
    """Of those for results of other units: others are for room, or follow from those."""
    text = stream(made)
    waits = sorted({m[0] for m in re.finditer(r"wait (?:vec, ld|st, vec), \d+\n", text)})
    assert sum(w.startswith("wait vec, ld") for w in waits) >= 1
    assert sum(w.startswith("wait st, vec") for w in waits) >= 5
    for line in waits:
        assert not all(results(text.replace(line, ""), range(20))), line


def alone(node: Node) -> Node:
    """Calls that wait for nobody."""
    return node.waiting(()) if isinstance(node, Issue) else mapped(node, alone)


def refused(system_text: str, kernel: str = KERNEL, **sizes: int) -> list[tuple[str, bool]]:
    with pytest.raises(IsamError) as e:
        isam.compile(kernel, on=parse_system(system_text), sizes=sizes or {"M": 5, "N": 52})
    return [(d.code, d.loc.line > 0) for d in e.value.diagnostics]


def test_what_cannot_be_written_is_refused() -> None:
    wait = 'wait: "wait {unit}, {stream}, {lag}", '
    assert refused(TOKENS.replace(wait, "")) == [("emission-wait", True)]
    assert [c for c, _ in refused(TOKENS.replace("{lag}", "{far}"))] == ["emission-name"]
    silent = TOKENS.replace('"load {S}, {D}, {N}"', '""')
    assert refused(silent) == [("emission-wait", True)]


def test_hardware_that_waits_needs_no_text() -> None:
    system = parse_system(TOKENS.replace("clock: 1 GHz", "clock: 1 GHz, hazards: resolved"))
    fn = isam.compile(KERNEL, on=system, sizes={"M": 5, "N": 52})
    assert "wait" not in fn.artifact.text("stream.s")
    assert "wait" not in isam.compile("""kernel mm(M, N, K)
  in A: i8[M, K]
  in B: i8[K, N]
  out C: i32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += i32(A[i, k]) * i32(B[k, j])
""", on=load_system("gemmini"), sizes={"M": 32, "N": 32, "K": 32}).artifact.text("stream.s")


def test_a_call_of_several_commands_is_waited_for_with_all_before_it(made: Schedule) -> None:
    """A number of calls is then no number of commands."""
    two = parse_system(TOKENS.replace('"load {S}, {D}, {N}"', '["ready {S}", "load {S}, {D}, {N}"]'))
    again = replace(made, system=two)
    assert {m[1] for m in re.finditer(r"wait \w+, ld, (\d+)", stream(again))} == {"0"}
    assert {m[1] for m in re.finditer(r"wait \w+, ld, (\d+)", stream(made))} != {"0"}


def test_instances_have_no_names_in_commands() -> None:
    system = load_system("toy_pair")
    dealt = isam.compile("kernel c(N)\n  in a: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = a[i] + a[i]\n",
                         on=system, sizes={"N": 4096}).schedule  # fmt: skip
    assert isinstance(dealt, Schedule)
    with pytest.raises(IsamError) as e:
        stream(replace(dealt, call=alone(dealt.call)))
    assert [d.code for d in e.value.diagnostics] == ["emission-instances"]


ALONE = TOKENS.replace("  ld: {runs: [load], clock: 1 GHz}\n  st: {runs: [store], clock: 1 GHz}\n", "").replace(
    'vec: {runs: ["v*"], clock: 1 GHz}', 'all: {runs: ["*"], clock: 1 GHz}').replace(
    "issuer: ld", "issuer: all").replace("issuer: st", "issuer: all")  # fmt: skip


def test_a_unit_alone_waits_for_itself() -> None:
    """Its calls overlap, as those of one of several do; where the hardware waits, text and schedule need nothing."""
    sizes = {"M": 5, "N": 52}
    plain = isam.compile(KERNEL, on=parse_system(ALONE), sizes=sizes)
    text = plain.artifact.text("stream.s")
    assert "wait all, all, " in text
    text = re.sub(r"wait all, all, (\d+)", r"wait ld, ld, \1", text)
    one_unit = dict.fromkeys(UNIT, "ld")
    for seed in range(10):
        numbers = np.random.default_rng(seed)
        a = {n: numbers.integers(-9, 9, s, np.int32) for n, s in (("x", (5, 52)), ("y", (5, 52)), ("b", (52,)))}
        a["z"] = np.full((5, 52), 77, np.int32)
        carried_out(text, a, random.Random(seed), one_unit)
        np.testing.assert_array_equal(a["z"], a["x"] * a["y"] + a["b"])
    waits = isam.compile(KERNEL, on=parse_system(ALONE.replace("1 GHz}", "1 GHz, hazards: resolved}")), sizes=sizes)
    assert "wait" not in waits.artifact.text("stream.s")
    assert isinstance(plain.schedule, Schedule)
    assert timeline(plain.schedule).seconds > timeline(replace(plain.schedule, call=alone(plain.schedule.call))).seconds
