"""A kernel's statements as a flat list that can be edited, with the recurrent loops around each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from isam.ir.kernel import Buffer, Item, Kernel, Recurrence, Statement

Path = tuple[int, ...]  # recurrent loops around a statement, outermost first, numbered in text order


class Lines:
    """Statements keep their positions while they are edited; ``None`` is a removed one."""

    def __init__(self, kernel: Kernel):
        self.kernel_in = kernel
        self.buffers: dict[str, Buffer] = dict(kernel.by_name)
        self.statements: list[Statement | None] = []
        self.paths: list[Path] = []
        self.origin: dict[str, str] = {}  # a version and the temporary it came from
        self._loops = 0
        self._flatten(kernel.body, ())

    def _flatten(self, body: tuple[Item, ...], path: Path) -> None:
        for item in body:
            if isinstance(item, Recurrence):
                self._loops += 1
                self._flatten(item.body, (*path, self._loops))
            else:
                self.statements.append(item)
                self.paths.append(path)

    def live(self) -> Iterator[tuple[int, Statement]]:
        for at, s in enumerate(self.statements):
            if s is not None:
                yield at, s

    def put(self, at: int, s: Statement | None) -> None:
        self.statements[at] = s

    def is_temp(self, buffer: str) -> bool:
        return self.buffers[buffer].role == "temp"

    def touching(self) -> dict[str, list[int]]:
        """Per buffer the positions of the statements that read or write it, ascending."""
        out: dict[str, list[int]] = {}
        for at, s in self.live():
            for name in {s.dest.buffer, *(a.buffer for a in s.reads)}:
                out.setdefault(name, []).append(at)
        return out

    def version(self, name: str) -> str:
        """A new temporary like ``name``."""
        k = 1
        while f"{name}_{k}" in self.buffers:
            k += 1
        fresh = f"{name}_{k}"
        self.buffers[fresh] = replace(self.buffers[name], name=fresh)
        self.origin[fresh] = self.origin.get(name, name)
        return fresh

    def rename(self, old: str, new: str) -> None:
        """The temporary ``old`` takes the name ``new``, which nothing mentions any more."""
        self.buffers[new] = replace(self.buffers[old], name=new)
        for at, s in self.live():
            if s.dest.buffer == old or any(a.buffer == old for a in s.reads):
                self.put(at, s.renamed({old: new}))

    def kernel(self) -> Kernel:
        """The kernel with its present statements; temporaries that nothing mentions are gone."""
        used = {a.buffer for _, s in self.live() for a in (s.dest, *s.reads)}
        buffers = tuple(b for b in self.buffers.values() if b.role != "temp" or b.name in used)
        statements = iter(self.statements)
        return replace(self.kernel_in, buffers=buffers, body=self._rebuild(self.kernel_in.body, statements))

    def _rebuild(self, body: tuple[Item, ...], statements: Iterator[Statement | None]) -> tuple[Item, ...]:
        out: list[Item] = []
        for item in body:
            if isinstance(item, Recurrence):
                inner = self._rebuild(item.body, statements)
                out.extend([replace(item, body=inner)] if inner else [])
            elif (s := next(statements)) is not None:
                out.append(s)
        return tuple(out)
