"""Python functions on integers and arrays as machine code: what the flat checker executes step after step.

A small part of Python, meant literally: whole numbers (64 bits), arrays that are fields of the first parameter, ``if``,
``while``, ``for ... in range``, calls of other such functions. Integers divide downwards, as Python's do. Whatever else
a function says is refused, so that what is compiled is what is read; the same functions run as Python (tests do that).
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from isam.classes import dataclass

WIDTHS = {"int64": 64, "int32": 32, "uint8": 8}
WIDEN = {"int64": "", "int32": "sext", "uint8": "zext"}
COMPARED = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge"}
PLAIN = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitOr: "or", ast.BitAnd: "and"}


class Outside(Exception):
    """The function says something that is not in the subset."""


@dataclass(slots=True)
class Function:
    """One function as LLVM text. ``arrays``: the element type of every field, in the order in which they are passed."""

    tree: ast.FunctionDef
    arrays: Mapping[str, str]
    numbers: Mapping[str, int]  # constants of the module
    others: frozenset[str]  # functions that may be called
    linkage: str = ""
    lines: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)  # where variables are kept
    again: list[str] = field(default_factory=list)  # of the loops around: where the next iteration begins
    count: int = 0

    def text(self) -> str:
        names = [a.arg for a in self.tree.args.args][1:]
        stored = [n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        if both := {*names, *stored} & self.numbers.keys():
            raise Outside(f"'{min(both)}' is a constant of the module, and a variable")
        self.places += [f"%{n}.p" for n in dict.fromkeys((*names, *stored))]
        self.lines += [f"store i64 %{n}, ptr %{n}.p" for n in names]
        self.body(self.tree.body)
        self.lines.append("ret i64 0")
        room = [f"{p} = alloca i64" for p in self.places]
        arrays = [f"ptr noalias %{a}.a" for a in self.arrays]
        head = f"define {self.linkage}i64 @{self.tree.name}({', '.join([*arrays, *(f'i64 %{n}' for n in names)])}) {{"
        return "\n".join([head, "entry:", *room, *self.lines, "}"])

    # -- pieces of text ----------------------------------------------------------------------------------------------
    def new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"%t{self.count} = {text}")
        return f"%t{self.count}"

    def labels(self, n: int) -> list[str]:
        self.count += 1
        return [f"L{self.count}.{i}" for i in range(n)]

    def go(self, label: str) -> None:
        self.lines.append(f"br label %{label}")

    def at(self, label: str) -> None:
        self.lines.append(f"{label}:")

    # -- statements --------------------------------------------------------------------------------------------------
    def body(self, statements: Sequence[ast.stmt]) -> None:
        for s in statements:
            self.statement(s)

    def statement(self, s: ast.stmt) -> None:
        match s:
            case ast.Expr(ast.Constant(str())):
                pass
            case ast.Expr(ast.Call() as call):
                self.value(call)
            case ast.Assign([target], value):
                self.store(target, self.value(value))
            case ast.AugAssign(target, op, value):
                self.store(target, self.operation(op, self.value(target), self.value(value)))
            case ast.Return(ast.expr() as value):
                self.lines.append(f"ret i64 {self.value(value)}")
                self.at(self.labels(1)[0])
            case ast.If():
                yes, no, end = self.labels(3)
                self.branch(s.test, yes, no)
                for label, part in ((yes, s.body), (no, s.orelse)):
                    self.at(label)
                    self.body(part)
                    self.go(end)
                self.at(end)
            case ast.While(test, body, []):
                head, inside, end = self.labels(3)
                self.go(head)
                self.at(head)
                self.branch(test, inside, end)
                self.at(inside)
                self.loop(body, head, end)
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), bounds, []), body, []) if len(bounds) <= 2:
                self.counted(name, bounds, body)
            case ast.Continue():
                self.go(self.again[-1])
                self.at(self.labels(1)[0])
            case _:
                raise Outside(ast.unparse(s))

    def loop(self, body: Sequence[ast.stmt], again: str, end: str) -> None:
        self.again.append(again)
        self.body(body)
        self.again.pop()
        self.go(again)
        self.at(end)

    def counted(self, name: str, bounds: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        head, inside, step, end = self.labels(4)
        first = self.value(bounds[0]) if len(bounds) > 1 else "0"
        last = self.value(bounds[-1])
        own = f"%{inside}.p"  # the body may give the variable another value, as in Python
        self.places.append(own)
        self.lines.append(f"store i64 {first}, ptr {own}")
        self.go(head)
        self.at(head)
        now = self.new(f"load i64, ptr {own}")
        more = self.new(f"icmp slt i64 {now}, {last}")
        self.lines.append(f"br i1 {more}, label %{inside}, label %{end}")
        self.at(step)
        self.lines.append(f"store i64 {self.new(f'add i64 {now}, 1')}, ptr {own}")
        self.go(head)
        self.at(inside)
        self.lines.append(f"store i64 {now}, ptr %{name}.p")
        self.loop(body, step, end)

    def store(self, target: ast.expr, value: str) -> None:
        if isinstance(target, ast.Name):
            self.lines.append(f"store i64 {value}, ptr %{target.id}.p")
            return
        where, kind = self.element(target)
        if WIDTHS[kind] < 64:
            value = self.new(f"trunc i64 {value} to i{WIDTHS[kind]}")
        self.lines.append(f"store i{WIDTHS[kind]} {value}, ptr {where}")

    def element(self, e: ast.expr) -> tuple[str, str]:
        """The address of an array's element and its type."""
        match e:
            case ast.Subscript(ast.Attribute(ast.Name(), name), index) if name in self.arrays:
                kind = self.arrays[name]
                at = self.value(index)
                return self.new(f"getelementptr inbounds i{WIDTHS[kind]}, ptr %{name}.a, i64 {at}"), kind
        raise Outside(ast.unparse(e))

    # -- expressions -------------------------------------------------------------------------------------------------
    def value(self, e: ast.expr) -> str:
        match e:
            case ast.Constant(int() as n) if not isinstance(n, bool):
                return str(n)
            case ast.Name(name):
                return str(self.numbers[name]) if name in self.numbers else self.new(f"load i64, ptr %{name}.p")
            case ast.UnaryOp(ast.USub(), operand):
                return self.new(f"sub i64 0, {self.value(operand)}")
            case ast.BinOp(left, op, right):
                return self.operation(op, self.value(left), self.value(right))
            case ast.Compare():
                return self.new(f"zext i1 {self.compared(e)} to i64")
            case ast.Call(ast.Name("min" | "max" as name), [left, right], []):
                values = f"i64 {self.value(left)}, i64 {self.value(right)}"
                return self.new(f"call i64 @llvm.s{name}.i64({values})")
            case ast.Call(ast.Name(name), [ast.Name(), *rest], []) if name in self.others:
                values = [f"i64 {self.value(a)}" for a in rest]
                return self.new(f"call i64 @{name}({', '.join([*(f'ptr %{a}.a' for a in self.arrays), *values])})")
            case ast.IfExp(test, one, other):
                yes, no, end = self.labels(3)
                place = f"%{end}.p"
                self.places.append(place)
                self.branch(test, yes, no)
                for label, part in ((yes, one), (no, other)):
                    self.at(label)
                    self.lines.append(f"store i64 {self.value(part)}, ptr {place}")
                    self.go(end)
                self.at(end)
                return self.new(f"load i64, ptr {place}")
            case ast.Subscript():
                where, kind = self.element(e)
                got = self.new(f"load i{WIDTHS[kind]}, ptr {where}")
                return got if not WIDEN[kind] else self.new(f"{WIDEN[kind]} i{WIDTHS[kind]} {got} to i64")
        raise Outside(ast.unparse(e))

    def operation(self, op: ast.operator, a: str, b: str) -> str:
        if type(op) in PLAIN:
            return self.new(f"{PLAIN[type(op)]} i64 {a}, {b}")
        if not isinstance(op, ast.FloorDiv | ast.Mod):
            raise Outside(type(op).__name__)
        rest = self.new(f"srem i64 {a}, {b}")
        other_sign = self.new(f"icmp slt i64 {self.new(f'xor i64 {rest}, {b}')}, 0")
        below = self.new(f"and i1 {self.new(f'icmp ne i64 {rest}, 0')}, {other_sign}")
        if isinstance(op, ast.FloorDiv):
            return self.new(f"sub i64 {self.new(f'sdiv i64 {a}, {b}')}, {self.new(f'zext i1 {below} to i64')}")
        return self.new(f"add i64 {rest}, {self.new(f'select i1 {below}, i64 {b}, i64 0')}")

    def compared(self, e: ast.Compare) -> str:
        if len(e.ops) != 1 or type(e.ops[0]) not in COMPARED:
            raise Outside(ast.unparse(e))
        left = self.value(e.left)
        return self.new(f"icmp {COMPARED[type(e.ops[0])]} i64 {left}, {self.value(e.comparators[0])}")

    def branch(self, e: ast.expr, yes: str, no: str) -> None:
        """Goes one way or the other; the right side of ``and`` and ``or`` is looked at only where it decides."""
        match e:
            case ast.BoolOp(op, values):
                for v in values[:-1]:
                    (more,) = self.labels(1)
                    self.branch(v, *((more, no) if isinstance(op, ast.And) else (yes, more)))
                    self.at(more)
                self.branch(values[-1], yes, no)
            case ast.UnaryOp(ast.Not(), operand):
                self.branch(operand, no, yes)
            case ast.Compare():
                self.lines.append(f"br i1 {self.compared(e)}, label %{yes}, label %{no}")
            case ast.Constant(True):
                self.go(yes)
            case _:
                got = self.new(f"icmp ne i64 {self.value(e)}, 0")
                self.lines.append(f"br i1 {got}, label %{yes}, label %{no}")


def module_text(functions: Sequence[Callable[..., int]], arrays: Mapping[str, str]) -> str:
    """The functions as an LLVM module. Raises :class:`Outside`."""
    names = frozenset(f.__name__ for f in functions)
    out = ["declare i64 @llvm.smin.i64(i64, i64)", "declare i64 @llvm.smax.i64(i64, i64)"]
    for f in functions:
        tree = ast.parse(textwrap.dedent(inspect.getsource(f))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        numbers = {k: v for k, v in inspect.unwrap(f).__globals__.items() if type(v) is int}
        out.append(Function(tree, arrays, numbers, names, "" if f is functions[-1] else "internal ").text())
    return "\n".join(out)


class Compiled:
    """Functions that call each other; the last one is called from outside, with the arrays and nothing else."""

    def __init__(self, functions: Sequence[Callable[..., int]], arrays: Mapping[str, str]):
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(opt=1, jit=True, cpu=llvm.get_host_cpu_name(),
                                               features=llvm.get_host_cpu_features().flatten())  # fmt: skip
        module = llvm.parse_assembly(module_text(functions, arrays))
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=1)  # more takes twice as long and gains a tenth
        options.loop_unrolling = False
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        self.engine = llvm.create_mcjit_compiler(module, machine, use_lmm=True)  # all sections side by side
        self.engine.finalize_object()
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * len(arrays))
        self.arrays = dict(arrays)
        self.entry = kind(self.engine.get_function_address(functions[-1].__name__))

    def __call__(self, memory: Any) -> int:
        passed: list[np.ndarray] = [getattr(memory, name) for name in self.arrays]
        for a, kind in zip(passed, self.arrays.values(), strict=True):
            assert a.dtype == kind
            assert a.flags.c_contiguous
        return self.entry(*[a.__array_interface__["data"][0] for a in passed])
