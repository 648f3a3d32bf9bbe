"""``verify`` and ``run`` of a range: forgeries that load, and would run, are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import isam
from isam.artifact import RANGE, Artifact, from_bytes, load_artifact
from isam.ir.text import parse_kernel

PRODUCT = parse_kernel("""kernel product(M <= 50, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  permits contract, reassociate
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
""")
UPDATED = parse_kernel("""kernel updated(M, N)
  in    x: f32[M, N]
  inout y: f32[M, N]
  forall i < M, j < N
    y[i, j] = y[i, j] * 2 + x[i, j]
""")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("range") / "product"
    isam.compile_range(PRODUCT, "M", 1, 40, sizes={"N": 20, "K": 9}, variants=3, cache=False).save(path)
    return path


def _said(a: Artifact, **other: Any) -> Artifact:
    said = {**json.loads(a.parts["dispatch.json"]), **other}
    return replace(a, parts={**a.parts, "dispatch.json": json.dumps(said).encode()})


def _text(a: Artifact, old: str, new: str) -> Artifact:
    text = a.text("kernel.isam")
    assert old in text
    return replace(a, parts={**a.parts, "kernel.isam": text.replace(old, new).encode()})


def _coded(a: Artifact, part: str = "variants/1") -> Artifact:
    one = from_bytes(a.parts[part])
    other = replace(one, parts={**one.parts, "object.o": one.parts["object.o"] + b"\0"})
    return replace(a, parts={**a.parts, part: other.to_bytes()})


def _refused(cli: Any, a: Artifact, folder: Path, says: str, code: int = 1) -> None:
    assert a.backend == RANGE
    a.save(folder / "forged")
    said = cli("verify", folder / "forged")
    assert said.code == code, said.out + said.err
    assert says in said.out + said.err


def test_what_is_saved_is_verified_and_run(cli, saved):
    said = cli("verify", saved, "--json").json("verify")
    assert (said["holds"], said["code"], len(said["obligations"])) == (True, "same", 11)
    shown = cli("verify", saved).out
    assert "for 1 <= M <= 40, 3 variants, proved again" in shown
    assert cli("run", saved, "-D", "M=23", "--check").code == 0
    assert "needs the sizes M" in cli("run", saved).err
    assert "41 rows are not admitted" in cli("run", saved, "-D", "M=41").err
    assert "compiled for N = 20" in cli("run", saved, "-D", "M=4,N=3").err


@pytest.mark.parametrize(("forge", "says"), [
    (lambda a: _text(a, "A[i, k] * B", "A[i, k] + B"), "the kernel in the artifact is not the one"),
    (lambda a: _text(a, "product(M <= 50", "product(M <= 30"), "does not admit all sizes"),
    (lambda a: _text(a, "product(M <= 50", "product(3 <= M <= 50"), "does not admit all sizes"),
    (lambda a: _text(a, "A[i, k] * B", "A[0, k] * B"), "no row of the batch alone"),
    (lambda a: replace(a, given=(("N", 20),)), "not those of the kernel"),
    (_coded, "variants/1: the code is not what the schedule gives"),
])  # fmt: skip
def test_forgeries_are_refused(cli, saved, tmp_path, forge, says):
    _refused(cli, forge(load_artifact(saved)), tmp_path, says)


def test_a_variant_without_a_proof_is_told(cli, saved, tmp_path):
    a = load_artifact(saved)
    one = from_bytes(a.parts["variants/1"])
    bare = replace(one, parts={n: b for n, b in one.parts.items() if n != "certificate.json"})
    forged = replace(a, parts={**a.parts, "variants/1": bare.to_bytes()})
    _refused(cli, forged, tmp_path, "variants/1 has no certificate", code=2)


def test_rows_that_are_updated_twice_are_refused(cli, tmp_path):
    isam.compile_range(UPDATED, "M", 1, 12, sizes={"N": 7}, variants=2, cache=False).save(tmp_path / "u")
    assert cli("verify", tmp_path / "u").code == 0
    _refused(cli, _said(load_artifact(tmp_path / "u"), twice=True), tmp_path, "some are computed twice")


def test_a_range_on_a_simulated_machine_counts_its_steps(cli, tmp_path):
    fn = isam.compile_range(PRODUCT, "M", 1, 8, on="toy", sizes={"N": 4, "K": 4}, variants=2, cache=False)
    fn.save(tmp_path / "t")
    one = cli("run", tmp_path / "t", "-D", "M=1", "--json").json("run")["simulated"]
    few = cli("run", tmp_path / "t", "-D", "M=7", "--check", "--json").json("run")["simulated"]
    assert 0 < one < few
    said = cli("run", tmp_path / "t", "-D", "M=7", "--limit", str(few - 1))
    assert said.code == 2
    assert "more than" in said.err
