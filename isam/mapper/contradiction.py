"""What a contradiction of the search says (MAP-8): one builder per way in which a pair cannot be extended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isam.ir.affine import Affine
from isam.ir.kernel import Kernel, Literal, Statement
from isam.ir.mismatch import Mismatch
from isam.ir.printer import print_statement
from isam.mapper.dataflow import Flow, Form, Node, Pattern, Source
from isam.mapper.report import place, subject, verb
from isam.mapper.rows import step_between
from isam.mapper.spelt import hidden, spelt, written

if TYPE_CHECKING:
    from isam.mapper.pair import Pair


class Contradictions:
    """Builders of mismatches from the state of a search (which :class:`~isam.mapper.extend.Extension` holds)."""

    kernel: Kernel
    flow: Flow
    pattern: Pattern
    pairs: dict[int, Pair]
    buffers: dict[str, str | Literal]
    axes: list[int]
    classes: list[Affine]
    class_origin: list[tuple[Node, int]]
    strided: bool

    @property
    def depth(self) -> int:
        raise NotImplementedError

    def _axis_pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple((self.pattern.axis_names[c], self.class_name(k)) for c, k in enumerate(self.axes) if k >= 0)

    def class_name(self, k: int) -> str:
        node, a = self.class_origin[k]
        return node.names[a]

    def _mismatch(self, kind: str, have: str, need: str, node: Node, plays: Node, /, *, at: Any = None, by: Any = None,
                  **facts: Any) -> Mismatch:  # fmt: skip
        roles = tuple((o, b if isinstance(b, str) else str(b)) for o, b in self.buffers.items())
        axes = self._axis_pairs()
        done = tuple(
            (f"line {p.plays.statement.loc.line}", f"line {p.node.statement.loc.line}")
            for _, p in sorted(self.pairs.items())
            if (p.node is not node or p.plays is not plays or kind != "operation") and not self._unseen(p)
        )
        named = tuple((o, b) for o, b in roles if not (hidden(self.pattern.body, o) or hidden(self.kernel, b)))
        return Mismatch(
            kind=kind, have=have, need=need,
            kernel_loc=place(at if at is not None else node.statement, node.statement),
            instruction_loc=place(by if by is not None else plays.statement, plays.statement),
            instruction=self.pattern.instruction.name, depth=self.depth, partial=done + named + axes,
            subject=subject(statement=node.index, instruction_statement=plays.index, roles=roles, axes=axes, **facts),
        )  # fmt: skip

    def has(self, s: Statement) -> str:
        """A statement of the kernel, as it was written."""
        return spelt(s, self.kernel)

    def needs(self, s: Statement) -> str:
        """A statement of the instruction, as it was written."""
        return spelt(s, self.pattern.body)

    def _unseen(self, p: Pair) -> bool:
        """Whether a pair of statements makes a value that one of the texts does not name, or has no place."""
        made = hidden(self.pattern.body, p.plays.dest.buffer) or hidden(self.kernel, p.node.dest.buffer)
        return made or not (p.plays.statement.loc.line and p.node.statement.loc.line)

    def _does(self) -> tuple[tuple[str, bool], ...]:
        return tuple(dict.fromkeys((n.statement.op, n.statement.accumulate) for n in self.pattern.flow.nodes))

    def operation(self, plays: Node, node: Node) -> Mismatch:
        want, have = plays.statement, node.statement
        after = max((p.node.index for p in self.pairs.values()), default=None)
        return self._mismatch(
            "operation",
            f"a statement that {verb(have.op, have.accumulate)} here: {self.has(have)}",
            f"one that {verb(want.op, want.accumulate)}: {self.needs(want)}",
            node, plays, need=(want.op, want.accumulate), have=(have.op, have.accumulate), after=after,
            does=self._does(),
        )  # fmt: skip

    def absent(self, plays: Node, node: Node) -> Mismatch:
        """No statement is left that could play ``plays``; ``node`` is the one paired last."""
        return self._mismatch(
            "operation", f"nothing else that touches the arrays of {self.has(node.statement)}",
            f"another statement: {self.needs(plays.statement)}", node, plays,
            need=(plays.statement.op, plays.statement.accumulate),
        )  # fmt: skip

    def interrupted(self, plays: Node, node: Node) -> Mismatch:
        return self._mismatch(
            "domain", f"{self.has(node.statement)}, with another write in between or in another order",
            f"{self.needs(plays.statement)} directly after what it depends on", node, plays, relation="between",
        )  # fmt: skip

    def literal(self, pair: Pair, want: Source, have: Source) -> Mismatch:
        w = want.access if isinstance(want, Form) else want
        h = have.access if isinstance(have, Form) else have
        need = f"the number {w}" if isinstance(w, Literal) else f"an operand {w} that is an array or its own number"
        if isinstance(want, Form) and want.rank == 0 and isinstance(have, Literal):
            need = f"the same number for {w} everywhere ({self.buffers.get(want.buffer)})"
        got = f"the number {h}" if isinstance(h, Literal) else f"{h}"
        return self._mismatch(
            "literal", got, need, pair.node, pair.plays, at=h, by=w, swapped=pair.swapped or None,
            operand=want.buffer if isinstance(want, Form) else None,
            buffer=have.buffer if isinstance(have, Form) else None,
            need=w.value if isinstance(w, Literal) else None, have=h.value if isinstance(h, Literal) else None,
            rank=want.rank if isinstance(want, Form) else None,
        )  # fmt: skip

    def two_roles(self, pair: Pair, want: Form, have: Form, bound: str | Literal) -> Mismatch:
        return self._mismatch(
            "aliasing", f"{have.buffer} in its place",
            f"the same array for {want.buffer} in both places, which is {bound}",
            pair.node, pair.plays, at=have.access, by=want.access, operand=want.buffer, buffer=have.buffer,
            need=str(bound), have=have.buffer, swapped=pair.swapped or None,
        )  # fmt: skip

    def escapes(self, pair: Pair, want: Form, have: Form) -> Mismatch:
        region = {p.node.index for p in self.pairs.values()} | {pair.node.index}
        nodes = self.flow.nodes
        role = self.kernel.buffer(have.buffer).role
        outside = sorted(self.flow.touching(have.buffer) - region)
        expected = len(self.pattern.flow.touching(want.buffer))
        value = written(have.access, self.kernel)
        if role != "temp":
            got = f"{have.buffer}, which the caller sees ({role})"
        elif len(outside) + len(region) > expected and outside:
            got = f"{value}, which {self.has(nodes[outside[-1]].statement)} also uses"
        else:
            got = f"{value}, which plays another part"
        need = f"a temporary {want.buffer} that nothing outside the region uses"
        if (made := written(want.access, self.pattern.body)) != want.buffer:
            need = f"{made} there, made in the same call for nothing else"
        if not self.pattern.body.buffer(want.buffer).declared:
            need, got = self._goes_on(pair.plays, want) or need, self._ends(pair.node, have, role) or got
        return self._mismatch(
            "escapes", got, need,
            nodes[outside[-1]] if outside and role == "temp" else pair.node, pair.plays, by=want.access,
            operand=want.buffer, buffer=have.buffer, outside=tuple(outside), does=self._does(),
        )  # fmt: skip

    def _goes_on(self, plays: Node, want: Form) -> str:
        """What the instruction does with a value that it never names, the value written out."""
        made, _, value = print_statement(plays.statement).partition(" = ")
        users = [self.pattern.flow.nodes[i].statement for i in sorted(self.pattern.flow.touching(want.buffer))]
        then = next((s for s in users if str(s.dest) != made), None)
        if not value or then is None or made not in print_statement(then):
            return ""
        return f"to go on in the same call, with {self.needs(then)}"

    def _ends(self, node: Node, have: Form, role: str) -> str:
        """Where the kernel's statement is the last of its value: the caller gets it."""
        if role == "temp":
            return ""
        return f"{self.has(node.statement)}, which ends there: {have.buffer} is what the caller sees ({role})"

    def dtype(self, pair: Pair, want: Form, have: Form, need: str, got: str) -> Mismatch:
        return self._mismatch(
            "dtype", f"{written(have.access, self.kernel)}: {got}",
            f"{written(want.access, self.pattern.body)}: {need}", pair.node, pair.plays, at=have.access,
            by=want.access, operand=want.buffer, buffer=have.buffer, need=need, have=got,
            swapped=pair.swapped or None,
        )  # fmt: skip

    def unlinked(self, pair: Pair) -> Mismatch:
        return self._mismatch(
            "domain", f"{self.has(pair.node.statement)}, which touches other elements than the statements before it",
            f"{self.needs(pair.plays.statement)} on the same elements", pair.node, pair.plays, relation="elements",
        )  # fmt: skip

    def unsized(self, pair: Pair, name: str) -> Mismatch:
        return self._mismatch("extent", "no one value for it", f"one value for its size {name}", pair.node, pair.plays)

    def column(self, pair: Pair, c: int, a: int) -> Mismatch:
        """Axis ``a`` was to play ``c`` and one access disagrees: the first one says how."""
        for want, have in pair.forms:
            if isinstance(want, Form) and not self._same_column(want, have, c, a):
                return self._column_of(pair, want, have, c, a)
        raise AssertionError("the columns agree")

    def _same_column(self, want: Form, have: Source, c: int, a: int) -> bool:
        w, h = want.signs[c], have.signs[a] if isinstance(have, Form) else ()
        if want.buffer in self.pattern.loose:
            return bool(w) == bool(h)
        return len(w) == len(h) if self.strided else w == h

    def _column_of(self, pair: Pair, want: Form, have: Source, c: int, a: int) -> Mismatch:
        name, axis = self.pattern.axis_names[c], pair.node.names[a]
        facts: dict[str, Any] = {"operand": want.buffer, "instruction_axis": name, "axis": axis}
        facts["swapped"] = pair.swapped or None
        if not isinstance(have, Form):
            return self._mismatch("axis-missing", f"the number {have}, which no axis indexes",
                                  f"{want.access} to depend on {name}", pair.node, pair.plays, at=have, by=want.access,
                                  rank=want.rank, **facts)  # fmt: skip
        facts["buffer"] = have.buffer
        w, h = want.signs[c], have.signs[a]
        if w and not h:
            return self._mismatch(
                "axis-missing", f"{have.access}, which does not depend on axis {axis}",
                f"{want.access} to depend on axis {name}", pair.node, pair.plays, at=have.access, by=want.access,
                lacking=(want.buffer,), **facts,
            )  # fmt: skip
        if len(h) < len(w):
            return self._mismatch(
                "axis-missing", f"{have.access}, in which axis {axis} indexes {len(h)} dimension(s)",
                f"{want.access}, in which axis {name} indexes {len(w)}", pair.node, pair.plays, at=have.access,
                by=want.access, lacking=(want.buffer,), **facts,
            )  # fmt: skip
        row, coefficient = have.cols[a][0]
        if w and len(w) == len(h):
            need = want.cols[c][0][1]
            return self._mismatch(
                "coefficient", f"coefficient {coefficient} of axis {axis} in row {row} ({have.access.index[row]}) of "
                f"{have.access}", f"coefficient {need} of axis {name} in {want.access}", pair.node, pair.plays,
                at=have.access, by=want.access, row=row, need=need, have=coefficient, **facts,
            )  # fmt: skip
        elsewhere = [f.buffer for w2, f in pair.forms if f is not have and isinstance(w2, Form) and isinstance(f, Form)
                     and w2.signs[c] and f.signs[a] and w2.buffer not in self.pattern.temps]  # fmt: skip
        also = f", and is also an index of {' and '.join(dict.fromkeys(elsewhere))}" if elsewhere else ""
        if w:
            row, coefficient = have.cols[a][1]
            also = f", a second row that does{also}"
        return self._mismatch(
            "extra-dependence",
            f"row {have.access.index[row]} (dimension {row}) of {have.access}, which depends on axis {axis}{also}",
            f"an operand {want.access} that does not depend on axis {name}" if not w else
            f"an operand {want.access} in which axis {name} indexes {len(w)} dimension", pair.node, pair.plays,
            at=have.access, by=want.access, row=row, have=coefficient, **facts,
        )  # fmt: skip

    def no_axis(self, pair: Pair, c: int, options: list[tuple[int, int, list[int]]]) -> Mismatch:
        """Nothing can play ``c``: names the axis that comes nearest, or says that no axis is left."""
        name = self.pattern.axis_names[c]
        spoken = {free[0] for _, d, free in options if d != c and len(free) == 1}
        near = [a for a in pair.node.axes if pair.classes[a] < 0]
        wrong = {a: [(w, h) for w, h in pair.forms if isinstance(w, Form) and not self._same_column(w, h, c, a)]
                 for a in near}  # fmt: skip
        for a in near:  # the same arrays, another coefficient: only the step is in the way
            if wrong[a] and all(_column_kind(w, h, c, a) == "coefficient" for w, h in wrong[a]):
                return self._column_of(pair, *wrong[a][0], c, a)
        operands = tuple(dict.fromkeys(w.buffer for w, _ in pair.forms if isinstance(w, Form) and w.signs[c]))
        real = tuple(o for o in operands if o not in self.pattern.temps)
        told = dict.fromkeys(written(w.access, self.pattern.body) for w, _ in pair.forms
                             if isinstance(w, Form) and w.buffer in (real or operands))  # fmt: skip
        shared = [a for a in pair.node.axes if operands and self._fits(pair, c, a)]
        if shared:  # one axis for two: it could be split
            return self._mismatch(
                "axis-missing", f"axis {pair.node.names[shared[0]]} in {self.has(pair.node.statement)}, needed for "
                f"another axis already", f"an axis {name} of its own that indexes {' and '.join(told)}",
                pair.node, pair.plays, instruction_axis=name, axis=pair.node.names[shared[0]], lacking=operands,
                swapped=pair.swapped or None,
            )  # fmt: skip
        near = [a for a in near if a not in spoken]
        if near and len(pair.node.axes) >= len(pair.plays.axes):
            a = min(near, key=lambda x: (len(wrong[x]) or 9, x))
            if wrong[a]:
                there = (x for x in wrong[a] if _column_kind(*x, c, a) != "axis-missing")
                return self._column_of(pair, *next(there, wrong[a][0]), c, a)
        return self._mismatch(
            "axis-missing", f"no axis left in {self.has(pair.node.statement)} that could play {name}",
            f"an axis {name} that indexes {' and '.join(told) or 'nothing'}", pair.node, pair.plays,
            instruction_axis=name, lacking=operands, swapped=pair.swapped or None,
        )  # fmt: skip

    def _fits(self, pair: Pair, c: int, a: int) -> bool:
        """Would axis ``a`` play ``c`` if nothing else did?"""
        return all(self._same_column(w, h, c, a) for w, h in pair.forms if isinstance(w, Form))

    def mixed_row(self, pair: Pair, c: int, a: int) -> Mismatch:
        """With column ``a`` for ``c`` the chosen rows of some operand are not the instruction's rows."""
        for want, have in pair.forms:
            if isinstance(want, Form) and isinstance(have, Form) and want.buffer not in self.pattern.loose:
                found = self._row_conflict(pair, want, have, c, a)
                if found is not None:
                    return found
        return self._mismatch(
            "extra-dependence", f"{self.has(pair.node.statement)}, whose rows combine their axes differently",
            self.needs(pair.plays.statement), pair.node, pair.plays, instruction_axis=self.pattern.axis_names[c],
            axis=pair.node.names[a],
        )  # fmt: skip

    def no_rows(self, pair: Pair, want: Form, have: Form) -> Mismatch:
        """No choice of rows of one operand, or not the one agreed before."""
        if want.buffer not in self._placed():
            found = self._row_conflict(pair, want, have, None, None)
            if found is not None:
                return found
        return self._mismatch(
            "aliasing", f"{have.access}, which is another block than before",
            f"{want.access}, the same block as before",
            pair.node, pair.plays, at=have.access, by=want.access, operand=want.buffer, buffer=have.buffer,
        )  # fmt: skip

    def _row_conflict(self, pair: Pair, want: Form, have: Form, c: int | None, a: int | None) -> Mismatch | None:
        """The first chosen row that has no counterpart: axes that share it and should not, or the other way round."""
        owner = {k: i for i, k in enumerate(self.axes) if k >= 0}
        played = {x: owner[k] for x, k in enumerate(pair.classes) if k in owner}
        back = {i: x for x, i in played.items()}
        shape = [{i: n for i, n in row if i in back} for row in want.rows]
        for r, row in enumerate(have.rows):
            mine = {played[x]: n for x, n in row if x in played}
            like = [w for w in shape if w.keys() == mine.keys()]
            if not mine or any(step_between(w, mine, self.strided) for w in like):
                continue
            facts: dict[str, Any] = {"operand": want.buffer, "buffer": have.buffer, "row": r}
            facts["axis"] = pair.node.names[a if a is not None else back[min(mine)]]
            facts["instruction_axis"] = self.pattern.axis_names[c if c is not None else min(mine)]
            facts["swapped"] = pair.swapped or None
            kind = "coefficient" if like else "extra-dependence"
            if like:
                i = next(i for i, n in like[0].items() if n != mine[i])
                facts.update(axis=pair.node.names[back[i]], instruction_axis=self.pattern.axis_names[i],
                             need=like[0][i], have=mine[i])  # fmt: skip
            elif len(mine) == 1:
                facts["shares"] = True
            axes = [f"{n}*{pair.node.names[back[i]]}" if n != 1 else pair.node.names[back[i]] for i, n in mine.items()]
            need = " and ".join(self.pattern.axis_names[i] for i in mine)
            if like:
                wanted = f"other coefficients there: {want.access}"
            elif len(mine) > 1:
                wanted = f"separate rows for {need} in {want.access}"
            else:
                wanted = f"{want.access}, in which {need} shares its row"
            return self._mismatch(
                kind, f"row {have.access.index[r]} (dimension {r}) of {have.access}, which depends on "
                f"{' and '.join(axes)}{' together' if len(mine) > 1 else ' alone'}", wanted, pair.node, pair.plays,
                at=have.access, by=want.access, **facts,
            )  # fmt: skip
        if have.rank < want.rank:
            return self._mismatch(
                "extra-dependence", f"{have.access} with {have.rank} dimension(s)", f"{want.access} with {want.rank}",
                pair.node, pair.plays, at=have.access, by=want.access, operand=want.buffer, buffer=have.buffer,
            )  # fmt: skip
        return None

    def _placed(self) -> set[str]:
        return set(getattr(self, "dims", ()))


def _column_kind(want: Form, have: Source, c: int, a: int) -> str:
    """What :meth:`Contradictions._column_of` will say, without saying it."""
    w, h = want.signs[c], have.signs[a] if isinstance(have, Form) else ()
    if len(h) < len(w):
        return "axis-missing"
    return "coefficient" if w and len(w) == len(h) else "extra-dependence"
