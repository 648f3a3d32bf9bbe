"""What does not fit the home memory is refused at once, with demand, bound and who takes part."""

from __future__ import annotations

from dataclasses import replace

import pytest

import isam
from isam.ir.affine import Affine
from isam.ir.text import parse
from isam.schedule.tree import Tile
from isam.scheduler.homes import Fold, Homes
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.system.load import load_system
from tests.clock import quickest
from tests.drawings import TEXT
from tests.unit.scheduler.test_loops import made


@pytest.mark.parametrize("on", ["toy", "host"])
def test_more_than_home_holds(on):
    load_system(on)
    answer = made(TEXT, on, M=10**9, N=10**9, K=10**9)
    assert isinstance(answer, Infeasible)
    assert quickest(lambda: made(TEXT, on, M=10**9, N=10**9, K=10**9), 2.0) < 2.0
    assert answer.demand.startswith("12000000000000000000 bytes")
    assert answer.terms == tuple(f"{n}: 4000000000000000000 bytes" for n in "ABC")


def small(capacity):
    toy = load_system("toy")
    return replace(toy, memories={**toy.memories, "dram": replace(toy.memories["dram"], capacity=capacity)})


def test_the_last_byte_counts():
    """6 x 5, 5 x 7 and 6 x 7 numbers of f32 and a slot of 64 bytes for the zero: 428 + 64."""
    assert not isinstance(made(TEXT, small(492), M=6, N=7, K=5), Infeasible)
    answer = made(TEXT, small(491), M=6, N=7, K=5)
    assert isinstance(answer, Infeasible)
    assert answer.demand == "492 bytes for arguments and workspace"
    assert made(TEXT, small(427), M=6, N=7, K=5).demand == "428 bytes for arguments"


def test_a_shape_below_zero_holds_nothing():
    text = ("kernel k(N)\n  in x: f32[N - 100, N - 100]\n  out y: f32[N]\n  forall i < N\n    y[i] = 0\n"
            "  forall i < N, j < N - 100, k < N - 100\n    y[i] += x[j, k]\n")  # fmt: skip
    assert not isinstance(made(text, small(491), N=1), Infeasible)


@pytest.mark.parametrize(("on", "columns", "rows", "stride"), [
    ("host-avx512", 512, 9, 2048 + 64), ("host-avx512", 512, 8, 2048), ("host-avx512", 500, 9, 2000),
    ("toy", 512, 9, 2048),
])  # fmt: skip
def test_rows_of_what_is_folded_fall_on_sets_of_their_own(on, columns, rows, stride):
    """Nine rows 2048 bytes apart would share a set that holds eight lines; where nothing caches home, nothing does."""
    kernel = parse(f"kernel k(M)\n  in x: f32[M, {columns}]\n  out y: f32[M, {columns}]\n"
                   f"  forall i < M, j < {columns}\n    t[i, j] = x[i, j] * 2\n"
                   "    y[i, j] = t[i, j] + 1\n")  # fmt: skip
    homes = Homes(kernel.with_sizes({"M": 99}), load_system(on))
    folded = Fold(((0, Affine(), rows),))
    place = homes.place(Tile("t", (Affine(), Affine()), (1, 16), (1, 1)), folded)
    assert place.strides == (stride, 4)
    assert homes.slots["t"].bytes == rows * stride


def test_a_block_larger_than_the_room_made_before_has_no_place():
    """Two plans of one group, for all rows and for those left over, may want blocks of other sizes."""
    kernel = parse("kernel k(M)\n  in x: f32[M]\n  out y: f32[M]\n  forall i < M\n    t[i] = x[i] * 2\n"
                   "    y[i] = t[i] + 1\n")  # fmt: skip
    homes, tile = Homes(kernel.with_sizes({"M": 99}), load_system("host-avx512")), Tile("t", (Affine(),), (1,), (1,))
    for size in (8, 6, 8):
        assert homes.place(tile, Fold(((0, Affine(), size),))).base == "t"
    with pytest.raises(NoSchedule, match=r"workspace in 'ram'.* 9 .*for 8"):
        homes.place(tile, Fold(((0, Affine(), 9),)))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 1), (3, 2)])
def test_a_block_as_large_as_its_buffer_lies_where_the_buffer_does(n, m):
    """Nothing is folded then: to count from where the block begins gave the element an address that is not its own."""
    text = ("kernel k(N, M)\n  in l: f64[N, N]\n  in b: f64[N, M]\n  in x: f64[N, M]\n  out r: f64[N, M]\n"
            "  forall i < N, j < M\n    r[i, j] = b[i, j]\n"
            "  loop k < N\n    forall i < N, j < M where i > k\n"
            "      r[i, j] = r[i, j] - l[i, k] * x[k, j]\n")  # fmt: skip
    isam.compile(text, sizes={"N": n, "M": m}, cache=False)  # proved
    homes = Homes(parse(text).with_sizes({"N": n, "M": m}), load_system("host-generic"))
    whole = Fold(((0, Affine.of("i"), n),))
    assert homes.place(Tile("r", (Affine.of("i"), Affine()), (1, 1), (1, 1)), whole).offset == Affine.of("i", 8 * m)
