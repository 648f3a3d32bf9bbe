"""Affine constraints in isl's notation: names encoded so that no user's name can be one of its words."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from isam.ir.affine import Affine

_PLAIN = frozenset(string.ascii_letters + string.digits)


@lru_cache(maxsize=4096)
def encode(name: str) -> str:
    """A name that isl's parser accepts, whatever the user called his size (its keywords included)."""
    return "p_" + "".join(c if c in _PLAIN else f"_{ord(c):x}_" for c in name)


def decode(text: str | None) -> str:
    """The name that :func:`encode` turned into this."""
    plain, *rest = (text or "p_")[2:].split("_")
    for i, part in enumerate(rest):
        plain += chr(int(part, 16)) if i % 2 == 0 else part
    return plain


def term(e: Affine, dims: Mapping[str, str]) -> str:
    """One affine expression; ``dims`` names the dimensions, all else is a parameter."""
    return " + ".join([f"{c}*{dims.get(n) or encode(n)}" for n, c in e.terms] + [str(e.const)])


def params_text(exprs: Iterable[Affine], dims: Mapping[str, str]) -> str:
    """``[p_M, p_N] -> `` for every name that is no dimension."""
    names = sorted({n for e in exprs for n, _ in e.terms} - dims.keys())
    return f"[{', '.join(map(encode, names))}] -> " if names else ""


def constraints(ge: Sequence[Affine], eq: Sequence[Affine], exists: Sequence[str], dims: dict[str, str]) -> str:
    """`` : a >= 0 and b = 0``, under ``exists`` where there are such names."""
    inner = dims | {n: f"e{k}" for k, n in enumerate(exists)}
    parts = [f"{term(e, inner)} >= 0" for e in ge] + [f"{term(e, inner)} = 0" for e in eq]
    if not parts:
        return ""
    body = " and ".join(parts)
    return f" : exists ({', '.join(inner[n] for n in exists)}: {body})" if exists else f" : {body}"
