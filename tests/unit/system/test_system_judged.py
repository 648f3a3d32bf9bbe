"""Descriptions on record as judged are read piece by piece, and say the same as when they are read whole (SYS-6)."""

from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path

import pytest

from isam.diagnostics import IsamError
from isam.ir.instruction import Instruction
from isam.ir.table import Some, Table
from isam.mapper.filters import needs_of, present
from isam.system.bodies import functions_in, types_in
from isam.system.find import list_systems, shipped
from isam.system.judged import RECORD, digest, is_judged, record
from isam.system.load import load_system, parse_system
from tests.corpus import CASES

ROOT = shipped()[0]
NAMES = sorted(n for n, p in list_systems(shipped()).items() if "select:" not in p.read_text())


def test_the_record_is_that_of_the_files() -> None:
    assert (ROOT / RECORD).read_text() == record(), "python -m isam.system.judged writes it"


@pytest.fixture
def on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isam.system.load.is_judged", lambda texts: True)


@pytest.mark.usefixtures("on_record")
@pytest.mark.parametrize("name", NAMES)
def test_pieces_and_whole_are_the_same_machine(name: str) -> None:
    pieces, whole = load_system(ROOT / list_systems()[name]), load_system(ROOT / list_systems()[name], whole=True)
    assert isinstance(pieces.instructions, Table)
    assert not isinstance(whole.instructions, Table)
    assert pieces == whole
    assert list(pieces.instructions) == list(whole.instructions)
    assert pieces.assumed == whole.assumed
    for i in whole.instructions.values():
        for f in fields(Instruction):  # those too that equality does not look at
            assert getattr(pieces.instructions[i.name], f.name) == getattr(i, f.name)


@pytest.mark.usefixtures("on_record")
@pytest.mark.parametrize("name", NAMES)
def test_no_instruction_is_passed_over_that_a_kernel_could_use(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT, tmp_path / "hwdesc")
    path = tmp_path / "hwdesc" / list_systems()[name].relative_to(ROOT)
    table = load_system(path).instructions
    assert isinstance(table, Table)
    assert not table.seen()
    for n, i in load_system(list_systems()[name], whole=True).instructions.items():
        needs = needs_of(i)
        types, operations = needs.dtypes | {d for _, d in needs.operations}, frozenset(o for o, _ in needs.operations)
        assert table.may_fit(n, types, operations)
        assert i.sets or table.computes(n)
    assert not table.seen()
    assert len(load_system(path).compute) == len(load_system(list_systems()[name], whole=True).compute)
    assert all(i.sets for i in table.seen())
    assert name in ("units", "tiny") or not all(table.may_fit(n, frozenset({"f32"}), frozenset()) for n in table)


class Text:
    """An instruction as a text that counts how often it is read."""

    def __init__(self, made: Instruction):
        self.made, self.count = made, 0
        self.types = frozenset(b.dtype for b in made.body.arguments if b.role == "out") - {"any"}
        self.calls = frozenset(o for o, _, _ in made.signature) & {"max", "exp"}
        self.sets = bool(made.sets)

    def read(self) -> Instruction:
        self.count += 1
        return self.made


def test_what_is_on_offer_is_the_same_and_the_rest_is_not_read() -> None:
    kernel = CASES["matmul"].load().with_sizes({"M": 4, "N": 5, "K": 3})
    toy = load_system("toy", whole=True)
    texts = {n: Text(i) for n, i in toy.instructions.items()}
    offered = present(Some(Table(texts), list(texts)), kernel)
    assert offered == present(list(toy.instructions.values()), kernel)
    assert {n for n, t in texts.items() if t.count} < set(texts)
    assert {i.name for i in offered} <= {n for n, t in texts.items() if t.count}


def test_a_table_reads_once_and_only_what_is_asked_for() -> None:
    one, two = (load_system("toy").instructions[n] for n in ("mm4_f32", "copy"))
    text = Text(one)
    table = Table({"mm4_f32": text, "copy": two})
    assert "mm4_f32" in table
    assert "mm5" not in table
    assert list(table) == ["mm4_f32", "copy"]
    assert len(table) == 2
    assert table.get("mm5") is None
    assert table.seen() == (two,)
    assert list(table.only({"mm4_f32"})) == ["mm4_f32"]
    assert table.plus(two) is not table
    assert text.count == 0
    assert table["mm4_f32"] is one
    assert table["mm4_f32"] is one
    assert text.count == 1
    assert table.seen() == (one, two)
    assert table == {"mm4_f32": one, "copy": two}


def test_an_edited_description_is_judged_whole(tmp_path: Path) -> None:
    folder = tmp_path / "toy"
    shutil.copytree(ROOT / "toy", folder)
    path = folder / "toy.yaml"
    text = path.read_text()
    assert is_judged([text])
    assert isinstance(load_system(path).instructions, Table)  # the same text, wherever it lies
    path.write_text(text.replace("homes:", "home:", 1))
    assert not is_judged([path.read_text()])
    with pytest.raises(IsamError) as e:
        load_system(path)
    assert e.value.diagnostics[0].loc.file == str(path)
    assert e.value.diagnostics[0].loc.line > 1


def test_digests_tell_texts_apart() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(["a"]) != digest(["a", ""])
    assert not is_judged([])


def test_a_wrong_text_on_record_is_an_error_at_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.yaml"
    text = (ROOT / "tiny" / "tiny.yaml").read_text()
    path.write_text(text.replace("forall", "for all"))
    with pytest.raises(IsamError) as whole:
        load_system(path)
    monkeypatch.setattr("isam.system.load.is_judged", lambda texts: True)
    pieces = load_system(path)
    first = next(iter(whole.value.diagnostics))
    name = next(n for n in pieces.instructions if n in text)
    with pytest.raises(IsamError) as e:
        _ = pieces.instructions[name]
    assert first in e.value.diagnostics
    assert (first.loc.file, first.loc.line > 1) == (str(path), True)


def test_texts_without_a_file_are_judged_whole() -> None:
    made = parse_system((ROOT / "tiny" / "tiny.yaml").read_text())
    assert not isinstance(made.instructions, Table)


def test_what_declarations_say_of_element_types() -> None:
    def types(*lines: str) -> set[str]:
        return set(types_in("\n".join(lines)))

    assert types("  in A: f32[M, K]", " inout C: i32[M]", "out D: bool") == {"f32", "i32", "bool"}
    assert types("  in A: f32", "in B: f64[]", "in C: f16[ ]  ", "const D: i8") == set()  # a number may play them
    assert types("in A: any[M]", "in A: f31[M]", "in A f32[M]", "into A: f32[M]", "temp t: f32[M]", "") == set()
    assert types("out D:u8 [ N]", "out E: f32 []") == {"u8", "f32"}


@pytest.mark.parametrize(("line", "named"), [
    ("D[i] = exp(A[i]) * max(A[i], 0)", {"exp", "max"}),
    ("D[i] min= A[i]", {"min"}),
    ("D[i] = pow (A[i], B[i])", {"pow"}),
    ("D[i] = expo[i] + maximum[i] * (A[i] - min[i])", set()),
    ("D[i] = A[i] # exp(A[i]) would be another", set()),
    ("D[i] = select(A[i] > 0, f32(A[i]), 0)", set()),
    ("D[floor(i)] = A[i]", set()),
])  # fmt: skip
def test_operations_are_those_that_statements_name(line: str, named: set[str]) -> None:
    assert functions_in(line) == named
