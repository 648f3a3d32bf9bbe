"""The flat checker's walk as functions that are compiled (see :mod:`isam.proof.subset`).

``walk`` follows the loops of a program and judges step after step; it goes on only over steps in which nothing is
wrong. Whatever it does not know or does not like it leaves as it is and returns, and :mod:`isam.proof.flat_step`
judges that step. So nothing here says what is wrong, only that all is right. The arrays are laid out by
:mod:`isam.proof.flat_program`.
"""

from __future__ import annotations

from typing import Any

from isam.classes import dataclass
from isam.ir.affine import Affine

Array = Any  # of numbers: one of them, where it is indexed

# where the walk is
PC, DEPTH, LEFT, HELD, GROUPS, STAMP = range(6)
# operations of a program, and how many words each takes
STEP, LOOP, START, HEAD, NEXT, CALL, BACK, COMMAND, ASK, END = range(10)
# of a step that has no place in the table
UNKNOWN, PASSED, ALONE = 0, -1, -2
# words of an access, see ``flat_program``
ALIGN, ROW, UNIT, WIDE, LOW, HIGH, ORIGIN, SIZE, CELL, READS, WRITES = range(11)
RUNS, COUNT, LENGTH, ADDR, ELEM, SPLIT, PARTS = range(11, 18)
ACCESS = 18
# words of a reader, an effect, a pair of accesses
READER, EFFECT, PAIR = 4, 15, 3
LARGEST = 1 << 31  # of a loop variable; what it is multiplied with is at most MOST, so that 64 bits are enough
MOST, FARTHEST = 1 << 26, 1 << 40  # coefficients and constants


@dataclass(slots=True)
class Memory:
    """Everything that the walk reads and writes."""

    code: Array  # the program
    state: Array  # where it is
    stack: Array  # where calls go back to
    env: Array  # loop variables and sizes
    low: Array  # bounds of the loops that are running, by variable
    high: Array
    table: Array  # steps, bounds of loops
    steps: Array  # where a step begins in the table
    value: Array  # the numbers of the present step
    runs: Array  # (address, element) of what lies side by side
    token: Array
    version: Array
    current: Array
    want: Array  # versions that the kernel prescribes, and how often each statement writes each element
    done: Array  # how often each point was executed
    seen: Array  # the last term that was added to each element
    mark: Array  # the last step that looked whether its operands overlap at an address
    after: Array  # what is held after a command, by what is held before


def fits(f: Affine) -> bool:
    """Whether 64 bits are enough for an expression, whatever the loop variables that are followed here."""
    few = len(f.terms) <= 16 and abs(f.const) <= FARTHEST
    return few and all(abs(c) <= MOST for _, c in f.terms)


def form(m: Memory, at: int) -> int:
    """An affine expression: its constant, how many terms, a variable and a coefficient for each."""
    total = m.table[at]
    for i in range(m.table[at + 1]):
        total += m.env[m.table[at + 2 + 2 * i]] * m.table[at + 3 + 2 * i]
    return total


def linear(m: Memory, at: int, n: int) -> int:
    """The place in an array that values of the present step name: a row and a stride each."""
    total = 0
    for i in range(n):
        total += m.value[m.table[at + 2 * i]] * m.table[at + 2 * i + 1]
    return total


def holds(m: Memory, a: int) -> int:
    """Whether an operand's elements lie where it says, current."""
    base = m.value[m.table[a + ROW]]
    at = m.value[m.table[a + ROW] + 1]
    runs = m.table[a + RUNS]
    length = m.table[a + LENGTH]
    addr = m.table[a + ADDR]
    elem = m.table[a + ELEM]
    split = m.table[a + SPLIT]
    parts = m.table[a + PARTS]
    wrong = 0
    for r in range(m.table[a + COUNT]):
        where = at + m.runs[runs + 2 * r]
        e = base + m.runs[runs + 2 * r + 1]
        if addr == 1 and elem == 1 and parts == 1:
            for i in range(length):
                wrong |= (m.token[where + i] != e + i) | (m.version[where + i] != m.current[e + i])
        else:
            for i in range(length):
                for q in range(split):
                    wrong |= m.token[where + i * addr + q] != (e + i * elem) * parts + q
                    wrong |= m.version[where + i * addr + q] != m.current[e + i * elem]
    return wrong == 0


def in_order(m: Memory, r: int) -> int:
    """Whether what is read was written as often as the kernel says it is by then."""
    a = m.table[r]
    want = m.table[r + 1] + linear(m, m.table[r + 3], m.table[r + 2])
    base = m.value[m.table[a + ROW]]
    runs = m.table[a + RUNS]
    elem = m.table[a + ELEM]
    length = m.table[a + LENGTH]
    wrong = 0
    for k in range(m.table[a + COUNT]):
        e = base + m.runs[runs + 2 * k + 1]
        for i in range(length):
            wrong |= m.current[e + i * elem] != m.want[want + e + i * elem]
    return wrong == 0


def apart(m: Memory, p: int) -> int:
    """Whether what one operand writes overlaps no other one, unless it is the same tile used element by element."""
    a = m.table[p]
    b = m.table[p + 1]
    base = m.value[m.table[a + ROW]]
    at = m.value[m.table[a + ROW] + 1]
    there = m.value[m.table[b + ROW] + 1]
    if at + m.table[a + HIGH] < there + m.table[b + LOW] or there + m.table[b + HIGH] < at + m.table[a + LOW]:
        return 1
    if m.table[p + 2] and at == there and base == m.value[m.table[b + ROW]]:
        return 1
    m.state[STAMP] += 1
    stamp = m.state[STAMP]
    for k in range(m.table[a + COUNT]):
        for i in range(m.table[a + LENGTH]):
            for q in range(m.table[a + SPLIT]):
                m.mark[at + m.runs[m.table[a + RUNS] + 2 * k] + i * m.table[a + ADDR] + q] = stamp
    met = 0
    for k in range(m.table[b + COUNT]):
        for i in range(m.table[b + LENGTH]):
            for q in range(m.table[b + SPLIT]):
                met |= m.mark[there + m.runs[m.table[b + RUNS] + 2 * k] + i * m.table[b + ADDR] + q] == stamp
    return met == 0


def rank(m: Memory, f: int, past: int) -> int:
    """The place of the first (``past`` 0) or last (1) term of a step among the terms of a statement."""
    total = 0
    for i in range(m.table[f + 12]):
        row = m.table[f + 13] + 3 * i
        total = total * m.table[row + 2] + m.value[m.table[row]] + past * (m.table[row + 1] - 1)
    return total


def allowed(m: Memory, f: int) -> int:
    """Whether a statement may write now what the step lets it write."""
    a = m.table[f]
    already = m.table[f + 1]
    times = m.table[f + 2]
    time = linear(m, m.table[f + 6], m.table[f + 5])
    first = m.table[f + 3] + time
    adds = m.table[f + 4] + time  # where it accumulates: how often the statement writes the element in all
    accumulates = m.table[f + 14]
    seen = m.table[f + 11]
    base = m.value[m.table[a + ROW]]
    runs = m.table[a + RUNS]
    elem = m.table[a + ELEM]
    length = m.table[a + LENGTH]
    term = rank(m, f, 0)
    wrong = 0
    for k in range(m.table[a + COUNT]):
        e = base + m.runs[runs + 2 * k + 1]
        for i in range(length):
            wrong |= m.current[e + i * elem] + already < m.want[first + e + i * elem]
        if accumulates:
            for i in range(length):
                most = m.want[first + e + i * elem] + m.want[adds + e + i * elem]
                wrong |= m.current[e + i * elem] + already + times > most
        else:
            for i in range(length):
                wrong |= m.current[e + i * elem] + already > m.want[first + e + i * elem]
        if seen >= 0:
            for i in range(length):
                wrong |= m.seen[seen + e + i * elem] >= term
    return wrong == 0


def carry_out(m: Memory, f: int) -> int:
    """A statement's instances are executed."""
    a = m.table[f]
    times = m.table[f + 2]
    base = m.value[m.table[a + ROW]]
    runs = m.table[a + RUNS]
    elem = m.table[a + ELEM]
    length = m.table[a + LENGTH]
    seen = m.table[f + 11]
    term = rank(m, f, 1)
    for k in range(m.table[a + COUNT]):
        e = base + m.runs[runs + 2 * k + 1]
        for i in range(length):
            m.current[e + i * elem] += times
        if seen >= 0:
            for i in range(length):
                m.seen[seen + e + i * elem] = term
    box = m.table[f + 7]  # where the points are counted; of each axis its row, how many are one, the stride
    first = m.table[box]
    for i in range(m.table[box + 1]):
        axis = box + 2 + 3 * i
        first += m.value[m.table[axis]] // m.table[axis + 1] * m.table[axis + 2]
    for k in range(m.table[f + 9]):
        d = first + m.runs[m.table[f + 8] + k]
        for i in range(m.table[f + 10]):
            m.done[d + i] = min(255, m.done[d + i] + 1)
    return 1


def write(m: Memory, a: int) -> int:
    """An operand's elements lie where it says, at the versions that they now have; what was there is gone."""
    base = m.value[m.table[a + ROW]]
    at = m.value[m.table[a + ROW] + 1]
    cell = m.table[a + CELL]
    if cell > 0:
        origin = m.table[a + ORIGIN]
        first = origin + (at + m.table[a + LOW] - origin) // cell * cell
        last = origin + (at + m.table[a + HIGH] - origin) // cell * cell + cell
        for i in range(first, last):
            m.token[i] = -1
    runs = m.table[a + RUNS]
    length = m.table[a + LENGTH]
    addr = m.table[a + ADDR]
    elem = m.table[a + ELEM]
    split = m.table[a + SPLIT]
    parts = m.table[a + PARTS]
    for r in range(m.table[a + COUNT]):
        where = at + m.runs[runs + 2 * r]
        e = base + m.runs[runs + 2 * r + 1]
        if addr == 1 and elem == 1 and parts == 1:
            for i in range(length):
                m.token[where + i] = e + i
            for i in range(length):
                m.version[where + i] = m.current[e + i]
        else:
            for i in range(length):
                for q in range(split):
                    m.token[where + i * addr + q] = (e + i * elem) * parts + q
                    m.version[where + i * addr + q] = m.current[e + i * elem]
    return 1


def located(m: Memory, at: int, accesses: int) -> int:
    """The step's numbers, and every operand's first address in the place of its byte; whether all are in range.

    ``at``: how many forms, the forms, how many ranges, a row and the largest value of each."""
    p = at + 1
    for i in range(m.table[at]):
        m.value[i] = form(m, p)
        p += 2 + 2 * m.table[p + 1]
    wrong = 0
    for i in range(m.table[p]):
        v = m.value[m.table[p + 1 + 2 * i]]
        wrong |= (v < 0) | (v > m.table[p + 2 + 2 * i])
    for i in range(m.table[accesses]):
        a = accesses + 1 + ACCESS * i
        row = m.table[a + ROW]
        wrong |= m.value[row] % m.table[a + WIDE] != 0
        m.value[row] = m.value[row] // m.table[a + WIDE]
        row += 1
        unit = m.table[a + UNIT]
        byte = m.value[row]
        g = byte // unit
        wrong |= (byte % unit != 0) | (byte % m.table[a + ALIGN] != 0)
        wrong |= (g + m.table[a + LOW] < 0) | (g + m.table[a + HIGH] >= m.table[a + SIZE])
        m.value[row] = m.table[a + ORIGIN] + g
    return wrong == 0


def step(m: Memory, at: int) -> int:
    """Judges a step and executes it: 1. Nothing is changed where it is not right in every respect: 0.

    ``at``: where the accesses, readers, pairs and effects are in the table, then the numbers (see ``located``)."""
    accesses = m.table[at]
    readers = m.table[at + 1]
    pairs = m.table[at + 2]
    effects = m.table[at + 3]
    if not located(m, at + 4, accesses):
        return 0
    for i in range(m.table[accesses]):
        if m.table[accesses + 1 + ACCESS * i + READS] and not holds(m, accesses + 1 + ACCESS * i):
            return 0
    for i in range(m.table[readers]):
        if not in_order(m, readers + 1 + READER * i):
            return 0
    for i in range(m.table[pairs]):
        if not apart(m, pairs + 1 + PAIR * i):
            return 0
    for i in range(m.table[effects]):
        if not allowed(m, effects + 1 + EFFECT * i):
            return 0
    for i in range(m.table[effects]):
        carry_out(m, effects + 1 + EFFECT * i)
    for i in range(m.table[accesses]):
        if m.table[accesses + 1 + ACCESS * i + WRITES]:
            write(m, accesses + 1 + ACCESS * i)
    return 1


def begin(m: Memory, at: int) -> int:
    """A loop's bounds. How many iterations there are; -1: fewer than it has bodies that run once, or numbers so large
    that 64 bits might not do."""
    var = m.code[at + 2]
    by = m.code[at + 3]
    p = m.code[at + 6]
    for side in range(2):
        n = m.table[p]
        p += 1
        for i in range(n):
            if side == 0:
                bound = -(-form(m, p + 1) // m.table[p])
                m.low[var] = bound if i == 0 else max(m.low[var], bound)
            else:
                bound = form(m, p + 1) // m.table[p]
                m.high[var] = bound if i == 0 else min(m.high[var], bound)
            p += 3 + 2 * m.table[p + 2]
    trip = max(0, (m.high[var] - m.low[var] + by - 1) // by)
    if m.low[var] < -LARGEST or m.high[var] > LARGEST or (trip > 0 and trip < m.code[at + 4]):
        return -1
    return trip


def walk(m: Memory) -> int:
    """From where the walk is to its end, or to something that is not its business: which operation that is."""
    pc = m.state[PC]
    while True:
        op = m.code[pc]
        if op == STEP:
            at = m.steps[m.code[pc + 1]]
            if m.state[LEFT] <= 0 or (at != PASSED and (at <= 0 or not step(m, at))):
                m.state[PC] = pc
                return op
            m.state[LEFT] -= 1
            pc += 2
        elif op == LOOP:
            trip = begin(m, pc)
            if trip < 0:
                m.state[PC] = pc
                return op
            pc = pc + 7 if trip else m.code[pc + 5]
        elif op == START:
            m.env[m.code[pc + 1]] = m.low[m.code[pc + 1]]
            pc += 2
        elif op == HEAD:
            now = m.env[m.code[pc + 1]]
            if m.code[pc + 3] >= 0 and now == m.low[m.code[pc + 1]]:
                pc = m.code[pc + 3]
            elif m.code[pc + 4] >= 0 and now + m.code[pc + 2] >= m.high[m.code[pc + 1]]:
                pc = m.code[pc + 4]
            else:
                pc += 5
        elif op == NEXT:
            now = m.env[m.code[pc + 1]] + m.code[pc + 2]
            m.env[m.code[pc + 1]] = now
            pc = m.code[pc + 3] if now < m.high[m.code[pc + 1]] else m.code[pc + 4]
        elif op == CALL:
            m.stack[m.state[DEPTH]] = pc + 2
            m.state[DEPTH] += 1
            pc = m.code[pc + 1]
        elif op == BACK:
            m.state[DEPTH] -= 1
            pc = m.stack[m.state[DEPTH]]
        elif op == COMMAND:
            held = m.after[m.state[HELD] * m.state[GROUPS] + m.code[pc + 1]]
            if held < 0:
                m.state[PC] = pc
                return op
            m.state[HELD] = held
            pc += 2
        else:
            m.state[PC] = pc
            return op


FUNCTIONS = (form, linear, holds, in_order, apart, rank, allowed, carry_out, write, located, step, begin, walk)
