"""The verifier: accepts what is right for all sizes, refuses the rest; broken texts are in tests/text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Domain, Kernel
from isam.ir.text import parse, parse_file
from isam.ir.verify import require, verify

MODULE = parse_file((Path(__file__).parents[2] / "text" / "surface.isam").read_text())


@pytest.mark.parametrize("kernel", [*MODULE.kernels, *(i.body for i in MODULE.instructions)], ids=lambda k: k.name)
def test_documented_examples_are_well_formed(kernel):
    assert verify(kernel) == []
    assert require(kernel) is kernel
    for stride in (2, 3):
        if kernel.params:
            assert verify(kernel.with_params(stride=stride, dilation=2)) == []
    for value in (0, 1, 5):
        assert verify(kernel.with_sizes({s.name: min(value, s.hi or value) for s in kernel.syms})) == []


def codes(text: str) -> list[str]:
    return [d.code for d in verify(parse(text))]


SOUND = {
    "a triangle": "kernel k(M)\n  in x: f32[M]\n  out y: f32[M, M]\n  forall i < M, j < M\n    y[i, j] = 0\n"
                  "  forall i < M, j < M where j <= i\n    y[i, j] = x[i - j]\n",
    "two halves": "kernel k(M)\n  in x: f32[M]\n  out y: f32[M, M]\n  forall i < M, j < M where j <= i\n"
                  "    y[i, j] = x[j]\n"
                  "  forall i < M, j < M where j > i\n    y[i, j] = x[i]\n",
    "even and odd": "kernel k(M)\n  in x: f32[M]\n  out y: f32[2*M]\n  forall i < M\n    y[2*i] = x[i]\n"
                    "    y[2*i + 1] = x[i]\n",
    "a bijection of the plane": "kernel k(M)\n  in x: f32[M, M]\n  out y: f32[M + M*1, M]\n  forall i < 2*M, j < M\n"
                                "    y[i, j] = 0\n  forall i < M, j < M\n    y[i + j, j] = x[i, j]\n",
    "reversal": "kernel k(M)\n  in x: f32[M]\n  out y: f32[M]\n  forall i < M\n    y[M - 1 - i] = x[i]\n",
    "multiples": "kernel k(M % 4)\n  in x: f32[M]\n  out y: f32[M]\n  forall i < M where i <= M - 4\n"
                 "    y[i] = x[i + 3]\n"
                 "  forall i < M where i > M - 4\n    y[i] = 0\n",
    "written step by step": "kernel k(T, M)\n  in x: f32[T, M]\n  out y: f32[T + 1, M]\n  forall i < M\n"
                            "    y[0, i] = 0\n"
                            "  loop t < T\n    forall i < M\n      y[t + 1, i] = y[t, i] + x[t, i]\n",
    "a temporary that lives in a step": "kernel k(T, M)\n  in x: f32[T, M]\n  inout h: f32[M]\n  loop t < T\n"
                                        "    forall i < M\n      a[i] = x[t, i]\n      a[i] += h[i]\n"
                                        "      h[i] = a[i]\n",
    "nested loops": "kernel k(T, S)\n  out y: f32[T, S]\n  forall i < T, j < S\n    y[i, j] = 1\n  loop t < T\n"
                    "    loop s < S\n"
                    "      y[t, s] = y[t, s] * 2\n",
    "no elements": "kernel k(M)\n  out y: f32[M, 0]\n  forall i < M, j < 0\n    y[i, j] = 0\n",
    "a size of one": "kernel k(M)\n  in x: f32[1]\n  out y: f32[M]\n  forall i < M\n    y[i] = x[0]\n",
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_kernels_are_accepted(name):
    assert verify(parse(SOUND[name])) == []


UNSOUND = {
    "a triangle read": ("V422", "kernel k(M)\n  in x: f32[M]\n  out y: f32[M, M]\n  forall i < M, j < M where j <= i\n"
                                "    t[i, j] = x[j]\n  forall i < M, j < M\n    y[i, j] = t[i, j]\n"),
    "a missing diagonal": ("V421",
                           "kernel k(M)\n  in x: f32[M]\n  out y: f32[M, M]\n  forall i < M, j < M where j < i\n"
                                   "    y[i, j] = x[j]\n  forall i < M, j < M where j > i\n    y[i, j] = x[i]\n"),
    "a step too far": ("V422",
                       "kernel k(T, M)\n  in x: f32[T, M]\n  out y: f32[T + 1, M]\n  forall i < M\n    y[0, i] = 0\n"
                               "  loop t < T\n    forall i < M\n      y[t + 1, i] = y[t + 1, i] + x[t, i]\n"),
    "a step that reads the next": ("V422", "kernel k(T)\n  out y: f32[T + 1]\n  y[0] = 0\n  loop t < T\n"
                                           "    z[] = y[t + 1]\n    y[t + 1] = z[] * 2\n"),
    "anti-diagonals": ("V431", "kernel k(M)\n  in x: f32[M, M]\n  inout y: f32[2*M]\n  forall i < M, j < M\n"
                               "    y[i + j] = x[i, j]\n"),
    "a coefficient too small": ("V431",
                                "kernel k(M)\n  in x: f32[M, 3]\n  inout y: f32[2*M + 1]\n  forall i < M, j < 3\n"
                                        "    y[2*i + j] = x[i, j]\n"),
    "a shift in place": ("V433", "kernel k(M)\n  inout y: f32[M + 1]\n  forall i < M\n    y[i] = y[i + 1]\n"),
    "a transposition in place": ("V433",
                                 "kernel k(M)\n  inout y: f32[M, M]\n  forall i < M, j < M\n    y[i, j] = y[j, i]\n"),
    "a sum into what it sums": ("V433", "kernel k(M)\n  inout y: f32[M]\n  forall i < M, j < M\n    y[i] += y[j]\n"),
    "a sum into windows of what it sums": ("V433", "kernel k()\n  inout y: f32[8]\n  forall i < 6, j < 3\n"
                                                   "    y[i + j] += y[i + j]\n"),
    "a bound that needs a size": ("V430",
                                  "kernel k(M, N)\n  in x: f32[M]\n  out y: f32[N]\n  forall i < N\n    y[i] = x[i]\n"),
    "below zero": ("V430", "kernel k(M)\n  in x: f32[M]\n  out y: f32[M]\n  forall i < M\n    y[i] = x[i - 1]\n"),
    "a range that just fails": ("V430",
                                "kernel k(M <= 8)\n  in x: f32[7]\n  out y: f32[M]\n  forall i < M\n    y[i] = x[i]\n"),
}


IN_PLACE = """kernel k(N)
  in    b: f32[N]
  inout h: f32[N]
  inout y: f32[2 * N + 1]
{}"""
READ_BY_OTHERS = {
    "a shift in a product": ("forall i < N", "  y[i + 1] = 0.5 * y[i] + b[i]", "y[i]"),
    "a shift behind a product": ("forall i < N", "  y[i + 1] = 0.5 * b[i] + y[i]", "y[i]"),
    "a shift that is read twice": ("forall i < N", "  y[i + 1] = y[i] * y[i] + b[i]", "y[i]", "y[i]"),
    "in a function": ("forall i < N", "  y[i + 1] = exp(tanh(y[i]))", "y[i]"),
    "in a condition": ("forall i < N", "  y[i + 1] = select(y[i] > 0, b[i], y[i + 1])", "y[i]"),
    "what else a choice takes": ("forall i < N", "  y[i + 1] = select(b[i] > 0, 1, y[i])", "y[i]"),
    "a reversal": ("forall i < N", "  h[i] = h[N - 1 - i] + b[i] * 2", "h[N - 1 - i]"),
    "one element": ("forall i < N", "  h[i] = h[i] - 2 * h[0]", "h[0]"),
    "a sum into a factor": ("forall i < N, j < N", "  h[j] += b[i] * h[i]", "h[i]"),
    "a sum into a factor of its own": ("forall i < N, j < N", "  h[j] += b[i] * h[j]", "h[j]"),
    "a maximum of sums": ("forall i < N, j < N", "  h[j] max= h[i] + b[i]", "h[i]"),
    "a step of a loop": ("loop t < N", "  forall i < N where i >= 1\n      h[i] = 0.5 * h[i - 1] + b[t]", "h[i - 1]"),
}
READ_BY_ITSELF = {
    "the same element": ("forall i < N", "  h[i] = 0.5 * h[i] + b[i]"),
    "the same element of a sum": ("forall i < N", "  h[i] += 0.5 * h[i] + b[i]"),
    "the same element in a choice": ("forall i < N", "  h[i] = select(h[i] > b[i], h[i] * 2, h[i])"),
    "another half": ("forall i < N", "  y[i] = 0.5 * y[i + N] + b[i]"),
    "another domain": ("forall i < N where i >= 1", "  h[i] = h[i] - 2 * h[0]"),
    "even by odd ones": ("forall i < N", "  y[2 * i] = 0.5 * y[2 * i + 1] + b[i]"),
    "a step before": ("loop t < N", "  y[t + 1] = 0.5 * y[t] + b[t]"),
    "statements of their own": ("forall i < N", "  t[i] = y[i] * 0.5\n    y[i + 1] = t[i] + b[i]"),
}


@pytest.mark.parametrize("name", READ_BY_OTHERS)
def test_a_statement_of_several_operations_is_judged_as_it_is_written(name):
    block, statement, *reads = READ_BY_OTHERS[name]
    text = IN_PLACE.format(f"  {block}\n  {statement}\n")
    found, lines = verify(kernel := parse(text)), text.split("\n")
    assert [d.code for d in found] == ["V433"] * len(reads)
    assert all(lines[d.loc.line - 1][d.loc.column - 1 :].startswith(x) for d, x in zip(found, reads, strict=True))
    assert all("another of its points writes" in d.message and "'loop'" in d.hint for d in found)
    assert len(verify(kernel.with_sizes({"N": 5}))) == len(reads)


def test_what_is_read_by_a_statement_of_its_own_are_old_values():
    """The three-operand form says so; it is another kernel than what is refused."""
    kernel = parse(IN_PLACE.format("  forall i < N\n    y[i + 1] = 0.5 * y[i] + b[i]\n"))
    printed = parse(str(kernel))
    assert verify(printed) == []
    assert kernel.statements == printed.statements
    assert kernel != printed


@pytest.mark.parametrize("name", READ_BY_ITSELF)
def test_what_no_other_point_writes_may_be_read_in_any_operation(name):
    block, *statements = READ_BY_ITSELF[name]
    kernel = parse(IN_PLACE.format(f"  {block}\n  {statements[0]}\n"))
    assert verify(kernel) == []
    assert parse(str(kernel)) == kernel


@pytest.mark.parametrize("name", UNSOUND)
def test_unsound_kernels_are_refused(name):
    code, text = UNSOUND[name]
    assert codes(text) == [code]


def test_ranges_of_sizes_are_used():
    text = "kernel k({})\n  in x: f32[8]\n  out y: f32[M]\n  forall i < M\n    y[i] = x[i]\n"
    assert codes(text.format("M <= 8")) == []
    assert codes(text.format("M <= 9")) == ["V430"]
    text = "kernel k({})\n  out y: f32[M]\n  loop t < M\n    forall i < M\n      y[i] = 0\n"
    assert codes(text.format("M")) == []  # without a step there are no elements either
    text = "kernel k({}, N)\n  out y: f32[N]\n  loop t < T\n    forall i < N\n      y[i] = 0\n"
    assert codes(text.format("T")) == ["V421"]
    assert codes(text.format("1 <= T")) == []


def test_kernels_built_by_hand_are_checked_too():
    k = parse(SOUND["reversal"])
    s = k.statements[0]

    def broken(**change) -> list[str]:
        return [d.code for d in verify(replace(k, body=(replace(s, **change),)))]

    assert broken(op="frobnicate") == ["V404"]
    assert broken(op="add") == ["V404"]
    assert broken(op="div", accumulate=True) == ["V404"]
    assert sorted(broken(dest=Access("nowhere", s.dest.index))) == ["V401", "V420"]
    assert "V402" in broken(dest=Access("y", ()))
    assert "V401" in broken(domain=Domain((Axis("M", Affine.of("M")), *s.domain.axes)))
    assert "V401" in broken(domain=Domain((*s.domain.axes, *s.domain.axes)))
    assert "V401" in broken(domain=Domain((Axis("i", Affine.of("Q")),)))
    assert "V401" in [d.code for d in verify(replace(k, permits=frozenset({"magic"})))]
    assert isinstance(k, Kernel)


def test_all_faults_at_once():
    text = ("kernel k(M)\n  in x: f32[M]\n  in z: i8[M]\n  out y: f32[M]\n  forall i < M\n    x[i] = 0\n"
            "    y[i] = z[i]\n"
            "    y[i] = x[i + 1]\n    y[i] += w[i]\n    w[i] = exp(x[i])\n")
    assert codes(text) == ["V403", "V411", "V430"]
