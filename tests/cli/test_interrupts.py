"""Ctrl-C: no traceback, nothing half-written, exit code 130."""

import json
import signal
import sys
import time
from threading import Timer

import pytest

from isam.artifact import Artifact, load_artifact
from isam.cli import answer, app, check, interrupts


@pytest.fixture(autouse=True)
def raising():
    """As in a process of its own, whoever runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt(*_, **__):
    signal.raise_signal(signal.SIGINT)


AT = [(check.given, "source"), (app, "run"), (check.given, "source", "--json"), (answer, "_document", "--json")]


@pytest.mark.parametrize("at", AT)
def test_an_interrupted_command_prints_nothing_else(cli, matmul, monkeypatch, at):
    """While it works, before there is a verb, while it makes the document."""
    monkeypatch.setattr(*at[:2], interrupt)
    ran = cli("check", matmul, *at[2:])
    assert (ran.code, ran.out, ran.err) == (130, "", "interrupted\n")


def test_a_document_is_written_whole(cli, matmul, monkeypatch):
    write = answer._out

    def written(text):
        sys.stdout.write(text[:20])
        interrupt()
        write(text[20:])

    monkeypatch.setattr(answer, "_out", written)
    ran = cli("check", matmul, "--json")
    assert (ran.code, ran.err) == (130, "interrupted\n")
    assert ran.json("check")["verdict"] == "yes"
    monkeypatch.setattr(answer, "_out", lambda text: (interrupt(), interrupt(), write(text)))
    ran = cli("check", matmul, "--json")  # the reader does not read
    assert (ran.code, ran.out) == (130, "")


def test_an_interrupt_of_a_finaliser_is_not_lost(cli, matmul, monkeypatch):
    class Closing:
        def __del__(self):
            interrupt()

    def source(spec):
        Closing()
        end = time.monotonic() + 10
        while time.monotonic() < end:
            pass

    monkeypatch.setattr(check.given, "source", source)
    ran = cli("check", matmul)
    assert (ran.code, ran.out, ran.err) == (130, "", "interrupted\n")


def test_an_interrupted_artifact_leaves_no_file(cli, matmul, tmp_path, monkeypatch):
    out = tmp_path / "folder" / "m.isamc"
    out.parent.mkdir()
    sizes = ("--on", "toy", "-D", "M=4,N=4,K=4", "-o", out)
    assert cli("compile", matmul, *sizes).code == 0
    before = out.read_bytes()
    monkeypatch.setattr(Artifact, "to_bytes", interrupt)
    assert cli("compile", matmul, *sizes, "--json").out == ""
    assert [p.name for p in out.parent.iterdir()] == ["m.isamc"]
    assert out.read_bytes() == before
    assert load_artifact(out).name == "matmul"
    assert json.loads(cli("run", out, "--json").out)["verdict"] == "yes"


@pytest.mark.parametrize("slow", [False, True])
def test_one_that_came_as_an_object_went_at_the_very_end_is_not_lost(cli, monkeypatch, slow):
    begun = []

    class Slow(Timer):
        def start(self):
            super().start()
            begun.append(self)
            if slow and len(begun) == 1:  # it comes again while this still runs
                self.join()
                for _ in range(10_000):
                    pass

    monkeypatch.setattr(interrupts, "Timer", Slow)

    class Last:
        def __del__(self):
            raise KeyboardInterrupt

    def run(_):
        gone = Last()
        del gone
        return 0

    monkeypatch.setattr(app, "run", run)
    ran = cli("check")
    assert (ran.code, ran.err) == (130, "interrupted\n")
    assert len(begun) == 1 + slow
