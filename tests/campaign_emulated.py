"""Products by tiles (AMX) as machine code, on an emulator: ``python -m tests.campaign_emulated FIRST LAST``.

The cases of `tests.campaign_tiles` that tiles carry out, and with ``--fixed`` some of hundreds of points each way, are
compiled for `sapphire-rapids` with the proof, and linked with their numbers and what must come out into one program.
Bochs (``--bochs``, its program or folder; or ``ISAM_BOCHS``) runs it on a CPU of ``--cpu`` that has nothing else: every
buffer between pages that nobody may touch, tiles released before each call and each instance. ``--native``: here, as a
program of Linux, which a CPU with AMX needs no emulator for; ``--keep FOLDER`` leaves it there, to be taken to one.

The CPU is asked first for what the code needs; if it lacks anything, nothing is run. Then for one product of bytes of
each kind: where an emulator gets its own wrong, products with bytes below zero are run but not compared (they are
``open``); the same with their magnitudes are. ``--mutants``: the configuration, or one byte
of the code, is changed; all must be seen.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.emulated import bundle, machine
from tests.emulated.mutants import mutants
from tests.emulated.products import Product, drawn, fixed


def gathered(first: int, last: int, with_fixed: bool) -> tuple[list[Product], int]:
    """The products, and how many cases are left to vectors."""
    out, refused = list(fixed()) if with_fixed else [], 0
    for seed in range(first, last):
        found = drawn(seed)
        if isinstance(found, str):
            refused += 1
        else:
            out += found
    return out, refused


def judged(given: argparse.Namespace, products: list[Product], folder: Path) -> machine.Verdict:
    """What the program says, here or on the emulator."""
    if given.native:
        return machine.heard([str(bundle.linux(products, folder))], given.seconds)
    if given.keep:
        bundle.linux(products, folder)
    image, rom = bundle.bare(products, folder, not given.forbid)
    bochs = machine.emulator(given.bochs)
    assert bochs is not None
    return machine.emulate(bochs, image, rom, given.cpu, given.seconds)


def told(v: machine.Verdict, products: list[Product], as_mutants: bool) -> int:
    """Prints the verdict. Returns the exit status."""
    if v.lacks:
        print(f"refused before anything ran: this CPU lacks {v.lacks}")
        return 2
    for name in v.odd:
        print(f"this CPU's {name} is not the manual's")
    if as_mutants:
        left = sorted({p.name for p in products} - {name for name, _ in v.wrong} - set(v.open))
        print("".join(f"not seen: {n}\n" for n in left), end="")
        print(f"{len(products)} mutants: {len(v.wrong)} seen, {len(left)} not, {len(v.open)} run but not compared")
        return 1 if left else 0
    print("".join(f"{name}: {how}\n" for name, how in v.wrong), end="")
    print(f"{len(products)} products: {v.right} right, {len(v.wrong)} wrong, {len(v.open)} run but not compared")
    return 1 if v.wrong else 0


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("first", type=int)
    p.add_argument("last", type=int)
    p.add_argument("--bochs", default="", help="the emulator, built with --enable-amx")
    p.add_argument("--cpu", default="sapphire_rapids", help="by Bochs' names")
    p.add_argument("--fixed", action="store_true", help="large products too")
    p.add_argument("--mutants", action="store_true", help="faults in each product's code instead")
    p.add_argument("--native", action="store_true", help="on this CPU")
    p.add_argument("--forbid", action="store_true", help="the emulated machine does not enable tiles")
    p.add_argument("--keep", type=Path, help="the folder where the program is left")
    p.add_argument("--seconds", type=float, default=600, help="after which it is ended")
    given = p.parse_args()
    if not given.native and machine.emulator(given.bochs) is None:
        print("no emulator: give --bochs or ISAM_BOCHS (bochs, built with --enable-evex --enable-amx), or --native")
        return 3
    begun = time.monotonic()
    products, refused = gathered(given.first, given.last, given.fixed)
    if given.mutants:
        products = [m for q in products for m in mutants(q)]
    print(f"{len(products)} calls, {refused} cases left to vectors, {time.monotonic() - begun:.0f} s", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        try:
            status = told(judged(given, products, folder), products, given.mutants)
        except (RuntimeError, subprocess.TimeoutExpired) as e:  # a fault may end the emulated machine itself
            print(e)
            status = 1
    print(f"{time.monotonic() - begun:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
