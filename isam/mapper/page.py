"""An explanation as one HTML page that needs nothing else: texts with marks, access matrices side by side, repairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape

from isam.diagnostics import NOWHERE, Loc
from isam.ir.kernel import Access, Kernel, Statement
from isam.ir.mismatch import Mismatch
from isam.ir.printer import print_statement as show
from isam.ir.text import print_kernel
from isam.mapper.explanation import Explanation
from isam.mapper.match import normal
from isam.mapper.spelt import spelt
from isam.mapper.uncovered import Gap, Uncovered, domain_text

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}pre,code,td.m{font:13px/1.45 ui-monospace,monospace}
pre{background:#f6f8fa;padding:.7rem;overflow:auto;border-radius:6px;margin:0}.cols{display:grid;gap:1rem;
grid-template-columns:repeat(auto-fit,minmax(22rem,1fr))}mark{background:#ffd8a8;color:inherit}
.no{color:#b42318}.yes{color:#176b3a}
table{border-collapse:collapse;margin:.2rem 0 .8rem}td,th{border:1px solid #d0d7de;padding:.15rem .5rem}
td,th{text-align:left;vertical-align:top}td.m{text-align:right}.bad{background:#ffd8a8}.tag{font-weight:600}.then{color:#57606a}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}pre{background:#161b22}td,th{border-color:#30363d}
mark,.bad{background:#7a4b00}.no{color:#ff9b8f}.yes{color:#7ee2a8}.then{color:#9da7b3}}
"""
NEAR = 12  # near misses listed


def page(found: Explanation) -> str:
    """The page of one instruction on one kernel."""
    name, kernel = escape(found.instruction.name), escape(found.kernel.name)
    if found:
        what, ways = escape(found.what), len(found.mappings)
        head = f"<h1><span class=yes>{name} carries out {what}</span> in {ways} way(s)</h1>"
        body = _list("How", [str(m) for m in found.mappings])
    else:
        assert found.reason is not None
        head = f"<h1><span class=no>{name} does not fit {kernel}</span></h1>" + _reason(found.reason)
        body = _matrices(found, found.reason) + _near(found.near[1:])
    texts = _texts(found)
    return _html(f"{found.instruction.name} on {found.kernel.name}", head + texts + body + _repairs(found))


def refusal(no: Uncovered) -> str:
    """The page of a kernel that a machine cannot carry out."""
    parts = [f"<h1><span class=no>{escape(no.kernel.name)} cannot be carried out</span></h1>"]
    parts.append(f"<pre>{escape(print_kernel(no.kernel))}</pre>")
    parts += [x for g in no.gaps for x in _gap(no.kernel, g)]
    for name, why in no.unmet:
        because = f": {escape(why.have)}; needs {escape(why.need)}" if why is not None else ""
        parts.append(f"<p class=no>{escape(name)} was required and cannot be used{because}</p>")
    if no.nearest is not None:
        steps, left = no.nearest
        parts.append(f"<p>Rewritten by {escape(' then '.join(steps))}, this alone is left:</p>")
        parts += [x for g in left.gaps for x in _gap(left.kernel, replace(g, mismatches=()))]
    return _html(f"{no.kernel.name}: no", "".join(parts))


def _gap(kernel: Kernel, g: Gap) -> list[str]:
    """One statement that nothing carries out."""
    s = kernel.statements[g.statement]
    drafts = [print_kernel(r.body, keyword="instruction") for r in g.remedies]
    return [f"<h2><code>{escape(spelt(s, kernel))}</code></h2><p class=then>{escape(domain_text(s))}</p>",
            _near(g.mismatches, with_instruction=True) if g.mismatches else "",
            *[f"<p>An instruction like this would do:</p><pre>{escape(d)}</pre>" for d in drafts[:2]]]  # fmt: skip


def told(kernel: str, system: str, report: str) -> str:
    """The page of a kernel that a machine carries out."""
    head = f"<h1><span class=yes>{escape(kernel)} on {escape(system)}</span></h1>"
    return _html(f"{kernel} on {system}", f"{head}<pre>{escape(report)}</pre>")


def _html(title: str, body: str) -> str:
    head = f"<meta charset=utf-8><title>{escape(title)}</title><meta name=viewport content='width=device-width'>"
    return f"<!doctype html><html lang=en>{head}<style>{STYLE}</style><body>{body}</body></html>\n"


def _reason(m: Mismatch) -> str:
    rows = f"<p><span class=tag>[{escape(m.kind)}]</span> the kernel has <code>{escape(m.have)}</code>; "
    rows += f"the instruction needs <code>{escape(m.need)}</code></p>"
    if m.partial:
        pairs = ", ".join(f"{a} = {b}" for a, b in m.partial)
        rows += f"<p class=then>agreed before that ({m.depth} pairs): {escape(pairs)}</p>"
    return rows


def _texts(found: Explanation) -> str:
    m = found.reason
    sides = (
        ("kernel", found.sources[0], found.kernel, "kernel", NOWHERE if m is None else m.kernel_loc,
         None if m is None else m.about("statement")),
        ("instruction", found.sources[1], normal(found.instruction.body), "instruction",
         NOWHERE if m is None else m.instruction_loc, None if m is None else m.about("instruction_statement")),
    )  # fmt: skip
    out = ""
    for title, source, body, keyword, loc, at in sides:
        marked = _marked(source, loc) if source else _printed(body, keyword, at)
        out += f"<div><h2>{title}</h2><pre>{marked}</pre></div>"
    return f"<div class=cols>{out}</div>"


def _marked(source: str, loc: Loc) -> str:
    """The user's own text, the line in question marked."""
    lines = [escape(line) for line in source.rstrip("\n").split("\n")]
    if 0 < loc.line <= len(lines):
        lines[loc.line - 1] = f"<mark>{lines[loc.line - 1]}</mark>"
    return "\n".join(lines)


def _printed(body: Kernel, keyword: str, at: int | None) -> str:
    text = escape(print_kernel(body, keyword=keyword).rstrip("\n"))
    if at is None or at >= len(body.statements):
        return text
    statement = escape(show(body.statements[at]))
    return text.replace(statement, f"<mark>{statement}</mark>", 1)


def _matrices(found: Explanation, m: Mismatch) -> str:
    """The access matrices of the two statements that contradict each other: a row per dimension, a column per axis."""
    mine, theirs = found.kernel, normal(found.instruction.body)
    at, other = m.about("statement"), m.about("instruction_statement")
    if at is None or other is None or at >= len(mine.statements) or other >= len(theirs.statements):
        return ""
    left = _tables(mine.statements[at], m.about("buffer"), m.about("row"), m.about("axis"))
    right = _tables(theirs.statements[other], m.about("operand"), None, m.about("instruction_axis"))
    title = "<h2>Access matrices (rows: dimensions, columns: axes)</h2>"
    return f"{title}<div class=cols><div>{left}</div><div>{right}</div></div>"


def _tables(s: Statement, buffer: str | None, row: int | None, axis: str | None) -> str:
    out = f"<p><code>{escape(show(s))}</code></p>"
    for a in dict.fromkeys(x for x in (s.dest, *s.sources) if isinstance(x, Access)):
        out += _matrix(a, s.domain.names, row if a.buffer == buffer else None, axis if a.buffer == buffer else None)
    return out


def _matrix(a: Access, axes: Sequence[str], row: int | None, axis: str | None) -> str:
    head = "".join(f"<th{' class=bad' if n == axis else ''}>{escape(n)}</th>" for n in axes)
    rows = ""
    for d, line in enumerate(a.matrix(tuple(axes))):
        cells = "".join(
            f"<td class='m{' bad' if d == row and (axis is None or n == axis) else ''}'>{c}</td>"
            for n, c in zip(axes, line, strict=True)
        )
        rows += f"<tr><th>{d}</th>{cells}</tr>"
    return f"<table><tr><th>{escape(a.buffer)}</th>{head}</tr>{rows}</table>"


def _near(near: Iterable[Mismatch], *, with_instruction: bool = False) -> str:
    told = [m for m in near if m.have][:NEAR]
    if not told:
        return ""
    first = "<th>instruction</th>" if with_instruction else ""
    rows = "".join(
        "<tr>"
        + (f"<td><code>{escape(m.instruction)}</code></td>" if with_instruction else "")
        + f"<td>{escape(m.kind)}</td><td><code>{escape(m.have)}</code></td><td><code>{escape(m.need)}</code></td></tr>"
        for m in told
    )
    head = f"<tr>{first}<th>kind</th><th>the kernel has</th><th>needs</th></tr>"
    return f"<h2>Near misses</h2><table>{head}{rows}</table>"


def _repairs(found: Explanation) -> str:
    if not found.repairs:
        return "" if found else "<h2>Repairs</h2><p>no single change was found that would do</p>"
    rows = "".join(
        f"<tr><td>{escape(r.currency)}</td><td>{escape(r.change)}<br><span class=then>then {escape(r.then)}</span>"
        "</td></tr>"
        for r in found.repairs
    )
    return f"<h2>Repairs, each tried</h2><table>{rows}</table>"


def _list(title: str, items: Sequence[str]) -> str:
    return f"<h2>{title}</h2><ul>" + "".join(f"<li><code>{escape(i)}</code></li>" for i in items) + "</ul>"
