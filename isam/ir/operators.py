"""The signs of the language's operators: what the parser reads and every printer writes."""

from __future__ import annotations

# sign -> operation, level by level from loosest to tightest
LEVELS: tuple[dict[str, str], ...] = (
    {"or": "or"},
    {"and": "and"},
    {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"},
    {"+": "add", "-": "sub"},
    {"*": "mul", "/": "div", "//": "floordiv", "%": "mod", "**": "power"},
)
OF_CONSTANTS = frozenset({"floordiv", "mod", "power"})  # gone when constants are folded: no statement has them
INFIX = {op: sign for level in LEVELS for sign, op in level.items() if op not in OF_CONSTANTS}
ACCUMULATION = {"add": "+=", "mul": "*=", "max": "max=", "min": "min="}
