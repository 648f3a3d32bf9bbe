"""``isam system show``: a machine as tables or as a drawing."""

from __future__ import annotations

from typing import Annotated

import typer

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson
from isam.diagnostics import fail

SYSTEM = Annotated[str, typer.Argument(metavar="SYSTEM", help="A shipped system or the path of a YAML description.")]
SVG = Annotated[bool, typer.Option("--svg", help="As an SVG drawing.")]
MERMAID = Annotated[bool, typer.Option("--mermaid", help="As a Mermaid flowchart.")]


@answering(
    "system show", name="the system's name", backend="its emitter", approach="its default Approach",
    memories="kind, capacity, cells, bytes of a row", units="clock and what it runs", moves="edges",
    instructions="per name the body's text",
    families="per family its members and parameters", assumed="costs that the description leaves open",
    replicas="count, memories and units of each", links="bytes per second and the edges that share them",
    meshes="shape, bytes per second of a channel, seconds of a hop, ports, places of the instances in their order",
    clusters="units with one instruction stream", state="configuration registers: values or bits, and at reset",
)  # fmt: skip
def show(system: SYSTEM, mermaid: MERMAID = False, svg: SVG = False, as_json: AsJson = False) -> Answer:
    """Prints memories, units, moves and instructions of a machine."""
    if mermaid and svg:
        raise fail("cli-option", "--mermaid and --svg are two drawings, one is printed", hint="give one of them")
    from isam.ir.text import print_kernel
    from isam.system.draw import mermaid as flowchart
    from isam.system.draw_svg import svg as drawing
    from isam.system.load import load_system
    from isam.system.mesh import routes
    from isam.system.names import families, parameters
    from isam.system.show import text

    s = load_system(system)
    data = {
        "name": s.name, "backend": s.backend, "approach": s.approach,
        "memories": {m.name: {"kind": m.kind, "capacity": m.capacity, "cells": m.cells, "cell": m.cell,
                              "align": m.align, "row": m.row, "home": m.home} for m in s.memories.values()},
        "units": {u.name: {"clock": u.clock, "runs": list(u.runs)} for u in s.units.values()},
        "moves": [{"from": m.source, "to": m.target, "by": m.by, "issuer": m.issuer} for m in s.moves],
        "instructions": {n: print_kernel(i.body, "instruction") for n, i in s.instructions.items()} if as_json else {},
        "families": [{"name": f[0].family or f[0].name, "members": [i.name for i in f],
                      "parameters": parameters(f)} for f in families(s)],
        "assumed": list(s.assumed),
        "replicas": {r.name: {"count": r.count, "memories": r.memories, "units": r.units}
                     for r in s.replicas.values()},
        "links": {k.name: {"bandwidth": k.bandwidth, "edges": k.edges} for k in s.links.values()},
        "meshes": {m.name: {"replica": m.replica, "shape": m.shape, "bandwidth": m.bandwidth, "hop": m.hop,
                            "wrap": m.wrap, "ports": dict(m.ports), "places": routes(m).places}
                   for m in s.meshes.values()},
        "clusters": {c.name: c.units for c in s.clusters.values()},
        "state": {r.name: {"values": r.values, "bits": r.bits, "reset": r.reset} for r in s.state.values()},
    }  # fmt: skip
    return Answer(flowchart(s) if mermaid else drawing(s) if svg else text(s), data)
