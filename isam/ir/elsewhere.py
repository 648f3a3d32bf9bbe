"""What other languages write and what means nothing here, with what is written instead: hints of lexer and parser."""

from __future__ import annotations

CHARACTERS = {
    **dict.fromkeys("{}", "elements are written with [ ], blocks are indented"),
    **dict.fromkeys("\"'", "there are no texts in the language, and dtypes are names"),
    ";": "one statement per line, and nothing behind it",
    "@": "a product is written out: C[i, j] += A[i, k] * B[k, j]",
    **dict.fromkeys("&|!", "conditions are joined by 'and', 'or' and 'not'"),
    "^": "a power is pow(x, y)",
    "?": "a value that depends on a condition is select(CONDITION, VALUE, OTHERWISE)",
}
COMMENTS = ("/", "//", "%", "*")  # what begins one
BLOCKS = {"/*": "*/", '"""': '"""', "'''": "'''"}  # what begins one of several lines, and what ends it
ASSIGNMENTS = {
    "-=": "write += -(...)", "/=": "write *= 1.0 / (...)",
    "=+": "write += to add to what is there, = to assign", "=*": "write *= to multiply what is there",
}  # fmt: skip
ROLES = {
    **dict.fromkeys(("input", "inp", "arg", "read"), "in"),
    **dict.fromkeys(("output", "result", "ret", "write"), "out"),
    **dict.fromkeys(("param", "parameter", "weight", "weights"), "const"),
    **dict.fromkeys(("local", "tmp", "temporary", "var", "let", "alloc"), "temp"),
}
DTYPES = {"float": "f32", "double": "f64", "half": "f16", "int": "i32", "long": "i64", "char": "i8", "bfloat16": "bf16"}
FUNCTIONS = {
    "sum": "a sum is a statement over an axis more: y[i] += x[i, j], after y[i] = 0",
    "mean": "add up, y[i] += x[i, j], then divide",
    "prod": "a product is a statement over an axis more: y[i] *= x[i, j], after y[i] = 1",
    "where": "write select(CONDITION, VALUE, OTHERWISE)",
    "relu": "write max(x, 0)",
    "square": "write pow(x, 2)",
    **dict.fromkeys(("dot", "matmul"), "a product is written out: C[i, j] += A[i, k] * B[k, j]"),
    **dict.fromkeys(("maximum", "fmax", "fmaxf"), "write max(a, b)"),
    **dict.fromkeys(("minimum", "fmin", "fminf"), "write min(a, b)"),
    **dict.fromkeys(("fabs", "fabsf"), "write abs(x)"),
}
VALUES = {
    ":": "there are no slices: each dimension has an index, and the block says over which axes it goes",
    ">>": "there are no shifts: whole numbers divide towards zero, x / 4",
    "<<": "there are no shifts: write x * 4",
}
"""Where a value was expected: the sign, or the one before with it."""
_LOOP = "steps that follow each other are a 'loop t < T', of a number known before it begins"
STATEMENTS = {
    "if": "a block has a condition, forall i < N where i < 3; a value has select(CONDITION, VALUE, OTHERWISE)",
    "while": _LOOP,
    "return": "the results are what the 'out' buffers hold",
    **dict.fromkeys(("float", "double", "half", "int", "long", "char", "let", "var"),
                    "a temporary is assigned without a type: t[i] = x[i]"),
}  # fmt: skip
TAILS = {
    "(": "arguments stand in ( ), elements and shapes in [ ]: x[i, j], f32[M, N]",
    "[": "an element of two dimensions is x[i, j]",
    ".": "functions stand alone: exp(x[i])",
    "if": "a value that depends on a condition is select(CONDITION, VALUE, OTHERWISE)",
    "where": "a condition stands behind the axes: forall i < M, j < N where j < i",
    "//": "the operators are + - * / and the comparisons; a comment begins with #",
    **dict.fromkeys(("%", "**"), "the operators are + - * / and the comparisons"),
}
"""Of what follows a whole statement."""
_HEADS = {
    **dict.fromkeys(("isam", "system", "include", "extends", "memories"),
                    "a machine's description is looked over by `isam system check`, and stands behind --on"),
    **dict.fromkeys(("def", "import", "from", "class"),
                    "a Python function becomes a kernel by @isam.kernel, in Python"),
    **dict.fromkeys(COMMENTS, "a comment begins with #"),
}  # fmt: skip


def head(first: str, second: str) -> str:
    """What is said of a text that begins with these words, where it is one of another kind; else nothing."""
    if first in ("isam", "system", "include", "extends", "memories") and second != ":":
        return ""
    return _HEADS.get(first, "")
