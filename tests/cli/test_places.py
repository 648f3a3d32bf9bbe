"""Files that a verb writes: never over what the same command reads, twice, or where no file is meant."""

from __future__ import annotations

import os

import numpy as np
import pytest

TOY = ("--on", "toy", "-D", "M=4,N=4,K=4")


@pytest.fixture
def here(matmul, tmp_path, monkeypatch):
    """The kernel and what else a command may read, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy").write_text("a file of a system's name\n")
    (tmp_path / "mine.py").write_text("import isam\n\n\nclass Mine(isam.Approach):\n    pass\n")
    (tmp_path / "linked").symlink_to(matmul)
    os.link(matmul, tmp_path / "hard")
    np.save(tmp_path / "a.npy", np.ones((4, 4), "f4"))
    return tmp_path


@pytest.mark.parametrize("args", [
    ("compile", "matmul.isam", *TOY, "-o", "matmul.isam"),
    ("compile", "matmul.isam:matmul", *TOY, "-o", "./matmul.isam"),
    ("compile", "matmul.isam", *TOY, "-o", "linked"),
    ("compile", "linked", *TOY, "-o", "matmul.isam"),
    ("compile", "matmul.isam", *TOY, "-o", "hard"),
    ("compile", "matmul.isam", *TOY, "--approach", "mine.py:Mine", "-o", "mine.py"),
    ("compile", "matmul.isam", "--on", "own.yaml", "-D", "M=4,N=4,K=4", "-o", "own.yaml"),
    ("schedule", "matmul.isam", *TOY, "--trace", "matmul.isam"),
    ("schedule", "matmul.isam", *TOY, "--html", "matmul.isam"),
    ("schedule", "matmul.isam", *TOY, "--perfetto", "t.json", "--trace", "./t.json"),
    ("schedule", "matmul.isam", *TOY, "--replay", "old.json", "--trace", "old.json"),
    ("schedule", "matmul.isam", *TOY, "--approach", "replay:old.json", "--trace", "old.json"),
    ("tune", "matmul.isam", "-D", "M=4,N=4,K=4", "--trace", "matmul.isam"),
    ("explain", "matmul.isam", *TOY, "--html", "matmul.isam"),
    ("range", "matmul.isam", "M=1:2", "--on", "toy", "-D", "N=4,K=4", "-o", "matmul.isam"),
    ("run", "matmul.isam", *TOY, "--output", "C=matmul.isam"),
    ("run", "matmul.isam", *TOY, "--input", "A=a.npy", "--output", "C=a.npy"),
    ("compile", "matmul.isam", *TOY, "-o", "-"),
    ("schedule", "matmul.isam", *TOY, "--trace", "-"),
    ("explain", "matmul.isam", *TOY, "--html", "-"),
    ("run", "matmul.isam", *TOY, "--output", "C=-"),
    ("run", "matmul.isam", *TOY, "--input", "A=-"),
    ("system", "new", "own", "-o", "-"),
    ("verify", "-"),
    ("system", "check", "-"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(cli, here, args):
    cli("system", "new", "own", "-o", "own.yaml")
    cli("schedule", "matmul.isam", *TOY, "--trace", "old.json")
    before = {p.name: p.read_bytes() for p in here.iterdir()}
    ran = cli(*args)
    assert ran.code == 2, (ran.out, ran.err)
    assert ran.err.count("error[") == 1
    assert "hint: " in ran.err
    assert {p.name: p.read_bytes() for p in here.iterdir()} == before


def test_a_file_that_is_no_input_is_written(cli, here):
    assert cli("compile", "matmul.isam", *TOY, "-o", "toy").code == 0  # --on toy is the shipped one, no file
    assert cli("compile", "matmul.isam", *TOY, "-o", "toy").code == 0  # again
    assert cli("schedule", "matmul.isam:matmul", *TOY, "--trace", "matmul").code == 0
    assert cli("schedule", "matmul.isam:matmul", *TOY, "--trace", "matmul").code == 0
    assert cli("schedule", "matmul.isam", *TOY, "--trace", os.devnull, "--html", os.devnull).code == 0
    assert cli("run", "matmul.isam", *TOY, "--input", "A=a.npy", "--output", "C=c.npy").code == 0
