"""What is asked at each choice point: the type of its options, what the context holds, what the costs are.

The page ``docs/choices.md`` and the table in ``docs/approaches.md`` are written from this one, and a test compares it
with what the compiler asks.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from isam.classes import dataclass

if TYPE_CHECKING:
    from isam.approach.choice import Choice, Decision


@dataclass(frozen=True, slots=True)
class Question:
    """``options``: the classes of the options, as ``module.Class``; ``context``: what is under which key (those with an
    underscore hold live objects and are not recorded); ``costs``: what is predicted, '' for nothing; ``by``: who
    asks.

    ``timed``: where an Approach takes the first option, the schedule with the second one is made as well, and offered
    at ``variant`` by this name; '' where it is not. ``unless_cheaper``: nor where costs say that the second is better.
    """

    point: str
    asks: str
    options: tuple[str, ...]
    context: dict[str, str] = field(default_factory=dict)
    costs: str = ""
    note: str = ""
    by: str = "scheduler"
    timed: str = ""
    unless_cheaper: bool = False

    def left_to_time(self, asked: Choice | Decision) -> bool:
        """Whether this is what is, or was, asked, and schedules in time have to say which option is better."""
        if not self.timed or asked.point != self.point:
            return False
        return not (self.unless_cheaper and asked.costs and asked.costs[1] < asked.costs[0])


QUESTIONS: tuple[Question, ...] = (
    Question(
        "search",
        "which rewriting is tried next, or whether to stop",
        ("isam.mapper.space.Expansion", "isam.mapper.space.Stop"),
        {
            "looked at": "kernels looked at so far",
            "solved": "how many of them reach the goal",
            "_states": "those kernels: `number`, `parent`, `steps`, `look.distance` from the goal, `look.price`",
        },
        note="`Expansion`: `state` and `step` (`step.transform`, `step.site`, `step.because`: the mismatch, or what it "
        "may save). `Stop` is offered once something is solved, first when nothing better is expected.",
        by="mapper",
    ),
    Question(
        "kernel",
        "which of the rewritten kernels that can be carried out is taken",
        ("isam.mapper.search.Path",),
        {"options": "their printed forms"},
        "calls and cycles, weighed, of the kernel's best cover",
        "`steps` lead to it, `needs` are the numerics used, `price` is (calls, bytes). Asked where there are several.",
        by="mapper",
    ),
    Question(
        "variant",
        "which of several kernels that can be carried out is taken, after each was scheduled",
        ("isam.compiler.variants.Variant",),
        {
            "options": "their printed forms",
            "unproved": "those taken before that could not be proved, which are no options any more",
        },
        "seconds of their schedules in time; where the number of steps is known at run time only and some are taken in "
        "parts, with 31 and with 144 of them together",
        "`schedule`, `ahead`: steps from the kernel as written, which comes first, `errors`: bounds, where steps are "
        "inexact. Asked where equivalent kernels are offered, or where steps were taken because they may save calls. "
        "Of the one taken several schedules may then be made. Also asked of two schedules of one kernel, the second "
        "by the second option at a point that is timed, as said there. Recorded besides, with nothing to choose: that "
        "those left out are scheduled, where what was taken cannot be proved and nothing else was made.",
        by="compiler",
    ),
    Question(
        "cover",
        "which set of instructions carries out all statements of a straight-line list",
        ("isam.mapper.as_it_stands.CoverOption",),
        {
            "kernel": "its name",
            "statements": "their numbers",
            "options": "the printed forms",
            "gap": "how far from the best the first may be; None: it is the best",
            "_kernel": "the kernel",
        },
        "calls and cycles, weighed",
        "`regions`, `price` (calls, bytes). Asked where there are several.",
        by="mapper",
    ),
    Question(
        "mapping",
        "which of an instruction's mappings carries out a region",
        ("isam.ir.mapping.Mapping",),
        {
            "kernel": "its name",
            "statements": "their numbers",
            "bytes": "what each option's calls touch",
            "_kernel": "the kernel",
            "_chosen": "mappings chosen so far",
            "_spacing": "what moves take though it does not lie together",
        },
        "calls and cycles, weighed",
        "`instruction`, `operands`, `axes`, `outer`, `tails`.",
        by="mapper",
    ),
    Question(
        "tail",
        "how much one call takes where the operands of the largest call do not fit together",
        ("isam.scheduler.call_size.CallSize",),
        {"nest": "its number", "instruction": "its name"},
        "calls",
        "`units`: elements per call of each mapped axis.",
    ),
    Question(
        "bind",
        "whether a temporary that constants alone determine is made once, when they are bound, and kept",
        ("builtins.bool",),
        {
            "buffer": "its name",
            "nests": "the numbers of those that make it",
            "bytes": "what it takes",
            "of": "the bytes of what it is made of",
        },
    ),
    Question(
        "fuse",
        "whether a nest shares its loops with those before it",
        ("builtins.bool",),
        {
            "nests": "the numbers of all of them",
            "nest": "the instruction of the nest",
            "into": "the instructions of those before it",
            "past": "whether it goes past nests that stand between; asked with those that it takes along, then without",
            "apart": "axes that it does not share though it could, because calls of one nest take more of them than "
            "those of another, else those of its own; it has loops along these inside; asked after all that it could "
            "share",
            "kept": "temporaries that it writes for nests that have to come after others behind those; it could come "
            "just before them instead",
            "lines": "buffers of whose lines each takes, or writes, elements between those of the other",
            "_group": "those before it",
            "_nest": "the nest, its axes renamed to theirs",
            "_kernel": "the kernel",
            "_system": "the machine",
        },
    ),
    Question(
        "tile",
        "loop order, blocks and what is packed at which depth, as one plan for a group of nests",
        ("isam.scheduler.plan.Plan",),
        {
            "nests": "their numbers",
            "group": "their instructions",
            "undealt": "why no plan deals blocks to instances; empty where one does",
            "_group": "the nests",
            "_system": "the machine",
        },
        "seconds where plans fill a near memory, else cycles, relative: compare them within one choice",
        "`order` ((axis, block), ...) from outer to inner, `unroll`, `stages` (`buffer`, `depth`, `memory`, ...).",
    ),
    Question(
        "pack",
        "how much of a near memory is for boxes that stay over a recurrent loop, per group of nests",
        ("isam.scheduler.stays.StayRooms",),
        {"memory": "its name", "loops": "axes of the loops around"},
        "seconds in all steps",
        "`rooms`: (number of the group, bytes of every instance). Asked where something can stay; the first: nothing.",
    ),
    Question(
        "device",
        "which unit issues a call, or a move along an edge that several serve",
        ("builtins.str",),
        {"instruction": "its name", "tiles": "of its operands, printed",
         "wrote": "those of the units whose stream made operands of it"},
        "seconds until it would be done, from the begin of the present list of steps",
        "Names of units. Asked where several run the instruction, or issue a move along the same edge; of a step of a "
        "cluster its first member.",
    ),
    Question(
        "route",
        "along which memories elements of a type go from one memory to another, in the whole schedule",
        ("isam.scheduler.move.Path",),
        {"from": "the memory they come from", "to": "the one they go to", "dtype": "their type"},
        "seconds for one cell of the target, or 1 KiB",
        "`memories`: all of them, the shortest way first. Asked where there are several.",
    ),
    Question(
        "place",
        "where the operands of a call lie, jointly",
        ("isam.scheduler.placement.Placement",),
        {"instruction": "its name", "tiles": "the operands' tiles, printed"},
        "operands that would have to be brought, those without room counting more",
        "`operands` and their `memories`. Asked where there are several.",
    ),
    Question(
        "source",
        "from which fresh copy operands are fetched",
        ("isam.scheduler.sources.Source",),
        {"buffer": "of which tiles are wanted", "tile": "the first of them, printed", "to": "the memory they go to"},
        "memories on the way",
        "`buffer`, `end.memory`, `kind`: a copy of the tile, a box around it, a panel, or its home. Asked where there "
        "are several, once for all tiles of the buffer that may come to that memory from the same ones.",
    ),
    Question(
        "join",
        "whether tiles that could move in one piece do",
        ("builtins.str",),
        {
            "buffer": "of which they are tiles",
            "way": "the memories that they pass, from the first to the last",
            "count": "how many there are",
            "bytes": "of all of them",
        },
        "seconds of their moves",
        "`together` and `one by one`. The first is what happens without an opinion: together, where that takes less "
        "than 0.95 of the time, or less than half of it where the first tiles have to wait for the last ones. Asked "
        "once for all that are alike, where calls do not hide what moves.",
    ),
    Question(
        "victim",
        "which copy gives way in a full memory",
        ("isam.scheduler.placement.Victim",),
        {"memory": "its name", "for": "the tile that needs room, printed"},
        note="`key`: (memory, tile, form). `next_use`: where in the block the tile is used again, the higher, the "
        "later; `None`: nowhere. `dirty`: whether it would have to be written back.",
    ),
    Question(
        "prefetch",
        "which cache a loop asks for what it reads later: for the rows or the block of its next iteration where it "
        "goes through them several times, for what lies ahead where it reads on and on",
        ("builtins.str",),
        {
            "loop": "its axis",
            "buffers": "what would be asked for",
            "bytes": "what one iteration reads of it",
            "iterations": "how many there are",
            "whole": "bytes of all that is gone through, or of what a stream or a block is part of",
            "rate": "of a stream or a block, bytes per second that its calls take; else 0",
            "sweeps": "how often an iteration goes through its block; else 1",
            "laid": "whether what would be asked for was laid out anew; else it is rows of an argument",
            "row": "of rows, bytes that an innermost loop goes through at most; else 0",
            "_system": "the machine",
        },
        note="Names of cached memories, nearest first; the first option is `none`. Asked where the machine has caches, "
        "and a move that states what prefetching costs.",
    ),
    Question(
        "stream",
        "whether what is read once in every iteration of a loop is brought by moves that do not make it stay in the "
        "nearest cache",
        ("builtins.str",),
        {
            "loop": "its axis",
            "buffer": "what is read",
            "bytes": "of it, in an iteration",
            "between": "bytes that an iteration touches and that are meant to stay near, those of it included",
            "_system": "the machine",
        },
        note="`stays`, then `passes`. Asked where the machine has such a move with the same body, and whole lines are "
        "read of what was laid out anew; of outer loops and of the largest first.",
    ),
    Question(
        "upfront",
        "whether moves stand before the calls of their block, or where what they bring is wanted",
        ("builtins.str",),
        {"moves": "how many there are in the block", "calls": "how many others"},
        note="`as they are wanted`, then `before the calls`. Asked where the machine has caches, one unit is given "
        "everything, moves go to cells that have names, and some cell is free early enough.",
    ),
    Question(
        "pipeline",
        "whether what becomes of a block's sum is made between the steps of the next block's",
        ("builtins.str",),
        {
            "loop": "its axis",
            "iterations": "how many it has",
            "blocks": "in one of them, one after the other without what is left of one being made before the next",
            "steps": "of the sum of a block, where an iteration is one; else 0",
            "pieces": "in which what becomes of it is made; else 0",
        },
        note="`one after the other`, then `woven`. Asked where the machine has caches, one unit is given everything, "
        "and a sum is in cells that have names, which the pieces do not touch; of inner loops first, and of the next "
        "one around where these are woven.",
    ),
    Question(
        "serpentine",
        "whether a loop goes through its iterations backwards every other time",
        ("builtins.str",),
        {
            "loop": "its axis",
            "around": "the variable of the loop around it, in whose odd iterations it would go backwards",
            "bytes": "what it goes through and only reads, the same in every iteration around",
            "rate": "bytes of that per second that its computations take",
            "_system": "the machine",
        },
        note="`forth`, then `back and forth`. Asked where the machine has several caches, the second nearest holds "
        "less than those bytes, and no iteration of the loop finds what another one has left.",
    ),
    Question(
        "interchange",
        "whether a recurrent loop goes from its first step to its last for some rows before it takes others",
        ("builtins.str",),
        {
            "loop": "its axis",
            "rows": "the axis along which rows have nothing to do with each other",
            "block": "how many rows would be taken at a time",
            "length": "how many there are",
            "nests": "numbers of the nests in the loop",
            "_group": "these",
            "_system": "the machine",
        },
        note="`as written`, then `rows outside`. Asked where the machine has caches, all nests of the loop share its "
        "loops inside, and a step takes a word of each of several rows, of which the next step takes the next one.",
    ),
    Question(
        "boxes",
        "by which axes the domain of a sum under conditions is cut into boxes",
        ("builtins.str",),
        {
            "nest": "its number",
            "boxes": "how many each option has",
            "_nest": "the nest",
            "_boxes": "these, per axis the first value and how many there are",
        },
        "bytes that the calls of all boxes read and write, each once per box; where boxes are of lines, again for each "
        "line what only lines share",
        "`by results`, then `by terms`: boxes of few terms each add to all results that have them. Asked where calls "
        "add to what they find, terms have no order, and there are no more boxes of terms. Then, where the machine has "
        "caches and that leaves fewer boxes, both `of lines`: the conditions that tie the rows of an image to those of "
        "a window are kept by the bounds of loops, which take one row of each at a time.",
    ),
    Question(
        "carry",
        "whether groups in a row, or the steps of a recurrent loop, keep in near memory what the next group or step "
        "brings back",
        ("builtins.str",),
        {
            "loop": "its axis; empty of groups in a row",
            "nests": "numbers of the nests, by group",
            "behind": "per group how many tiles are near behind it",
        },
        "calls and moves, in all steps",
        "`nothing`, then `handed on`. Asked where that takes a hundredth fewer calls at least.",
    ),
    Question(
        "copartition",
        "whether groups are dealt to instances in the same parts, so that each finds in its own memory what it has "
        "made",
        ("builtins.str", "isam.scheduler.dealt_alike.Alike"),
        {
            "nests": "numbers of the nests, by group",
            "buffers": "temporaries that would be at home in the memories of instances, in a slot for each one's part",
        },
        note="`nothing`, then each way to do that, those for most instances first: `dealings`, of each group by its "
        "position, `homes`, `instances`. Asked again of the groups that are left.",
        timed="groups dealt alike",
    ),
    Question(
        "agree",
        "whether nests that hand tiles on in a near memory, and take more in one call than in another, have calls of "
        "one size",
        ("isam.scheduler.agree.Agreement",),
        {"nests": "their numbers", "instructions": "their names"},
        "calls",
        "`units`: nest, axis and elements, where those are less than a call may take. The first takes as much as it "
        "may.",
        timed="smaller calls that agree",
    ),
    Question(
        "promote",
        "whether temporaries that several groups touch are at home in a near memory, in a slot of their own",
        ("builtins.str",),
        {"nests": "numbers of the nests, by group", "buffers": "those temporaries"},
        "calls and moves of the whole schedule",
        "`nothing`, then `at home near`.",
        timed="temporaries at home near",
        unless_cheaper=True,
    ),
    Question(
        "cascade",
        "whether groups in a row go through blocks of rows one after the other, all data of a block in a near memory",
        ("builtins.str",),
        {"nests": "numbers of the nests, by group", "memory": "in which all data of a block would lie"},
        "predicted seconds",
        "`nothing`, then `in blocks`. Asked where that is predicted to take a tenth less time at least.",
        timed="blocks that stay near",
    ),
    Question(
        "schedule",
        "which decision of a schedule that was made is taken otherwise in the next, or whether to keep the quickest",
        ("isam.compiler.alternatives.MadeSchedule", "isam.compiler.alternatives.Otherwise"),
        {
            "made": "schedules made so far",
            "tries": "how many may be made",
            "_made": "those schedules: `number`, `parent`, `script`, `decisions`, `seconds`",
        },
        note="`MadeSchedule` is the quickest, to be kept; `Otherwise`: `made`, `at` (the decision), `option`, `ratio` "
        "(predicted, over the least). Asked where the Approach's `tries` are more than one; not recorded: the trace "
        "has the decisions of the schedule that is kept.",
        by="compiler",
    ),
    Question(
        "measure",
        "which of several schedules that were run on this CPU, beside each other, is taken",
        ("isam.compiler.measured.Ran",),
        {
            "predicted": "seconds of a call, by option",
            "noise": "by how much two runs of the first differ, as a part of their time",
            "unfit": "schedules that take no part, each with its reason",
        },
        "seconds of a call, as measured",
        "`label()`: what is otherwise; `schedule`, `seconds`, `predicted`. The first is the one that would be taken by "
        "the time predicted. Asked where the Approach's `runs` are more than one and code is made for this CPU; not "
        "recorded: the trace has the decisions of the schedule that is taken.",
        by="compiler",
    ),
)
TIMED = tuple(q for q in QUESTIONS if q.timed)
