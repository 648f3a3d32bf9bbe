"""``tune``: schedules run beside each other, what is kept of it, and who uses that."""

from __future__ import annotations

import os

import pytest

SIZES = ("-D", "M=20,N=48,K=30")


def test_what_is_found_is_kept_and_used_by_other_verbs(cli, matmul, tmp_path, monkeypatch):
    monkeypatch.setenv("ISAM_CACHE", str(tmp_path / "kept"))
    first = cli("tune", matmul, *SIZES, "--approach", "measured:3", "--json").json("tune")
    assert first["known"] is False
    assert first["folder"] == str(tmp_path / "kept" / "measured")
    fit = [r for r in first["runs"] if not r["unfit"]]
    assert len(fit) == 3
    assert all(0 < r["seconds"] <= r["median"] for r in fit)
    assert fit[0]["what"] == "by prediction"
    (taken,) = (r for r in first["runs"] if r["taken"])
    assert first["ratio"] == pytest.approx(fit[0]["seconds"] / taken["seconds"])
    again = cli("tune", matmul, *SIZES, "--approach", "measured:3", "--json").json("tune")
    assert again == {**first, "known": True}
    shown = cli("tune", matmul, *SIZES, "--approach", "measured:3")
    assert "found before" in shown.out
    assert shown.out.count("\n*") == 1
    trace = tmp_path / "trace.json"
    anew = cli("tune", matmul, *SIZES, "--approach", "measured:3", "--anew", "--trace", trace, "--json").json("tune")
    assert anew["known"] is False
    monkeypatch.setattr("isam.tune.measure.run_beside", None)  # nobody runs anything from here on
    found = cli("schedule", matmul, *SIZES, "--approach", "measured:3", "--json").json("schedule")
    again = cli("schedule", matmul, *SIZES, "--replay", trace, "--json").json("schedule")
    assert found["schedule"] == again["schedule"]
    assert found["trace"]["decisions"] == again["trace"]["decisions"]
    for verb, more in (("compile", ["-o", tmp_path / "a"]), ("run", ["--check"])):
        assert cli(verb, matmul, *SIZES, "--approach", "measured:3", *more).code == 0
        assert cli(verb, matmul, *SIZES, "--replay", trace, *more).code == 0


def test_the_cache_says_what_is_kept_of_it(cli, matmul, tmp_path, monkeypatch):
    monkeypatch.setenv("ISAM_CACHE", str(tmp_path / "kept"))
    assert cli("tune", matmul, *SIZES, "--approach", "measured:2").code == 0
    assert cli("cache", "--json").json("cache")["measured"] == 1
    assert "1 measured" in cli("cache").out
    cli("cache", "--clear")  # code is made again in no time; measurements are not
    assert cli("cache", "--json").json("cache")["measured"] == 1
    assert cli("cache", "--clear-measured", "--json").json("cache")["cleared"] == 1
    assert cli("cache", "--json").json("cache")["measured"] == 0


@pytest.mark.parametrize(("more", "code", "says"), [
    (["--on", "toy"], "tune-system", "isam schedule --approach beam"),
    (["--approach", "greedy"], "tune-approach", "--approach measured"),
    (["--approach", "measured:1"], "approach-argument", "runs 2 to 512 schedules"),
    (["--approach", "measured:few"], "approach-argument", "measured:16"),
    (["-D", "M=1"], "cli-size", "M"),
])  # fmt: skip
def test_mistakes(cli, matmul, more, code, says):
    said = cli("tune", matmul, *SIZES, *more)
    assert said.code == 2
    assert code in said.err
    assert says in said.err


def test_one_schedule_needs_no_run(cli, tmp_path):
    kernel = tmp_path / "one.isam"
    kernel.write_text("kernel one(N)\n  in  x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = x[i]\n")
    said = cli("tune", kernel, "-D", "N=0")
    assert said.code == 0
    assert "nothing was run: there is one schedule" in said.out


def test_nothing_is_kept_where_the_cache_is_off(cli, matmul, monkeypatch):
    monkeypatch.setenv("ISAM_CACHE", "off")
    said = cli("tune", matmul, *SIZES, "--approach", "measured:2", "--json").json("tune")
    assert said["folder"] is None
    assert len(said["runs"]) >= 2
    assert "not kept for later" in cli("tune", matmul, *SIZES, "--approach", "measured:2").out


def test_the_cache_is_its_owners_alone(cli, matmul, tmp_path, monkeypatch):
    """Whoever makes it first, and whatever others are usually permitted."""
    monkeypatch.setenv("ISAM_CACHE", str(tmp_path / "kept"))
    before = os.umask(0)
    try:
        assert cli("tune", matmul, *SIZES, "--approach", "measured:2").code == 0
    finally:
        os.umask(before)
    for folder in (tmp_path / "kept", tmp_path / "kept" / "measured"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_what_is_too_large_is_said_and_not_kept(cli, matmul, monkeypatch, tmp_path):
    monkeypatch.setenv("ISAM_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr("isam.tune.measure.BYTES", 1000)
    said = cli("tune", matmul, *SIZES, "--approach", "measured:2")
    assert said.code == 0
    assert "not run: by prediction: arguments of " in said.out
    assert said.out.rstrip().endswith("nothing was run; not kept for later")
