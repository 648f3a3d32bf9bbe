"""``compile`` and ``verify``: artifacts, and those that are not what they say."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest

import isam
from isam.artifact import Size, load_artifact
from isam.schedule import SCHEMA
from tests.cli.conftest import SMALL


def test_compile_verify_run(cli, matmul, tmp_path):
    out = tmp_path / "matmul.isamc"
    made = cli("compile", matmul, *SMALL, "-o", out, "--json").json("compile")
    assert made["bytes"] == out.stat().st_size
    assert {"object.o", "certificate.json", "schedule.json", "trace.json", "kernel.isam"} <= set(made["parts"])
    d = cli("verify", out, "--json").json("verify")
    assert d["holds"]
    assert d["code"] == "same"
    assert len(d["obligations"]) == 11
    ran = cli("run", out, "--check", "--repeat", 3)
    assert ran.code == 0
    assert "right: every element within its bound" in ran.out


def test_verify_accepts_what_python_saved(cli, matmul, tmp_path):
    isam.compile(matmul.read_text(), on="toy", sizes={"M": 5, "N": 6, "K": 7}).save(tmp_path / "a")
    assert cli("verify", tmp_path / "a").code == 0
    assert cli("run", tmp_path / "a", "--check").code == 0


def test_verify_refuses_forgeries(cli, matmul, tmp_path):
    out, other = tmp_path / "a", tmp_path / "other"
    assert cli("compile", matmul, *SMALL, "-o", out).code == 0
    assert cli("compile", matmul, "-D", "M=5,N=18,K=4", "-o", other).code == 0
    a, b = load_artifact(out), load_artifact(other)
    forged = {
        "code": {"object.o": b.parts["object.o"]},
        "certificate": {"certificate.json": a.parts["certificate.json"].replace(b'"proved"', b'"Proved"', 1)},
        "schedule": {"schedule.json": b.parts["schedule.json"]},
        "kernel": {"kernel.isam": a.parts["kernel.isam"].replace(b"= 0", b"= 1")},
    }
    for name, parts in forged.items():
        replace(a, parts={**a.parts, **parts}).save(out)
        ran = cli("verify", out, "--json")
        assert ran.code == 1, name
        assert not ran.json("verify")["holds"], name
        assert cli("verify", out).out.startswith(f"{out}: refused"), name


SAID = {
    "arguments exchanged": lambda a: {"arguments": a.arguments[::-1]},
    "an argument of another name": lambda a: {"arguments": (replace(a.arguments[0], name="Q"), *a.arguments[1:])},
    "a shorter argument": lambda a: {"arguments": (replace(a.arguments[0], shape=((1, ()),) * 2), *a.arguments[1:])},
    "another type": lambda a: {"arguments": (replace(a.arguments[0], dtype="f64"), *a.arguments[1:])},
    "an output that is read": lambda a: {"arguments": (*a.arguments[:-1], replace(a.arguments[-1], role="in"))},
    "a size": lambda a: {"sizes": (Size("M"),)},
    "fewer needs": lambda a: {"needs": a.needs[1:]},
    "functions": lambda a: {"externals": (("a", "c:f/1"),)},
    "more workspace": lambda a: {"workspace": a.workspace + 64},
    "more bound": lambda a: {"workspace": a.workspace + 64, "bound": a.bound + 64},
    "another name": lambda a: {"name": "other"},
    "another entry": lambda a: {"entry": "other"},
    "another back end": lambda a: {"backend": "stream"},
    "other points": lambda a: {"points": 1},
    "another machine": lambda a: {"provenance": {**a.provenance, "system": "other"}},
    "something noted": lambda a: {"provenance": {**a.provenance, "note": 1}},
    "another LLVM": lambda a: {"provenance": {**a.provenance, "llvm": "0.1"}},
    "another version": lambda a: {"provenance": {**a.provenance, "isam": "0.0.1"}},
    "a part more": lambda a: {"parts": {**a.parts, "more": b""}},
    "no code": lambda a: {"parts": {n: p for n, p in a.parts.items() if n != "object.o"}},
    "other sizes": lambda a: {"given": (("M", 41),)},
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    from tests.corpus import CASES

    path = tmp_path_factory.mktemp("verify") / "matmul"
    isam.compile(CASES["matmul"].load(), sizes={"M": 5, "N": 6, "K": 7}, cache=False).save(path)
    return path


@pytest.mark.parametrize("forge", SAID.values(), ids=SAID.keys())
def test_what_an_artifact_says_of_itself_is_what_the_schedule_gives(cli, saved, tmp_path, forge):
    """Else it may read and write beyond arrays, or run where the CPU lacks what it needs."""
    a = load_artifact(saved)
    replace(a, **forge(a)).save(tmp_path / "forged")
    ran = cli("verify", tmp_path / "forged")
    assert ran.code == 1, ran.out + ran.err
    assert "refused" in ran.out


def test_code_of_another_kernel_is_refused_whatever_is_noted_beside_it(cli, saved, tmp_path):
    a = load_artifact(saved)
    other = isam.compile("kernel d(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = x[i]",
                         sizes={"N": 4}, cache=False).artifact  # fmt: skip
    for noted in ({}, {"note": 1}, {"llvm": "0.1"}):
        code = {**a.parts, "object.o": other.parts["object.o"]}
        replace(a, parts=code, provenance={**a.provenance, **noted}).save(tmp_path / "forged")
        assert cli("verify", tmp_path / "forged").code == 1
    assert cli("verify", tmp_path / "forged", "--no-code").code == 0  # which says so
    assert "code: not compared" in cli("verify", tmp_path / "forged", "--no-code").out


def test_schedules_that_make_no_sense_are_refused(cli, saved, tmp_path):
    """Entries of its document, well-formed by themselves, changed one by one."""
    a = load_artifact(saved)
    document = json.loads(a.parts["schedule.json"])
    places = list(_places(document))
    for place in places[:: max(1, len(places) // 60)]:
        forged = copy.deepcopy(document)
        *way, last = place
        at = forged
        for step in way:
            at = at[step]
        at[last] = 65 if isinstance(at[last], int) else "q" if isinstance(at[last], str) else at[last]
        if forged != document:
            parts = {**a.parts, "schedule.json": json.dumps(forged).encode()}
            replace(a, parts=parts).save(tmp_path / "forged")
            ran = cli("verify", tmp_path / "forged")
            assert ran.code in (1, 2), (place, ran.out, ran.err)


def _places(value, way=()):
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for n, v in parts:
        yield from _places(v, (*way, n))
    if not isinstance(value, dict | list) and way:
        yield way


def test_documents_nested_too_deeply_are_told(cli, tmp_path):
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    ran = cli("verify", deep)
    assert ran.code == 2
    assert "is no certificate" in ran.err


def test_calls_that_wait_for_nobody_are_refused(cli, matmul, tmp_path):
    """Also with a certificate that somebody has made for them without looking at their waits."""
    from isam.proof.certificate import ProofError, examine, prove
    from isam.schedule.serial import from_json, to_json
    from isam.schedule.tree import Issue, Node, mapped

    out = tmp_path / "a"
    isam.compile(matmul.read_text(), on="toy", sizes={"M": 5, "N": 6, "K": 7}).save(out)
    assert cli("verify", out, "--json").json("verify")["holds"]
    a = load_artifact(out)

    def hasty(node: Node) -> Node:
        return node.waiting(()) if isinstance(node, Issue) else mapped(node, hasty)

    schedule = from_json(a.text("schedule.json"), "a")
    hurried = replace(schedule, bind=hasty(schedule.bind), call=hasty(schedule.call))
    with pytest.raises(ProofError, match="may start before"):
        prove(hurried)
    certificate = examine(hurried)[0].to_json().encode()
    replace(a, parts={**a.parts, "schedule.json": to_json(hurried).encode(), "certificate.json": certificate}).save(out)
    ran = cli("verify", out, "--json")
    assert ran.code == 1
    assert "may start before" in " ".join(ran.json("verify")["violations"])


@pytest.mark.parametrize(("part", "text", "said"), [
    ("schedule.json", b"[]", "this is no schedule of schema isam.schedule-tree/"),
    ("schedule.json", b'{"schema": "%s"}' % SCHEMA.encode(), "this is no schedule: a part of it is missing"),
    ("schedule.json", b"{", "this is no schedule: Expecting property name"),
    ("trace.json", b"[1", "this is no trace: Expecting"),
    ("trace.json", b"[1]", "this is no trace of schema isam.trace/4, its schema is None"),
    ("trace.json", b'{"schema": "isam.trace/4", "approach": "greedy"}', "this is no trace: 'decisions' is missing"),
    ("trace.json", b"\xff", "the part 'trace.json' of the artifact of 'matmul' is no text"),
    ("kernel.isam", b"kernel", "expected kernel NAME(SIZES)"),
])  # fmt: skip
def test_verify_names_the_part_that_is_damaged(cli, matmul, tmp_path, part, text, said):
    """Also where the manifest has the hashes of what is there."""
    out = tmp_path / "a"
    assert cli("compile", matmul, *SMALL, "-o", out).code == 0
    a = load_artifact(out)
    replace(a, parts={**a.parts, part: text}).save(out)
    ran = cli("verify", out)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert part in ran.err
    assert "object has no attribute" not in ran.err
