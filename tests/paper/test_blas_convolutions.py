"""Convolutions onto BLAS with no hidden copy (the paper's claim about matrix units, on a library everybody has).

Channels last at stride 1 and 2, and 1x1 channels first, are matrix products on the operands where they lie: no operand
is moved and no workspace holds a part of one. A 3x3 convolution with channels first has its weights repacked, which
shows as a move, once, when constants are bound.
"""

from __future__ import annotations

import pytest

import isam
from isam.schedule.tree import Issue, distinct
from tests.corpus import CASES
from tests.native_corpus import fault

SIZES = {"N": 2, "C": 24, "H": 9, "W": 31, "K": 40, "R": 3, "S": 3}
NO_COPY = [("conv2d_nhwc", {}), ("conv2d_nhwc", {"stride": 2}), ("conv2d_nhwc", {"dilation": 2}),
           ("conv2d_nhwc", {"stride": 2, "dilation": 2}), ("pointwise_conv2d", {}), ("pointwise_conv2d_nhwc", {}),
           ("pointwise_conv2d_nhwc", {"stride": 2})]  # fmt: skip


def of(name: str, params: dict[str, int]):
    label = name + ("/" + ",".join(f"{n}={v}" for n, v in params.items()) if params else "")
    case = CASES[label]
    return case, {s.name: SIZES[s.name] for s in case.load().syms}


def issues(tree):
    return [n for n in distinct(tree) if isinstance(n, Issue)]


@pytest.mark.parametrize("big", [1, 4])
@pytest.mark.parametrize(("name", "params"), NO_COPY)
def test_no_operand_is_moved(name, params, big):
    case, sizes = of(name, params)
    sizes = {**sizes, "C": sizes["C"] * big, "K": sizes["K"] * big}
    fn = isam.compile(case.load(), on="blas", sizes=sizes)
    chosen = {m.instruction.name.partition("_")[0] for m in fn.mapping.mappings}
    assert "sgemm" in chosen
    assert chosen <= {"sgemm", "copy", "tile"}
    tiles = {m.instruction.name for m in fn.mapping.mappings if m.instruction.name.startswith("tile")}
    assert tiles <= {"tile_zero_f32"}, "zeros alone come out of tiles, where there are some"
    assert fn.mapping.steps == ()
    assert not issues(fn.schedule.bind)
    assert all(slot.literal is not None for slot in fn.schedule.workspace)
    moved = {o.tile.buffer for i in issues(fn.schedule.call) if i.is_move for o in i.operands}
    assert not moved & {"x", "w"}
    for i in issues(fn.schedule.call):
        if i.instruction.startswith("sgemm"):
            assert [(o.name, o.place.memory, o.place.base) for o in i.operands] == [
                (o.name, "ram", o.tile.buffer) for o in i.operands]  # fmt: skip


@pytest.mark.parametrize(("name", "params"), NO_COPY)
def test_and_the_result_is_right(name, params):
    case, sizes = of(name, params)
    assert fault(case, sizes, "blas") is None


def test_channels_first_repacks_its_weights_when_they_are_bound():
    case, sizes = of("conv2d", {})
    sizes = {**sizes, "C": 64, "K": 64}
    fn = isam.compile(case.load(), on="blas", sizes=sizes)
    assert "sgemm_nn" in [m.instruction.name for m in fn.mapping.mappings]
    bound = [s for s in fn.schedule.workspace if s.bound]
    assert [s.bytes for s in bound] == [64 * 64 * 9 * 4]
    assert {o.tile.buffer for i in issues(fn.schedule.bind) for o in i.operands} == {"w"}
    assert all(i.is_move for i in issues(fn.schedule.bind))
    moved = {o.tile.buffer for i in issues(fn.schedule.call) if i.is_move for o in i.operands}
    assert not moved & {"x", "w"}
    assert "bind (once, when constants are bound)" in str(fn.schedule)
    assert fault(case, sizes, "blas") is None


def test_padding_is_copied_once_and_shown():
    """A padded image is a temporary that the kernel declares: the only room taken is that."""
    case = CASES["padded_conv2d_nhwc_temp"]
    fn = isam.compile(case.load(), on="blas", sizes={"N": 1, "C": 32, "H": 14, "W": 14, "K": 64})
    temporary = next(b for b in fn.schedule.kernel.buffers if b.role == "temp")
    assert [s.name for s in fn.schedule.workspace if s.literal is None] == [temporary.name]
    assert "sgemm_nn" in [m.instruction.name for m in fn.mapping.mappings]
