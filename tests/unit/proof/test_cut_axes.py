"""Which axes calls take whole, and how much of the others: bodies with one reason each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.text import parse_instruction, parse_kernel
from isam.mapper import match
from isam.proof.calls import Takes, _Calls
from isam.proof.carried import Part


def calls(plain: str, sizes: str, body: str, kernel: str) -> _Calls:
    """Of the mapping of a plain instruction, said of another one in its place."""
    k = parse_kernel(kernel)
    m = match(k, parse_instruction(plain)).first
    m = replace(m, instruction=parse_instruction(f"instruction own({sizes})\n{body}"))
    return _Calls(k, m, Part(k, m, 0))


def text(rows: str, columns: str) -> str:
    return (f"  in A: f32[{rows}, {columns}]\n  out D: f32[{rows}, {columns}]\n  forall i < {rows}, j < {columns}\n"
            "    D[i, j] = A[i, j] * 2\n")  # fmt: skip


TWO = (f"instruction own(M, N)\n{text('M', 'N')}", f"kernel k()\n{text('24', '24')}")
SUMS = "  in A: f32[{0}, {1}]\n  out D: f32\n  D = 0\n  forall i < {0}, j < {1}\n    D += A[i, j]\n"
SUMMED = (f"instruction own(M, N)\n{SUMS.format('M', 'N')}", f"kernel k()\n{SUMS.format('24', '24')}")


def sizes_of(takes: Takes) -> list[int]:
    return list(range(takes.least, (40 if takes.most is None else takes.most) + 1, takes.step))


@pytest.mark.parametrize("domain", [(0, None, 1), (0, 12, 1), (3, 11, 4), (2, 9, 1), (5, None, 5), (1, 2, 1)], ids=str)
@pytest.mark.parametrize(("a", "b"), [("N", "N"), ("N + 2", "N"), ("2 * N", "N"), ("2 * N", "N + 3"), ("N", "5")])
def test_calls_of_one_size_are_cut_alike(domain: tuple[int, int | None, int], a: str, b: str):
    """Along both axes one call takes what one and the same value of the size says, and as little as can be."""
    lo, hi, by = domain
    head = f"{lo} <= N" + (f" <= {hi}" if hi is not None else "") + (f" % {by}" if by > 1 else "")
    c = calls(TWO[0], head, text(a, b), TWO[1])
    values = [n for n in range(lo, (40 if hi is None else hi) + 1) if n % by == 0]
    assert c.whole == set()
    ends = [[eval(x, {"N": n}) for n in values] for x in (a, b)]
    if b == "5":
        assert (sizes_of(c.takes("i")), c.takes("j")) == ([n for n in ends[0] if n <= 40], Takes(5, 5))
    else:
        first = next(n for n, both in enumerate(zip(*ends, strict=True)) if min(both) >= 1)
        assert [c.takes(x) for x in "ij"] == [Takes(e[first], e[first]) for e in ends]


def test_what_is_taken_whole_says_which_sizes_it_has():
    c = calls(SUMMED[0], "N <= 9 % 2", SUMS.format("2 * N", "N + 3"), SUMMED[1])
    assert c.whole == {"i", "j"}
    assert c.takes("i") == Takes(0, 16, 4)
    assert c.takes("j") == Takes(3, 11, 2)


def test_an_axis_that_is_not_whole_by_itself_is_so_by_its_size():
    """A sum along j is one call; i is as long."""
    body = ("  in A: f32[{0}, {1}]\n  out D: f32[{0}]\n  forall i < {0}\n    D[i] = 0\n  forall i < {0}, j < {1}\n"
            "    D[i] += A[i, j]\n")  # fmt: skip
    plain, k = f"instruction own(M, N)\n{body.format('M', 'N')}", f"kernel k()\n{body.format('24', '16')}"
    assert calls(plain, "M, N", body.format("M", "N"), k).whole == {"j"}
    both = calls(plain, "N", body.format("N", "N"), k)
    assert both.whole == {"i", "j"}
    assert list(both.uneven()) == ["'own': no one value of N makes a call of all 16 steps of j"]
    assert calls(plain, "M, N", body.format("M + N", "8"), k).whole == {"i", "j"}
    assert list(calls(plain, "M, N", body.format("M", "N + 1"), k).uneven()) == []


@pytest.mark.parametrize(("end", "least"), [("2 * N - 5", 1), ("2 * N - 4", 0), ("2 * N", 0), ("2 * N + 1", 1)])
def test_a_call_takes_no_less_than_none(end: str, least: int):
    c = calls(SUMMED[0], "M, N", SUMS.format("M", end), SUMMED[1])
    assert c.takes("j") == Takes(least, None, 2)


@pytest.mark.parametrize(("index", "whole"), [("i", set()), ("7 - i", {"i"})])
def test_an_operand_of_which_a_call_gets_no_one_block_is_taken_whole(index: str, whole: set[str]):
    body = f"  in A: f32[8]\n  out D: f32[8]\n  forall i < 8\n    D[i] = A[i] * A[{index}]\n"
    assert calls(f"instruction own()\n{body}", "", body, f"kernel k()\n{body}").whole == whole
