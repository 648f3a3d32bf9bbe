"""What a mutant is: one edit of the syntax tree of one function."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

FLIPS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
TURNED = {"min": "max", "max": "min", "any": "all", "all": "any"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """``function``: its qualified name; ``number``: which of that function's edits, in a fixed order; ``statement``:
    the innermost one that is edited, of :func:`statements`."""

    file: str
    function: str
    number: int
    statement: int
    what: str

    def __str__(self) -> str:
        return f"{self.file} {self.function}: {self.what}"


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Functions of the module and methods of its classes; what is nested in one belongs to it."""
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, Function):
                    yield f"{node.name}.{inner.name}", inner


def statements(function: Function) -> list[ast.stmt]:
    """Every statement in a function, outer ones before those in them."""
    return [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function]


def mutants(path: Path, name: str) -> list[Mutant]:
    """Every mutant of a file, in order."""
    out: list[Mutant] = []
    for function, node in functions(ast.parse(path.read_text(encoding="utf-8"))):
        said: Counter[str] = Counter()
        for n, (statement, what, _) in enumerate(_edits(node) if node.name not in ("__str__", "__repr__") else ()):
            said[what] += 1
            again = f" #{said[what]}" if said[what] > 1 else ""
            out.append(Mutant(name, function, n, statement, what + again))
    return out


def mutated(path: Path, mutant: Mutant) -> ast.Module:
    """The file's tree with the edit made."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    node = next(f for name, f in functions(tree) if name == mutant.function)
    _, _, edit = list(_edits(node))[mutant.number]
    edit()
    return ast.fix_missing_locations(tree)


def marked(path: Path, mark: Callable[[str, int], str]) -> ast.Module:
    """The file's tree with a mark in front of every statement of its functions, by function and number."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name, function in functions(tree):
        number = {id(s): n for n, s in enumerate(statements(function))}
        for parent in list(ast.walk(function)):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(parent, field, None)
                if isinstance(block, list):
                    block[:] = [x for s in block for x in (*ast.parse(mark(name, number[id(s)])).body, s)]
    return ast.fix_missing_locations(tree)


def _edits(function: Function) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """Every edit of a function as (statement, what, how): ``how()`` makes it, in place."""
    silent = _words(function)
    inside = {id(x): n for n, s in enumerate(statements(function)) for x in ast.walk(s)}  # the innermost is last
    for parent in ast.walk(function):
        for field, value in ast.iter_fields(parent):
            for at, node in enumerate(value) if isinstance(value, list) else ((None, value),):
                if isinstance(node, ast.AST) and id(node) not in silent:
                    for what, new in _changes(node):
                        yield inside[id(node)], what, _replacing(parent, field, at, new)
        for field in ("body", "orelse"):
            block = getattr(parent, field, None)
            for at, node in enumerate(block) if isinstance(block, list) else ():
                if id(node) not in silent and isinstance(node, ast.Expr | ast.Assign | ast.AugAssign):
                    yield inside[id(node)], f"without {_text(node)}", _replacing(parent, field, at, ast.Pass())


def _words(function: Function) -> set[int]:
    """Nodes that only speak: docstrings, annotations, messages of errors and assertions, texts put together."""
    out: set[int] = set()
    for node in ast.walk(function):
        mute: list[ast.AST | None] = []
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.ImportFrom | ast.Import | ast.Assert):
            mute = [node]
        elif isinstance(node, ast.AnnAssign | ast.arg):
            mute = [node.annotation]
        elif isinstance(node, Function):  # defaults are not in the code that is exchanged
            mute = [node.returns, *node.decorator_list, *node.args.defaults, *node.args.kw_defaults]
        elif isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: an assertion
            mute = [node]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            mute = [node]  # fmt: skip
        out |= {id(x) for m in mute if m is not None for x in ast.walk(m)}
    return out


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What a node may become."""
    old = _text(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for op in FLIPS[type(node.ops[0])]:
            new = copy.deepcopy(node)
            new.ops = [op()]
            yield f"{old} becomes {_text(new)}", new
    elif isinstance(node, ast.BoolOp):
        new = copy.deepcopy(node)
        new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"{old} becomes {_text(new)}", new
        for n, value in enumerate(node.values):
            rest = [copy.deepcopy(v) for m, v in enumerate(node.values) if m != n]
            left = rest[0] if len(rest) == 1 else ast.BoolOp(copy.deepcopy(node.op), rest)
            yield f"{old} without {_text(value)}", left
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"{old} without not", copy.deepcopy(node.operand)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        for value in (True, False) if not isinstance(node, ast.While) else (False,):
            new = copy.deepcopy(node)
            new.test = ast.Constant(value)
            yield f"if {_text(node.test)}: always {value}", new
    elif isinstance(node, ast.comprehension) and node.ifs:
        for n, test in enumerate(node.ifs):
            new = copy.deepcopy(node)
            del new.ifs[n]
            yield f"without if {_text(test)}", new
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        new = copy.deepcopy(node)
        new.op = ARITHMETIC[type(node.op)]()
        yield f"{old} becomes {_text(new)}", new
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        value = node.value
        for other in (not value,) if isinstance(value, bool) else (value + 1, *((value - 1,) if value > 0 else ())):
            yield f"{value} becomes {other}", ast.Constant(other)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TURNED:
        new = copy.deepcopy(node)
        new.func = ast.Name(TURNED[node.func.id], ast.Load())
        yield f"{old} becomes {_text(new)}", new
    elif isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and (node.value.value is None or node.value.value is False)):
            yield f"{old} becomes return None", ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Continue | ast.Break):
        yield f"without {old}", ast.Pass()


def _replacing(parent: ast.AST, field: str, at: int | None, new: ast.AST) -> Callable[[], None]:
    def make() -> None:
        if at is None:
            setattr(parent, field, new)
        else:
            getattr(parent, field)[at] = new

    return make


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."
