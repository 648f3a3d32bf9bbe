"""A command line that no verb takes is told with the right form of what was meant, whatever the verb."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize(("args", "hint"), [
    (("map", "F", "-D", "M=4", "N=4"), "sizes are written -D M=4,N=4"),
    (("map", "F", "-D", "M=4,", "N=4,K=3"), "sizes are written -D M=4,N=4,K=3"),
    (("run", "F", "M=4"), "sizes are written -D M=4"),
    (("explain", "F", "-DM=4", "--sizes=N=4"), "sizes are written -D M=4,N=4"),
    (("schedule", "F", "--size", "M=4", "--on", "toy"), "sizes are written -D M=4"),
    (("schedule", "F", "--sizes", "4"), "did you mean -D NAME=NUMBER?"),
    (("map", "F", "-D", "M=4", "--onn", "toy"), "did you mean --on SYSTEM?"),
    (("map", "F", "-D", "M=4", "--machine", "toy"), "did you mean --on SYSTEM?"),
    (("schedule", "F", "--decision"), "did you mean --decisions?"),
    (("mpa", "F"), "did you mean 'map'?"),
    (("system", "shw", "toy"), "did you mean 'show'?"),
    (("matmul.isam",), "a verb stands before it: isam check matmul.isam"),
    (("--vrsion",), "did you mean --version?"),
    (("--on=toy", "map", "F"), "it stands behind the verb: isam map --on SYSTEM"),
    (("--full", "schedule", "F"), "it stands behind the verb: isam schedule --full"),
    (("--frob", "schedule", "F"), "isam schedule --help"),
    (("check", "F", "--on", "toy"), "isam check --help"),
    (("map", "F", "--on"), "--on SYSTEM: A shipped system or the path of a YAML description."),
    (("run", "F", "--threads", "x"), "--threads N: On how many cores a call may run (ISAM_THREADS, or 1)."),
    (("map",), "KERNEL: FILE.isam, FILE.isam:NAME, or - for standard input."),
    (("map", "F", "toy"), "isam map --help"),
    (("system", "frob"), "isam system --help"),
    (("system", "show", "toy", "N=4"), "isam system show --help"),
])  # fmt: skip
def test_the_right_form_is_told(cli, matmul, args, hint):
    args = [str(matmul) if a == "F" else a for a in args]
    ran = cli(*args)
    assert (ran.code, ran.out) == (2, "")
    assert "error[cli-usage]: " in ran.err
    assert ran.err.rstrip().endswith(f"\n  hint: {hint}")
    if args[-1] != "--on":
        (d,) = json.loads(cli(*args, "--json").out)["diagnostics"]
        assert (d["code"], d["hint"]) == ("cli-usage", hint)


def test_without_arguments_the_help_is_told_once(cli):
    ran = cli("system")
    assert ran.code == 2
    assert ran.err.count("Usage: isam system") == 1
    assert "error[" not in ran.err
