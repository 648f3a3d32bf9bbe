"""An assembler stream: the commands of a schedule in the tree's order, as the description's templates write them."""

from __future__ import annotations

from isam.codegen.stream.emit import emit
from isam.codegen.stream.judge import judge
from isam.codegen.stream.write import stream

__all__ = ["emit", "judge", "stream"]
