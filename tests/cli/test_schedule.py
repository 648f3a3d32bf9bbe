"""``schedule``: what is decided, recorded and made again, and who decides."""

from __future__ import annotations

import json
import traceback

import pytest

from isam.diagnostics import IsamError
from tests.cli.conftest import SMALL


def test_schedule_trace_replay(cli, matmul, tmp_path):
    trace = tmp_path / "t.json"
    first = cli("schedule", matmul, "--on", "toy", *SMALL, "--trace", trace, "--decisions")
    assert first.code == 0
    assert first.out.startswith("schedule of matmul on toy")
    assert json.loads(trace.read_text())["schema"] == "isam.trace/4"
    a = cli("schedule", matmul, "--on", "toy", *SMALL, "--json").json("schedule")
    b = cli("schedule", matmul, "--on", "toy", *SMALL, "--replay", trace, "--json").json("schedule")
    assert a["schedule"] == b["schedule"]
    assert a["proved"] == list(range(1, 12))
    other = cli("schedule", matmul, "--on", "toy", "-D", "M=500,N=18,K=30", "--replay", trace)
    assert other.code in (0, 2)
    full = cli("schedule", matmul, "--on", "toy", *SMALL, "--full", "--approach", "first-fit")
    assert full.code == 0


def test_an_approach_of_a_file_decides_wherever_one_may_be_named(cli, matmul, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("import isam\n\nclass Mine(isam.Approach):\n    name, why = 'mine', 'as I like'\n\n"
                    "    def mapping(self, choice):\n        return choice.options[0]\n")
    given = (matmul, "--on", "toy", "-D", "M=4,N=4,K=4", "--approach")
    for verb, more in (("schedule", ["--decisions"]), ("compile", ["-o", tmp_path / "a"]), ("run", []),
                       ("map", ["--decisions"])):  # fmt: skip
        args = given[:3] + given[5:] if verb == "map" else given
        ran = cli(verb, *args, f"{mine}:Mine", *more)
        assert ran.code == 0
        assert verb == "run" or "as I like" in ran.out or "decisions by 'mine'" in ran.out
        ran = cli(verb, *args, f"{mine}:Nobody", *more)
        assert ran.code == 2
        assert "Approaches there: Mine" in ran.err


@pytest.mark.parametrize(("terminal", "approach", "shown"), [(True, "beam", True), (True, "greedy", False),
                                                             (False, "beam", False)])  # fmt: skip
def test_how_many_schedules_are_made_is_shown_on_a_terminal(monkeypatch, matmul, tmp_path, terminal, approach, shown):
    import io

    from isam.cli.app import run
    from isam.compiler.watch import WATCH

    sizes = ["-D", "M=5,N=4,K=7", "--approach", approach]
    for args in (["schedule"], ["compile", "-o", str(tmp_path / "a")], ["run"]):
        told = io.StringIO()
        monkeypatch.setattr(told, "isatty", lambda: terminal)
        monkeypatch.setattr("sys.stdout", io.StringIO())
        monkeypatch.setattr("sys.stderr", told)
        assert run([args[0], str(matmul), "--on", "toy", *args[1:], *sizes]) == 0
        assert ("schedules made and timed" in told.getvalue()) == shown
        assert bool(told.getvalue()) == shown
        assert WATCH.get() is None


def test_what_an_approach_raises_is_shown_with_its_own_lines(cli, matmul, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("import isam\n\nclass Mine(isam.Approach):\n    name = 'mine'\n\n"
                    "    def tile(self, choice):\n        return self.found({})\n\n"
                    "    def found(self, known):\n        return known['inside']\n")
    given = ("schedule", matmul, "--on", "toy", *SMALL, "--approach", f"{mine}:Mine")
    ran = cli(*given)
    assert ran.code == 2
    assert "approach-raises" in ran.err
    assert "isam --traceback VERB" in ran.err
    with pytest.raises(IsamError) as e:
        cli("--traceback", *given)
    assert "return known['inside']" in "".join(traceback.format_exception(e.value))
