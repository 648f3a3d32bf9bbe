"""Products by tiles as programs that need no Python (`tests.emulated`): refused where the CPU lacks tiles, and right
on an emulator where there is one (``ISAM_BOCHS``)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from isam.diagnostics import IsamError
from isam.runtime import linking
from isam.runtime.native import Runner
from tests import campaign_emulated
from tests.emulated import bundle, machine, mutants
from tests.emulated.products import Product, drawn

SEEDS = (2, 3, 6, 13)  # bytes of two kinds, halves, two cores with a factor bound before
TILES = {"amx-tile", "amx-int8", "amx-bf16"}
tools = pytest.mark.skipif(not all(map(shutil.which, ("gcc", "ld", "objcopy"))), reason="no C compiler")
emulator = pytest.mark.skipif(not os.environ.get("ISAM_BOCHS"), reason="no emulator of a CPU with AMX")


@pytest.fixture(scope="module")
def products() -> Sequence[Product]:
    found = [p for seed in SEEDS for p in drawn(seed)]
    assert all(isinstance(p, Product) for p in found)
    return found


def test_the_code_needs_tiles_and_is_refused_without(products: Sequence[Product]) -> None:
    artifact = products[0].artifact
    assert set(artifact.needs) >= TILES
    if not linking.features() >= TILES:
        with pytest.raises(IsamError, match="amx-tile") as e:
            Runner(artifact)
        assert e.value.diagnostics[0].code == "artifact-features"


def test_faults_find_their_places(products: Sequence[Product]) -> None:
    for p in products:
        found = {m.name.rpartition(", ")[2] for m in mutants.mutants(p)}
        assert found >= set(mutants.FAULTS) - {"other signs"}, p.name
        assert all(len(m.artifact.parts["object.o"]) == len(p.artifact.parts["object.o"]) for m in mutants.mutants(p))
    assert any("other signs" in m.name for p in products for m in mutants.mutants(p))


@tools
def test_the_same_program_on_this_cpu(products: Sequence[Product], tmp_path: Path) -> None:
    verdict = machine.heard([str(bundle.linux(products, tmp_path))], 60)
    if linking.features() >= TILES:
        assert (verdict.right, verdict.wrong, verdict.open) == (len(products), (), ())
    else:
        assert "amx-tile" in verdict.lacks
        assert (verdict.right, verdict.wrong) == (0, ())


def test_without_an_emulator_that_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
                                                                     tmp_path: Path) -> None:  # fmt: skip
    monkeypatch.setattr("sys.argv", ["campaign", "0", "1", "--bochs", str(tmp_path / "none")])
    assert campaign_emulated.main() == 3
    assert capsys.readouterr().out.startswith("no emulator")


@tools
@emulator
def test_products_and_faults_on_an_emulator(products: Sequence[Product], tmp_path: Path) -> None:
    """What is right is told from what is not, and a CPU that lacks tiles, or may not use them, runs nothing."""
    bochs = machine.emulator("")
    assert bochs is not None
    image, rom = bundle.bare(products, tmp_path)
    verdict = machine.emulate(bochs, image, rom, "sapphire_rapids", 60)
    assert (verdict.wrong, verdict.right + len(verdict.open)) == ((), len(products))
    assert "amx-tile" in machine.emulate(bochs, image, rom, "corei7_skylake_x", 60).lacks
    forbidden = bundle.bare(products, tmp_path, permit=False)
    assert "amx-tile" in machine.emulate(bochs, *forbidden, "sapphire_rapids", 60).lacks
    faults = [m for p in products for m in mutants.mutants(p)]
    verdict = machine.emulate(bochs, *bundle.bare(faults, tmp_path), "sapphire_rapids", 60)
    assert verdict.right == 0
    assert len(verdict.wrong) + len(verdict.open) == len(faults)
