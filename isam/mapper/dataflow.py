"""Kernels and instructions prepared for matching: integer columns, who touches which buffer, views of a statement.

A *view* is one way to read a statement: as it stands, an accumulation as ``d = op(d, s)``, or ``d = op(d, s)`` as an
accumulation. Everything the search compares is an integer or a tuple of integers, computed once per kernel.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.ir.kernel import COMMUTATIVE, REDUCTIONS, Access, Item, Kernel, Literal, Recurrence, Statement
from isam.ir.span import span_of
from isam.once import once

MIRROR = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}  # a < b is b > a
Key = tuple[str, bool, int]  # operation, accumulates, number of sources


class Form:
    """An access as columns: ``cols[axis]`` = ((row, coefficient), ...); ``rows[row]`` = ((axis, coefficient), ...).

    ``rests[row]`` is what no axis of the statement multiplies: sizes, recurrent axes, the constant. ``signs[axis]`` is
    the sorted tuple of the column's non-zero coefficients: two columns can only agree if these do.
    """

    __slots__ = ("access", "buffer", "cols", "rank", "rests", "rows", "signs")

    def __init__(self, access: Access, number: dict[str, int], width: int):
        self.access = access
        self.buffer = access.buffer
        self.rank = len(access.index)
        cols: list[list[tuple[int, int]]] = [[] for _ in range(width)]
        rows = []
        rests = []
        for r, e in enumerate(access.index):
            row = []
            rest = []
            for name, c in e.terms:
                a = number.get(name)
                if a is None:
                    rest.append((name, c))
                else:
                    row.append((a, c))
                    cols[a].append((r, c))
            rows.append(tuple(sorted(row)))
            rests.append(Affine(tuple(rest), e.const))
        self.rows: tuple[tuple[tuple[int, int], ...], ...] = tuple(rows)
        self.rests: tuple[Affine, ...] = tuple(rests)
        self.cols = tuple(map(tuple, cols))
        self.signs = tuple(tuple(sorted(c for _, c in col)) for col in cols)


Source = Form | Literal


class View:
    """One reading of a statement: an operation, a destination, sources."""

    __slots__ = ("accumulates", "dest", "op", "sources")

    def __init__(self, op: str, accumulates: bool, dest: Form, sources: tuple[Source, ...]):
        self.op = op
        self.accumulates = accumulates
        self.dest = dest
        self.sources = sources

    @property
    def key(self) -> Key:
        return self.op, self.accumulates, len(self.sources)

    @property
    def commutes(self) -> bool:
        return self.op in COMMUTATIVE and not self.accumulates

    def orders(self, swap: bool) -> Iterator[tuple[bool, tuple[Source, ...]]]:
        """The sources as they stand, then exchanged where the operation allows it."""
        yield False, self.sources
        if swap and self.commutes:
            yield True, self.sources[::-1]


class Node:
    """A statement with numbered axes. For an instruction the numbers are shared by all its statements."""

    __slots__ = ("axes", "dest", "extents", "index", "loops", "names", "sources", "statement", "views", "where",
                 "width")  # fmt: skip

    def __init__(self, index: int, st: Statement, loops: tuple[Recurrence, ...], number: dict[str, int], width: int):
        self.index = index
        self.statement = st
        self.loops = loops
        self.width = width
        self.axes = tuple(number[n] for n in st.domain.names)
        self.names = st.domain.names
        self.extents = {number[a.name]: a.extent for a in st.domain.axes}
        self.dest = Form(st.dest, number, width)
        self.sources: tuple[Source, ...] = tuple(
            Form(s, number, width) if isinstance(s, Access) else s for s in st.sources
        )
        self.where = tuple(
            (
                tuple(sorted((number[n], c) for n, c in w.terms if n in number)),
                Affine(tuple(t for t in w.terms if t[0] not in number), w.const),
            )
            for w in st.domain.where
        )
        self.views = tuple(self._views(st))

    def _views(self, st: Statement) -> Iterator[View]:
        yield View(st.op, st.accumulate, self.dest, self.sources)
        if st.op in MIRROR:
            yield View(MIRROR[st.op], False, self.dest, self.sources[::-1])
        if st.op not in REDUCTIONS:
            return
        if st.accumulate:
            yield View(st.op, False, self.dest, (self.dest, *self.sources))
        else:
            for n, s in enumerate(st.sources):
                if s == st.dest:
                    yield View(st.op, True, self.dest, self.sources[:n] + self.sources[n + 1 :])
                    return

    def reads(self) -> set[str]:
        return {a.buffer for a in self.statement.reads}


class Flow:
    """A kernel with its statements as nodes, indexed by operation and by buffer."""

    __slots__ = ("by_key", "nodes", "readers", "writers", "written")

    def __init__(self, nodes: tuple[Node, ...]):
        self.nodes = nodes
        self.by_key: dict[Key, list[tuple[Node, View]]] = {}
        self.readers: dict[str, list[Node]] = {}
        self.writers: dict[str, list[Node]] = {}
        for node in nodes:
            for view in node.views:
                self.by_key.setdefault(view.key, []).append((node, view))
            self.writers.setdefault(node.dest.buffer, []).append(node)
            for name in sorted(node.reads()):
                self.readers.setdefault(name, []).append(node)
        self.written = {name: [n.index for n in nodes] for name, nodes in self.writers.items()}  # ascending

    def undisturbed(self, buffer: str, a: int, b: int) -> bool:
        """No statement between ``a`` and ``b`` writes ``buffer``."""
        writes = self.written.get(buffer, [])
        return bisect_left(writes, max(a, b)) <= bisect_right(writes, min(a, b))

    def touching(self, buffer: str) -> set[int]:
        """Indices of all statements that read or write ``buffer``."""
        return {n.index for n in self.readers.get(buffer, ())} | {n.index for n in self.writers.get(buffer, ())}


def _walk(body: tuple[Item, ...], loops: tuple[Recurrence, ...]) -> Iterator[tuple[Statement, tuple[Recurrence, ...]]]:
    for it in body:
        if isinstance(it, Recurrence):
            yield from _walk(it.body, (*loops, it))
        else:
            yield it, loops


@once
def flow_of(kernel: Kernel) -> Flow:
    """The prepared kernel, made once per kernel object."""
    nodes = []
    for i, (st, loops) in enumerate(_walk(kernel.body, ())):
        names = st.domain.names
        nodes.append(Node(i, st, loops, {n: a for a, n in enumerate(names)}, len(names)))
    return Flow(tuple(nodes))


class Pattern:
    """An instruction prepared: its axes numbered across statements, the order in which its statements are matched.

    ``order``: first the statement with most axes and arrays (it has the fewest counterparts), then always one that
    shares a buffer with those before, so that candidates come from the buffer's readers and writers. ``loose``:
    temporaries whose accesses are all the same function of the axes: for these only the flow of elements matters, not
    the indexing. ``widest``: of each operand the access with the most axes.
    """

    def __init__(self, instruction: Instruction, body: Kernel):
        self.instruction = instruction
        self.body = body
        number = _axis_numbers(body)
        width = len({n for per in number for n in per.values()})
        names: list[str] = [""] * width
        self.extents: list[Affine] = [Affine()] * width
        nodes = []
        for i, (st, loops) in enumerate(_walk(body.body, ())):
            nodes.append(Node(i, st, loops, number[i], width))
            for axis in st.domain.axes:
                self.extents[number[i][axis.name]] = axis.extent
        for node in sorted(nodes, key=lambda n: (-len(n.axes), n.index)):  # the names that a mapping of it would use
            for name, c in zip(node.names, node.axes, strict=True):
                names[c] = names[c] or _unused(name, names)
        self.axis_names = tuple(names)
        self.spans = tuple(span_of(e, body.syms) for e in self.extents)
        self.flow = Flow(tuple(nodes))
        self.temps = frozenset(b.name for b in body.buffers if b.role == "temp")
        self.operands = tuple(b.name for b in body.arguments)
        self.loose = frozenset(t for t in self.temps if self._one_function(t))
        self.order = self._order()
        self.widest = self._widest()
        self.fixing = self._fixing()
        self.steps = self._steps()

    def _one_function(self, buffer: str) -> bool:
        seen = {(f.rows, f.rests) for n in self.flow.nodes for f in forms(n) if f.buffer == buffer}
        return len(seen) == 1

    def _fixing(self) -> frozenset[str]:
        """Sizes that the instruction computes with, of which more make an axis shorter, or that make one up together:
        an axis of such a size cannot be cut."""
        rests = [e for e in self.extents if len(e.terms) > 1 or any(c < 0 for _, c in e.terms)]
        rests += [r for n in self.flow.nodes for f in forms(n) for r in f.rests]
        rests += [rest for n in self.flow.nodes for _, rest in n.where]
        return frozenset(name for r in rests for name in r.names)

    def _steps(self) -> dict[int, tuple[tuple[int, str], ...]]:
        """Per statement: (other statement, buffer) where one follows the other directly on a buffer that only plain
        statements write: in the kernel nothing else may write it in between, and the order is the same."""
        out: dict[int, list[tuple[int, str]]] = {n.index: [] for n in self.flow.nodes}
        for buffer, writers in self.flow.writers.items():
            if any(w.statement.accumulate for w in writers):
                continue
            marks = {w.index for w in writers}
            for i in sorted(self.flow.touching(buffer)):
                last = max((m for m in marks if m < i), default=None)
                if last is not None:
                    out[i].append((last, buffer))
                    out[last].append((i, buffer))
        return {i: tuple(steps) for i, steps in out.items()}

    def _order(self) -> tuple[int, ...]:
        left = list(range(len(self.flow.nodes)))
        touched: set[str] = set()
        order: list[int] = []
        nodes = self.flow.nodes
        tightest = max(left, key=lambda i: (len(nodes[i].axes), len(forms(nodes[i])), -i), default=0)
        while left:
            joined = (i for i in left if touched & {f.buffer for f in forms(nodes[i])})
            i = next(joined, left[0]) if order else tightest
            left.remove(i)
            order.append(i)
            touched |= {f.buffer for f in forms(nodes[i])}
        return tuple(order)

    def _widest(self) -> dict[str, Form]:
        """Of several the first in the order of matching."""
        out: dict[str, Form] = {}
        for f in (f for i in self.order for f in forms(self.flow.nodes[i])):
            if f.buffer not in out or sum(map(len, f.rows)) > sum(map(len, out[f.buffer].rows)):
                out[f.buffer] = f
        return out


def forms(node: Node) -> tuple[Form, ...]:
    """The destination and every source that is an access."""
    return (node.dest, *(s for s in node.sources if isinstance(s, Form)))


@once
def _patterns(instruction: Instruction) -> dict[bool, Pattern]:
    """By whether the body is its own; filled in as they are asked for."""
    return {}


def pattern_of(instruction: Instruction, body: Kernel | None = None) -> Pattern:
    """The prepared instruction (with another ``body`` than its own: that), made once per instruction."""
    patterns, key = _patterns(instruction), body is None or body is instruction.body
    if key not in patterns:
        patterns[key] = Pattern(instruction, body or instruction.body)
    return patterns[key]


def _axis_numbers(body: Kernel) -> list[dict[str, int]]:
    """One number per axis of an instruction: the same name and extent is the same axis, and so are two names that
    index the same dimension of a buffer that both statements touch; never two of one statement."""
    statements = body.statements
    group: dict[tuple[int, str], list[tuple[int, str]]] = {}  # every axis of every statement -> all that are the same
    named: dict[tuple[str, Affine], list[tuple[int, str]]] = {}
    for i, st in enumerate(statements):
        for axis in st.domain.axes:
            group[i, axis.name] = named.setdefault((axis.name, axis.extent), [])
            group[i, axis.name].append((i, axis.name))
    for i, st in enumerate(statements):
        for j in range(i):
            for a in _accesses(statements[j]):
                for b in _accesses(st):
                    if a.buffer == b.buffer:
                        for n, m in _unit_pairs(a, b, statements[j], st):
                            _join(group, group[j, n], group[i, m])
    numbers: dict[tuple[int, str], int] = {}
    return [
        {n: numbers.setdefault(group[i, n][0], len(numbers)) for n in st.domain.names}
        for i, st in enumerate(statements)
    ]


def _join(group: dict[tuple[int, str], list[tuple[int, str]]], one: list[tuple[int, str]],
          two: list[tuple[int, str]]) -> None:  # fmt: skip
    if not {s for s, _ in one} & {s for s, _ in two}:
        one.extend(two)
        for member in two:
            group[member] = one


def _unused(name: str, names: list[str]) -> str:
    while name in names:
        name += "_"
    return name


def _accesses(st: Statement) -> list[Access]:
    return [st.dest, *(s for s in st.sources if isinstance(s, Access))]


def _unit_pairs(a: Access, b: Access, sa: Statement, sb: Statement) -> Iterator[tuple[str, str]]:
    for x, y in zip(a.index, b.index, strict=True):
        if len(x.terms) == len(y.terms) == 1 and x.const == y.const and x.terms[0][1] == y.terms[0][1]:
            n, m = x.terms[0][0], y.terms[0][0]
            if n in sa.domain.names and m in sb.domain.names and sa.domain.extent(n) == sb.domain.extent(m):
                yield n, m
