"""What the judges say of inputs that were picked because mutants say something else: ``picked.txt``.

Each was judged by carrying it out, or by the oracle, when it was picked (:mod:`tests.unit.proof.sharpen`).
``python -m tests.unit.proof.test_picked`` writes anew what is said of them, where that is meant to be otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.proof.inputs import said_of
from tests.unit.proof.sharpen import FILE, recorded, wrong

TOGETHER = 12  # inputs of one test


def groups() -> Iterator[tuple[str, ...]]:
    """Those of one source together."""
    sources: dict[str, list[str]] = {}
    for name in recorded():
        kind, rest = name.split("/", 1)
        sources.setdefault(kind if kind in ("pair", "rewriting") else rest.rsplit("/", 1)[0], []).append(name)
    for names in sources.values():
        yield from (tuple(names[i : i + TOGETHER]) for i in range(0, len(names), TOGETHER))


@pytest.mark.parametrize("names", [*groups()], ids=lambda names: names[0])
def test_what_is_said_is_what_is_on_record(names: tuple[str, ...]) -> None:
    was = recorded()
    assert {n: said_of(n) for n in names} == {n: was[n] for n in names}


def main() -> None:
    was = recorded()
    bad = {n: why for n in was if (why := wrong(n))}
    print(*(f"{n}: {why}" for n, why in bad.items()), sep="\n")
    FILE.write_text("".join(f"{n}: {said_of(n)}\n" for n in was if n not in bad), encoding="utf-8")


if __name__ == "__main__":
    main()
