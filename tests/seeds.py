"""Cases by seed from the command line: what campaigns have in common that say of each what came of it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable


def judged(
    doc: str | None, one: Callable[[int], tuple[str, str]], shown: Callable[[int, str, str], str]
) -> Counter[str]:
    """How often which word was said of the seeds from FIRST to LAST on the command line; printed is what ``shown``
    makes of a seed, the word and its explanation, unless that is empty."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("first", type=int)
    p.add_argument("last", type=int)
    given = p.parse_args()
    count: Counter[str] = Counter()
    for seed in range(given.first, given.last):
        kind, how = one(seed)
        count[kind] += 1
        if text := shown(seed, kind, how):
            print(text, flush=True)
    return count
