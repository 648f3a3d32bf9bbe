"""Code that repeats something for as long as it is told, to be timed."""

from __future__ import annotations

from isam.codegen.llvm.irtext import Function, Module
from isam.tune.drift import Left

REPEATED = "repeated"


def function(module: Module) -> Function:
    """What is timed: it repeats something ``n`` times, beginning with numbers at ``in``; some go to ``out`` at last."""
    return Function(module, REPEATED, ["ptr %in", "i64 %n", "ptr %out"], linkage="")


def left(fn: Function, values: list[tuple[str, str, str]]) -> list[Left]:
    """Stores vectors, each said by the type of its elements, its own and its name."""
    out: list[Left] = []
    for dtype, type_, value in values:
        x = Left(out[-1].end if out else 0, dtype, int(type_[1:].split()[0]))
        fn.emit(f"store {type_} {value}, ptr {fn.gep('%out', x.at)}, align 1")
        out.append(x)
    return out


class Loop:
    """``n`` iterations with values carried from each to the next; the function ends after it."""

    def __init__(self, fn: Function, types: list[str] | str, begin: list[str]):
        self.fn = fn
        self.types = [types] if isinstance(types, str) else types
        fn.emit("br label %loop")
        fn.label("loop")
        self.head, self.begin = fn.buffer(), begin
        self.carried = [fn.fresh() for _ in begin]

    def end(self, after: list[str]) -> list[str]:
        """The values after the last iteration: code that nobody asks for them would not be there."""
        fn = self.fn
        for type_, x, first, then in zip(self.types, self.carried, self.begin, after, strict=True):
            fn.emit(f"{x} = phi {type_} [ {first}, %entry ], [ {then}, %{fn.block} ]", self.head)
        fn.emit(f"%k = phi i64 [ 0, %entry ], [ %next, %{fn.block} ]", self.head)
        fn.emit("%next = add i64 %k, 1")
        again = fn.op("icmp slt i64 %next, %n")
        fn.emit(f"br i1 {again}, label %loop, label %done")
        fn.label("done")
        return after
