"""Each law of axes, buffers and domains is chosen because a mismatch asks for it: a kernel and an instruction that do
not fit as they stand, and what the search does about it, without a blind step."""

from __future__ import annotations

from dataclasses import replace

from isam.approach.choice import Approach, Trace
from isam.ir import oracle
from isam.ir.instruction import OperandContract
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.ir.mismatch import Mismatch
from isam.ir.text import parse, parse_instruction
from isam.mapper.cover import cover
from isam.mapper.demand import Demand

ONE = parse_instruction("instruction one()\n  in S: f32\n  out D: f32\n  D = S\n")
ZERO = parse_instruction("instruction zero(N)\n  out D: f32[N]\n  forall i < N\n    D[i] = 0\n")
WHOLE = parse_instruction("""instruction whole(K)
  in  a: f32[K]
  in  b: f32[K]
  out c: f32
  c[] = 0
  forall k < K
    c[] += a[k] * b[k]
""")
GEMV = parse_instruction("""instruction gemv(M, K)
  in    A: f32[M, K]
  in    x: f32[K]
  inout y: f32[M]
  forall i < M, k < K
    y[i] += A[i, k] * x[k]
""")


def solved(kernel: Kernel, *instructions, uses: str, require: tuple[str, ...] = ()) -> Cover:
    """The cover that the search finds: by directed steps only, with the meaning kept, using that instruction."""
    c = cover(kernel, Demand([*instructions, ONE], require=require), Trace(Approach()))
    assert c, c
    assert c.notes["blind expansions"] == 0
    assert uses in {m.instruction.name for m in c.mappings}, [str(m) for m in c.mappings]
    assert oracle.equal(kernel, c.kernel, {}, 5)
    return c


def laws(c: Cover) -> list[str]:
    return [s.split(" ")[0] for s in c.steps]


GER = parse_instruction("""instruction ger(M, N)
  in    a: f32[M]
  in    b: f32[N]
  inout C: f32[M, N]
  forall i < M, j < N
    C[i, j] += a[i] * b[j]
""")
ADD = parse_instruction("instruction add(N)\n  in a: f32[N]\n  inout c: f32[N]\n  forall i < N\n    c[i] += a[i]\n")
INC = parse_instruction("instruction inc(N)\n  in a: f32[N]\n  out c: f32[N]\n  forall i < N\n    c[i] = a[i] + 1\n")


def test_a_sum_over_both_dimensions_becomes_one_over_a_long_row():
    kernel = parse("""kernel frobenius()
  in  a: f32[6, 3, 4]
  in  b: f32[3, 4]
  out y: f32[6]
  forall i < 6
    y[i] = 0
  forall i < 6, h < 3, w < 4
    y[i] += a[i, h, w] * b[h, w]
""")
    c = solved(kernel, WHOLE, uses="whole")
    assert laws(c) == ["fuse-dimensions", "fuse-dimensions", "fuse-axes"]
    assert all("left over" in why for why in c.notes["because"])
    (back,) = c.back
    assert back.new_axes("h") == back.new_axes("w") == ("h_w",)
    assert back.meaning("h_w") == "4*h + w"


def test_an_operand_with_two_axes_in_one_row_is_reached_by_fusing_dimensions():
    rows = parse_instruction("""instruction rows()
  in    A: f32[64]
  inout C: f32[8]
  forall i < 8, k < 8
    C[i] += A[8 * i + k]
""")
    kernel = parse("""kernel sums()
  in    x: f32[8, 8]
  inout y: f32[8]
  forall i < 8, k < 8
    y[i] += x[i, k]
""")
    c = solved(kernel, rows, uses="rows")
    assert laws(c) == ["fuse-dimensions"]
    assert "shares its row" in c.notes["because"][0]


def test_a_sliding_window_gets_a_row_per_window():
    kernel = parse("""kernel window()
  in  x: f32[9]
  in  w: f32[3]
  out y: f32[7]
  forall i < 7
    y[i] = 0
  forall i < 7, k < 3
    y[i] += x[i + k] * w[k]
""")
    c = solved(kernel, GEMV, ZERO, uses="gemv")
    assert laws(c) == ["unfold"]
    assert "separate rows for i and k" in c.notes["because"][0]


def test_windows_copied_by_hand_are_read_where_they_lie():
    slide = parse_instruction("""instruction slide(N, K)
  in    x: f32[N + K - 1]
  in    w: f32[K]
  inout y: f32[N]
  forall i < N, k < K
    y[i] += x[i + k] * w[k]
""")
    kernel = parse("""kernel unfolded()
  in    x: f32[9]
  in    w: f32[3]
  inout y: f32[7]
  temp  u: f32[7, 3]
  forall i < 7, k < 3
    u[i, k] = x[i + k]
  forall i < 7, k < 3
    y[i] += u[i, k] * w[k]
""")
    c = solved(kernel, slide, uses="slide")
    assert laws(c) == ["inline"]
    assert len(c.kernel.statements) == 2


def test_a_sum_into_overlapping_windows_is_made_window_by_window():
    kernel = parse("""kernel spread()
  in  x: f32[7]
  in  w: f32[3]
  out y: f32[9]
  forall i < 9
    y[i] = 0
  forall i < 7, k < 3
    y[i + k] += x[i] * w[k]
""")
    c = solved(kernel, GER, ADD, ZERO, uses="ger")
    assert laws(c) == ["unfold-sum"]
    assert c.notes["numerics"] == ["reassociates", "rounding"]


def test_a_flipped_filter_is_laid_out_the_other_way_round():
    kernel = parse("""kernel flipped()
  in  x: f32[6]
  in  w: f32[6]
  out y: f32[1]
  y[0] = 0
  forall k < 6
    y[0] += x[k] * w[5 - k]
""")
    c = solved(kernel, WHOLE, uses="whole")
    assert laws(c) == ["reverse-dimension"]
    assert "a step of -1" in c.notes["because"][0]


def test_what_runs_backwards_everywhere_runs_forwards():
    square = parse_instruction("""instruction square(N)
  in  a: f32[N]
  out c: f32[N]
  forall i < N
    c[i] = a[i] * a[i]
""")
    kernel = parse("kernel back()\n  in x: f32[6]\n  out y: f32[6]\n  forall k < 6\n"
                   "    y[5 - k] = x[5 - k] * x[5 - k]\n")  # fmt: skip
    c = solved(kernel, square, uses="square")
    assert laws(c) == ["reverse-axis"]
    total = parse("kernel t()\n  in x: f32[6]\n  in w: f32[6]\n  inout y: f32[1]\n  forall k < 6\n"
                  "    y[0] += x[5 - k] * w[5 - k]\n")  # fmt: skip
    dot = parse_instruction("instruction dot(K)\n  in a: f32[K]\n  in b: f32[K]\n  inout c: f32\n  forall k < K\n"
                            "    c[] += a[k] * b[k]\n")  # fmt: skip
    c = solved(total, dot, uses="dot")
    assert laws(c) == ["reverse-sum"]
    assert c.notes["numerics"] == ["reassociates"]


def test_a_region_that_starts_with_more_than_it_needs_is_peeled():
    kernel = parse("""kernel part()
  in  x: f32[6, 4]
  in  w: f32[4]
  out y: f32[9]
  forall i < 9
    y[i] = 0
  forall i < 6, k < 4
    y[i + 2] += x[i, k] * w[k]
""")
    c = solved(kernel, WHOLE, ZERO, uses="whole")
    assert laws(c) == ["peel", "peel"]
    assert all("touches other elements" in why for why in c.notes["because"])


def test_a_condition_of_half_a_region_cuts_the_other_half():
    scale = parse_instruction("""instruction scale(N)
  in  a: f32[N]
  in  b: f32[N]
  out c: f32[N]
  forall i < N
    c[i] = a[i] + 1
  forall i < N
    c[i] = c[i] * b[i]
""")
    kernel = parse("""kernel half()
  in  x: f32[9, 9]
  in  w: f32[9]
  out y: f32[9, 9]
  forall i < 9, j < 9
    y[i, j] = x[i, j] + 1
  forall i < 9, j < 9 where i <= j
    y[i, j] = y[i, j] * w[j]
""")
    c = solved(kernel, scale, INC, uses="scale")
    assert laws(c) == ["peel"]
    assert "other conditions" in c.notes["because"][0]


def test_parts_of_one_thing_are_joined_for_an_instruction_that_does_all_of_it():
    kernel = parse("""kernel two()
  in  x: f32[9, 4]
  in  w: f32[4]
  out y: f32[9]
  forall i < 2
    y[i] = 0
  forall i < 7
    y[i + 2] = 0
  forall i < 9, k < 4
    y[i] += x[i, k] * w[k]
""")
    c = solved(kernel, WHOLE, uses="whole")
    assert laws(c) == ["unpeel"]
    assert c.back[0].statements[0] == (0, 1)


SLIDE = parse_instruction("""instruction slide(N, K)
  in    x: f32[N + K - 1]
  in    w: f32[K]
  inout y: f32[N]
  forall i < N, k < K
    y[i] += x[i + k] * w[k]
""")
GEMM = parse_instruction("""instruction gemm(M, N, K)
  in    A: f32[M, K]
  in    B: f32[K, N]
  inout C: f32[M, N]
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
""")
FINITE = "  permits finite, reassociate, contract\n"
DEPTHWISE = """kernel depthwise()
{permits}  in  x: f32[8, 4]
  in  w: f32[3, 4]
  out y: f32[6, 4]
  forall v < 6, c < 4
    y[v, c] = 0
  forall v < 6, c < 4, s < 3
    y[v, c] += x[v + s, c] * w[s, c]
"""


def test_the_input_gradient_of_a_convolution_is_a_convolution():
    """Gathered instead of scattered, the filter reversed: three views, no other arithmetic."""
    kernel = parse("""kernel input_gradient()
  in  dy: f32[6]
  in  w: f32[3]
  out dx: f32[8]
  forall v < 8
    dx[v] = 0
  forall v < 6, s < 3
    dx[v + s] += dy[v] * w[s]
""")
    c = solved(kernel, SLIDE, ZERO, uses="slide")
    assert laws(c) == ["skew", "reverse-sum", "reverse-dimension"]
    assert "dy[v], which does not depend on axis s" in c.notes["because"][0]
    assert c.back[0].meaning("v_s") == "s + v"


def test_the_weight_gradient_of_a_convolution_is_one_with_its_roles_swapped():
    kernel = parse("""kernel weight_gradient()
  in  x: f32[8]
  in  dy: f32[6]
  out dw: f32[3]
  forall s < 3
    dw[s] = 0
  forall v < 6, s < 3
    dw[s] += x[v + s] * dy[v]
""")
    c = solved(kernel, SLIDE, ZERO, uses="slide")
    assert laws(c) == []
    (m,) = [m for m in c.mappings if m.instruction.name == "slide"]
    assert dict(m.axes) == {"i": "s", "k": "v"}
    assert m.operand("w").buffer == "dy"


STRIDED = """kernel strided()
{permits}  in  dy: f32[6]
  in  w: f32[3]
  in  x: f32[13]
  out dx: f32[13]
  out dw: f32[3]
  forall v < 13
    dx[v] = 0
  forall s < 3
    dw[s] = 0
  forall v < 6, s < 3
    {sum}
"""


def test_gradients_of_a_strided_convolution_see_zeros_in_between():
    text = STRIDED.format(permits=FINITE, sum="dw[s] += x[2 * v + s] * dy[v]")
    c = solved(parse(text), SLIDE, ZERO, uses="slide")
    assert laws(c) == ["dilate"]
    text = STRIDED.format(permits=FINITE, sum="dx[2 * v + s] += dy[v] * w[s]")
    c = solved(parse(text), SLIDE, ZERO, uses="slide")
    assert laws(c) == ["dilate", "skew", "reverse-sum", "reverse-dimension"]
    assert c.back[0].meaning("dy_d") == "dy with 1 zeros after each: 2 times the products"
    strict = STRIDED.format(permits="", sum="dw[s] += x[2 * v + s] * dy[v]")
    assert not cover(parse(strict), Demand([SLIDE, ZERO, ONE]), Trace(Approach()))


def test_a_depthwise_product_is_embedded_in_a_dense_one_and_the_price_is_told():
    kernel = parse(DEPTHWISE.format(permits=FINITE))
    c = solved(kernel, GEMM, ZERO, uses="gemm")
    assert laws(c) == ["embed"]
    assert c.notes["numerics"] == ["finite"]
    (d,) = [b.name for b in c.kernel.buffers if b.name.endswith("_d")]
    assert c.back[0].meaning(d).endswith("zeros beside it: 4 times the products")
    strict = cover(parse(DEPTHWISE.format(permits="")), Demand([GEMM, ZERO, ONE]), Trace(Approach()))
    assert not strict


def test_a_product_without_a_batch_is_not_embedded():
    from isam.transforms.structure.embed import Embed

    text = "kernel mm()\n  in a: f32[4, 4]\n  inout c: f32[4, 4]\n  forall i < 4, j < 4, k < 4\n"
    assert not Embed().sites(parse(text + "    c[i, j] += a[i, k] * a[k, j]\n"))


def test_an_axis_is_rounded_up_to_what_a_call_takes():
    add = parse_instruction("""instruction add16()
  in  a: f32[16]
  in  b: f32[16]
  out c: f32[16]
  forall i < 16
    c[i] = a[i] + b[i]
""")
    kernel = parse("kernel wide()\n  permits exact\n  in a: f32[45]\n  in b: f32[45]\n  out c: f32[45]\n"
                   "  forall i < 45\n    c[i] = a[i] + b[i]\n")  # fmt: skip
    c = solved(kernel, add, uses="add16")
    assert c.steps == ("round-up (axis i, extent 48, statements 0)",)
    assert c.notes["numerics"] == []


def test_a_product_of_any_size_fits_a_tile_of_one_size():
    tile = parse_instruction("""instruction tile()
  in    A: f32[4, 4]
  in    B: f32[4, 4]
  inout C: f32[4, 4]
  forall i < 4, j < 4, k < 4
    C[i, j] += A[i, k] * B[k, j]
""")
    text = """kernel mm()
{permits}  in  a: f32[6, 3]
  in  b: f32[3, 5]
  out c: f32[6, 5]
  forall i < 6, j < 5
    c[i, j] = 0
  forall i < 6, j < 5, k < 3
    c[i, j] += a[i, k] * b[k, j]
"""
    c = solved(parse(text.format(permits="")), tile, ZERO, uses="tile")
    assert sorted(laws(c)) == ["round-up", "round-up", "round-up-sum"]
    assert all("padding would make them" in why for why in c.notes["because"])
    strict = parse(text.format(permits="  permits exact\n"))
    exact = cover(strict, Demand([tile, ZERO, ONE]), Trace(Approach()))
    assert not exact


def test_lanes_that_are_not_neutral_are_not_added():
    from isam.transforms.structure.roundup import RoundUpSum

    text = "kernel k()\n  in x: f32[5]\n  inout y: f32\n  forall k < 5\n    y[] {op} {term}\n"
    assert RoundUpSum().sites(parse(text.format(op="+=", term="x[k] * 2")))
    assert not RoundUpSum().sites(parse(text.format(op="+=", term="x[k] + 2")))
    assert not RoundUpSum().sites(parse(text.format(op="max=", term="x[k]")))
    assert not RoundUpSum().sites(parse(text.format(op="+=", term="x[k] * inf"))), "zero times infinity is none"


def test_a_bias_lies_behind_its_matrix_where_one_operand_serves_both():
    affine = parse_instruction("""instruction affine(M, N, K)
  in  A: f32[M, K]
  in  W: f32[K + 1, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = W[K, j]
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * W[k, j]
""")
    kernel = parse("""kernel dense()
  in  x: f32[6, 3]
  in  w: f32[3, 5]
  in  b: f32[5]
  out y: f32[6, 5]
  forall i < 6, j < 5
    y[i, j] = b[j]
  forall i < 6, j < 5, k < 3
    y[i, j] += x[i, k] * w[k, j]
""")
    c = solved(kernel, affine, uses="affine")
    assert laws(c) == ["store-at"]
    assert [str(d) for d in c.kernel.buffer("w_b").shape] == ["4", "5"]
    assert c.back[0].meaning("w_b") == "w and behind it b"


def test_two_parts_of_one_buffer_are_two_arrays_where_an_instruction_wants_two():
    kernel = parse("""kernel step()
  in    a: f32[4, 4]
  inout s: f32[8]
  forall i < 4, k < 4
    s[i + 4] += a[i, k] * s[k]
""")
    c = solved(kernel, GEMV, uses="gemv")
    assert laws(c) == ["store-apart"]
    assert "different arrays for x and y" in c.notes["because"][0]


def strided(stride: int):
    rows = parse_instruction("""instruction rows(M, N)
  in  a: f32[M, N]
  out c: f32[M, N]
  forall i < M, j < N
    c[i, j] = a[i, j] * a[i, j]
""")
    return replace(rows, operands={"c": OperandContract(strides=(stride, 1))})


def test_rows_are_laid_out_at_the_pitch_that_an_operand_has():
    kernel = parse("""kernel sq()
  in  a: f32[6, 45]
  out c: f32[6, 45]
  forall i < 6, j < 45
    c[i, j] = a[i, j] * a[i, j]
""")
    c = solved(kernel, strided(64), uses="rows")
    assert c.steps == ("pitch (buffer c, dim 1, size 64)",)
    assert "a stride of 64" in c.notes["because"][0]


def test_rows_with_room_to_spare_are_closed_up():
    kernel = parse("""kernel sq()
  in  a: f32[6, 45]
  out c: f32[6, 45]
  temp t: f32[6, 48]
  forall i < 6, j < 45
    t[i, j] = a[i, j] * a[i, j]
  forall i < 6, j < 45
    c[i, j] = t[i, j] + 1
""")
    c = solved(kernel, strided(45), INC, uses="rows")
    assert c.steps == ("trim (buffer t, dim 1, size 45)",)


def test_zeros_around_the_data_are_the_condition_that_an_instruction_has():
    same = parse_instruction("""instruction same(N)
  in    x: f32[N]
  in    w: f32[3]
  inout y: f32[N]
  forall i < N, k < 3 where 0 <= i + k - 1, i + k - 1 < N
    y[i] += x[i + k - 1] * w[k]
""")
    kernel = parse("""kernel padded()
  permits finite, reassociate, contract
  in    x: f32[6]
  in    w: f32[3]
  inout y: f32[6]
  temp  p: f32[8]
  forall i < 8
    p[i] = 0
  forall i < 6
    p[i + 1] = x[i]
  forall i < 6, k < 3
    y[i] += p[i + k] * w[k]
""")
    c = solved(kernel, same, uses="same")
    assert laws(c) == ["unpad"]
    assert "without that condition" in c.notes["because"][0]
    assert [m.instruction.name for m in c.mappings] == ["same"]


def test_elements_that_others_touch_are_cut_off_where_an_axis_runs_along_them():
    """Not where a row mixes axes, takes one in steps, or has an unknown length."""
    from isam.transforms.structure.peel import Peel

    text = """kernel k(N)
  in    x: f32[12]
  inout y: f32[12, 12]
  inout z: f32[N + 12]
  forall i < 9, j < 12
    y[i, j] = x[i] * 2
  forall i < 4, k < 3
    y[i + k, 0] += x[i]
  forall i < 4
    y[2 * i, 1] = x[i]
  forall i < 4, j < 12
    y[i + 3, j] = x[i]
  forall i < N
    z[i] = x[0]
  forall i < 3
    z[i + 2] = x[i]
"""
    kernel, law = parse(text), Peel()

    def cuts(at: int) -> list[str]:
        asked = Mismatch("domain", "", "", subject=(("statement", at), ("relation", "elements")))
        return [f"{s['statements'][0]}: {s['cut']} {s['late']}" for s in law.sites_for(kernel, asked)]

    first = ["0: -i + 5 True", "0: -j True", "0: -i + 6 True", "0: -j False", "0: -j + 1 True", "0: -i + 2 False"]
    fourth = ["3: -i + 2 False", "3: -j False", "3: -j True", "3: -j + 1 False"]
    assert [cuts(n) for n in range(6)] == [first + fourth] * 3 + [fourth + first, [], []]


def test_no_pitch_makes_rows_of_nothing_as_long_as_asked():
    from isam.transforms.structure.pitch import Pitch

    asked = Mismatch("coefficient", "", "", subject=(("buffer", "x"), ("row", 0), ("need", 32), ("layout", True)))
    for last, found in ((0, 0), (4, 1)):
        text = f"  in  x: f32[3, 6, {last}]\n  out y: f32[3, 6, {last}]\n  forall i < 3, j < 6, k < {last}\n"
        kernel = parse(f"kernel k()\n{text}    y[i, j, k] = x[i, j, k]\n")
        assert len(Pitch().sites_for(kernel, asked)) == found
