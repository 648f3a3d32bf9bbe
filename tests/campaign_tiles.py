"""Random products by tiles (AMX), run on this CPU: ``python -m tests.campaign_tiles FIRST LAST``.

A case is a product of bytes or bf16 of random sizes, its operands and result lying either way, batched or not, with a
factor bound before or not, for one core or two. It must be carried out by the tile product that is demanded
(`host-amx`), proved, and called (on one core) with all buffers between guard pages, the tile instructions carried out
by functions written from the manual (`tests.elsewhere`); the result is the interpreter's, bit for bit or within derived
bounds. Prints every finding and a summary; exits with 1 if anything was wrong.
"""

from __future__ import annotations

import sys
from functools import partial
from random import Random
from unittest import mock

import isam
from isam.compiler import Refused
from isam.ir.text import parse_kernel
from isam.scheduler.plans import shared_home
from tests.elsewhere import elsewhere
from tests.native_cases import Case, fault
from tests.on_the_tree import on_the_tree
from tests.seeds import judged

TYPES = (("u8", "i8", "i32", "tile_dot4_us"), ("i8", "u8", "i32", "tile_dot4_su"), ("i8", "i8", "i32", "tile_dot4_ss"),
         ("u8", "u8", "i32", "tile_dot4_uu"), ("bf16", "bf16", "f32", "tile_dot2_bf16"))  # fmt: skip
SIZES = (1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 40, 48, 65)


def case(seed: int) -> tuple[Case, str, int]:
    """The same for the same seed: the case, the instruction, and on how many cores."""
    r = Random(seed)
    a, b, c, by = r.choice(TYPES)
    m, n, k = r.choice(SIZES), r.choice(SIZES), (2 if c == "f32" else 4) * r.choice(SIZES)
    batch, role = r.random() < 0.25, r.choice(("in", "const"))
    z, axes = ("Z, ", "z < Z, ") if batch else ("", "")

    def lies(name: str, *dims: str) -> tuple[str, str]:
        order = dims if r.random() < 0.7 else dims[::-1]
        return z + ", ".join(order), f"{name}[{z.lower()}{', '.join(map(INDEX.__getitem__, order))}]"

    (sa, xa), (sb, xb), (sc, xc) = lies("A", "M", "K"), lies("B", "K", "N"), lies("C", "M", "N")
    text = f"""kernel product({z}M, N, K)
  permits reassociate, contract, flush
  in  A: {a}[{sa}]
  {role} B: {b}[{sb}]
  out C: {c}[{sc}]
  forall {axes}i < M, j < N
    {xc} = 0
  forall {axes}i < M, j < N, k < K
    {xc} += {c}({xa}) * {c}({xb})
"""
    sizes = {"M": m, "N": n, "K": k, **({"Z": r.choice((1, 2, 3))} if batch else {})}
    kind = r.choice(("moderate", "normal", "special"))
    return Case(seed, parse_kernel(text), sizes, kind, False, role == "const"), by, r.choice((1, 1, 2))


INDEX = {"M": "i", "N": "j", "K": "k"}


def one(seed: int) -> tuple[str, str]:
    """What comes of a case: right, no (with the reason) or wrong."""
    c, by, threads = case(seed)
    try:
        with elsewhere(), mock.patch.object(isam, "compile", partial(isam.compile, require=[by])), \
                mock.patch.object(shared_home, "MEETING", -1e12):  # fmt: skip
            if threads > 1:  # all threads share the tiles of `tests.elsewhere`
                isam.compile(c.kernel, on="host-amx", sizes=c.given, check=True, cache=False, threads=threads)
            told = fault(c, "host-amx", True)
    except Refused as no:
        return "no", no.diagnostics[0].message
    except Exception as e:  # whatever it is, it is a finding
        return "wrong", f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:300]}"
    return ("right", "") if told is None else ("wrong", told)


def shown(seed: int, kind: str, how: str) -> str:
    """Findings with their kernel, refusals with their reason."""
    c = case(seed)[0]
    return {"wrong": f"{seed}: {how}\n{c.sizes}\n{c.kernel}", "no": f"{seed}: {how[:200]} {c.sizes}"}.get(kind, "")


def main() -> int:
    count = judged(__doc__, one, shown)
    print(f"{sum(count.values())} products: {count['right']} right, {count['wrong']} wrong, {count['no']} refused")
    return 1 if count["wrong"] else 0


if __name__ == "__main__":
    with on_the_tree():
        sys.exit(main())
