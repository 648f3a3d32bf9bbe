"""``--version``, ``--help``, ``code`` and ``doctor``."""

from __future__ import annotations

import isam


def test_version_and_help(cli):
    ran = cli("--version")
    assert (ran.code, ran.out) == (0, f"isam {isam.__version__}\n")
    ran = cli("--help")
    assert ran.code == 0
    for verb in ("check", "print", "map", "explain", "schedule", "compile", "run", "verify", "bench", "demo", "system"):
        assert f"\n  {verb} " in ran.out
        assert cli(verb, "--help").code == 0


def test_code_and_doctor(cli):
    assert cli("code", "V401").out.startswith("V401: ")
    assert cli("code", "error[V401]").code == 0
    assert cli("code", "axis-missing").out.startswith("axis-missing: The instruction has an axis")
    assert cli("code", "[escapes]").code == 0
    assert cli("code", "stale").out.startswith("stale: Of a proof, obligation 8: An operand is not known")
    assert cli("code", "[domain]").out.count("domain") == 2
    assert len(cli("code", "--json").json("code")["codes"]) > 100
    ran = cli("doctor", "--json")
    assert ran.code == 0, ran.out
    assert all(c["well"] for c in ran.json("doctor")["checks"])


def test_a_code_says_what_to_do(cli):
    assert "where 0 <= i - 1" in cli("code", "V430").out
