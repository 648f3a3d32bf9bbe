"""What a transform is (TR-0): a value with a law, finite sites, an application that knows the way back, the mismatches
it answers and the numerics it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ClassVar

from isam.classes import dataclass
from isam.diagnostics import InternalError
from isam.ir.affine import Affine
from isam.ir.dtype import DTYPES
from isam.ir.kernel import COMPARISONS, Access, Kernel
from isam.ir.mismatch import Mismatch
from isam.once import once
from isam.transforms.saving import ErrorBound, Saving

NUMERICS = ("exact", "integers", "reassociates", "rounding", "finite")
"""exact: bit for bit the same · integers: the same on integers (wrapping included) · reassociates: sums in another
order or grouping · rounding: other roundings than written · finite: the same unless a value is infinite or NaN."""

ALWAYS, ON_DEMAND, MATCHED, TAKEN = "always", "on demand", "matched", "taken"
"""When a search tries a law. always · on demand: where a mismatch says so, never blindly, as the matcher does not care
about what it changes · matched: never, as the matcher sees through it, so that it turns no "no" into a "yes" · taken:
never, as the compiler takes it where that saves time, once a kernel is covered."""


@dataclass(frozen=True, slots=True)
class Site:
    """One place where a law applies: sorted (name, value) pairs that ``apply`` understands."""

    at: tuple[tuple[str, Any], ...]

    @staticmethod
    def of(**at: Any) -> Site:
        return Site(tuple(sorted(at.items())))

    def __getitem__(self, key: str) -> Any:
        return dict(self.at)[key]

    def get(self, key: str) -> Any:
        return dict(self.at).get(key)

    def __str__(self) -> str:
        return ", ".join(f"{k} {_text(v)}" for k, v in self.at)


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) and not isinstance(value, Affine) else str(value)


class NoSite(InternalError):
    """A law was applied where it does not hold: whoever takes a step takes one that the law offers."""


Relation = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Correspondence:
    """The way back from a rewritten kernel to the one before.

    ``axes``, ``buffers``: old name -> new names, where they differ (an old name with no entry is its own counterpart;
    an empty tuple means that it is gone). ``statements``: per new statement the old statements it carries out.
    ``meanings``: a new name in terms of old ones, for reports (``k_in`` is ``k % 4``).
    """

    statements: tuple[tuple[int, ...], ...] = ()
    axes: Relation = ()
    buffers: Relation = ()
    meanings: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def identity(kernel: Kernel) -> Correspondence:
        return Correspondence(tuple((i,) for i in range(len(kernel.statements))))

    def then(self, later: Correspondence) -> Correspondence:
        """This step, then ``later``: from the last names to the first."""
        statements = tuple(
            tuple(sorted({old for mid in mids for old in self.statements[mid]})) for mids in later.statements
        )
        meanings = dict(self.meanings)
        meanings.update((new, _rewrite(text, meanings)) for new, text in later.meanings)
        return Correspondence(
            statements,
            _compose(self.axes, later.axes),
            _compose(self.buffers, later.buffers),
            tuple(sorted(meanings.items())),
        )

    def meaning(self, name: str) -> str:
        """A new name in the user's terms."""
        return dict(self.meanings).get(name, name)

    def new_axes(self, old: str) -> tuple[str, ...]:
        return dict(self.axes).get(old, (old,))

    def new_buffers(self, old: str) -> tuple[str, ...]:
        return dict(self.buffers).get(old, (old,))


def _compose(first: Relation, second: Relation) -> Relation:
    after = dict(second)
    out = {old: tuple(dict.fromkeys(n for m in mids for n in after.get(m, (m,)))) for old, mids in first}
    middle = {m for _, mids in first for m in mids}
    out.update((m, news) for m, news in second if m not in middle and m not in out)
    return tuple(sorted(out.items()))


def _rewrite(text: str, meanings: Mapping[str, str]) -> str:
    import re

    return re.sub(r"[A-Za-z_]\w*", lambda m: meanings.get(m.group(), m.group()), text)


@dataclass(frozen=True)
class Rewrite:
    """The kernel after a law was applied, and the way back."""

    kernel: Kernel
    back: Correspondence


@once
def _known_sites(kernel: Kernel) -> dict[Any, tuple[Site, ...]]:
    """By law; filled in as laws are asked."""
    return {}


def _once_per_law(sites: Callable[[Any, Kernel], tuple[Site, ...]]) -> Callable[[Any, Kernel], tuple[Site, ...]]:
    """The sites of one law on one kernel, found once: every mismatch of a kernel asks for them again."""

    @wraps(sites)
    def found(self: Any, kernel: Kernel) -> tuple[Site, ...]:
        known = _known_sites(kernel)
        if self not in known:
            known[self] = sites(self, kernel)
        return known[self]

    return found


@once
def _known_rewrites(kernel: Kernel) -> dict[Any, Rewrite]:
    """By law and site; filled in as steps are taken."""
    return {}


def taken(law: Transform, kernel: Kernel, site: Site) -> Rewrite:
    """What a law makes of a kernel, made once for all who take that step: who tries it, covers what it leads to, lists
    the chain for a proof. What a search only looks at is not kept."""
    known, key = _known_rewrites(kernel), (law, site)
    if key not in known:
        known[key] = law.apply(kernel, site)
    return known[key]


class Transform:
    """A law: a small value. Subclasses with options are frozen dataclasses whose fields are these; those without are
    plain, equal to each other, so that the many laws are quick to import.

    ``law``: its name; ``equation``: what it says; ``needs``: the numerics it uses (:data:`NUMERICS`); ``kinds``: the
    mismatch kinds it may answer; ``grows``: it only makes kernels larger, so it fires only when a mismatch asks (TR-2);
    ``inverse``: the law that undoes it ('' where there is none); ``judge``: what decides equality in its tests: the
    oracle modulo a prime (``residues``, granted the laws of numbers in ``model``), the interpreter bit by bit on the
    numbers of the machine (``interpreter``), or float64 with a derived bound where it uses a property of a function
    (``float bound``); ``makes``: operations that the result may have and the kernel before had not: an instruction with
    an operation that no law makes is out of reach, and the search need not begin; ``wants``: operations without which
    it has no site; ``removes``: operations of statements that may go when a neighbour is asked about; ``pays``: it may
    make a kernel cheaper that can be carried out as it stands, so it is offered there too, with what it ``saves``;
    ``tried``: when a search tries it (ALWAYS, ON_DEMAND, MATCHED, TAKEN).
    """

    law: ClassVar[str]
    equation: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"exact"})
    kinds: ClassVar[frozenset[str]] = frozenset()
    grows: ClassVar[bool] = False
    inverse: ClassVar[str] = ""
    judge: ClassVar[str] = "residues"
    model: ClassVar[frozenset[str]] = frozenset()
    makes: ClassVar[frozenset[str]] = frozenset({"copy"})
    wants: ClassVar[frozenset[str]] = frozenset()
    removes: ClassVar[frozenset[str]] = frozenset()
    pays: ClassVar[bool] = False
    tried: ClassVar[str] = ALWAYS

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if "sites" in vars(cls):
            setattr(cls, "sites", _once_per_law(vars(cls)["sites"]))  # noqa: B010

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def replaces(self) -> str:
        """The operation that it puts what it ``makes`` in the place of; '' where it is about no single one."""
        return ""

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        """Every place where the law holds, in a fixed order, whatever numerics the kernel grants."""
        raise NotImplementedError

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        """The kernel with the law applied at one of its sites."""
        raise NotImplementedError

    def answers(self, mismatch: Mismatch) -> bool:
        """Could this law remove that mismatch?"""
        return mismatch.kind in self.kinds

    def demand(self, site: Site) -> tuple[Any, ...]:
        """What tells two answers to one mismatch apart: on one path a law that grows answers each demand once."""
        return ()

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The sites whose application acts on what the mismatch names."""
        return self.sites(kernel) if self.answers(mismatch) else ()

    def saves(self, kernel: Kernel, site: Site) -> Saving | None:
        """What the site would save, of laws that may pay."""
        return None

    def error(self, kernel: Kernel, site: Site) -> ErrorBound | None:
        """How far the results of the sum at the site may be from exact ones, of inexact laws."""
        return None


def dtypes_at(kernel: Kernel, site: Site) -> tuple[str, ...]:
    """The dtypes that the statements or buffers named by a site compute with: what numerics are asked for."""
    out: list[str] = []
    for key, value in site.at:
        if key == "buffer" and isinstance(value, str):
            out.append(kernel.buffer(value).dtype)
        if key in ("statement", "sum", "product", "inner", "outer") and isinstance(value, int):
            s = kernel.statements[value]
            compared = [x.buffer for x in s.sources if isinstance(x, Access)] if s.op in COMPARISONS else []
            out.extend(kernel.buffer(n).dtype for n in compared or [s.dest.buffer])
    return tuple(out) or tuple(b.dtype for b in kernel.buffers)


def granted(kernel: Kernel, needs: Iterable[str], dtypes: Iterable[str]) -> bool:
    """Does the kernel's user grant the numerics ``needs`` for values of these dtypes?"""
    integral = all(DTYPES[d].kind in "iub" for d in dtypes)
    free = integral or ("reassociate" in kernel.permits and "exact" not in kernel.permits)
    finite = integral or "finite" in kernel.permits
    allowed = {"exact": True, "integers": integral, "reassociates": free, "rounding": free, "finite": finite}
    return all(allowed[n] for n in needs)
