"""Gemmini's commands on a tiny model of its own: what is illegal by the manual is refused, the rest computed in NumPy.

Written from the manual alone; it shares nothing with the schedule's types, the simulator or the checkers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

Array = np.ndarray
NOWHERE = 0xFFFFFFFF
ACC, ADD, FULL = 1 << 31, 1 << 30, 1 << 29
LOOP = re.compile(r"\.for (\S+) (\d+)$")


class Illegal(Exception):
    """A command that the machine does not have, or not so."""


def need(holds: object, why: str) -> None:
    if not holds:
        raise Illegal(why)


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Commands in order of execution, loop variables replaced by numbers."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]

    def run(at: int, end: int, scope: dict[str, int]) -> Iterator[tuple[str, list[str]]]:
        while at < end:
            if m := LOOP.match(lines[at]):
                close = closing(at)
                for v in range(int(m[2])):
                    yield from run(at + 1, close, {**scope, m[1]: v})
                at = close + 1
            else:
                name, _, rest = lines[at].partition(" ")
                if not name.startswith("."):
                    yield name, [numbered(o.strip(), scope) for o in rest.split(",")] if rest else []
                at += 1

    def closing(at: int) -> int:
        depth = 0
        for n in range(at, len(lines)):
            depth += lines[n].startswith(".for") - (lines[n] == ".end")
            if not depth:
                return n
        raise Illegal("a loop without an end")

    return run(0, len(lines), {})


def number(text: str, scope: dict[str, int]) -> int:
    """A sum of numbers and of numbers times variables."""
    total, sign = 0, 1
    for word in text.replace("(", "").replace(")", "").replace("-", " - ").replace("+", " + ").split():
        if word in "+-":
            sign = -1 if word == "-" else 1
            continue
        factors = [scope[f] if f in scope else int(f, 0) for f in word.split("*")]
        total += sign * int(np.prod(factors))
        sign = 1
    return total


def numbered(operand: str, scope: dict[str, int]) -> str:
    base, plus, rest = operand.partition("+(")
    if plus:
        at = number(rest, scope)
        return f"{base}+{at}" if at else base
    named = re.fullmatch(r"[A-Za-z_]\w*", operand) and operand not in scope
    return operand if named else str(number(operand, scope))


class Gemmini:
    """``dram``: arrays by name, C-contiguous; outputs are written in place."""

    def __init__(self, dram: dict[str, Array]):
        self.dram = {n: a.view(np.uint8).reshape(-1) for n, a in dram.items()}
        self.spad = np.zeros((16384, 16), np.int8)
        self.acc = np.zeros((1024, 16), np.int32)
        self.known = {"spad": np.zeros(16384, int), "acc": np.zeros(1024, int)}  # elements of a row that were written
        self.weights = np.zeros((16, 16), np.int32)
        self.registers: dict[str, int] = {}
        self.loaded = False
        self.preloaded: tuple[bool, int, int, int] | None = None  # new weights, destination, its columns and rows
        self.told: Counter[str] = Counter()
        self.read = 0

    def run(self, text: str) -> None:
        done = False
        for name, given in commands(text):
            need(not done, "a command behind the fence")
            if name == "fence":
                done = True
                continue
            method = getattr(self, name, None)
            need(method is not None and name in COMMANDS, f"no command {name}")
            need(self.preloaded is None or name.startswith("compute"), f"{name} between preload and compute")
            self.told[name] += 1
            method(*given)
        need(done, "the host sees results after a fence")

    # configuration ------------------------------------------------------------------------------------------------
    def config_ex(self, flow: str, a: str, b: str, stride: str) -> None:
        need(flow == "ws", "weight stationary alone")
        need((a, b) == ("0", "0"), "no transposed operand in this model")
        self.registers["a_stride"] = self.bits(stride, 16)

    def config_ld(self, stride: str, block: str) -> None:
        self.registers |= {"ld_stride": self.bits(stride, 40), "ld_block": self.bits(block, 16)}

    def config_st(self, stride: str, activation: str) -> None:
        self.registers |= {"st_stride": self.bits(stride, 40), "activation": self.bits(activation, 1)}

    def bits(self, text: str, n: int) -> int:
        value = int(text)
        need(0 <= value < 1 << n, f"{value} in {n} bits")
        return value

    def register(self, name: str) -> int:
        need(name in self.registers, f"{name} was never set")
        return self.registers[name]

    # data ---------------------------------------------------------------------------------------------------------
    def mvin(self, source: str, target: str, cols: str, rows: str) -> None:
        n, m, to = int(cols), int(rows), int(target)
        wide = 16 if to & ACC else 64
        need(1 <= m <= 16, f"mvin of {m} rows")
        need(1 <= n <= wide, f"mvin of {n} columns")
        size = 4 if to & ACC else 1
        for r in range(m):
            data = np.zeros(n, np.int32 if size == 4 else np.int8)
            if source != "0":
                data = self.dram_bytes(source, r and r * self.register("ld_stride"), n * size).view(data.dtype)
                self.read += n * size
            for c in range(0, n, 16):
                part = data[c : c + 16]
                block = c // 16 * self.register("ld_block") if c else 0
                where, at = self.row(to, block + r)
                where[at, : len(part)] = part
                self.known["acc" if to & ACC else "spad"][at] = len(part)

    def mvout(self, target: str, source: str, cols: str, rows: str) -> None:
        n, m, at = int(cols), int(rows), int(source)
        need(1 <= m <= 16, f"mvout of {m} rows")
        need(1 <= n <= 16, f"mvout of {n} columns")
        need(not at & ACC or at & FULL, "raw sums alone in this model")
        for r in range(m):
            data = self.rows(at, r, n)
            self.dram_bytes(target, r and r * self.register("st_stride"), data.nbytes)[:] = data.copy().view(np.uint8)

    def preload(self, weights: str, target: str, cols: str, rows: str, wide: str, high: str) -> None:
        at, n, k = int(weights), int(cols), int(rows)
        need(1 <= n <= 16, "columns of weights")
        need(1 <= k <= 16, "rows of weights")
        need(int(target) & ACC, "sums go to the accumulators")
        self.row(int(target), int(high) - 1)
        if at != NOWHERE:
            self.weights[:] = 0
            for r in range(k):
                self.weights[r, :n] = self.rows(at, r, n)
            self.loaded = True
        need(self.loaded, "no weights to keep")
        self.preloaded = at != NOWHERE, int(target), int(wide), int(high)

    def compute_preloaded(self, *given: str) -> None:
        need(self.preloaded is not None and self.preloaded[0], "compute_preloaded takes new weights")
        self.compute(*given)

    def compute_accumulated(self, *given: str) -> None:
        need(self.preloaded is not None and not self.preloaded[0], "compute_accumulated keeps the weights")
        self.compute(*given)

    def compute(self, a: str, d: str, cols: str, rows: str, wide: str, high: str) -> None:
        assert self.preloaded is not None
        _, target, n, m = self.preloaded
        self.preloaded = None
        k = int(cols)
        need(1 <= k <= 16, "columns of A")
        need((int(rows), int(wide), int(high)) == (m, n, m) and 1 <= m <= 16, "rows of A and of the sums")
        need(int(d) == NOWHERE, "no bias in this model")
        for r in range(m):
            line = self.rows(int(a), r and r * self.register("a_stride"), k).astype(np.int32)
            sums = (line @ self.weights[:k])[:n]
            where, at = self.row(target, r)
            if target & ADD:
                need(self.known["acc"][at] >= n, "added to what was never written")
                sums = sums + where[at, :n]
            where[at, :n] = sums
            self.known["acc"][at] = n

    # memories -----------------------------------------------------------------------------------------------------
    def row(self, address: int, more: int) -> tuple[Array, int]:
        where = self.acc if address & ACC else self.spad
        at = (address & (FULL - 1)) + more
        need(0 <= at < len(where), f"row {at} of {len(where)}")
        return where, at

    def rows(self, address: int, more: int, n: int) -> Array:
        where, at = self.row(address, more)
        need(self.known["acc" if address & ACC else "spad"][at] >= n, f"row {at} has not {n} elements")
        return where[at, :n]

    def dram_bytes(self, address: str, more: int, n: int) -> Array:
        base, _, rest = address.partition("+")
        need(base in self.dram, f"nothing is called {base}")
        at = int(rest or 0) + more
        need(0 <= at <= len(self.dram[base]) - n, f"{base} ends before {at + n}")
        return self.dram[base][at : at + n]


COMMANDS = {"config_ex", "config_ld", "config_st", "mvin", "mvout", "preload", "compute_preloaded",
            "compute_accumulated"}  # fmt: skip
