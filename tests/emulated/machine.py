"""The Bochs emulator as a machine that has nothing but a CPU of a given model and memory."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.emulated.bundle import CYLINDER

SETTINGS = """config_interface: textconfig
display_library: nogui
cpu: model={model}, count=1, ips=50000000, reset_on_triple_fault=0
memory: guest=256, host=256
romimage: file={rom}, options=none
vgaromimage: file={rom}
ata0-master: type=disk, path={image}, mode=flat, cylinders={cylinders}, heads=16, spt=63
boot: disk
port_e9_hack: enabled=1
clock: sync=none
log: {folder}/log
panic: action=fatal
error: action=report
info: action=ignore
debug: action=ignore
"""


@dataclass(frozen=True)
class Verdict:
    """What a program of products said: ``wrong`` by name, with what is; ``odd``: tile products that this CPU itself
    gets wrong; ``open``: not compared because of them; ``lacks``: what it has not (nothing was run then)."""

    right: int = 0
    wrong: tuple[tuple[str, str], ...] = ()
    open: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    lacks: str = ""


def emulator(given: str) -> str | None:
    """Where Bochs is: as given (the program, or the folder where it was built), in ``ISAM_BOCHS`` or on the path."""
    where = given or os.environ.get("ISAM_BOCHS", "") or "bochs"
    path = Path(where)
    return str(path / "bochs") if path.is_dir() else shutil.which(where)


def emulate(bochs: str, image: Path, rom: Path, model: str, seconds: float) -> Verdict:
    """What the program says there. Raises ``RuntimeError`` where it says nothing."""
    settings = image.parent / "settings"
    settings.write_text(SETTINGS.format(model=model, rom=rom, image=image, folder=image.parent,
                                        cylinders=image.stat().st_size // CYLINDER))
    return heard([bochs, "-q", "-f", str(settings)], seconds)


def heard(command: list[str], seconds: float) -> Verdict:
    """The verdict that a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds,
                          stdin=subprocess.DEVNULL)  # fmt: skip
    lines = done.stdout.splitlines()

    def said(word: str) -> tuple[str, ...]:
        return tuple(x[len(word) + 1 :] for x in lines if x.startswith(word + " "))

    if lacks := said("lacks"):
        return Verdict(lacks=lacks[0])
    if not (end := said("done")):
        raise RuntimeError(f"no verdict:\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
    right, _, bad, _, left, _ = end[0].split()
    wrong = tuple((name, how) for name, _, how in (x.partition(": ") for x in said("wrong")))
    assert (int(bad), int(left)) == (len(wrong), len(said("open"))), end
    return Verdict(int(right), wrong, said("open"), said("odd"))
