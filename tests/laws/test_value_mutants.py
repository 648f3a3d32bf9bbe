"""Conditions of laws on values and statements, each edited out of the law's own source: some example then changes its
meaning, is no kernel any more, or cannot even be made."""

from __future__ import annotations

import importlib

import pytest

from isam.ir.text import parse
from isam.ir.verify import verify
from isam.transforms.law import Transform
from tests.laws.examples import HOLDS, REFUSED
from tests.laws.judges import same
from tests.laws.test_examples import rewritten
from tests.laws.test_mutants import mutated

MUTANTS = [
    # file, law, condition, edited
    ("values.distribute", "distribute", "start.sources != (Literal(0),)", "False"),
    ("values.distribute", "distribute", 'inner.op == "add" and ', ""),
    ("values.distribute", "distribute", 'product.op != "mul" or', "len(product.sources) < 2 or"),
    ("values.distribute", "distribute", " or buffer_of(product.sources[1 - k]) == z.buffer", ""),
    ("values.distribute", "distribute", "readers(kernel, z.buffer) != (m,)", "False"),
    ("values.distribute", "distribute", "buffer_of(term) in written_between(kernel, made[1], m)", "False"),
    ("values.distribute", "distribute", "if any(inner.domain.extent(a) != size for", "if any(False for"),
    ("values.nest", "nest-extremum", 'or DTYPES[dtype].kind == "f"', "or True"),
    ("values.nest", "nest-extremum", "s.dest if value is None else Literal(value)", "Literal(value or 0)"),
    ("values.nest", "nest-sum", '"add": 0, "mul": 1', '"add": 0, "mul": 0'),
    ("values.nest", "nest-sum", "not inner & set(w.names)", "True"),
    ("values.join", "join", "number != value", "False"),
    ("values.join", "join", "inner.op != outer.op", "False"),
    ("values.join", "join", "buffer_of(term) in written_between(kernel, made[1], n) | {outer.dest.buffer}", "False"),
    ("values.bilinear", "winograd-2-3", "len(busy) == len(wanted) and ", ""),
    ("values.bilinear", "winograd-2-3", "mine[d] == w for d, w", "set(mine[d]) == set(w) for d, w"),
    ("values.bilinear", "winograd-2-3", "extent.const > 0 and extent.const % size == 0", "extent.const > 0"),
    ("values.bilinear", "winograd-2-3", " or total.domain.where or made.domain.where", ""),
    ("values.identity", "identity-matrix", " and all(a.name not in w.names for w in s.domain.where)", ""),
    ("values.fold", "fold-neutral", 'return b if a == idle and s.op in ("mul", "max", "min")', "return b if a == idle"),
    ("values.fold", "fold-neutral", "if b == idle:", "if b != idle:"),
    ("values.fold", "fold-zero-times", 's.op == "mul" and ZERO', "ZERO"),
    ("values.fold", "fold-chain", "other = outer.sources[1 - position(inner, outer)]", "other = Literal(2)"),
    ("values.casts", "cast-over-extrema", "holds(wide, narrow)", "True"),
    ("values.casts", "cast-over-extrema", "('max', 'min', 'copy')".replace("'", '"'), '("max", "min", "copy", "add")'),
    ("values.casts", "cast-over-product", "holds_products(narrow, d)", "holds(narrow, d)"),
    ("values.casts", "cast-over-product", "2 * _room(a) + (a.kind == \"i\")", "2 * _room(a) - 1"),
    ("values.casts", "join-casts", "if _lossless(kernel, kernel.statements[i])",
     "if kernel.statements[i].op == 'cast'"),
    ("values.casts", "join-casts", "_room(b) >= _room(a)", "_room(b) >= _room(a) - 1"),
    ("values.widen", "widen", ' and DTYPES[wide].kind in "iu"', ""),
    ("values.widen", "widen", " or not all(is_exact(v, narrow) for v in numbers)", ""),
    ("values.rebase", "rebase", '"u8", 128', '"u8", 127'),
    ("values.rebase", "rebase", "sources=(wide, Literal(-more))", "sources=(wide, Literal(more))"),
    ("values.rebase", "rebase", 'role in ("in", "const")', 'role != "temp"'),
    ("values.rebase", "rebase", 'wide.kind == "i" and wide.bits > 8', "True"),
    ("values.split_cast", "split-cast", " and holds(d, ends[1])", ""),
    ("values.split_cast", "split-cast", 'not in ("in", "const")', '== "temp"'),
    ("values.split_cast", "split-cast", ', writers(kernel, b.name)) == ("temp", dtype, (n,))', ') == ("temp", dtype)'),
    ("values.split_cast", "split-cast", "(\"temp\", dtype, (n,))", "(\"temp\", b.dtype, (n,))"),
    ("values.split_cast", "split-cast", " and b.shape == kernel.buffer(given).shape", ""),
    ("values.split_cast", "split-cast", "is_full_box(kernel, s) and", ""),
    ("values.split_cast", "split-cast", "(x.buffer, x.index) != (given, s.dest.index)", "x.buffer != given"),
    ("values.split_cast", "split-cast", "kernel.body[:before]", "kernel.body"),
    ("values.expand", "expand", "Literal(-same.value)", "Literal(same.value)"),
    ("values.expand", "expand", 'op="neg", sources=(same,)', 'op="copy", sources=(same,)'),
    ("values.expand", "expand", "if moves or not total.reduces or", "if not total.reduces or"),
    ("values.expand", "expand", " and product.domain.where)", " and False)"),
    ("values.expand", "expand", "readers(kernel, t.buffer) == (m,)", "True"),
    ("values.expand", "expand", "or buffer_of(w) == t.buffer ", ""),
    ("values.expand", "expand", "return not late & {total.dest.buffer, *written_between(kernel, m, n)}", "return True"),
    ("values.terms", "sum-apart", "Literal(-term.value)", "Literal(term.value)"),
    ("values.terms", "sum-apart", 'op="neg", sources=(x,)', 'op="copy", sources=(x,)'),
    ("values.terms", "sum-apart", 's.op not in ("add", "sub", "neg")', 's.op not in ("add", "sub", "neg", "mul")'),
    ("values.terms", "sum-apart", "[] if only else [(made, (j,))]", "[]"),
    ("values.terms", "sum-apart", 'if s.accumulate and s.op == "add"', "if s.accumulate"),
    ("values.terms", "sum-apart", "return () if lacks else terms", "return terms"),
    ("values.terms", "sum-apart", 'inner[0].op not in ("add", "sub")', "False"),
    ("values.terms", "sum-apart", '(q, inner[0].op == "add")', "(q, True)"),
    ("values.terms", "sum-apart", "if inner[0].op == \"sub\" and", "if False and"),
    ("values.terms", "sum-apart", "used_by(x).union(*(w.names for w in made.domain.where))", "used_by(x)"),
    ("values.terms", "sum-apart", " or not nonnegative(a.extent - 1, kernel.syms)]", "]"),
    ("values.terms", "sum-apart", "if axis_of(row) in kept]", "]"),
    ("values.terms", "negate-sum", " and _is_box(kernel, s)", ""),
    ("values.terms", "negate-sum", 'op == "neg" and', 'op in ("neg", "abs") and'),
    ("values.terms", "negate-sum", '"neg", (z,)', '"copy", (z,)'),
    ("values.terms", "negate-sum", "({j: ()} if only else {})", "{j: ()}"),
    ("values.terms", "negate-sum", 'if s.accumulate and s.op == "add" and s.reduces', "if s.accumulate and s.reduces"),
    ("values.choices", "choice-to-extremum", '"lt": 1', '"lt": 0'),
    ("values.choices", "choice-to-extremum", "pair not in ([yes, no], [no, yes])", "False"),
    ("values.monotone", "pull-scaling", "return 1 if numbers[0] > 0 else -1", "return 1"),
    ("values.monotone", "pull-scaling", "x if isinstance(x, Literal) else Affine() for", "Affine() for"),
    ("values.monotone", "pull-scaling", 's.dest.buffer).dtype].kind == "f"', 's.dest.buffer).dtype].kind != "b"'),
    ("values.monotone", "push-scaling", "return 1 if numbers[0] > 0 else -1", "return 1"),
    ("values.monotone", "push-monotone", '"floor", "ceil"', '"abs", "floor", "ceil"'),
    ("values.exponentials", "exp-of-sum", 'put("neg", b) if inner.op == "sub" else b', "b"),
    ("statements.dead", "dead", "set(readers(kernel, name)) <= set(made)", "True"),
    ("statements.dead", "dead", " or name in touched_between(kernel, i, later)", ""),
    ("statements.dead", "dead", " and name not in {buffer_of(x) for x in s.sources}", ""),
    ("statements.inline", "inline", "buffer_of(x) in written_between(kernel, i, j) | {s.dest.buffer}", "False"),
    ("statements.inline", "inline", 's.op != "copy" or ', ""),
    ("statements.inline", "inline", "if len(made) != 1 or", "if not made or"),
    ("statements.duplicate", "unify", "name not in touches(b)", "True"),
    ("statements.duplicate", "unify", "b.renamed({copy: name}) == a", "True"),
    ("statements.duplicate", "duplicate", "parts[i] = (copy, (s, (i,)))", "parts[i] = ((s, (i,)),)"),
    ("statements.hoist", "hoist", "if a.buffer not in private or any(j not in moved for j in made):",
     "if any(j not in moved for j in made):"),
    ("statements.hoist", "hoist", "if a.buffer not in private or any(j not in moved for j in made):",
     "if a.buffer not in private:"),
    ("statements.hoist", "hoist", "return all(j in moved for j in earlier if name in touches(kernel.statements[j]))",
     "return True"),
    ("statements.hoist", "hoist", " and is_full_box(kernel, first)", ""),
    ("statements.hoist", "hoist", "return alone and", "return"),
    ("statements.hoist", "hoist", "or _counted(s.dest, loop.item.axis.name)", "or True"),
    ("statements.hoist", "hoist", "inside = all(i in loop for i in users)", "inside = True"),
    ("statements.parts", "parts", "Affine.of(part, n) + Affine.of(step)", "Affine.of(part, n)"),
    ("statements.parts", "parts", "Affine.of(self.size) - begin", "Affine.of(self.size) - begin - 1"),
    ("statements.parts", "parts", "begin + Affine.of(left)", "Affine.of(left)"),
    ("statements.parts", "parts", " if alone_in(self.kernel, loop, b)", ""),
    ("statements.split_loop", "split-loop", "Affine.of(block, n) + Affine", "Affine.of(block) + Affine"),
    ("statements.split_loop", "split-loop", " and trip.const % k == 0", ""),
    ("statements.split_loop", "split-loop", "trip.is_constant", "True"),
    ("statements.sink", "sink", "if self.nested and", "if self.nested and not"),
    ("statements.sink", "sink", "if self.nested and", "if False and"),
    ("statements.sink", "sink", "return rest if 0 <= rest.const < part else None", "return rest"),
    ("statements.sink", "sink", "0 <= rest.const", "True"),
    ("statements.sink", "sink", " and extent.const <= part", ""),
    ("statements.sink", "sink", "known = lone(rest) and", "known ="),
    ("statements.sink", "sink", ".role == \"temp\"", ".role != \"in\""),
    ("statements.sink", "sink", "made <= set(self.before) and ", ""),
    ("statements.sink", "sink", "return not changed &", "return True or not changed &"),
    ("statements.sink", "sink", "(*self.before, *self.loop.inside) if j > i", "self.before if j > i"),
    ("statements.sink", "sink", "(*self.before, *self.loop.inside) if j > i", "self.loop.inside if j > i"),
    ("statements.sink", "sink", "x.index[dim] == Affine.of(axis) and", ""),
    ("statements.sink", "sink", " and s.domain.extent(axis) == extent", ""),
    ("statements.sink", "sink", "return into <= self.along.keys() | self.whole and", "return"),
    ("statements.sink", "sink", "for x in (axis, counter) if x in", "for x in (axis,) if x in"),
    ("statements.sink", "sink", "Affine.of(counter, part) + Affine", "Affine"),
    ("statements.carried", "scalar-replacement", "d.is_constant and step * d.const > 0 for", "d.is_constant for"),
    ("statements.carried", "scalar-replacement", "d.is_constant and step * d.const > 0", "step * d.const > 0"),
    ("statements.carried", "scalar-replacement", "step * d.const > 0", "step * d.const >= 0"),
    ("statements.carried", "scalar-replacement", "return all(d.is_constant", "return any(d.is_constant"),
    ("statements.carried", "scalar-replacement", "Affine.of(counter) + 1)", "Affine.of(counter))"),
    ("statements.carried", "scalar-replacement", "in (Affine(), Affine.of", "in (Affine() + 1, Affine.of"),
    ("statements.carried", "scalar-replacement", "and _but(a.index, self.along) == _but(self.index, self.along)", ""),
    ("statements.carried", "scalar-replacement", "if not verify(made.kernel)", ""),
    ("statements.fission", "fission", " and buffer_of(s.sources[1 - k]) != s.dest.buffer", ""),
    ("statements.fission", "fission", "s.op in REDUCTIONS and not s.accumulate",
     's.op in (*REDUCTIONS, "sub") and not s.accumulate'),
    ("statements.fission", "fusion", "if buffer_of(x) in written_between(kernel, i, j):", "if False:"),
    ("statements.fission", "fusion", "where == set(second.domain.where)", "True"),
    ("statements.fission", "fusion", " or set(b) != set(second.domain.names)", ""),
]  # fmt: skip


def law_in(module, name: str) -> Transform:
    """The law of that name among the values and classes of a module."""
    for x in vars(module).values():
        for law in x if isinstance(x, tuple) else (x,):
            if isinstance(law, type) and issubclass(law, Transform) and law.__module__ == module.__name__:
                law = law()
            if isinstance(law, Transform) and law.law == name:
                return law
    raise LookupError(name)


def caught(law: Transform, text: str) -> bool:
    """Does some site of the law change the meaning of the example at some sizes, or leave what is no kernel?"""
    try:
        return any(verify(after) or not same(law, small, after) for _, small, after in rewritten(law, parse(text)))
    except Exception:
        return True


@pytest.mark.parametrize(("file", "name", "old", "new"), MUTANTS, ids=lambda v: str(v)[:24].strip())
def test_a_law_without_one_of_its_conditions_is_caught(file, name, old, new):
    module = importlib.import_module(f"isam.transforms.{file}")
    texts = (*HOLDS[name], *REFUSED[name])
    assert not any(caught(law_in(module, name), t) for t in texts), "the law itself is wrong here"
    assert any(caught(law_in(mutated(file, old, new), name), t) for t in texts)
