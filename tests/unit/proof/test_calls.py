"""What calls carry out, derived by the checker for itself: certificates that say too much of open sizes are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from isam.diagnostics import InternalError
from isam.ir.affine import Affine
from isam.ir.condition import Condition
from isam.ir.kernel import Kernel
from isam.ir.mapping import Mapping
from isam.ir.text import parse_instruction, parse_kernel
from isam.mapper import match
from isam.proof.checker import judged_mappings, refusals, sealed
from isam.proof.mapped import certify, document, of_mapping

T = Affine.of("T")
PRODUCT = ("  in A: f32[M, K]\n  in B: f32[K, N]\n  inout C: f32[M, N]\n  forall i < M, j < N, k < K\n"
           "    C[i, j] += A[i, k] * B[k, j]\n")  # fmt: skip
MATMUL = ("kernel mm({})\n  in a: f32[T, L]\n  in b: f32[L, 16]\n  inout c: f32[T, 16]\n"
          "  forall m < T, n < 16, l < L\n    c[m, n] += a[m, l] * b[l, n]\n")  # fmt: skip
SUM = "  in A: f32[N]\n  out D: f32\n  D = 0\n  forall i < N\n    D += A[i]\n"
SUMMED = ("kernel k({})\n  in x: f32[R, T]\n  out y: f32[R]\n  forall r < R\n    y[r] = 0\n  forall r < R, a < T\n"
          "    y[r] += x[r, a]\n")  # fmt: skip

EACH = "  in A: f32[N]\n  out D: f32[N]\n  forall i < N\n    D[i] = A[i] * 2\n"
EACHES = "kernel k({})\n  in x: f32[T]\n  out y: f32[T]\n  forall a < T\n    y[a] = x[a] * 2\n"
WITH_FIRST, FIRSTS = EACH.replace("* 2", "* A[0]"), EACHES.replace("* 2", "* x[0]")


def mapped(body: str, sizes: str, text: str, head: str) -> tuple[Kernel, Mapping]:
    k = parse_kernel(text.format(head))
    found = match(k, parse_instruction(f"instruction own({sizes})\n{body}"))
    assert found, found
    return found.kernel, found.first


def said(k: Kernel, m: Mapping) -> dict:
    """A certificate that says that all is proved, whatever it is."""
    return document(of_mapping(m, k), [], ("reassociates", "rounding") if "add" in str(m.instruction.takes) else ())


HOLD = {
    "exactly 8": (PRODUCT, "M == 8, N == 8, K == 8", MATMUL, "T, L", ["T % 8 == 0", "L % 8 == 0"]),
    "of the only size": (EACH, "N == 8", EACHES, "T", ["T % 8 == 0"]),
    "as much as the instruction has": (WITH_FIRST.replace("N", "8"), "", FIRSTS, "T", ["T == 8"]),
    "said by the kernel": (PRODUCT, "M == 8, N == 8, K == 4", MATMUL, "T % 8, L % 16", []),
    "at least 4": (PRODUCT, "4 <= M, N, K <= 2", MATMUL, "1 <= T, L", ["T >= 4"]),
    "in one call": (SUM, "N <= 8 % 2", SUMMED, "R, T", ["T % 2 == 0 and T <= 8"]),
    "some in one call": (SUM, "1 <= N", SUMMED, "R, T", ["T >= 1"]),
    "none, or some, in one call": (SUM, "N <= 99", SUMMED.replace("a < T", "a < T - 3"), "R, T <= 102", []),
    "four or five": (PRODUCT, "4 <= M <= 5, N, K", MATMUL, "T, L", ["T % 20 in {0, 4, 5, 8..10, 12, 14..16, 19}"]),
}  # fmt: skip


@pytest.mark.parametrize("what", HOLD)
def test_what_holds_is_proved_and_the_condition_is_in_the_certificate(what: str):
    body, sizes, text, head, held = HOLD[what]
    k, m = mapped(body, sizes, text, head)
    certificate = certify(of_mapping(m, k))
    assert certificate["holds"] == held
    assert refusals(certificate) == []


def under(*conditions: Condition) -> Callable[[Mapping], Mapping]:
    return lambda m: replace(m, conditions=conditions)


L8, ONE = Condition(Affine.of("L"), step=8), "calls of exactly 8 along i cannot make up T steps of m at "
FORGED = {
    "no condition": ("exactly 8", under(), "calls of exactly 8 along"),
    "none on one of two": ("exactly 8", under(L8), ONE),
    "of every fourth": ("exactly 8", under(L8, Condition(T, step=4)), ONE),
    "another remainder": ("exactly 8", under(L8, Condition(T, step=8, rests=(0, 4))), ONE),
    "one more": ("exactly 8", under(L8, Condition(T, step=8, some=(12,))), ONE),
    "on another size": ("exactly 8", under(L8, Condition(Affine.of("Q"), step=8)), "is no condition on sizes"),
    "on an axis": ("exactly 8", under(L8, Condition(Affine.of("m"), step=8)), "is no condition on sizes"),
    "remainders that there are not": ("exactly 8", under(L8, Condition(T, step=8, rests=(8,))), "is no condition"),
    "without steps": ("exactly 8", under(L8, Condition(T, step=0)), "is no condition"),
    "without steps or remainders": ("exactly 8", under(L8, Condition(T, 0, None, 0, (), (8,))), "is no condition"),
    "at no sizes": ("exactly 8", under(Condition(T, 9, 8), L8), "is mapped for no sizes at all"),
    "less than the least": ("at least 4", under(Condition(T, 3)), "calls of from 4 along i"),
    "more than one call takes": ("in one call", under(Condition(T, 0, 10, 2)), "one call of 0, 2, ..., 8 along i"),
    "none": ("some in one call", under(), "one call of from 1 along i cannot make up T steps of a at R = 0, T = 0"),
    "several calls": ("in one call", lambda m: replace(m, whole=(), conditions=(Condition(T, step=2),)), "one call of"),
    "what only other blocks make up": ("four or five", under(Condition(T, some=(11,), least=12)), "L = 0, T = 11"),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_conditions_that_do_not_suffice_are_refused(what: str):
    base, change, why = FORGED[what]
    k, m = mapped(*HOLD[base][:4])
    wrong = change(m)
    assert wrong != m
    found = refusals({**said(k, wrong), "numerics": certify(of_mapping(m, k))["numerics"]})
    assert any(why in x for x in found), found
    with pytest.raises(InternalError, match="are not proved"):
        certify(of_mapping(wrong, k))


@pytest.mark.parametrize("other", ["2", "first"])  # the instruction takes all in one call where it reads the first
@pytest.mark.parametrize(("size", "fits"), [("N <= 16", True), ("1 <= N", True), ("2 <= N", False), ("N % 2", False),
                                            ("N == 16", False)])  # fmt: skip
def test_a_condition_of_the_kernel_leaves_any_number_of_steps(size: str, fits: bool, other: str):
    body, text = (EACH, EACHES) if other == "2" else (WITH_FIRST, FIRSTS)
    k = parse_kernel(text.format("").replace("T", "16").replace("out y", "inout y")
                     .replace("a < 16", "a < 16 where a <= 8"))  # fmt: skip
    m = match(k, parse_instruction(f"instruction own(N)\n{body}")).first
    found = judged_mappings(k, (replace(m, instruction=parse_instruction(f"instruction own({size})\n{body}")),))[1]
    assert [w.partition(",")[0] for w in found] == (
        [] if fits else ["'own': a condition leaves any number of the steps of a"])  # fmt: skip


@pytest.mark.parametrize(("where", "other", "fits"), [("a <= 8", "A[0]", True), ("8 <= a", "A[0]", False),
                                                      ("8 <= a", "2", True)])  # fmt: skip
def test_a_condition_of_the_kernel_leaves_the_first_steps_of_a_whole_axis(where: str, other: str, fits: bool):
    body, text = (EACH, EACHES) if other == "2" else (WITH_FIRST, FIRSTS)
    k = parse_kernel(text.format("").replace("T", "16").replace("out y", "inout y"))
    m = match(k, parse_instruction(f"instruction own(N)\n{body}")).first
    (s,) = parse_kernel(str(k).replace("a < 16", f"a < 16 where {where}")).statements
    assert s.domain.where
    found = judged_mappings(replace(k, body=(s,)), (m,))[1]
    assert found == (
        [] if fits else ["'own': what a condition leaves of the steps of a is no one call of fewer along i"]
    )


def test_conditions_that_ask_for_more_are_accepted():
    k, m = mapped(*HOLD["exactly 8"][:4])
    for c in (Condition(T, step=16), Condition(T, 8, 8), Condition(T, 1, 40, 8), Condition(T, 9, 8, some=(24,))):
        assert refusals(certify(of_mapping(replace(m, conditions=(L8, c)), k))) == []


def test_a_certificate_that_keeps_its_condition_to_itself_is_refused():
    k, m = mapped(*HOLD["exactly 8"][:4])
    for holds in ([], ["T % 8 == 0"], ["T % 4 == 0", "L % 8 == 0"]):
        data = {x: v for x, v in certify(of_mapping(m, k)).items() if x != "seal"}
        assert refusals(sealed({**data, "holds": holds})) == ["the mappings hold under other conditions than is said"]


def test_calls_that_need_each_other_are_refused():
    """One call after the other would read what a later one writes."""
    body = ("  in A: f32[N]\n  out D: f32[N]\n  in B: f32[N]\n  out E: f32[N]\n  forall i < N\n    D[i] = A[i] * 2\n"
            "  forall i < N\n    E[i] = D[i] + B[i]\n")  # fmt: skip
    text = (
        "kernel k()\n  in x: f32[4, 8]\n  in z: f32[4, 8]\n  inout u: f32[5, 8]\n  out y: f32[4, 8]\n"
        "  forall r < 4, i < 8\n    u[r, i] = x[r, i] * 2\n  forall r < 4, i < 8\n    y[r, i] = u[r, i] + {}\n"
    )
    i = parse_instruction(f"instruction own(N)\n{body}")
    right, wrong = text.format("z[r, i]"), text.format("u[r + 1, i]")
    m = next(m for m in match(parse_kernel(right), i) if m.outer == ("r",))
    assert judged_mappings(parse_kernel(right), (m,))[1] == []
    assert not match(parse_kernel(wrong), i)
    at = (Affine.of("r") + 1, Affine.of("i"))
    forged = replace(m, operands=tuple(replace(o, buffer="u", index=at) if o.operand == "B" else o for o in m.operands))
    assert judged_mappings(parse_kernel(wrong), (forged,))[1] == ["'own': calls at different r meddle with each other"]


def test_one_size_of_two_axes():
    square = "  in A: f32[N, N]\n  out D: f32\n  D = 0\n  forall i < N, j < N\n    D += A[i, j]\n"
    text = "kernel k()\n  in x: f32[{0}, {1}]\n  out y: f32\n  y = 0\n  forall a < {0}, b < {1}\n    y += x[a, b]\n"
    i = parse_instruction(f"instruction own(N <= 8)\n{square}")
    m = match(parse_kernel(text.format(4, 4)), i).first
    assert judged_mappings(parse_kernel(text.format(4, 4)), (m,))[1] == []
    assert judged_mappings(parse_kernel(text.format(4, 8)), (m,))[1] == [
        "'own': no one value of N makes a call of all 8 steps of b"]  # fmt: skip


def test_calls_that_are_cut_alike_take_axes_of_any_length():
    body = "  in A: f32[N, N]\n  out D: f32[N, N]\n  forall i < N, j < N\n    D[i, j] = A[i, j] * 2\n"
    k = parse_kernel(f"kernel k()\n{body.replace('N, N', '16, 8').replace('i < N, j < N', 'i < 16, j < 8')}")
    m = match(k, parse_instruction(f"instruction own(N == 8)\n{body}")).first
    assert judged_mappings(k, (m,))[1] == []


@pytest.mark.parametrize(("steps", "fits"), [((2, 6), True), ((3, 5), True), ((3, 6), False), ((5, 3), False)])
def test_an_axis_that_a_larger_size_makes_shorter_is_one_call(steps: tuple[int, int], fits: bool):
    body = "  in A: f32[{0}, {1}]\n  out D: f32[{0}, {1}]\n  forall i < {0}, j < {1}\n    D[i, j] = A[i, j] * 2\n"
    k = parse_kernel(f"kernel k()\n{body.format(*steps)}")
    m = match(k, parse_instruction(f"instruction own(M, N)\n{body.format('M', 'N')}")).first
    less = parse_instruction(f"instruction own(N <= 4)\n{body.format('N', '8 - N')}")
    assert (judged_mappings(k, (replace(m, instruction=less),))[1] == []) == fits
    assert bool(match(k, less)) == (sum(steps) == 8)  # 5 x 3 the other way round
    assert all(judged_mappings(k, (x,))[1] == [] for x in match(k, less) or ())


def test_an_axis_that_a_larger_size_makes_shorter_may_have_no_steps():
    body = "  in A: f32[{0}, {1}]\n  out D: f32[{0}, {1}]\n  forall i < {0}, j < {1}\n    D[i, j] = A[i, j] * 2\n"
    k = parse_kernel(f"kernel k(T <= 8)\n{body.format('T', '8 - T')}")
    m = match(k, parse_instruction(f"instruction own(N <= 8)\n{body.format('N', '8 - N')}")).first
    assert m.conditions == ()
    assert judged_mappings(k, (m,))[1] == []


def test_an_axis_that_only_gets_shorter_with_its_size_has_no_one_value():
    """Six to eight elements: five are no call, nor several."""
    body = "  in A: f32[8 - N]\n  out D: f32[8 - N]\n  forall i < 8 - N\n    D[i] = A[i] * 2\n"
    k = parse_kernel(EACHES.format("").replace("T", "5"))
    less = parse_instruction(f"instruction own(N <= 2)\n{body}")
    assert match(k, less).kind == "extent"
    m = match(k, parse_instruction(f"instruction own(N)\n{EACH}")).first
    assert judged_mappings(k, (replace(m, instruction=less),))[1] == [
        "'own': no one value of N makes a call of all 5 steps of a"]  # fmt: skip
