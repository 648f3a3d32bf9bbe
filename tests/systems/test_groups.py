"""Products whose neighbours are summed in lanes: right for every size, layout and role; taken where they fit."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import isam
from isam.codegen.llvm import generate
from isam.system.features import lacking
from isam.system.load import load_system

NEEDS = ("avx512vnni", "avx512bf16", "avx512bw", "avx512vl", "avx512dq")
VECTORS = "host-avx512"  # without tiles, which are taken where they are
pytestmark = pytest.mark.skipif(bool(lacking(NEEDS)), reason=f"this CPU lacks {', '.join(lacking(NEEDS))}")

NUMPY = {"u8": np.uint8, "i8": np.int8, "i16": np.int16, "bf16": ml_dtypes.bfloat16}
PAIRS = {("u8", "i8"): "dot4_u8_i8", ("i8", "u8"): "dot4_i8_u8", ("i8", "i8"): "dot4_i8_i8",
         ("u8", "u8"): "dot4_u8_u8", ("i16", "i16"): "dot2_i16", ("bf16", "bf16"): "dot2_bf16"}  # fmt: skip


def values(rng, dtype, shape):
    if dtype == "bf16":
        return rng.normal(size=shape).astype(NUMPY[dtype])
    low, high = np.iinfo(NUMPY[dtype]).min, np.iinfo(NUMPY[dtype]).max
    return rng.integers(low, high, shape, dtype=NUMPY[dtype], endpoint=True)


def product(a, b, role="in", turned=False, permits="reassociate, contract, flush"):
    """``turned``: the second factor is given by columns. A factor of the sum's type needs no cast."""
    wide = "f32" if a in ("bf16", "f32") else "i32"
    left, right = "A[i, k]", "B[j, k]" if turned else "B[k, j]"
    left, right = (x if t == wide else f"{wide}({x})" for t, x in ((a, left), (b, right)))
    return isam.parse(f"""kernel product(M, N, K)
  in  A: {a}[M, K]
  {role} B: {b}[{"N, K" if turned else "K, N"}]
  out C: {wide}[M, N]
  permits {permits}
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += {left} * {right}
""")


def agree(got, a, b, wide):
    if wide != "f32":
        return np.array_equal(got, a.astype(np.int32) @ b.astype(np.int32))
    a, b = a.astype(np.float64), b.astype(np.float64)
    away, terms = np.abs(got - a @ b), np.abs(a) @ np.abs(b)
    return bool((away <= 2.0**-23 * (a.shape[1] + 2) * terms).all())


def taken(f):
    return [m.instruction.name for m in f.mapping.mappings]


SIZES = [(1, 1, 1), (3, 5, 7), (17, 33, 65), (5, 16, 6), (1, 300, 67), (70, 1, 33), (31, 47, 128)]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("turned", [False, True])
def test_every_size_and_layout(pair, turned):
    rng = np.random.default_rng(5)
    for n, (rows, columns, depth) in enumerate(SIZES):
        role = ("in", "const")[n % 2]
        f = isam.compile(product(*pair, role, turned), on=VECTORS, sizes={"M": rows, "N": columns, "K": depth})
        a, b = values(rng, pair[0], (rows, depth)), values(rng, pair[1], (depth, columns))
        given = np.ascontiguousarray(b.T) if turned else b
        wide = f.artifact.arguments[2].dtype
        assert agree(f(a, given), a, b, wide), (rows, columns, depth)
        if role == "const":
            assert agree(f.bind(B=given)(a), a, b, wide), (rows, columns, depth)
        if min(rows, columns, depth) > 1:
            alike = pair in (("i8", "i8"), ("u8", "u8"))  # one of them may become the other kind
            names = {PAIRS[pair], *({"dot4_u8_i8", "dot4_i8_u8"} if alike else ())}
            assert names & set(taken(f)), (rows, columns, depth)


@pytest.mark.parametrize("pair", PAIRS)
def test_extreme_values_wrap_or_flush_as_permitted(pair):
    f = isam.compile(product(*pair), on=VECTORS, sizes={"M": 4, "N": 20, "K": 9})
    if pair[0] == "bf16":
        for extreme in (3e37, 1e-38, -0.0):
            a, b = np.full((4, 9), extreme, NUMPY["bf16"]), np.full((9, 20), 0.5, NUMPY["bf16"])
            lost = 9 * 2.0**-126  # every product and sum may be a denormal that counts as zero
            np.testing.assert_allclose(f(a, b), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-6, atol=lost)
        a[0, 3] = np.nan
        assert np.isnan(f(a, b)[0]).all()
        assert np.isfinite(f(a, b)[1:]).all()
        return
    for a in (np.iinfo(NUMPY[pair[0]]).min, np.iinfo(NUMPY[pair[0]]).max):
        for b in (np.iinfo(NUMPY[pair[1]]).min, np.iinfo(NUMPY[pair[1]]).max):
            left, right = np.full((4, 9), a, NUMPY[pair[0]]), np.full((9, 20), b, NUMPY[pair[1]])
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(f(left, right), left.astype(np.int32) @ right.astype(np.int32))


def test_denormals_are_kept_unless_the_kernel_permits_otherwise():
    kernel = product("bf16", "bf16", permits="reassociate, contract")
    f = isam.compile(kernel, on=VECTORS, sizes={"M": 4, "N": 20, "K": 8})
    assert "dot2_bf16" not in taken(f)
    a, b = np.full((4, 8), 1e-39, NUMPY["bf16"]), np.full((8, 20), 1.0, NUMPY["bf16"])
    assert (f(a, b) > 0).all()
    why = isam.explain(product("bf16", "bf16", permits="reassociate, contract"), instruction="dot2_bf16",
                       sizes={"M": 4, "N": 20, "K": 8})  # fmt: skip
    assert not why
    assert "flush" in str(why)


CONVOLUTION = """kernel conv(N, H, W, C, K)
  in    x: u8[N, H + 2, W + 2, C]
  const w: i8[3, 3, C, K]
  out   y: i32[N, H, W, K]
  forall n < N, h < H, v < W, k < K
    y[n, h, v, k] = 0
  forall n < N, h < H, v < W, k < K, r < 3, s < 3, c < C
    y[n, h, v, k] += i32(x[n, h + r, v + s, c]) * i32(w[r, s, c, k])
"""


@pytest.mark.parametrize("channels", [3, 16, 30])
def test_convolutions_take_them_along_the_channels(channels):
    rng = np.random.default_rng(1)
    sizes = {"N": 2, "H": 5, "W": 6, "C": channels, "K": 24}
    f = isam.compile(isam.parse(CONVOLUTION), on=VECTORS, sizes=sizes)
    x, w = values(rng, "u8", (2, 7, 8, channels)), values(rng, "i8", (3, 3, channels, 24))
    want = sum(np.einsum("nhvc,ck->nhvk", x[:, r : r + 5, s : s + 6].astype(np.int64), w[r, s].astype(np.int64))
               for r in range(3) for s in range(3))  # fmt: skip
    assert "dot4_u8_i8" in taken(f)
    np.testing.assert_array_equal(f(x, w), want)
    np.testing.assert_array_equal(f.bind(w=w)(x), want)


def test_a_batch_with_what_follows():
    rng = np.random.default_rng(2)
    k = isam.parse("""kernel scores(B, M, N, K)
  in  A: u8[B, M, K]
  in  X: i8[B, K, N]
  in  v: i32[N]
  out C: i32[B, M, N]
  forall b < B, i < M, j < N
    C[b, i, j] = v[j]
  forall b < B, i < M, j < N, k < K
    C[b, i, j] += i32(A[b, i, k]) * i32(X[b, k, j])
  forall b < B, i < M, j < N
    C[b, i, j] = max(C[b, i, j], 0)
""")
    f = isam.compile(k, on=VECTORS, sizes={"B": 3, "M": 9, "N": 40, "K": 21})
    a, x, v = values(rng, "u8", (3, 9, 21)), values(rng, "i8", (3, 21, 40)), rng.integers(-9000, 9000, 40, np.int32)
    want = np.maximum(a.astype(np.int32) @ x.astype(np.int32) + v, 0)
    np.testing.assert_array_equal(f(a, x, v), want)
    assert "dot4_u8_i8" in taken(f)


def test_blocks_fit_the_registers_that_both_memories_share():
    """No register is spilled in the innermost loop of a large product: accumulators and groups fit 32 together."""
    f = isam.compile(product("u8", "i8", "const"), on=VECTORS, sizes={"M": 128, "N": 128, "K": 256})
    assembly = generate(f.schedule, assembly=True).assembly
    loops = re.split(r"^\.LBB\w+:.*$", assembly, flags=re.MULTILINE)
    inner = max(loops, key=lambda t: t.count("vpdpbusd"))
    assert inner.count("vpdpbusd") >= 16
    assert not re.search(r"zmm\d+.*\(%rsp\)|\(%rsp\).*zmm\d+", inner)


def test_a_cpu_without_them_takes_other_instructions(monkeypatch):
    import isam.system.features as features

    real = features.host_features()
    monkeypatch.setattr(features, "host_features", lambda: real - {"avx512vnni", "avx512bf16"})
    for pair in PAIRS:
        f = isam.compile(product(*pair), on=VECTORS, sizes={"M": 4, "N": 20, "K": 8})
        assert PAIRS[pair] not in taken(f)
        rng = np.random.default_rng(3)
        a, b = values(rng, pair[0], (4, 8)), values(rng, pair[1], (8, 20))
        assert agree(f(a, b), a, b, f.artifact.arguments[2].dtype)


BROKEN = """isam: 1
system: broken
backend: none
memories:
  ram: {kind: managed, capacity: 1 MiB, home: true}
  v: {kind: counted, cells: 4, cell: 16 B, lanes: 4}
  %s
units:
  u: {runs: ["*"], clock: 1 GHz}
instructions:
  twice:
    body: |
      instruction twice(J <= 4)
        in  A: i32[J]
        out D: i32[J]
        forall j < J
          D[j] = 2 * A[j]
    homes: [v]
moves:
  - {from: ram, to: v, by: twice, issuer: u}
"""


def test_an_operand_wider_than_a_lane_is_refused(tmp_path):
    import shutil

    shutil.copytree(Path(load_system("host-avx512").source).parent, tmp_path / "x86")
    part = tmp_path / "x86" / "vnni.yaml"
    for old, new in (("dot4_{T}(J <= {L}, P <= 4)", "dot4_{T}(J <= {L}, P <= 8)"), ("P <= 4)", "P)")):
        part.write_text((Path(load_system("host-avx512").source).parent / "vnni.yaml").read_text().replace(old, new))
        with pytest.raises(isam.IsamError, match=r"'A' of 'dot4_u8_i8' does not fit lanes of 4 B in 'g'"):
            load_system(tmp_path / "x86" / "host-avx512.yaml")


@pytest.mark.parametrize(("old", "new", "says"), [
    ("%D = tile.groups %S", "%D = tile.load %S", "'tile.load' is not for registers of 'load_groups'"),
    ("%D = tile.group %S", "%D = tile.splat %S", "'tile.splat' is not for registers of 'load_group'"),
    ("tile.store_groups %S, %D", "tile.store %S, %D", "'tile.store' is not for registers of 'store_groups'"),
    ("homes: {S: [ram, own], D: g}", "homes: {S: [ram, own], D: v}",
     "'tile.groups' is not for registers of 'load_groups'"),
])  # fmt: skip
def test_templates_move_groups_where_lanes_hold_them(tmp_path, old, new, says):
    import shutil

    folder = Path(load_system("host-avx512").source).parent
    shutil.copytree(folder, tmp_path / "x86")
    text = (folder / "groups.yaml").read_text()
    assert old in text
    (tmp_path / "x86" / "groups.yaml").write_text(text.replace(old, new))
    with pytest.raises(isam.IsamError) as e:
        load_system(tmp_path / "x86" / "host-avx512.yaml")
    assert any(says in d.message for d in e.value.diagnostics), e.value


@pytest.mark.parametrize(("line", "says"), [
    ("g: {kind: counted, cells: 4, cell: 16 B, lanes: 4, lane: 3 B}", "cannot have 3 B"),
    ("g: {kind: counted, cells: 4, cell: 16 B, lanes: 4, lane: 8 B}", "cannot have 8 B"),
    ("g: {kind: counted, cells: 4, cell: 16 B, lane: 4 B}", "cannot have 4 B"),
    ("g: {kind: managed, capacity: 64 B, lanes: 4, lane: 4 B}", "cannot have 4 B"),
    ("g: {kind: counted, cells: 4, cell: 16 B, lanes: 4, masks: some}", "some"),
    ("g: {kind: counted, cells: 4, cell: 16 B, masks: all}", "'g' has no lanes that masks could choose among"),
    ("g: {kind: managed, capacity: 64 B, lanes: 4, masks: all}", "'g' has no lanes that masks could choose among"),
    ("g: {kind: counted, cells: 4, cell: 16 B, lanes: 4, masks: all, shares: v}", "the same, and have different masks"),
    ("g: {kind: counted, cells: 4, cell: 16 B, lanes: 4, shares: w}", "w"),
    ("g: {kind: counted, cells: 8, cell: 16 B, lanes: 4, shares: v}", "cannot share the registers of 'v'"),
    ("g: {kind: counted, cells: 4, cell: 16 B, lanes: 4, shares: ram}", "cannot share the registers of 'ram'"),
    ("g: {kind: counted, cells: 4, cell: 16 B, lanes: 4, shares: g}", "cannot share the registers of 'g'"),
])  # fmt: skip
def test_registers_that_make_no_sense_are_refused(line, says):
    from isam.system.load import parse_system

    with pytest.raises(isam.IsamError) as e:
        parse_system(BROKEN % line)
    assert any(says in d.message for d in e.value.diagnostics), e.value
    assert load_system("host-avx512").memories["g"].pool == "v"
