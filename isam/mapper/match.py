"""The doors of the mapper: :func:`match` enumerates mappings or says why there are none, :func:`count` counts them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from isam.diagnostics import NOWHERE, fail
from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Kernel, Literal, Recurrence, Statement
from isam.ir.mapping import Mapping, OperandMap
from isam.ir.mismatch import Mismatch
from isam.ir.normal import normal_form
from isam.mapper.dataflow import Node, Pattern, pattern_of
from isam.mapper.extend import Exhausted, Extension
from isam.mapper.legality import Verdict, judge
from isam.mapper.report import Among, Reporter
from isam.mapper.symmetry import in_order, orbit_key, preserves_contract
from isam.once import once

BUDGET = 200_000
STATEMENTS = 40  # of one instruction: the search recurses over them
SHOWN = 20  # mappings printed
_ARTICLES = {Kernel: "a kernel", Instruction: "an instruction"}


class Matches:
    """All mappings, found as they are asked for, always in the same order. Truthy: there is at least one."""

    def __init__(self, search: Enumeration):
        self._search = search
        self._found: list[Mapping] = []
        self._source = search.mappings()
        self._more()

    def _more(self) -> bool:
        for m in self._source:
            self._found.append(m)
            return True
        return False

    def __bool__(self) -> bool:
        return bool(self._found)

    def __iter__(self) -> Iterator[Mapping]:
        at = 0
        while at < len(self._found) or self._more():
            yield self._found[at]
            at += 1

    def __len__(self) -> int:
        """How many there are; searches to the end."""
        while self._more():
            pass
        return len(self._found)

    def __str__(self) -> str:
        shown = list(islice(self, SHOWN + 1))
        lines = [str(m) for m in shown[:SHOWN]]
        return "\n".join(lines + ["..."] * (len(shown) > SHOWN)) if shown else "no mapping"

    @property
    def kernel(self) -> Kernel:
        """The kernel whose statements the mappings number."""
        return self._search.kernel

    @property
    def first(self) -> Mapping:
        return self._found[0]

    @property
    def complete(self) -> bool:
        """The search went through everything: False when the budget ended it. Searches to the end."""
        len(self)
        return not self._search.exhausted

    @property
    def pairs(self) -> int:
        """How many pairs were tried so far."""
        return self._search.pairs

    @property
    def near(self) -> tuple[Mismatch, ...]:
        """Every contradiction met so far, each once, deepest first; only the deepest where they are not collected."""
        reporter = self._search.reporter
        best = () if reporter.best is None else (reporter.best,)
        return tuple(sorted(reporter.all or best, key=lambda m: -m.depth))

    def orbits(self) -> Iterator[Mapping]:
        """One mapping per orbit: the first of each."""
        seen: set[str] = set()
        for m in self:
            if m.orbit not in seen:
                seen.add(m.orbit)
                yield m


class Enumeration:
    """One search over a kernel: turns complete assignments into mappings, each once."""

    def __init__(self, kernel: Kernel, pattern: Pattern, reporter: Reporter, *, strided: bool, swap: bool, typed: bool,
                 sized: bool, region: Iterable[int] | None, budget: int, orbits: bool = True,
                 barred: bool = False):  # fmt: skip
        self.kernel = kernel
        self.pattern = pattern
        self.reporter = reporter
        self.sized = sized
        self.exhausted = False
        self.budget = budget
        self.orbits = orbits
        self.barred = barred  # there is none, and that is known
        self.state = Extension(kernel, pattern, reporter, strided=strided, swap=swap, typed=typed,
                               region=None if region is None else frozenset(region), budget=budget)  # fmt: skip

    @property
    def pairs(self) -> int:
        return self.budget - self.state.budget

    def mappings(self) -> Iterator[Mapping]:
        seen: set[object] = set()
        if self.barred:
            return
        try:
            for _ in self.state.run():
                verdict = judge(self.state, sized=self.sized)
                if isinstance(verdict, Mismatch):
                    self.reporter.no(verdict.depth, lambda v=verdict: v)
                    continue
                mapping = _mapping(self.state, verdict, orbit=self.orbits)
                key = (mapping.operands, mapping.axes, mapping.statement_map)
                if key not in seen:
                    seen.add(key)
                    yield mapping
        except Exhausted:
            self.exhausted = True


def match(
    kernel: Kernel,
    instruction: Instruction,
    *,
    strided: bool = False,
    swap: bool = True,
    region: Iterable[int] | None = None,
    budget: int = BUDGET,
    normalise: bool = True,
    why: bool = True,
) -> Matches | Mismatch:
    """Every way in which ``instruction`` carries out statements of ``kernel`` (MAP-1 to MAP-8).

    ``strided`` admits other coefficients than the instruction's and records them as steps (MAP-7); ``swap`` tries
    commutative sources in both orders; ``region`` confines the search to these statements; ``budget`` is the number
    of pairs tried before the search ends (``Matches.complete`` tells). Returns the deepest mismatch when there is none;
    without ``why`` some mismatch, which says nothing.

    Statement numbers are those of ``Matches.kernel``: the kernel itself if it is in normal form, if a ``region`` is
    given or ``normalise`` is off; else its normal form. Raises ``IsamError`` where something else is laid beside.
    """
    _kinds(kernel, instruction)
    body = normal(instruction.body)
    outside = never(kernel, instruction, body)
    if outside is not None:
        return outside
    reporter = Reporter(silent=not why)
    if normalise and region is None:
        kernel = normal(kernel)
    found = Matches(Enumeration(kernel, pattern_of(instruction, body), reporter,
                                strided=strided, swap=swap, typed=True, sized=True, region=region,
                                budget=budget))  # fmt: skip
    return found if found else _none(instruction, kernel, reporter, found, budget)


def _kinds(kernel: object, instruction: object) -> None:
    """Raises ``IsamError`` unless they are a kernel and an instruction."""
    for given, kind, how in ((kernel, Kernel, "isam.parse"), (instruction, Instruction, "system.instructions")):
        if not isinstance(given, kind):
            loc, found = getattr(given, "loc", NOWHERE), type(given).__name__
            found = f"the {found.lower()} '{given.name}'" if isinstance(given, Kernel | Instruction) else found
            what = f"expected {_ARTICLES[kind]}, found {found}"
            raise fail("L141", what, loc, f"the kernel comes first, then the instruction: {how} gives one")


def never(kernel: Kernel, instruction: Instruction, body: Kernel) -> Mismatch | None:
    """Instructions that carry out no kernel at all: with a recurrent loop, empty, or out of all proportion."""
    for r in body.body:
        if isinstance(r, Recurrence):
            what = f"a recurrent loop over {r.axis.name}, and an instruction is one step: it carries out no kernel"
            return Mismatch("operation", "statements", what, kernel.loc, r.loc,
                            instruction.name)  # fmt: skip
    n = len(body.statements)
    if n == 0:
        return Mismatch("operation", "statements", "nothing: it does nothing", kernel.loc, instruction.loc,
                        instruction.name)  # fmt: skip
    if n > STATEMENTS:
        return Mismatch("budget", f"at most {STATEMENTS} statements for one instruction", f"{n} statements", kernel.loc,
                        instruction.loc, instruction.name)  # fmt: skip
    return None


def near_misses(
    kernel: Kernel,
    instruction: Instruction,
    *,
    strided: bool = False,
    budget: int = BUDGET,
    normalise: bool = True,
) -> list[Mismatch]:
    """Every contradiction the search met, each once, deepest first."""
    _kinds(kernel, instruction)
    found = probe(normal(kernel) if normalise else kernel, instruction, strided=strided, budget=budget)
    len(found)
    return list(found.near)


def probe(kernel: Kernel, instruction: Instruction, *, strided: bool = False, budget: int = BUDGET) -> Matches:
    """Both answers of one search: the mappings (falsy when there are none) and, in ``near``, the contradictions met.
    The kernel is taken as it stands."""
    body = normal(instruction.body)
    outside = never(kernel, instruction, body)
    reporter = Reporter(collect=True)
    if outside is not None:
        reporter.no(0, lambda: outside)
    return Matches(Enumeration(kernel, pattern_of(instruction, body), reporter, strided=strided, swap=True,
                               typed=True, sized=True, region=None, budget=budget,
                               barred=outside is not None))  # fmt: skip


def match_untyped(
    kernel: Kernel, instruction: Instruction, *, strided: bool = False, region: Iterable[int] | None = None
) -> Iterator[Mapping]:
    """The mappings onto a kernel as it stands if dtypes are not looked at: for reports, never to be carried out."""
    body = normal(instruction.body)
    if never(kernel, instruction, body) is None:
        search = Enumeration(kernel, pattern_of(instruction, body), Reporter(silent=True), strided=strided, swap=True,
                             typed=False, sized=True, region=region, budget=BUDGET, orbits=False)  # fmt: skip
        yield from search.mappings()


def about(kernel: Kernel, instruction: Instruction, statement: int, region: Iterable[int]) -> Mismatch | None:
    """The deepest contradiction in which a statement has a part, strided operands admitted; None: it has in none."""
    body = normal(instruction.body)
    reporter = Among(statement)
    search = Enumeration(kernel, pattern_of(instruction, body), reporter, strided=True, swap=True, typed=True,
                         sized=True, region=region, budget=BUDGET, orbits=False)  # fmt: skip
    reporter.taken = search.state.taken
    for _ in search.mappings():
        pass
    return reporter.best


def count(kernel: Kernel, instruction: Instruction, *, strided: bool = False, swap: bool = True) -> int:
    """How many distinct (role assignment, axis map) pairs there are (MAP-10): dtypes, extents, choices of rows ignored.

    The kernel and the instruction are taken as they were written: ``swap=False`` keeps the order of the sources.
    """
    _kinds(kernel, instruction)
    search = Enumeration(kernel, pattern_of(instruction), Reporter(), strided=strided, swap=swap, typed=False,
                         sized=False, region=None, budget=10_000_000, orbits=False)  # fmt: skip
    return len({(tuple((o.operand, o.buffer, o.index, o.literal) for o in m.operands), m.axes, m.statement_map)
                for m in search.mappings()})  # fmt: skip


@once
def symmetries_of(pattern: Pattern) -> tuple[Mapping, ...]:
    """The automorphisms of an instruction, computed once per instruction."""
    search = Enumeration(pattern.body, pattern, Reporter(), strided=False, swap=True, typed=True,
                         sized=False, region=None, budget=BUDGET, orbits=False)  # fmt: skip
    found = (_of_itself(pattern, m) for m in search.mappings() if not m.outer)
    extents = dict(zip(pattern.axis_names, pattern.extents, strict=True))
    return tuple(in_order(m) for m in found if m and preserves_contract(pattern.instruction, m, extents))


def _of_itself(pattern: Pattern, mapping: Mapping) -> Mapping | None:
    """A mapping of the instruction's own body with both sides of ``axes`` in the pattern's names.

    The two sides name an axis that several statements call differently each by its own rule. None where two axes of
    one name, which nothing but the name makes one, are played by two: no permutation of the axes.
    """
    names: dict[str, str] = {}
    renames = {i: dict(changed) for i, changed in mapping.renames}
    for node in pattern.flow.nodes:
        changed = renames.get(node.index, {})
        for name, c in zip(node.names, node.axes, strict=True):
            if names.setdefault(changed.get(name, name), pattern.axis_names[c]) != pattern.axis_names[c]:
                return None
    return replace(mapping, axes=tuple((c, names[d]) for c, d in mapping.axes))


@once
def normal(kernel: Kernel) -> Kernel:
    """The normal form where it has other statements; else the kernel as it stands, with its own names: views take care
    of the rest."""
    other = normal_form(kernel)
    same = [_nameless(s) for s in kernel.statements] == [_nameless(s) for s in other.statements]
    return kernel if same else other


def _nameless(s: Statement) -> tuple[Access, str]:
    """What a statement writes and how, whatever its axes are called."""
    return s.dest.substitute({n: Affine.of(f"#{k}") for k, n in enumerate(s.domain.names)}), s.op


def _none(instruction: Instruction, kernel: Kernel, reporter: Reporter, found: Matches, budget: int) -> Mismatch:
    if not found.complete:
        return Mismatch("budget", f"no mapping among the first {budget} pairs tried", "a larger budget", kernel.loc,
                        instruction.loc, instruction.name, subject=(("need", budget),))  # fmt: skip
    if reporter.best is not None:
        return reporter.best
    return Mismatch("operation", "no statement that could be tried", f"{len(instruction.body.statements)} statement(s)",
                    kernel.loc, instruction.loc, instruction.name)  # fmt: skip


def _mapping(state: Extension, verdict: Verdict, *, orbit: bool) -> Mapping:
    pairs = [state.pairs[i] for i in sorted(state.pairs)]
    main = max(pairs, key=lambda p: (len(p.node.axes), -p.node.index)).node
    names = _names(state, main)
    owner = {k: c for c, k in enumerate(state.axes)}
    order = {k: (0, main.names.index(n)) if n in main.names else (1, k) for k, n in names.items()}
    outer = tuple(names[k] for k in sorted(names, key=order.__getitem__) if k not in owner)
    renames = tuple(
        (p.node.index, changed)
        for p in pairs
        if (changed := tuple((n, names[p.classes[a]]) for a, n in enumerate(p.node.names) if n != names[p.classes[a]]))
    )
    guards = tuple(Affine.from_terms([(names[k], c) for k, c in terms]) + rest for terms, rest in verdict.guards)
    statements = tuple(sorted([p.node.index for p in pairs]))
    operands = tuple([_operand(state, o, names, owner) for o in state.pattern.operands if o in state.buffers])
    axes = tuple([(state.pattern.axis_names[c], names[k]) for c, k in enumerate(state.axes)])
    return Mapping(
        instruction=state.pattern.instruction,
        statements=statements,
        operands=operands,
        axes=axes,
        outer=outer,
        tails=_tails(state),
        orbit=orbit_key(statements, operands, axes, symmetries_of(state.pattern)) if orbit else "",
        statement_map=tuple((i, p.node.index) for i, p in sorted(state.pairs.items())),
        guards=guards,
        whole=tuple(state.pattern.axis_names[c] for c in sorted(verdict.whole)),
        loops=tuple(r.axis.name for r in main.loops),
        renames=renames,
        temps=tuple((t, str(state.buffers[t])) for t in sorted(state.pattern.temps) if t in state.buffers),
        conditions=verdict.conditions,
    )


def _names(state: Extension, main: Node) -> dict[int, str]:
    """A distinct name for each axis of the region: the main statement's where it has the axis."""
    names: dict[int, str] = {}
    for p in state.pairs.values():
        if p.node is main:
            names = {k: main.names[a] for a, k in enumerate(p.classes)}
    for k in range(len(state.classes)):
        if k not in names:
            name = state.class_name(k)
            while name in names.values():
                name += "_"
            names[k] = name
    return names


def _operand(state: Extension, operand: str, names: dict[int, str], owner: dict[int, int]) -> OperandMap:
    played = state.buffers[operand]
    if isinstance(played, Literal):
        return OperandMap(operand, "", (), (), (), played.value)
    dims, steps, base = state.dims[operand], state.steps[operand], state.bases[operand]
    index = []
    for r, (row, rest) in enumerate(base):
        terms = [(names[k], c) for k, c in row]
        if r in dims:
            d = dims.index(r)
            terms += [(names[state.axes[c]], n * steps[d]) for c, n in state.pattern.widest[operand].rows[d]]
        index.append(Affine.from_terms(terms) + rest)
    return OperandMap(operand, played, tuple(index), dims, steps)


def _tails(state: Extension) -> tuple[tuple[str, int], ...]:
    """What is left for the last call along an axis, where it is not as much as the others take."""
    out = []
    for name, span, k in zip(state.pattern.axis_names, state.pattern.spans, state.axes, strict=True):
        if state.classes[k].is_constant:
            extent = state.classes[k].const
            block = span.cut(extent)
            if block and extent % block:
                out.append((name, extent % block))
    return tuple(out)
