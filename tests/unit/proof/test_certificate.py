"""Certificates: derived, read back, checked in another process, and forged in every way we could think of."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest

import isam.proof
from isam.ir.kernel import Sym
from isam.ir.mapping import Cover, Rewriting
from isam.ir.text import parse_kernel
from isam.proof import Certificate, ProofError, check_flat, check_points, flat, prove, verify
from isam.proof.certificate import METHODS, executed, schedule_hash, seal
from isam.proof.chain import check_chain
from isam.schedule.serial import from_json, to_json
from isam.schedule.tree import Loop, Schedule, Seq, distinct
from tests.unit.proof.handmade import running_sum, tiny_matmul, vec_matmul
from tests.unit.proof.test_points import MADE
from tests.unit.proof.verdicts import on_record


@cache
def schedule() -> Schedule:
    return tiny_matmul()


@cache
def genuine() -> Certificate:
    return prove(schedule())


@pytest.mark.parametrize("name", MADE)
def test_genuine_certificates_hold(name):
    s = MADE[name]()
    c = prove(s)
    assert verify(c, s) == []
    assert verify(c.to_json(), from_json(to_json(s))) == []
    assert [o["number"] for o in c.data["obligations"]] == list(range(1, 12))
    assert str(c).startswith("proved: 11 obligations")
    on_record(f"certificate of {name}", (str(c).split(" isl questions")[0], *c.data["obligations"]))


def test_distinct_bodies_are_counted():
    for s, bodies in ((tiny_matmul(), 3), (tiny_matmul(peeled=True), 4)):
        loops = [n for t in (s.bind, s.call) for n in distinct(t) if isinstance(n, Loop)]
        assert len({id(p) for n in loops for p in (n.first, n.body, n.last) if p is not None}) == bodies
        assert prove(s).data["figures"]["bodies"] == bodies


def test_a_fresh_process_agrees(tmp_path):
    (tmp_path / "s.json").write_text(to_json(schedule()))
    (tmp_path / "c.json").write_text(genuine().to_json())
    code = (
        "import sys; from isam.proof import verify; from isam.schedule.serial import from_json;"
        "print(verify(open(sys.argv[2]).read(), from_json(open(sys.argv[1]).read())))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "s.json"), str(tmp_path / "c.json")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stderr


def forgeries():
    """(what is forged, how): every field and some that should not be there."""

    def at(*path, value):
        def change(d):
            for p in path[:-1]:
                d = d[p]
            d[path[-1]] = value

        return change

    def gone(*path):
        def change(d):
            for p in path[:-1]:
                d = d[p]
            del d[path[-1]]

        return change

    yield "schema", at("schema", value="isam.certificate/1")
    yield "version", at("isam", value="9.9.9")
    yield "kernel name", at("kernel", "name", value="other")
    yield "kernel text", lambda d: at("kernel", "text", value=d["kernel"]["text"].replace("8", "9"))(d)
    yield "kernel hash", at("kernel", "hash", value="0" * 64)
    yield "rewritten text", lambda d: at("kernel", "rewritten", value=d["kernel"]["rewritten"] + " ")(d)
    yield "rewritten hash", lambda d: at("kernel", "rewritten_hash", value=d["kernel"]["rewritten_hash"][::-1])(d)
    yield "a step never made", at("kernel", "steps", value=["factor"])
    yield "system name", at("system", "name", value="host")
    yield "system hash", at("system", "hash", value="")
    yield "schedule hash", at("schedule", "hash", value="f" * 64)
    for n in range(11):
        yield f"obligation {n + 1} removed", gone("obligations", n)
    yield "obligation twice", lambda d: d["obligations"].append(d["obligations"][0])
    yield "obligations reordered", lambda d: d["obligations"].reverse()
    yield "all obligations removed", at("obligations", value=[])
    yield "obligation number", at("obligations", 3, "number", value=40)
    yield "another method", at("obligations", 0, "method", value="trust me")
    yield "another statement", at("obligations", 7, "statement", value="every read is fast")
    yield "a verdict", at("obligations", 4, "verdict", value="assumed")
    yield "more steps", lambda d: at("figures", "steps", value=d["figures"]["steps"] + 1)(d)
    yield "fewer loops", lambda d: at("figures", "loops", value=d["figures"]["loops"] - 1)(d)
    yield "bodies", at("figures", "bodies", value=0)
    yield "slots", at("figures", "slots", value=7)
    yield "a figure more", at("figures", "seconds", value=0.1)
    yield "true for one", lambda d: at("figures", "loops", value=True)(d)
    yield "figures removed", gone("figures")
    yield "kernel removed", gone("kernel")
    yield "something added", at("approved", value=True)
    yield "no seal", gone("seal")
    yield "seal a number", at("seal", value=1)


FORGED = dict(forgeries())


@pytest.mark.parametrize("what", FORGED)
@pytest.mark.parametrize("resealed", [False, True])
def test_forgeries_are_refused(what, resealed):
    data = copy.deepcopy(dict(genuine().data))
    FORGED[what](data)
    if resealed and "seal" in data and what != "seal a number":
        data["seal"] = seal({k: v for k, v in data.items() if k != "seal"})
    found = verify(json.dumps(data), schedule())
    assert found, what
    assert all(v.kind == "certificate" for v in found)


def test_a_schedule_has_one_certificate_and_what_was_spent_is_told_beside_it():
    again = prove(schedule())
    assert again.to_json() == genuine().to_json()
    assert "isl questions" in str(again)
    assert "isl questions" not in str(Certificate.from_json(again.to_json()))


def test_of_a_schedule_that_makes_no_sense_that_is_said():
    s = schedule()
    for wrong in (
        replace(s, nests=s.nests[:0]),
        replace(s, cover=replace(s.cover, mappings=())),
        replace(s, cover=replace(s.cover, original=replace(s.cover.original, buffers=()))),
    ):
        assert verify(genuine(), wrong)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"schema": NaN}', "[" * 100_000, "1", "{}"])
def test_no_certificate_at_all(text):
    assert verify(text, schedule())


def test_a_certificate_fits_one_schedule_only():
    right = schedule()
    others = [
        tiny_matmul(peeled=True),
        tiny_matmul(8, 8, 16),
        vec_matmul(),
        running_sum(),
        replace(right, call=Seq((right.call,))),
        replace(right, system=replace(right.system, name="tinier")),
        replace(
            right,
            system=replace(
                right.system,
                memories={n: replace(m, capacity=m.capacity * 2) for n, m in right.system.memories.items()},
            ),
        ),
    ]
    for s in others:
        assert verify(genuine(), s)


def test_a_wrong_schedule_has_no_certificate():
    right = schedule()
    loop = right.call
    inner = loop.body.body
    broken = replace(right, call=replace(loop, hi=loop.lo))
    kept = replace(right, call=replace(loop, body=replace(loop.body, body=replace(inner, exit=Seq()))))
    with pytest.raises(ProofError, match="obligation 1") as e:
        prove(broken)
    assert {v.obligation for v in e.value.violations} == {1}
    assert {v.obligation for v in verify(genuine(), broken)} >= {0, 1}
    with pytest.raises(ProofError, match="obligation 8"):
        prove(kept)


def test_every_obligation_has_a_method():
    assert list(METHODS) == list(range(1, 12))
    assert isinstance(prove(tiny_matmul(4, 4, 4)), Certificate)


def test_what_an_error_says_of_its_schedule():
    """Wrong, only not proved, or too large to tell."""
    right, wrong = vec_matmul(3, 8, 5), replace(vec_matmul(3, 8, 5), call=Seq())
    some = check_points(wrong)
    assert some
    said = str(ProofError(wrong, some, executed(wrong)))
    assert "is wrong: it violates" in said
    assert "executed step by step:" in said
    assert all(str(v) in said for v in (*some, *check_flat(wrong)))
    said = str(ProofError(right, some[:1], executed(right)))
    assert "is not proved: 1 obligation not shown, though executing every step meets nothing wrong" in said
    assert str(some[0]) in said
    large = vec_matmul(3, 8 * 40_000, 5)
    said = str(ProofError(large, some, executed(large)))
    assert "too many steps to execute them all" in said
    assert all(str(v) in said for v in some)


def test_the_package_has_the_names_that_it_lists() -> None:
    assert all(getattr(isam.proof, name) for name in isam.proof.__all__)
    with pytest.raises(AttributeError, match="no attribute 'proved'"):
        _ = isam.proof.proved


def test_hashes_tell_schedules_apart() -> None:
    assert schedule_hash(schedule()) == schedule_hash(from_json(to_json(schedule())))
    assert len({schedule_hash(s) for s in (schedule(), tiny_matmul(8, 8, 8), replace(schedule(), call=Seq()))}) == 3


def test_a_chain_ends_where_its_last_step_ends() -> None:
    text = "kernel k()\n  in a: f32[4]\n  out c: f32[4]\n  out d: f32[4]\n"
    first, second = "forall i < 4\n    c[i] = a[i]\n", "forall i < 4\n    d[i] = a[i] * a[i]\n"
    one, two = (parse_kernel(f"{text}  {x}  {y}") for x, y in ((first, second), (second, first)))
    assert one != two
    chain = tuple(Rewriting("swap", f"{n}", (), k) for n, k in enumerate((two, one, two)))
    names = tuple(f"swap ({n})" for n in range(3))
    for kernel, some, said in ((two, 3, names), (one, 2, names[:2]), (two, 1, names[:1]), (one, 0, ())):
        data, bad = check_chain(Cover(kernel, one, (), said, chain=chain[:some]))
        assert (len(data), bad) == (some, [])
        wrong = Cover(two if kernel is one else one, one, (), said, chain=chain[:some])
        for cover in (wrong, Cover(kernel, one, (), (*said, "swap (3)"), chain=chain[:some])):  # one that is not there
            _, bad = check_chain(cover)
            assert [(v.obligation, v.kind) for v in bad] == [(3, "rewriting")]


def test_every_step_of_a_chain_is_judged_from_the_one_before() -> None:
    one, other = (parse_kernel(f"kernel k()\n  in a: f32[4]\n  out c: f32[4]\n  forall i < 4\n    c[i] = a[i]{x}\n")
                  for x in ("", " * a[i]"))  # fmt: skip
    chain = tuple(Rewriting("law", f"{n}", (), other) for n in range(2))
    data, bad = check_chain(Cover(other, one, (), ("law (0)", "law (1)"), chain=chain))
    assert [step["verdict"] for step in data] == ["undecided", "equal"]
    assert [(v.obligation, v.kind, v.message.partition(":")[0]) for v in bad] == [
        (3, "rewriting", "step 1 of the rewriting, law (0)")]  # fmt: skip


def test_sizes_to_execute_leave_parts_and_a_rest() -> None:
    """Of a size that is cut into parts there are enough for one part and some left over, within its bounds."""
    given: list[dict[str, int]] = []
    some = ((Sym("T"), 4, 5, 1), (Sym("T"), 2, 3, 1), (Sym("T", 0, 4), 8, 4, 0), (Sym("T", 9, None, 2), 4, 14, 3))
    for size, part, many, parts in some:
        s = schedule()
        kernel = replace(s.cover.kernel, syms=(size, Sym.times("Q", size, part)))
        with pytest.MonkeyPatch.context() as m:
            m.setattr(flat, "check_flat", lambda s, trips, steps: given.append(trips) or [])
            assert executed(replace(s, cover=replace(s.cover, kernel=kernel))) == ()
        assert given.pop() == {"T": many, "Q": parts}
