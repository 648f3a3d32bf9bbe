"""Work done by several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable


def at_once(work: Callable[[int], None], count: int = 8) -> None:
    """``work(0)`` to ``work(count - 1)``, each in a thread of its own; returns when all are done."""
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
