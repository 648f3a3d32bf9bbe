"""The artifact of a machine whose code is a stream: the text, with the schedule it was made from."""

from __future__ import annotations

from isam.artifact import Artifact
from isam.codegen.stream.write import stream
from isam.ir.signature import arguments_of, sizes_of
from isam.schedule.serial import to_json
from isam.schedule.tree import Schedule


def emit(schedule: Schedule) -> Artifact:
    """The text is the part ``stream.s``; the simulator runs the schedule beside it."""
    from isam import __version__

    kernel = schedule.kernel
    return Artifact(
        name=kernel.name,
        backend="stream",
        arguments=arguments_of(schedule.cover.original),
        sizes=sizes_of(kernel),
        provenance={"isam": __version__, "system": schedule.system.name},
        parts={
            "schedule.json": to_json(schedule).encode(),
            "kernel.isam": str(schedule.cover.original).encode(),
            "stream.s": stream(schedule).encode(),
        },
    )
