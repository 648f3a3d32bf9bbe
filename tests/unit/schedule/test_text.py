"""The drawing of schedules."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.schedule.summary import Group, Run, groups, hull
from isam.schedule.text import figures, print_schedule
from isam.schedule.tree import Seq
from tests.schedules import I_, box, loop, matmul_on_tiny, move, place


def test_the_drawing_shows_loops_tables_and_places():
    text = print_schedule(matmul_on_tiny(8, 12, 8, pipelined=True))
    assert "for k from 0 below 8 step 4   # 2 times" in text
    assert "enter" in text
    assert "last" in text
    assert "copy: A[i:+4, 0:+4] from dram.A to sp+0" in text
    assert "mm4 (K=4 M=4 N=4): A[i:+4, k:+4] @ra[0], B[k:+4, j:+4] @rb[0], C[i:+4, j:+4] @ra[1]" in text
    assert text.startswith("schedule of matmul on tiny: 3 loops")


def test_a_shared_body_is_printed_once():
    s = matmul_on_tiny(8, 8, 8)
    inner = s.call.children[0].body
    shared = replace(s, call=Seq((loop("i", 0, 4, 4, inner), loop("i", 4, 8, 4, inner))))
    text = print_schedule(shared)
    assert text.count("mm4 (") == 1
    assert text.count("b1 again") == 1
    assert figures(shared.call)["loops"] == 4  # two over i, one over j, one over k


def unrolled(n):
    return [move(box("A", (I_ + 4 * t, 0), (4, 4)), place("sp", 64 * t), place("ra", t)) for t in range(n)]


def test_runs_are_one_line_with_their_hull():
    (run,) = groups(unrolled(5))
    assert run.count == 5
    assert str(hull([i.operands[0].tile for i in run.issues])) == "A[i:+20, 0:+4]"
    s = matmul_on_tiny(4, 4, 4)
    drawn = replace(s, call=Seq(tuple(unrolled(5))))
    assert "copy x5: A[i:+20, 0:+4] from sp+0..256 to ra[0..4]" in print_schedule(drawn)
    assert print_schedule(drawn, full=True).count("copy(") == 5


def test_repeated_sequences_are_groups():
    a = unrolled(6)
    b = [move(box("B", (t, 0), (1, 4)), place("sp", 64), place("rb", t)) for t in range(6)]
    c = move(box("C", (0, 0), (1, 4)), place("sp", 64), place("rb"))
    mixed = [x for t in range(3) for x in (a[2 * t], a[2 * t + 1], b[t])] + [c]
    group, rest = groups(mixed)
    assert isinstance(group, Group)
    assert group.times == 3
    assert [p.count for p in group.parts] == [2, 1]
    assert [len(p.issues) for p in group.parts] == [6, 3]
    assert rest == Run(1, (c,))


def test_a_strided_tile_keeps_its_steps_alone():
    t = box("A", (0, 0), (4, 4))
    odd = t._replace(steps=(2, 1))
    assert str(hull([odd])) == "A[0:+4:2, 0:+4]"
    assert hull([odd, odd._replace(start=(Affine((), 1), Affine()))]).shape == (8, 4)
