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


def test_calls_that_wait_for_nobody_are_refused(cli, matmul, tmp_path):
    """Also with a certificate that somebody has made for them without looking at their waits."""
    from dataclasses import replace

    from isam.artifact import load_artifact
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
