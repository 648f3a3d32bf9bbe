"""What the diagnostics of the other ways in mean."""

from __future__ import annotations

CODES: dict[str, str] = {
    "E501": "The index string cannot be read: an index is one letter, or an affine expression in parentheses.",
    "E502": "The output of an einsum mentions an index that no operand has.",
    "E503": "An einsum's dtypes are those of the language, one for all operands or one per operand.",
    "E504": "An einsum's names are those of the operands, then that of the output; its sizes are whole numbers "
            "for axes that it has.",
    "F601": "forall and loop only have a meaning in the source of a function under @isam.kernel.",
    "F602": "The source of a function under @isam.kernel could not be read.",
    "F603": "A piece of Python that means nothing in a kernel. The function is read, never run.",
    "F604": "A call of the builder that means nothing in a kernel.",
}
