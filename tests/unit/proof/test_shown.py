"""What was shown of one step is not asked again, and says nothing of another."""

from __future__ import annotations

from isam.ir.text import parse
from isam.once import know
from isam.proof import equivalence
from isam.proof.equivalence import Equivalence

UNREAD = """
kernel k(N=8)
  in  x: f32[N]
  out y: f32[N]
  temp t: f32[N]
  forall i < N
    t[i] = x[i]
  forall i < N
    y[i] = x[i]
"""
READ = UNREAD.replace("y[i] = x[i]", "y[i] = t[i]")


def other(text: str) -> str:
    return text.replace("t[i] = x[i]", "t[i] = 0")


def test_what_is_read_afterwards_belongs_to_the_question():
    before, read = parse(UNREAD), parse(READ)
    assert Equivalence().judge(before, parse(other(UNREAD)))
    know(equivalence._answers, read, equivalence._answers(before))
    assert not Equivalence().judge(read, parse(other(READ)))


def test_so_do_the_buffers():
    def text(size: int) -> str:
        return READ.replace("temp t: f32[N]", f"temp t: f32[{size}]").replace("i < N\n    t", f"i < {size}\n    t")

    before, short = parse(text(8)), parse(text(6).replace("y: f32[N]", "y: f32[6]").replace("i < N\n", "i < 6\n"))
    assert Equivalence().judge(before, parse(text(8)))
    know(equivalence._answers, short, equivalence._answers(before))
    assert not Equivalence().judge(short, parse(other(str(short))))


def test_a_step_is_shown_once(monkeypatch):
    before, after = parse(READ), parse(READ.replace("x[i]", "x[i] * 1"))
    assert Equivalence().judge(before, after)
    monkeypatch.setattr(equivalence._Pair, "differences", lambda *_: ("asked again",))
    assert Equivalence().judge(before, after)
    assert not Equivalence().judge(before, parse(other(READ)))


def test_nor_is_what_was_not_shown(monkeypatch):
    before, after = parse(READ), parse(other(READ))
    said = Equivalence().judge(before, after)
    monkeypatch.setattr(equivalence._Pair, "differences", lambda *_: ("asked again",))
    assert not said
    assert Equivalence().judge(before, after) == said
