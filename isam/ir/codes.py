"""What the diagnostics of the language mean: one entry per code (``isam code CODE``)."""

from __future__ import annotations

CODES: dict[str, str] = {
    "L101": "The text is larger than the parser accepts. Split it into several files.",
    "L102": "A character that the language does not use. Names are ASCII letters, digits and underscores.",
    "L103": "A number outside the range that the language can hold: whole ones have at most 18 digits, floats are "
            "finite.",
    "L104": "A tab in the indentation: blocks are recognised by spaces, and a tab has no agreed width.",
    "L105": "A closing bracket that does not match the opening one.",
    "L106": "A bracket that is never closed. A line continues only while a bracket is open or after a final comma.",
    "L107": "A line break inside of what is one line. A line continues only while a bracket is open or after a final "
            "comma.",
    "L110": "A particular sign or word was expected here.",
    "L111": "A name was expected here.",
    "L112": "An integer was expected here.",
    "L113": "Something follows where the line should end. There is one statement per line.",
    "L114": "The expression is too deep. Give parts of it names: each is a statement of its own.",
    "L115": "Comparisons chain only in a 'where'. In a value, write (a < b) and (b < c).",
    "L116": "A value was expected: an element such as A[i, k], a number, or a function of values.",
    "L117": "The language has no function of this name.",
    "L118": "A function was called with the wrong number of arguments.",
    "L119": "A 'where' is a list of affine comparisons, all of which hold.",
    "L120": "A file is a list of kernels and instructions; everything else is indented below one of them.",
    "L121": "A head without anything indented below it.",
    "L122": "The range of a size in the head is impossible: sizes are integers of at least 0.",
    "L123": "A word of the language cannot be a name.",
    "L124": "Lines of one block begin at the same column.",
    "L125": "The definition has more lines than the parser accepts.",
    "L126": "Only 'forall' and 'loop' open a block.",
    "L127": "Buffers are declared below the head; a loop does not create them.",
    "L128": "'permits' stands once, below the head: it is a grant for the whole kernel.",
    "L129": "What can be permitted: reassociate, contract (the default), finite; exact forbids the others.",
    "L130": "A 'forall' holds statements only: each runs over the whole domain before the next one starts.",
    "L131": "A 'loop' has one axis; loops may nest, up to a limit.",
    "L132": "An axis is written NAME < BOUND; it starts at 0.",
    "L133": "Buffers have the roles in, const, inout, out and temp.",
    "L134": "The language has no such dtype.",
    "L135": "A statement begins with the element it writes.",
    "L136": "No statement or declaration begins with this word.",
    "L137": "Accumulations are +=, *=, max= and min=: the operations that are commutative and associative.",
    "L138": "A statement writes an element by =, +=, *=, max= or min=.",
    "L140": "Exactly one kernel or instruction was expected in the text.",
    "L141": "A kernel was expected and an instruction, or something else, found, or the other way round.",
    "L142": "A text of the language was expected, not bytes, another object, or the name of a file.",
    "L143": "The file of a kernel cannot be read, or is no UTF-8 text.",
    "L201": "A name is used twice where it may be used once.",
    "L202": "A name in a shape, bound, index or condition that is no size, constant or axis here.",
    "L203": "A buffer that is neither declared nor written anywhere in the definition.",
    "L204": "An access must have one index per dimension.",
    "L205": "The kernel has no compile-time constant of this name: those are the head's parameters with a default.",
    "L206": "The text was printed with its constants put in; another value has no effect on it.",
    "L210": "The writes to an undeclared temporary disagree on the number of its dimensions.",
    "L211": "The extents of an undeclared temporary cannot be compared for all sizes: declare it with 'temp'.",
    "L220": "Shapes, bounds, indices and conditions are made of integers.",
    "L221": "Shapes, bounds, indices and conditions cannot read buffers: they are affine in axes and sizes.",
    "L222": "Shapes and bounds are affine in sizes alone. Restrict an axis by another one in a 'where'.",
    "L223": "Only + - and * by a constant occur in affine expressions.",
    "L224": "The expression is not affine: two names are multiplied, or a name is divided.",
    "L225": "A division by zero, or a division of integers that leaves a remainder.",
    "L230": "This operator does not exist for values.",
    "L231": "Axes and sizes are no values. A compile-time constant (a head parameter with a default) is one.",
    "L232": "A condition is a bool: a comparison, or an element of a bool buffer.",
    "L240": "The dtype 'any' belongs to instructions, where it stands for every dtype (moves).",
    "L241": "No step satisfies the conditions of a 'where', whatever the sizes. It is a remark: nothing is refused.",
    "L242": "A size that no shape, bound, condition, index or other size mentions. It is a remark: nothing is refused.",
    "L243": "A buffer that no statement reads or writes. It is a remark: nothing is refused.",
    "L244": "A temporary that is written and never read. It is a remark: nothing is refused.",
    "L245": "An instruction has a recurrent loop: it is one step, no kernel is carried out by it. It is a remark: "
            "nothing is refused.",
    "L310": "An undeclared temporary would need two dtypes. Cast one of the values that meet in it.",
    "L311": "A cast gives a value of one dtype to a buffer of another.",
    "V401": "A name that does not exist, exists twice, or has a role or permission that does not exist. "
            "Declare it in the head (a size), below it (a buffer: ROLE NAME: DTYPE[SHAPE]) or in the 'forall' "
            "(an axis).",
    "V402": "An access must have one index per dimension of its buffer.",
    "V403": "Buffers declared 'in' and 'const' are never written. Declare the buffer 'inout' to update it, or "
            "write another one.",
    "V404": "An operation that does not exist, with the wrong number of operands, or that cannot accumulate.",
    "V410": "The language has no such dtype.",
    "V411": "The operands of one operation have different dtypes. Casts are explicit. Convert one of them: "
            "f32(x[i]).",
    "V412": "A literal that its statement's dtype cannot hold.",
    "V413": "The operation does not exist for this dtype.",
    "V420": "An output that no statement writes. Write it, or declare it 'in' or 'temp'.",
    "V421": "An output with elements that no statement writes, for some admitted sizes. Write all of it, for "
            "example y[i] = 0 under its own 'forall' before others write parts.",
    "V422": "An element of a temporary or output is read (or accumulated into) before any statement has "
            "written it. Give it a first value in a 'forall' of its own, above: an accumulation does not "
            "start at 0 by itself.",
    "V430": "An access outside its buffer for some admitted sizes; the hint names one case. Extents come from "
            "the 'forall': make its bound smaller, the buffer's shape larger, or admit only the points that "
            "lie inside with 'where', as in: where 0 <= i - 1, i - 1 < N.",
    "V431": "A plain assignment that writes one element more than once: which value stays would be chance. "
            "Accumulate (+=, max=), or write an element whose index has all axes.",
    "V433": "A statement reads, anywhere on its right side, elements that other points of the same statement write: "
            "its order is free. Write another buffer, or put the axis along which values go on in a 'loop'; if the "
            "values from before are meant, read them into a temporary by a statement of its own.",
    "I501": "The interpreter needs a value for every size: given, or found from an array's shape.",
    "I502": "A size outside the range or the divisibility that the kernel's head admits.",
    "I503": "The interpreter needs an array for every 'in', 'const' and 'inout'.",
    "I504": "An array's shape differs from the declared one at these sizes.",
    "I505": "An array's dtype differs from the declared one: nothing is cast silently.",
    "I506": "An array was given for a buffer that the kernel does not have.",
    "I507": "An access left its buffer while the kernel was interpreted ('isam check' finds these beforehand).",
    "I508": "A buffer is too large for the reference interpreter, which allocates every temporary as declared.",
    "I509": "A number was given for what is no open size of the kernel: it would have no effect.",
}
