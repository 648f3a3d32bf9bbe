"""Groups to and from addressed memory: a lane of the register holds as many elements of the operand's last dimension as
fit; where there are fewer, zeros follow them. (VNNI, AVX512-BF16: products whose neighbours are summed in a lane.)"""

from __future__ import annotations

from dataclasses import replace

from isam.codegen.llvm import tiles, vectors
from isam.codegen.llvm.irtext import ELEMENT, Function, mask
from isam.codegen.llvm.tiles import Addressed
from isam.codegen.llvm.vectors import Lanes
from isam.diagnostics import fail
from isam.ir.dtype import size_of


def load(fn: Function, at: Addressed, of: Lanes, lane: int, spread: bool) -> str:
    """A group for each of the first lanes, or (``spread``) one group in all lanes."""
    lanes, word, whole = of.count, f"i{8 * lane}", of.type(f"i{8 * lane}")
    _check(at, lanes, lane, spread)
    if spread:
        words = tiles.spread(fn, _word(fn, at, lane), whole, lanes)
    elif _together(at, lane):
        words = vectors.row(fn, at.pointer, word, at.shape[0], of, size_of(at.dtype))
    elif at.shape[1] * size_of(at.dtype) == lane and at.steps[1] == size_of(at.dtype) and at.literal is None:
        words = _words(fn, at, of, lane)
    else:
        words = _gathered(fn, at, of, lane)
    return fn.op(f"bitcast {whole} {words} to {_type(at, lanes, lane)}")


def store(fn: Function, value: str, at: Addressed, of: Lanes, lane: int) -> None:
    """The groups of the first lanes; memory beside them is left alone."""
    lanes = of.count
    _check(at, lanes, lane, False)
    size, type_ = size_of(at.dtype), _type(at, lanes, lane)
    per = lane // size
    if _together(at, lane):
        words = fn.op(f"bitcast {type_} {value} to <{lanes} x i{8 * lane}>")
        vectors.put_row(fn, words, at.pointer, f"i{8 * lane}", at.shape[0], of, size)
        return
    for j in range(at.shape[0]):
        for p in range(at.shape[1]):
            x = fn.op(f"extractelement {type_} {value}, i64 {j * per + p}")
            spot = fn.gep(at.pointer, j * at.steps[0] + p * at.steps[1])
            fn.emit(f"store {ELEMENT[at.dtype]} {x}, ptr {spot}, align {size}")


def _type(at: Addressed, lanes: int, lane: int) -> str:
    return f"<{lanes * (lane // size_of(at.dtype))} x {ELEMENT[at.dtype]}>"


def _together(at: Addressed, lane: int) -> bool:
    """Whether whole groups lie one after the other, as in the register."""
    full = at.shape[1] * size_of(at.dtype) == lane and at.literal is None
    return full and at.steps[1] == size_of(at.dtype) and (at.steps[0] == lane or at.shape[0] == 1)


def _word(fn: Function, at: Addressed, lane: int) -> str:
    """One group as an integer."""
    size, count = size_of(at.dtype), at.shape[-1]
    word = f"i{8 * lane}"
    if count * size == lane and at.step == size and at.literal is None:
        return fn.op(f"load {word}, ptr {at.pointer}, align {size}")
    out = ""
    for p in range(count):
        x = fn.op(f"zext {_bits(at)} {_element(fn, at, p * at.step)} to {word}")
        x = fn.op(f"shl {word} {x}, {8 * size * p}") if p else x
        out = fn.op(f"or {word} {out}, {x}") if out else x
    return out


def _element(fn: Function, at: Addressed, offset: int) -> str:
    if at.literal is not None:
        return tiles.constant(at.dtype, at.literal)
    return fn.op(f"load {_bits(at)}, ptr {fn.gep(at.pointer, offset)}, align {size_of(at.dtype)}")


def _words(fn: Function, at: Addressed, of: Lanes, lane: int) -> str:
    """Groups apart from each other, each of elements that lie together: a word for each."""
    lanes, word, whole, n = of.count, f"i{8 * lane}", of.type(f"i{8 * lane}"), at.shape[0]
    if of.any and n > 2:  # as `tiles.gathers` says
        spots = tiles.spots(fn, replace(at, shape=(n,), steps=at.steps[:1]), lanes)
        return fn.op(f"call {whole} @llvm.masked.gather.v{lanes}{word}.v{lanes}p0({spots}, <{lanes} x i1> "
                     f"{mask(n, lanes)}, {whole} zeroinitializer)")  # fmt: skip
    out = "zeroinitializer"
    for j in range(n):
        x = fn.op(f"load {word}, ptr {fn.gep(at.pointer, j * at.steps[0])}, align {size_of(at.dtype)}")
        out = fn.op(f"insertelement {whole} {out}, {word} {x}, i64 {j}")
    return out


def _gathered(fn: Function, at: Addressed, of: Lanes, lane: int) -> str:
    """Element after element of all groups at once: a vector of the first ones, of the second ones, put together."""
    lanes, whole, size = of.count, of.type(f"i{8 * lane}"), size_of(at.dtype)
    out = ""
    for p in range(at.shape[1]):
        pointer = at.pointer if at.literal is not None else fn.gep(at.pointer, p * at.steps[1])
        row = replace(at, pointer=pointer, shape=at.shape[:1], steps=at.steps[:1])
        x = tiles.load(fn, row, of)
        x = fn.op(f"zext <{lanes} x {ELEMENT[at.dtype]}> {x} to {whole}")
        x = fn.op(f"shl {whole} {x}, splat (i{8 * lane} {8 * size * p})") if p else x
        out = fn.op(f"or {whole} {out}, {x}") if out else x
    return out


def _bits(at: Addressed) -> str:
    return f"i{8 * size_of(at.dtype)}"


def _check(at: Addressed, lanes: int, lane: int, spread: bool) -> None:
    rank = 1 if spread else 2
    if not lane or ELEMENT[at.dtype] in ("float", "double") or len(at.shape) != rank:
        raise fail("emission-lanes", f"an operand {list(at.shape)} of {at.dtype} is no group of {lane} bytes")
    if at.shape[-1] * size_of(at.dtype) > lane or (not spread and at.shape[0] > lanes):
        raise fail("emission-lanes", f"groups {list(at.shape)} of {at.dtype} do not fit {lanes} lanes of {lane} bytes")
