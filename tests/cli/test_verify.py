"""``compile`` and ``verify``: artifacts, and those that are not what they say."""

from __future__ import annotations

import pytest

import isam
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
    from dataclasses import replace

    from isam.artifact import load_artifact

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


def test_verify_follows_calls_one_by_one(cli, matmul, tmp_path):
    """The certificate says nothing of when calls start: a schedule whose calls wait for nobody is refused here."""
    from dataclasses import replace

    from isam.artifact import load_artifact
    from isam.proof.certificate import prove
    from isam.schedule.serial import from_json, to_json
    from isam.schedule.tree import Issue, Node, mapped

    out = tmp_path / "a"
    isam.compile(matmul.read_text(), on="toy", sizes={"M": 5, "N": 6, "K": 7}).save(out)
    d = cli("verify", out, "--json").json("verify")
    assert d["holds"]
    assert d["waits"].startswith("none of ")
    a = load_artifact(out)

    def hasty(node: Node) -> Node:
        return node.waiting(()) if isinstance(node, Issue) else mapped(node, hasty)

    schedule = from_json(a.text("schedule.json"), "a")
    hurried = replace(schedule, bind=hasty(schedule.bind), call=hasty(schedule.call))
    parts = {"schedule.json": to_json(hurried).encode(), "certificate.json": prove(hurried).to_json().encode()}
    replace(a, parts={**a.parts, **parts}).save(out)
    ran = cli("verify", out, "--json")
    assert ran.code == 1
    assert "may start before" in " ".join(ran.json("verify")["violations"])


def test_verify_says_what_it_does_not_follow(cli, tmp_path):
    long = "kernel long(N)\n  in a: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = exp(a[i])\n"
    isam.compile(long, on="toy", sizes={"N": 1_000_000}).save(tmp_path / "long")
    assert cli("verify", tmp_path / "long", "--json").json("verify")["waits"] == "not looked at: more than 100000 calls"


@pytest.mark.parametrize(("part", "text", "said"), [
    ("schedule.json", b"[]", "this is no schedule of schema isam.schedule-tree/"),
    ("schedule.json", b'{"schema": "%s"}' % SCHEMA.encode(), "this is no schedule: a part of it is missing"),
    ("schedule.json", b"{", "this is no schedule: Expecting property name"),
    ("trace.json", b"[1", "this is no trace: Expecting"),
    ("trace.json", b"[1]", "this is no trace of schema isam.trace/3, its schema is None"),
    ("trace.json", b'{"schema": "isam.trace/3", "approach": "greedy"}', "this is no trace: 'decisions' is missing"),
    ("trace.json", b"\xff", "the part 'trace.json' of the artifact of 'matmul' is no text"),
    ("kernel.isam", b"kernel", "expected kernel NAME(SIZES)"),
])  # fmt: skip
def test_verify_names_the_part_that_is_damaged(cli, matmul, tmp_path, part, text, said):
    """Also where the manifest has the hashes of what is there."""
    from dataclasses import replace

    from isam.artifact import load_artifact

    out = tmp_path / "a"
    assert cli("compile", matmul, *SMALL, "-o", out).code == 0
    a = load_artifact(out)
    replace(a, parts={**a.parts, part: text}).save(out)
    ran = cli("verify", out)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert part in ran.err
    assert "object has no attribute" not in ran.err
