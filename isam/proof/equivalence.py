"""Whether two kernels compute the same, for all inputs and all admitted sizes: the judge of every rewriting.

Both are executed on values (:mod:`isam.proof.execution`) and what they leave in their outputs is compared. Recurrent
loops are compared as loops: the buffers that are equal before each step, and stay equal by it, are found by taking
away those that do not. The answer is "equal", with the numerics that the argument used, or a reason why it was not
shown; "not shown" counts as "not equal".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Buffer, Item, Kernel, Literal, Recurrence, Source, Statement, statements_in
from isam.ir.poly import Set, make
from isam.ir.relation import Region, Rel, TooMuch, bounded
from isam.ir.verify import verify
from isam.once import know, once
from isam.proof.execution import Execution, Memory, shared_buffers, written_in
from isam.proof.local import between, cutpoints
from isam.proof.operations import Licence, Operations
from isam.proof.parted import in_blocks, parted
from isam.proof.reached import reached
from isam.proof.value import Ring, Value
from isam.proof.viewed import in_rows

ROUNDS = 12  # times a loop's bodies are compared, less taken for equal each time; then it is not shown
UNWRITTEN = ("V420", "V421")  # an output left as it was is compared as such
Question = tuple[object, ...]
Answers = dict[Question, tuple[str, ...]]
LICENCES = (Licence(free=False), Licence(free=False, scaled=True),
            *(Licence(finite=f, scaled=s) for f in (False, True) for s in (False, True)))  # fmt: skip
"""From the least that may be used to the most."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``equal``: it was shown. ``numerics``: what the argument used of floats. ``why``: what was not shown."""

    equal: bool
    numerics: tuple[str, ...] = ()
    why: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        if self.equal:
            return f"equal ({', '.join(self.numerics) or 'exact'})"
        return f"undecided: {'; '.join(self.why)}"


class Equivalence:
    """Compares kernels of one chain. Remembers what it computed from one comparison to the next."""

    def __init__(self) -> None:
        self._executions: dict[tuple[object, ...], Execution] = {}
        self._answers: Answers = {}

    def judge(self, before: Kernel, after: Kernel, claimed: Sequence[str] = ("exact",)) -> Verdict:
        """``claimed``: the numerics that the step says it needs; less is tried only where it claims none.

        What the user of ``before`` does not permit is never used.
        """
        self._answers = _answers(before)
        know(_answers, after, self._answers)
        before = parted(before, after)
        faults = _faults(before) or _faults(after)
        after = in_blocks(after, before)
        faults = faults or _faults(after)
        if not faults:
            before, after = in_rows(before, after)
        faults = _differences(before, after) or faults
        if faults:
            return Verdict(False, (), tuple(faults))
        licences = LICENCES if _reals(before) or _reals(after) else LICENCES[:1]  # they say something of floats alone
        allowed = [x for x in licences if permitted(before, x)]
        if set(claimed) - {"exact", "integers"}:
            allowed = [x for x in allowed if x.free] or allowed
        why: tuple[str, ...] = ()
        for licence in allowed:
            why = self._try(before, after, licence)
            if not why:
                return Verdict(True, licence.uses if _floats(before) else ())
        for licence in licences:
            if not permitted(before, licence) and not self._try(before, after, licence):
                missing = ", ".join(n for n in licence.uses if n not in granted_numerics(before))
                return Verdict(False, (), (f"equal only with numerics that the kernel does not permit: {missing}",))
        return Verdict(False, (), why)

    def _try(self, before: Kernel, after: Kernel, licence: Licence) -> tuple[str, ...]:
        whole = (before, after, frozenset[str]())
        part = between(before, after) or whole
        sums = tuple(tuple(statements_in(k.body)) for k in part[:2])
        cut = next(cutpoints(*sums), None) is not None
        if (cut and not self._asked(*part, licence, cut)) or (part is not whole and not self._asked(*part, licence)):
            return ()
        return self._asked(*whole, licence)

    def _asked(
        self, a: Kernel, b: Kernel, seen: frozenset[str], licence: Licence, cut: bool = False
    ) -> tuple[str, ...]:
        """As :meth:`_Pair.differences`, looked for once."""
        asked = (*_question(a, b, seen, licence), cut)
        if asked in self._answers:
            return self._answers[asked]
        key = (licence, a.syms)
        if key not in self._executions:
            self._executions[key] = Execution(Operations(licence), a.syms)
        execution = self._executions[key]
        found = _Pair(execution, a, b, cut).differences(seen)
        self._answers[asked] = found
        if not execution.operations.met:
            self._answers[replace(licence, scaled=not licence.scaled), *asked[1:]] = found
        return found


def equivalent(before: Kernel, after: Kernel) -> Verdict:
    """One comparison by itself."""
    return Equivalence().judge(before, after)


@once
def _faults(kernel: Kernel) -> list[str]:
    """What makes a kernel none at all: indices out of range, elements read before they are written, ..."""
    return [f"not a kernel: {d.message}" for d in verify(kernel) if d.code not in UNWRITTEN]


@once
def _answers(kernel: Kernel) -> Answers:
    """What was not shown of a kernel and of those that it became, by question, kept with them: chains that begin with
    the same kernel share steps."""
    return {}


def _question(a: Kernel, b: Kernel, seen: frozenset[str], licence: Licence) -> Question:
    """All that what :meth:`_Pair.differences` says depends on. A buffer that is the same on both sides and that neither
    touches does not count."""
    touched = {x.buffer for k in (a, b) for s in k.statements for x in (s.dest, *s.reads)}
    names = seen or {x.name for x in a.arguments}
    names = {n for n in names if n in touched or a.by_name.get(n) != b.by_name.get(n)}
    buffers = tuple((n, k.by_name.get(n)) for n in sorted(names | touched) for k in (a, b))
    return licence, a.syms, a.body, b.body, buffers, frozenset(names)


def granted_numerics(kernel: Kernel) -> frozenset[str]:
    """The numerics that the user of a kernel permits."""
    free = "reassociate" in kernel.permits and "exact" not in kernel.permits
    return frozenset({"exact", "integers"} | ({"reassociates", "rounding"} if free else set())
                     | ({"finite"} if "finite" in kernel.permits else set()))  # fmt: skip


def permitted(kernel: Kernel, licence: Licence) -> bool:
    return set(licence.uses) <= granted_numerics(kernel)


def _floats(kernel: Kernel) -> bool:
    return any(b.dtype in ("f64", "f32", "f16", "bf16") for b in kernel.buffers)


def _reals(kernel: Kernel) -> bool:
    """Whether there are floats: in buffers, or as numbers."""
    sources = (x for s in kernel.statements for x in s.sources)
    return _floats(kernel) or any(isinstance(x, Literal) and isinstance(x.value, float) for x in sources)


def _differences(a: Kernel, b: Kernel) -> list[str]:
    """What a caller, or the user's permissions, would see."""
    out = []
    if a.arguments != b.arguments:
        out.append("the arguments differ")
    if a.syms != b.syms:
        out.append("the sizes differ")
    if a.permits != b.permits:
        out.append("the permissions differ")
    return out


@dataclass(slots=True)
class _Pair:
    """Two kernels executed side by side. ``cut``: what follows sums that are the same does not know what they are."""

    execution: Execution
    a: Kernel
    b: Kernel
    cut: bool = False

    def differences(self, seen: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """What was not shown to be the same: of the results, or of the buffers ``seen``."""
        one, two = self.execution.start(self.a), self.execution.start(self.b)
        try:
            self._bodies(self.a.body, self.b.body, one, two, (), "")
        except TooMuch as e:
            return (str(e),)
        names = sorted(seen) or [b.name for b in self.a.arguments]
        out = [f"'{n}' was not shown to be the same" for n in names if not self._equal(one[n], two[n])]
        return tuple(out + [f"{at}: {why}" for at, why in self.execution.notes.items()] if out else out)

    def _equal(self, a: Value, b: Value) -> bool:
        if a.serial == b.serial:
            return True
        try:
            return bounded(lambda: self.execution.operations.numbers.ring.equal(a, b))
        except TooMuch:
            return False

    def _bodies(
        self, a: Sequence[Item], b: Sequence[Item], one: Memory, two: Memory, loops: tuple[Recurrence, ...], place: str
    ) -> None:
        """Straight runs of statements, then the loops after them, pair by pair."""
        first, second = _segments(a), _segments(b)
        if len(first) != len(second):
            raise TooMuch("the kernels have different recurrent loops")
        for k, ((items, loop), (others, other)) in enumerate(zip(first, second, strict=True)):
            self._straight(items, others, one, two, loops, f"{place}.{k}")
            if loop is not None and other is not None:
                self._loop(loop, other, one, two, loops, f"{place}.{k}")

    def _straight(
        self, a: Sequence[Item], b: Sequence[Item], one: Memory, two: Memory, loops: tuple[Recurrence, ...], place: str
    ) -> None:
        """Statements without a loop among them."""
        done = (0, 0)
        alike = shared_buffers(self.a, self.b)
        for i, j, name in cutpoints(a, b) if self.cut else ():
            if name in alike:
                self.execution.run(a[done[0] : i], one, self.a, loops)
                self.execution.run(b[done[1] : j], two, self.b, loops)
                done = i, j
                if self._equal(one[name], two[name]):
                    one[name] = two[name] = self.execution.unknown(f"cut {place} {name}", alike[name])
        self.execution.run(a[done[0] :], one, self.a, loops)
        self.execution.run(b[done[1] :], two, self.b, loops)

    def _loop(
        self, a: Recurrence, b: Recurrence, one: Memory, two: Memory, loops: tuple[Recurrence, ...], path: str
    ) -> None:
        if a.axis != b.axis:
            raise TooMuch("the recurrent loops have different trips or counters")
        own = written_in(a.body) | written_in(b.body)
        alike = {n for n in own & shared_buffers(self.a, self.b).keys() if self._equal(one[n], two[n])}
        laid = self._laid(own, one, two)
        laid += [x for x in self._twins(a, b, one, two) if x.name not in {y.name for y in laid}]
        moving = [x for x in self._moving(a, b, loops) if self._equal(*x.at(Affine()).sides(one, two, self._ring))]
        laid = [x for x in laid if x.name not in {y.name for y in moving}] + moving
        before, behind = Affine.of(a.axis.name), Affine.of(a.axis.name) + 1
        step = make((), [before, a.axis.extent - behind])
        for _ in range(ROUNDS):
            now = [x.at(before, step) for x in laid]
            left, right = self._unknown((one, two), (a, b), alike, now, f"step {path}")
            self._bodies(a.body, b.body, left, right, (*loops, a), path)
            still = {n for n in alike if self._equal(left[n], right[n])}
            holds = [x for x in laid if self._equal(*x.at(behind, step).sides(left, right, self._ring))]
            if still == alike and len(holds) == len(laid):
                break
            alike, laid = still, holds
        else:
            raise TooMuch("the steps of a loop were not related")
        last = [x.after(a.axis.extent) for x in laid]
        after = self._unknown((one, two), (a, b), alike, last, f"after {path}", whole=True)
        for memory, new in zip((one, two), after, strict=True):
            memory.update(new)

    @property
    def _ring(self) -> Ring:
        return self.execution.operations.numbers.ring

    def _laid(self, mine: set[str], one: Memory, two: Memory) -> list[Laid]:
        """Buffers that only one kernel has and that hold, before the loop, what a buffer of the other holds."""
        out: list[Laid] = []
        for own, other, theirs, flip in ((two, one, self.a, False), (one, two, self.b, True)):
            for n in sorted(mine & own.keys() - theirs.by_name.keys()):
                for m in sorted(mine & other.keys()):
                    path = self._path(own[n], other[m])
                    if path is not None:
                        out.append(Laid(n, m, path, flip))
        return out

    def _twins(self, a: Recurrence, b: Recurrence, one: Memory, two: Memory) -> list[Laid]:
        """Buffers that only one kernel has, and that its loop writes as the other one's loop writes a buffer that holds
        the same before: made twice, in the same layout."""
        out: list[Laid] = []
        for mine, own, theirs, other, flip in ((b, two, a, one, False), (a, one, b, two, True)):
            written = {n: _writes(mine.body, n, "") for n in written_in(mine.body) - other.keys()}
            known = {m: _writes(theirs.body, m, "") for m in sorted(written_in(theirs.body))}
            for n, lines in sorted(written.items()):
                m = next((m for m, same in known.items() if same == lines and self._alike(own[n], other[m])), None)
                if m is not None:
                    out.append(Laid(n, m, own[n].over.identity(), flip))
        return out

    def _moving(self, a: Recurrence, b: Recurrence, loops: tuple[Recurrence, ...]) -> Iterator[Laid]:
        """Buffers that only one kernel has, of which a step copies to or from one that both have: what they hold behind
        a step, said for the one that comes next."""
        counter, shared = a.axis.name, shared_buffers(self.a, self.b).keys()
        around = tuple((r.axis.name, r.axis.extent) for r in loops)
        for loop, flip in ((b, False), (a, True)):
            for s in loop.body:
                if not isinstance(s, Statement) or s.op != "copy" or not isinstance(x := s.sources[0], Access):
                    continue
                mine, other = (x, s.dest) if s.dest.buffer in shared else (s.dest, x)
                if mine.buffer in shared or other.buffer not in shared:
                    continue
                over, names = self.execution.points(s, around), s.domain.names
                path = Rel.affine(names, mine.index, over).inverse().then(Rel.affine(names, other.index, over))
                if path.is_function():
                    yield Laid(mine.buffer, other.buffer, path.put(counter, Affine.of(counter) - 1), flip, counter)

    def _alike(self, a: Value, b: Value) -> bool:
        same = a.over.rank == b.over.rank and a.over.inside(b.over) and b.over.inside(a.over)
        return same and a.modulus == b.modulus and self._equal(a, b)

    def _path(self, own: Value, other: Value) -> Rel | None:
        """The one element of the other buffer that an element of this one equals, where there is one for all of the
        other's: this one may have others beside."""
        try:
            path = bounded(lambda: self._ring.agreement(own, other))
        except TooMuch:
            return None
        return path if path.is_function() and other.over.inside(path.range()) else None

    def _unknown(
        self, before: tuple[Memory, Memory], loops: tuple[Recurrence, Recurrence], alike: set[str],
        laid: Sequence[Laid], label: str, whole: bool = False,
    ) -> tuple[Memory, Memory]:  # fmt: skip
        """What the buffers hold at some step (``whole``: after the last): the same on both sides where that was shown.
        Elements that no step has written are what they were."""
        written = tuple(reached(loop, self.a.syms, whole) for loop in loops)
        out: list[Memory] = []
        for k, (kernel, memory) in enumerate(zip((self.a, self.b), before, strict=True)):
            new = dict(memory)
            for n in (written[k].keys() | (alike & (written[0].keys() | written[1].keys()))) & kernel.by_name.keys():
                sides = written if n in alike else written[k : k + 1]
                points = reduce(Region.__or__, [w[n] for w in sides if n in w])
                side = "" if n in alike else ("first ", "second ")[k]
                new[n] = self._overwritten(memory[n], points, f"{label} {side}{n}", kernel.by_name[n])
            out.append(new)
        one, two = out
        for x in laid:
            memory, source = (one, two) if x.flip else (two, one)
            beside = self._ring.off(memory[x.name], x.path.domain())
            memory[x.name] = self._ring.joined(beside, self._ring.through(x.path, source[x.of]))
        return one, two

    def _overwritten(self, old: Value, points: Region, label: str, b: Buffer) -> Value:
        """The buffer with unknown contents at some elements."""
        made = self.execution.unknown(label, b)
        if old.over.inside(points):
            return made
        return self._ring.joined(self._ring.off(old, points), self._ring.on(made, points))


@dataclass(frozen=True, slots=True)
class Laid:
    """The second kernel's buffer ``name`` is the first's buffer ``of`` in another layout, where ``path`` says so
    (``flip``: the other way), before the step of a loop that its ``counter`` tells."""

    name: str
    of: str
    path: Rel
    flip: bool
    counter: str = ""

    def at(self, now: Affine, given: Set | None = None) -> Laid:
        """Before another step, where it is ``given`` that there is one."""
        if not self.counter:
            return self
        path = self.path.put(self.counter, now)
        return replace(self, path=path if given is None else path.given(given))

    def after(self, trip: Affine) -> Laid:
        """After all steps: before the first one still, where the trip is less than 0."""
        if not self.counter:
            return self
        some, none = self.at(trip, make((), [trip])), self.at(Affine(), make((), [-trip - 1]))
        return replace(self, path=some.path | none.path)

    def sides(self, one: Memory, two: Memory, ring: Ring) -> tuple[Value, Value]:
        memory, source = (one, two) if self.flip else (two, one)
        return ring.on(memory[self.name], self.path.domain()), ring.through(self.path, source[self.of])


def _segments(items: Sequence[Item]) -> list[tuple[list[Item], Recurrence | None]]:
    out: list[tuple[list[Item], Recurrence | None]] = [([], None)]
    for it in items:
        if isinstance(it, Recurrence):
            out[-1] = (out[-1][0], it)
            out.append(([], None))
        else:
            out[-1][0].append(it)
    return out


def _writes(items: Sequence[Item], name: str, now: str) -> list[Statement]:
    """The statements that write the buffer ``name``, in order, with that called ``now``."""

    def renamed(x: Source) -> Source:
        return replace(x, buffer=now) if isinstance(x, Access) and x.buffer == name else x

    out: list[Statement] = []
    for it in items:
        if isinstance(it, Recurrence):
            out += _writes(it.body, name, now)
        elif it.dest.buffer == name:
            out.append(replace(it, dest=replace(it.dest, buffer=now), sources=tuple(map(renamed, it.sources))))
    return out
