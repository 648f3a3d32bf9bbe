"""Maps of the large packages: which module is for what, in the order in which they are best read."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import isam

HERE = Path(isam.__file__).parent
Part = tuple[str, str]  # a heading; the names of its modules, a package ends with a slash

READING: dict[str, tuple[Part, ...]] = {
    "ir": (
        ("What there is", "kernel instruction affine dtype operators mapping mismatch condition table signature"),
        ("Text to kernels", "text lexer breaks indents tabs parser heads permits expressions elsewhere syntax lower "
                            "breakup infer apart codes"),
        ("Kernels to text", "printer"),
        ("Whether a kernel is well formed", "verify verify_types verify_points verify_order remarks unused"),
        ("One form whatever was typed", "normal normal_ends normal_copies normal_names normal_versions hashing"),
        ("What a kernel computes", "arithmetic points interp residues oracle bounds data"),
        ("What can be asked of a kernel", "lines dataflow span sumform spacing counting ranges batch sizes"),
        ("Integer sets", "poly poly_domain poly_boxes poly_text relation"),
    ),
    "compiler": (
        ("The stages", "stages job codes"),
        ("Cover", "judged required emptied"),
        ("Equivalent kernels (`offers/`)",
         "offers/ offers/subject offers/way offers/partial offers/splits offers/longer offers/hoisted "
         "offers/in_blocks offers/carried "
         "offers/again offers/temporaries offers/lying offers/inside offers/by_themselves offers/aside offers/by_terms "
         "offers/quicker offers/fuller offers/expanded offers/widened"),
        ("Which schedule is taken", "candidate variants alternatives measured crowded watch"),
        ("What callers hold", "function keys report grants"),
        ("Ranges of batch sizes", "ranged regret"),
        ("Whether it can be, and whose fault it is", "feasible own alone smallest programs"),
    ),
    "scheduler": (
        ("From a cover to a schedule", "build setting passes nests call_size parts plan infeasible levers"),
        ("Which nests share loops", "grouping shared_loops agree interleaved in_rows"),
        ("Plans (`plans/`)",
         "plans/ plans/single plans/divided plans/register plans/rotation plans/conflicts plans/sets plans/windows "
         "plans/cache plans/traffic plans/pack plans/fed plans/kept plans/lines plans/request plans/known"),
        ("Plans where a memory lies on the way (`plans/`)",
         "plans/staged plans/within plans/hierarchy plans/resident plans/boxes plans/begins plans/dealing "
         "plans/shared_home plans/estimate"),
        ("The dry run",
         "dry walk trim scope state call_order block_calls turns placement spread devices residency sources transfer "
         "spilling joining beside leaving begun_together staging gathering lifetimes"),
        ("Tiles, memories and the ways between them",
         "tiles near places fit move routes edges hops homes aligned laid_out"),
        ("Domains that are no boxes", "pieces guarded blocks oblique outer drained"),
        ("Recurrent loops", "recur conform stays handed_on near_homes dealt_alike interchange"),
        ("What constants determine", "prepared"),
        ("After the dry run", "finishing prefetch next_block upfront streaming pipelining bursts configure serpentine"),
        ("What each call waits for (`waits/`)",
         "waits/ waits/tokens waits/behind waits/look waits/within waits/rows waits/footprints"),
    ),
    "codegen": (
        ("All back ends", "codes"),
        ("Native code (`llvm/`)",
         "llvm/ llvm/lower llvm/walk llvm/irtext llvm/address llvm/share llvm/machine llvm/spills"),
        ("Templates of instructions", "llvm/template llvm/verbs llvm/reading llvm/judge llvm/lanes llvm/narrow"),
        ("Between registers and memory", "llvm/tiles llvm/vectors llvm/groups llvm/rows llvm/transposed llvm/woven"),
        ("Streams of commands (`stream/`)",
         "stream/ stream/emit stream/write stream/waiting stream/template stream/judge"),
        ("The strict simulator (`simulator/`)",
         "simulator/ simulator/execute simulator/run simulator/streams simulator/call simulator/body simulator/values "
         "simulator/memory simulator/registers simulator/together simulator/fault"),
    ),
    "proof": (
        ("Certificates", "certificate violation kinds mapped checker calls"),
        ("Whether rewritings keep the meaning", "chain rewritten equivalence local carried parted viewed reached"),
        ("Kernels executed on values", "execution value operations axioms casts numbering fibres"),
        ("Whether an instruction does what it is mapped to (obligations 3 and 6)", "semantics inside aliasing"),
        ("Every point once and in order (obligations 1 to 7)", "points order behind preimage bounds"),
        ("What lies where (obligations 8 and 11)",
         "tree state facts cuts quantified progressions induction writes ended dealt instances final scope"),
        ("What may run at the same time (obligation 8)", "waits ways standing pairs"),
        ("Steps and memories (obligations 9 and 10)", "legal signature joined filled registers workspace layout"),
        ("Arithmetic that the checkers share", "geometry context boxes sets counted guards witness digits"),
        ("The slow judge", "flat flat_layout flat_step flat_units flat_joined flat_table flat_program flat_walk subset "
                           "prescribed races"),
    ),
    "system": (
        ("A machine", "graph groups mesh hierarchy busy names features"),
        ("What a description is", "schema units source files find families draft fields faults codes"),
        ("From a description to a machine", "load read_groups operands bodies joint emission unread judged"),
        ("Whether a machine makes sense", "check check_groups numerics remarks"),
        ("Functions as instructions", "register trials costs"),
        ("A machine for readers", "show draw draw_rows draw_mesh draw_svg"),
    ),
    "cli": (
        ("How a verb is run", "app usage answer interrupts progress codes"),
        ("What verbs share", "options given places data limits fair"),
        ("Kernels", "check print explain map onward schedule compile run_ tune range_ verify made_of emitted"),
        ("Machines (`system/`)", "system/ system/listing system/new system/check system/trial system/show "
                                 "system/schema system/calibrate"),
        ("This installation", "doctor cache code demo contest bench"),
        ("Pages", "pages maps"),
    ),
}  # fmt: skip
"""A package: its parts, in the order in which they are best read."""


def modules(package: str) -> set[str]:
    """The modules of a package as :data:`READING` writes them, without the package itself."""
    top = HERE / package
    found = (p.relative_to(top).with_suffix("").as_posix() for p in top.rglob("*.py"))
    return {n.removesuffix("__init__") for n in found} - {""}


def page(package: str, head: str) -> str:
    """The map of a package: what it is for, and a line per module."""
    title, _, more = _doc(package).partition("\n\n")
    lines = [head, f"# `isam.{package}`", "", title, *(["", more] if more else [])]
    for heading, names in READING[package]:
        lines += ["", f"## {heading}", "", "| module | |", "|---|---|"]
        for name in names.split():
            shown = name if name.endswith("/") else f"{name}.py"
            about = " ".join(_doc(package, name).partition("\n\n")[0].split()).replace("|", "&#124;")
            lines.append(f"| [`{shown}`]({shown}) | {about} |")
    return "\n".join(lines) + "\n"


def _doc(package: str, name: str = "") -> str:
    folder = HERE / package / name
    path = folder / "__init__.py" if name.endswith("/") or not name else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return re.sub(r":\w+:(?=`)", "", text).replace("``", "`")
