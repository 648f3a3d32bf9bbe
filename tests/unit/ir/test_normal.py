"""The normal form: spelling does not matter, values do."""

from __future__ import annotations

import numpy as np
import pytest

from isam.ir import oracle
from isam.ir.hashing import structural_hash
from isam.ir.kernel import Kernel, recurrences
from isam.ir.normal import normal_form
from isam.ir.text import parse, print_kernel
from isam.ir.verify import verify
from tests.pipeline import compiled, simulated

HEAD = "  in a: f32[M, K]\n  in b: f32[K, N]\n  in c: f32[M, N]\n"
INIT = "  forall i < M, j < N\n    y[i, j] = c[i, j]\n"
SPELLINGS = {
    "product": [
        HEAD + "  out y: f32[M, N]\n" + INIT + "  forall i < M, j < N, k < K\n" + body
        for body in (
            "    y[i, j] += a[i, k] * b[k, j]\n",
            "    t[i, j, k] = a[i, k] * b[k, j]\n    y[i, j] += t[i, j, k]\n",
            "    t[i, j, k] = a[i, k]\n    t[i, j, k] *= b[k, j]\n    y[i, j] += t[i, j, k]\n",
            "    t[i, k, j] = b[k, j]\n    t[i, k, j] = t[i, k, j] * a[i, k]\n    y[i, j] += t[i, k, j]\n",
            "    u[k, i, j] = a[i, k]\n    v[i, j, k] = u[k, i, j]\n    w[j, i, k] = v[i, j, k] * b[k, j]\n"
            "    y[i, j] += w[j, i, k]\n",
            "    t[i + 3, j, k] = f32(a[i, k])\n    y[i, j] += t[i + 3, j, k] * b[k, j]\n",
        )
    ],
    "accumulator": [
        HEAD + "  out y: f32[M, N]\n" + body
        for body in (
            INIT + "  forall i < M, j < N, k < K\n    y[i, j] += a[i, k] * b[k, j]\n",
            "  forall i < M, j < N\n    s[j, i] = c[i, j]\n  forall i < M, j < N, k < K\n"
            "    s[j, i] += a[i, k] * b[k, j]\n"
            "  forall i < M, j < N\n    y[i, j] = s[j, i]\n",
        )
    ],
    "relu": [
        "  in c: f32[M, N]\n  out y: f32[M, N]\n  forall i < M, j < N\n" + body
        for body in (
            "    y[i, j] = max(c[i, j], 0)\n",
            "    y[i, j] = max(0, c[i, j])\n",
            "    t[i, j] = 0\n    y[i, j] = max(t[i, j], c[i, j])\n",
            "    t[i, j] = c[i, j]\n    t[i, j] max= 0\n    y[i, j] = t[i, j]\n",
            "    t[i, j] = exp(c[i, j])\n    t[i, j] = c[i, j]\n    y[i, j] = max(t[i, j], 0.0)\n",
        )
    ],
}


def head(body: str) -> Kernel:
    return parse("kernel k(M, N, K)\n" + body)


def same_values(one: Kernel, two: Kernel, sizes: dict[str, int], seed: int = 5) -> None:
    a, b = oracle.evaluate(one, sizes, seed), oracle.evaluate(two, sizes, seed)
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


@pytest.mark.parametrize("name", SPELLINGS)
def test_one_form_whatever_was_typed(name):
    kernels = [head(body) for body in SPELLINGS[name]]
    for k in kernels:
        assert verify(k) == []
        n = normal_form(k)
        assert verify(n) == []
        assert normal_form(n) is n
        assert parse(print_kernel(n)) == n
        same_values(k, n, {"M": 3, "N": 4, "K": 5})
    plain = {structural_hash(normal_form(k)) for k in kernels if "k, i, j" not in str(k) and "i, k, j" not in str(k)}
    assert len(plain) == 1, "\n".join(str(normal_form(k)) for k in kernels)
    lengths = {tuple((s.op, s.accumulate, s.dest.buffer == "y") for s in normal_form(k).statements) for k in kernels}
    assert len(lengths) == 1


REFUSED = {
    "a copy whose source changes before the read": (
        "  in c: f32[M]\n  inout y: f32[M]\n  forall i < M\n    t[i] = y[i]\n    y[i] = c[i]\n    y[i] = y[i] * t[i]\n"
    ),
    "a copy carried around a loop": (
        "  in c: f32[N, M]\n  inout y: f32[M]\n  forall i < M\n    t[i] = y[i]\n  loop n < N\n    forall i < M\n"
        "      y[i] = y[i] * c[n, i]\n      y[i] = y[i] + t[i]\n      t[i] = y[i]\n"
    ),
    "a copy before a loop that writes its source": (
        "  in c: f32[N, M]\n  inout y: f32[M]\n  forall i < M\n    t[i] = y[i]\n  loop n < N\n    forall i < M\n"
        "      y[i] = y[i] * c[n, i]\n      y[i] = y[i] + t[i]\n"
    ),
    "a partial second write": (
        "  in c: f32[M]\n  out y: f32[M + 2]\n  forall i < M + 2\n    t[i] = 0\n  forall i < M\n    t[i + 1] = c[i]\n"
        "  forall i < M + 2\n    y[i] = t[i]\n"
    ),
    "an exchange": (
        "  inout x: f32[M]\n  inout y: f32[M]\n  forall i < M\n    t[i] = x[i]\n    x[i] = y[i]\n    y[i] = t[i]\n"
    ),
    "a transposition in place": (
        "  inout x: f32[M, M]\n  forall i < M, j < M\n    t[i, j] = x[j, i]\n  forall i < M, j < M\n"
        "    x[i, j] = t[i, j]\n"
    ),
    "a temporary copied to two places": (
        "  in c: f32[M]\n  out y: f32[M]\n  out z: f32[M]\n  forall i < M\n    t[i] = c[i] * c[i]\n    y[i] = t[i]\n"
        "    z[i] = t[i]\n"
    ),
    "a diagonal accumulation": (
        "  in c: f32[M, N]\n  out y: f32[M + N]\n  forall i < M + N\n    y[i] = 0\n  forall i < M, j < N\n"
        "    y[i + j] += c[i, j]\n"
    ),
    "versions carried around a loop": (
        "  in c: f32[N, M]\n  out y: f32[N, M]\n  forall i < M\n    t[i] = 1\n  loop n < N\n    forall i < M\n"
        "      y[n, i] = t[i]\n      t[i] = c[n, i] * 2\n      t[i] = t[i] + 1\n"
    ),
    "a select": (
        "  in c: f32[M]\n  out y: f32[M]\n  forall i < M\n    t[i] = c[i]\n"
        "    t[i] = select(c[i] > 0, 2 * c[i], t[i])\n"
        "    y[i] = t[i] + c[i]\n"
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_traps_keep_their_values(name):
    k = head(REFUSED[name])
    assert verify(k) == []
    n = normal_form(k)
    assert verify(n) == []
    for sizes in ({"M": 4, "N": 3, "K": 1}, {"M": 1, "N": 0, "K": 0}):
        same_values(k, n, sizes)


def test_reductions_and_products_stay_apart():
    n = normal_form(head(SPELLINGS["product"][0]))
    assert [(s.op, s.accumulate) for s in n.statements] == [("copy", False), ("mul", False), ("add", True)]


def test_dead_statements_and_empty_domains_go():
    k = head("  in c: f32[M]\n  out y: f32[M]\n  forall i < M\n    t[i] = exp(c[i])\n    u[i] = t[i] + 1\n"
             "    y[i] = c[i]\n"
             "  forall i < M, k < K\n    y[i] += c[i]\n")
    assert [s.op for s in normal_form(k.with_sizes({"K": 0})).statements] == ["copy"]
    assert [b.name for b in normal_form(k).buffers] == ["c", "y"]


def test_outer_product_is_a_plain_addition():
    k = parse("instruction ger(M, N)\n  in x: f32[M]\n  in y: f32[N]\n  inout A: f32[M, N]\n  forall i < M, j < N\n"
              "    A[i, j] += x[i] * y[j]").body
    assert [(s.op, s.accumulate) for s in normal_form(k).statements] == [("mul", False), ("add", False)]


NAMES = {  # as it is made, as it is used, what the axes of the statement that uses it are called then
    "others": ("t[i, j]", "y[p, q] += t[p, q]", "i, j"),
    "crosswise": ("t[i, j]", "y[j, i] += t[j, i]", "i, j"),
    "transposed": ("t[j, i]", "y[p, q] += t[q, p]", "i, j"),
    "one of them taken": ("t[j, i]", "y[i, p] += t[p, i]", "i, j"),
    "digits": ("t[i + 8*j]", "y[p, q] += t[p + 8*q]", "i, j"),
    "further on": ("t[i + 1, j]", "y[p, q] += t[p, q]", "p, j"),
}


@pytest.mark.parametrize("name", NAMES)
def test_what_uses_a_temporary_calls_axes_as_what_makes_it_does(name):
    """So calls for all of it have names for their loops, and are proved."""
    made, used, names = NAMES[name]
    p, q = used[2], used[5]
    inits = "    t[0, j] = x[0, j]\n" if name == "further on" else ""
    k = parse(f"kernel k(N)\n  in x: f32[8, N]\n  inout y: f32[9, N]\n  forall i < 8, j < N\n"
              f"    {made} = x[i, j] * x[i, j]\n"
              + (f"  forall j < N\n{inits}" if inits else "")
              + f"  forall {p} < 8, {q} < N\n    {used}\n")  # fmt: skip
    n = normal_form(k)
    assert verify(n) == []
    assert ", ".join(n.statements[-1].domain.names) == names
    assert normal_form(n) is n
    for size in (1, 5):
        same_values(k, n, {"N": size})
    for on in ("toy", "host-generic"):
        compiled(k, {"N": 5}, simulated(on), check=True)


def test_names_of_recurrent_loops_stay_theirs():
    k = parse("kernel k(T)\n  in x: f32[8, 2]\n  inout y: f32[T, 2, 8]\n  forall t < 8, j < 2\n"
              "    z[t, j] = x[t, j] * 2\n"
              "  loop t < T\n    forall p < 8, j < 2\n      y[t, j, p] += z[p, j]\n")  # fmt: skip
    assert [s.domain.names for s in normal_form(k).statements] == [("p", "j"), ("p", "j")]


def test_one_name_all_along():
    """What a product reads has other names than what it is summed into begins with."""
    k = parse("kernel k(M, N)\n  in x: f32[M, N]\n  out y: f32[M]\n  forall i < M, j < N\n    t[i, j] = exp(x[i, j])\n"
              "  forall q < M\n    s[q] = 0\n  forall p < M, r < N\n    s[p] += t[p, r] * x[p, r]\n"
              "  forall j < M\n    y[j] = s[j] * 2\n")  # fmt: skip
    n = normal_form(k)
    assert [", ".join(s.domain.names) for s in n.statements] == ["i, j", "i", "i, j", "i, j", "i"]
    assert normal_form(n) is n
    same_values(k, n, {"M": 3, "N": 4})
    for on in ("toy", "host-generic"):
        compiled(k, {"M": 5, "N": 20}, simulated(on), check=True)


def test_recurrent_loops_beside_each_other_get_names_of_their_own():
    """Also of what has their number in it, and of loops inside; no name twice, whatever else is called so."""
    k = parse("kernel k(T, k2)\n  in x: f32[T, 4]\n  inout s: f32[4]\n  inout y: f32[T, 4]\n"
              "  loop k < T\n    forall j < 4\n      s[j] += x[k, j]\n"
              "  loop k < T\n    forall j < 4 where j <= k\n      y[k, j] += s[j]\n"
              "    loop r < 2\n      forall j < 4\n        y[k, j] *= 2\n"
              "  loop r < 3\n    forall j < 4\n      s[j] *= 2\n")  # fmt: skip
    n = normal_form(k)
    assert [r.axis.name for r in recurrences(n.body)] == ["k", "k3", "r", "r2"]
    assert [str(s.dest) for s in n.statements] == ["s[j]", "y[k3, j]", "y[k3, j]", "s[j]"]
    assert normal_form(n) is n
    assert structural_hash(n) == structural_hash(normal_form(parse(print_kernel(n))))
    same_values(k, n, {"T": 3, "k2": 1})


ENDS = {
    "one side": ("9", "i >= 2", "a[i + 2]", 7),
    "both": ("9", "1 <= i < 8", "a[i + 1]", 7),
    "the strictest of several": ("9", "i >= 1, 2 * i >= 5, i < 8, 3 * i <= 19", "a[i + 3]", 4),
    "an open length": ("N", "i >= 2", "a[i]", None),
    "one element": ("9", "i == 4", "a[i + 4]", 1),
}


@pytest.mark.parametrize("name", ENDS)
def test_axes_begin_and_end_where_conditions_on_them_say(name: str):
    """A stencil's inside is a box: without conditions its statements share loops."""
    extent, where, dest, length = ENDS[name]
    k = parse(f"kernel k(N == 9)\n  inout a: f32[N]\n  forall i < {extent} where {where}\n    a[i] = 2 * a[i]\n")
    (s,) = normal_form(k).statements
    assert str(s.dest) == dest
    assert bool(s.domain.where) == (length is None)
    assert length is None or int(s.domain.axes[0].extent) == length
    same_values(k, normal_form(k), {"N": 9})


def test_conditions_on_other_axes_follow_one_that_begins_later():
    text = """kernel k(N)
  in x: f32[N, N]
  inout y: f32[N, N, N]
  forall i < N, j < N, k < N where 2 <= i < N - 1, j <= i, k < 3
    y[i, j, k] = x[i, k]
"""
    sizes = {"N": 7}
    k = parse(text).with_sizes(sizes)
    assert [len(s.domain.where) for s in normal_form(k).statements] == [1]
    assert [int(a.extent) for a in normal_form(k).statements[0].domain.axes] == [4, 7, 3]
    same_values(k, normal_form(k), sizes)


def test_conditions_of_sums_stay_theirs():
    """What begins the results goes over all of them, in loops that both share."""
    k = parse("kernel k\n  in x: f32[9, 9]\n  out y: f32[9]\n  forall i < 9\n    y[i] = 0\n"
              "  forall i < 9, k < 9 where i >= 2\n    y[i] += x[i, k] * x[k, i]")  # fmt: skip
    assert [str(s.dest) for s in normal_form(k).statements] == ["y[i]", "t1[i, k]", "y[i]"]


def test_a_domain_that_ends_before_it_begins_goes():
    k = parse("kernel k\n  inout a: f32[9]\n  forall i < 9 where i >= 5, i < 4\n    a[i] = 0\n")
    assert normal_form(k).statements == ()


def test_the_inside_of_a_stencil_shares_loops():
    """Each sum of the two goes through a temporary that is nowhere but in registers."""
    text = """kernel stencil(N)
  in x: f32[N]
  inout y: f32[N]
  forall i < N where 1 <= i < N - 1
    y[i] = x[i - 1] + x[i] + x[i + 1]
"""
    job = compiled(parse(text), {"N": 300}, simulated("host-avx512"))
    assert job.schedule is not None
    assert {slot.name for slot in job.schedule.workspace} == set()
