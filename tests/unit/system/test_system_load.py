"""Descriptions become machines: the smallest one as it stands, names and places, files that belong together."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from isam.diagnostics import IsamError, Loc
from isam.ir.instruction import Cost, OperandContract
from isam.ir.text import parse_instruction
from isam.system.check import check
from isam.system.families import column_before, fill
from isam.system.find import find_system, list_systems
from isam.system.graph import Memory, Move, Unit
from isam.system.load import load_system, parse_system
from isam.system.schema import json_schema
from isam.system.units import QuantityError, parse_count, parse_quantity
from tests.unit.system.broken import TINY

ROOT = Path(__file__).parents[3]
MM4 = """instruction mm4(M <= 4, N <= 4, K <= 4)
  in    A: f32[M, K]
  in    B: f32[K, N]
  inout C: f32[M, N]
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""


def test_tiny_as_it_stands() -> None:
    s = load_system("tiny")
    assert s.name == "tiny"
    assert s.memories == {
        "dram": Memory("dram", "managed", 1 << 30, home=True),
        "sp": Memory("sp", "managed", 16384, align=16),
        "ra": Memory("ra", "managed", 512, cells=8, cell=64),
        "rb": Memory("rb", "managed", 512, cells=8, cell=64),
    }
    assert s.units == {"mm": Unit("mm", ("mm4",), 1e9), "dma": Unit("dma", ("copy",), 1e9)}
    edges = [("dram", "sp"), ("sp", "dram"), ("sp", "ra"), ("ra", "sp"), ("sp", "rb"), ("rb", "sp")]
    assert s.moves == tuple(Move(a, b, "copy", "dma") for a, b in edges)
    mm4 = s.instructions["mm4"]
    assert mm4.body == parse_instruction(MM4).body
    assert mm4.operands == {o: OperandContract(("ra", "rb")) for o in "ABC"}
    assert (mm4.apart, mm4.cost) == ((("A", "B"),), Cost(issue=4, latency=12))
    assert s.instructions["copy"].cost == Cost(setup=10, bandwidth=16)
    assert s.instructions["copy"].is_move
    assert not mm4.is_move
    assert [i.name for i in s.compute] == ["mm4"]
    assert (s.assumed, s.home, s.backend, s.facts) == ((), "dram", "simulator", {})
    assert check(s) == []


def test_bodies_are_verified() -> None:
    with pytest.raises(IsamError) as e:
        parse_system(TINY.replace("D[i, j] = S[i, j]", "D[i, 0] = S[i, j + 1]"), "m.yaml")
    row = next(n for n, line in enumerate(TINY.split("\n"), 1) if "D[i, j] = S" in line)
    assert {(d.loc.file, d.loc.line) for d in e.value.diagnostics} == {("m.yaml", row)}
    tiny = load_system("tiny")
    assert check(tiny, bodies=True) == []
    body = parse_instruction("instruction mm4(J)\n  out D: f32[J]\n  forall j < J\n    D[0] = 1\n").body
    mm4 = replace(tiny.instructions["mm4"], body=body, operands={}, apart=())
    worse = replace(tiny, instructions={**tiny.instructions, "mm4": mm4})
    assert check(worse) == []
    assert [d.code for d in check(worse, bodies=True)] == ["V431"]


def test_places_are_those_of_the_file() -> None:
    s = load_system("tiny")
    file, rows = s.source, Path(s.source).read_text().split("\n")
    mm4 = s.instructions["mm4"].body
    for thing, text in [(s.memories["sp"], "sp:"), (s.units["dma"], "dma:"), (s.instructions["mm4"], "mm4:"),
                        (mm4.buffer("B"), "B: f32"), (mm4.statements[0].sources[1], "B[k, j]")]:  # fmt: skip
        loc: Loc = thing.loc  # type: ignore[union-attr]
        assert loc.file == file
        assert rows[loc.line - 1][loc.column - 1 :].startswith(text)


def test_the_repository_s_tiny_is_the_one_of_the_surface() -> None:
    assert TINY.startswith("isam: 1\nsystem: tiny\nmemories:\n  dram: {kind: managed, capacity: 1 GiB, home: true}\n")


def test_names_and_search_order(tmp_path, monkeypatch) -> None:
    assert find_system("toy") == ROOT / "hwdesc" / "toy" / "toy.yaml"
    assert {"tiny", "toy"} <= list_systems().keys()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "toy.yaml").write_text(TINY.replace("system: tiny", "system: toy"))
    (tmp_path / "mine" / "part.yaml").write_text("isam: 1\nfacts: {a: 1}\n")
    monkeypatch.setenv("ISAM_HWDESC", str(tmp_path))
    assert load_system("toy").source == str(tmp_path / "mine" / "toy.yaml")
    assert list_systems()["toy"] == tmp_path / "mine" / "toy.yaml"
    assert "part" not in list_systems()
    assert load_system(str(ROOT / "hwdesc" / "tiny" / "tiny.yaml")) is load_system("tiny")
    (tmp_path / "toy.yaml").write_text(TINY)
    with pytest.raises(IsamError, match="two systems are called 'toy'"):
        load_system("toy")


def test_descriptions_inside_an_installed_package(tmp_path, monkeypatch) -> None:
    import isam.system.find as find

    inside = tmp_path / "isam" / "hwdesc" / "tiny"
    inside.mkdir(parents=True)
    (inside / "tiny.yaml").write_text(TINY.replace("1 GiB", "2 GiB"))
    monkeypatch.setattr(find, "__file__", str(tmp_path / "isam" / "system" / "find.py"))
    assert find_system("tiny") == inside / "tiny.yaml"
    assert load_system("tiny").memories["dram"].capacity == 2 << 30
    assert list(list_systems()) == ["tiny"]
    with pytest.raises(IsamError, match="no system is called 'toy'"):
        load_system("toy")


def test_loaded_once_per_content(tmp_path) -> None:
    part, main = tmp_path / "part.yaml", tmp_path / "m.yaml"
    part.write_text("isam: 1\nfacts: {width: 8}\n")
    main.write_text(TINY.replace("system: tiny", "system: m\ninclude: part.yaml"))
    one = load_system(str(main))
    assert one.facts == {"width": 8}
    assert load_system(str(main)) is one
    part.write_text("isam: 1\nfacts: {width: 16}\n")
    assert load_system(str(main)).facts == {"width": 16}


def test_free_data_is_read_as_it_looks() -> None:
    facts = """
facts:
  int: -12
  exponent: 1e3
  float: 2.5
  text: 1.2.3
  flag: true
  no: no
  quoted: "12"
  nothing:
  list: [1, a, {b: 2}]
"""
    assert parse_system(TINY + facts).facts == {
        "int": -12, "exponent": 1000.0, "float": 2.5, "text": "1.2.3", "flag": True, "no": "no", "quoted": "12",
        "nothing": None, "list": [1, "a", {"b": 2}]}  # fmt: skip


def test_names_that_yaml_would_turn_into_something_else() -> None:
    text = TINY.replace("  rb:", "  no:").replace("rb", '"no"').replace("system: tiny", "system: on")
    s = parse_system(text)
    assert s.name == "on"
    assert list(s.memories) == ["dram", "sp", "ra", "no"]


def test_extending_a_system(tmp_path) -> None:
    (tmp_path / "base.yaml").write_text(TINY.replace("system: tiny", "system: base\nneeds: [a]\nfacts: {x: 1, y: 2}"))
    (tmp_path / "more.yaml").write_text("""isam: 1
system: more
extends: base
needs: [b]
facts: {y: 3}
memories:
  sp: {align: 32 B}
  l1: {kind: cached, of: dram, capacity: 32 KiB}
units:
  mm: {runs: "mm*"}
instructions:
  mm4: {cost: {issue: 8 cycles, latency: 12 cycles}}
  mm2:
    body: |
      instruction mm2(M <= 2)
        in    A: f32[M]
        inout C: f32[M]
        forall i < M
          C[i] += A[i]
    homes: [ra]
""")
    s = load_system(str(tmp_path / "more.yaml"))
    assert (s.name, s.needs, s.facts) == ("more", ("a", "b"), {"x": 1, "y": 3})
    assert s.memories["sp"] == Memory("sp", "managed", 16384, align=32)
    assert s.units["mm"].runs == ("mm4", "mm2")
    assert s.units["mm"].clock == 1e9
    assert s.instructions["mm4"].cost == Cost(issue=8, latency=12)
    assert s.instructions["mm4"].body.statements == load_system("tiny").instructions["mm4"].body.statements
    assert s.assumed == ("mm2: issue, latency",)
    assert s.moves == load_system("tiny").moves


@pytest.mark.parametrize("name", ["base.yaml", "./base.yaml", "base", "parts/../base", "{folder}/base.yaml"])
def test_what_is_extended_lies_beside_the_file_that_says_so(name: str, tmp_path, monkeypatch) -> None:
    away, here = tmp_path / "away", tmp_path / "here"
    for folder, rows in ((away, 8), (here, 4)):
        (folder / "parts").mkdir(parents=True)
        (folder / "base.yaml").write_text(TINY.replace("cells: 8", f"cells: {rows}"))
    said = name.format(folder=here)
    (here / "more.yaml").write_text(f"isam: 1\nsystem: more\nextends: {said}\n")
    (here / "any.yaml").write_text(f"isam: 1\nsystem: any\nselect: [{{system: '{said}'}}]\n")
    monkeypatch.chdir(away)
    for path in ("../here/more.yaml", "../here/any.yaml"):
        assert load_system(path).memories["ra"].cells == 4


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("base.yaml", "error[system-file]: there is no file 'base.yaml' here", "looked in {}, the folder of this file"),
        ("../none/base", "error[system-file]: there is no file '../none/base' here", "looked in {}, the folder of"),
        ("base", "error[system-unknown]: no system is called 'base'", "looked in {}, the folder of this file, then"),
        ("tinny", "error[system-unknown]: no system is called 'tinny'", "did you mean 'tiny'?; looked in {}, the fol"),
    ],
)
def test_what_is_extended_and_not_there_is_told_where_it_is_said(
    name: str, message: str, hint: str, tmp_path, monkeypatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.yaml").write_text(TINY)  # in the working directory: of no file's concern
    for line, text in ((3, f"extends: {name}\n"), (4, f"select:\n  - {{system: {name}}}\n")):
        path = tmp_path / "here" / "m.yaml"
        path.write_text(f"isam: 1\nsystem: m\n{text}")
        with pytest.raises(IsamError) as e:
            load_system(str(path))
        (d,) = e.value.diagnostics
        assert (d.loc.file, d.loc.line) == (str(path), line)
        assert message in str(d)
        assert hint.format(path.parent) in d.hint


def test_selecting_by_features(tmp_path) -> None:
    for name in ("big", "small"):
        (tmp_path / f"{name}.yaml").write_text(TINY.replace("system: tiny", f"system: {name}"))
    (tmp_path / "any.yaml").write_text(
        "isam: 1\nsystem: any\nselect:\n  - {system: big, needs: [wide, fast]}\n  - {system: small, needs: [fast]}\n")
    path = str(tmp_path / "any.yaml")
    assert load_system(path, features=["fast", "wide"]).name == "big"
    assert load_system(path, features=["fast"]).name == "small"
    with pytest.raises(IsamError, match="big needs wide, fast; small needs fast"):
        load_system(path, features=[])


def test_families() -> None:
    text = TINY.replace("runs: [mm4]", 'runs: [mm4, "v{op}_{T}"]') + """
  v{op}_{T}:
    for: {T: {f32: {lanes: 16, llvm: float}, f64: {lanes: 8, llvm: double}}, op: ops}
    when: ["{op}{T} != divf64", "{T} in f32 f64"]
    body: |
      instruction v{op}_{T}(J <= {lanes})
        in  A: {T}[J]
        in  B: {T}[J]
        out D: {T}[J]
        forall j < J
          D[j] = {e}
    homes: [ra]
    cost: {issue: "{cycles} cycles", latency: 4 cycles}
    emission: {llvm: "call void @{op}({unknown} { op } ptr %A, ptr %B, ptr %D, <{lanes} x {llvm}> undef)"}
lists:
  ops: {add: {sign: +, cycles: 1, e: "A[j] {sign} B[j]"}, div: {sign: /, cycles: 8, e: "A[j] {sign} B[j]"}}
"""
    s = parse_system(text)
    assert s.units["mm"].runs == ("mm4", "vadd_f32", "vdiv_f32", "vadd_f64")
    i = s.instructions["vadd_f64"]
    assert (i.body.syms[0].hi, i.body.buffer("A").dtype, i.cost.issue) == (8, "f64", 1)
    assert i.emission == {"llvm": "call void @add({unknown} { op } ptr %A, ptr %B, ptr %D, <8 x double> undef)"}
    assert s.instructions["vdiv_f32"].body.statements[0].op == "div"
    assert s.instructions["vdiv_f32"].cost.issue == 8
    row = text.split("\n")[i.body.statements[0].loc.line - 1]
    assert row[i.body.statements[0].dest.loc.column - 1 :] == "D[j] = {e}"
    assert row[i.body.statements[0].sources[1].loc.column - 1 :] == "{e}"


@pytest.mark.parametrize("name", ["toy", "host-avx512", "host-generic"])
def test_parsing_once_per_shape_of_text_changes_nothing(name: str) -> None:
    from isam.system.bodies import _relocation, respelt
    from isam.system.draft import Reader
    from isam.system.faults import Faults

    s = load_system(name)
    draft = Reader(Faults()).read(find_system(name))
    assert draft is not None
    for e in draft.entries["instructions"].values():
        direct = parse_instruction(e.node.get("body").text).body  # type: ignore[union-attr]
        loaded = s.instructions[e.name].body
        assert loaded == direct, e.name
        body = e.node.get("body")  # type: ignore[union-attr]
        placed = respelt(direct, e.name, {}, _relocation(body))  # type: ignore[arg-type]
        assert [b.loc for b in loaded.buffers] == [b.loc for b in placed.buffers], e.name
        for a, b in zip(loaded.statements, placed.statements, strict=True):
            assert (a.loc, a.dest.loc, [x.loc for x in a.sources]) == (b.loc, b.dest.loc,
                                                                       [x.loc for x in b.sources]), e.name


def test_filling_templates() -> None:
    env = {"T": "bf16", "n": "4"}
    assert fill("{T}[{n}] { T } {{n}} {x}", env) == "bf16[4] { T } {4} {x}"
    row = "ab {T} cd {n} ef"
    filled = fill(row, env)
    assert filled == "ab bf16 cd 4 ef"
    for word in ("ab", "cd", "ef"):
        assert column_before(row, env, filled.index(word) + 1) == row.index(word) + 1
    assert column_before(row, env, filled.index("bf16") + 3) == row.index("{T}") + 1


@pytest.mark.parametrize(("text", "dimension", "value"), [
    ("16 KiB", "bytes", 16384), ("16KiB", "bytes", 16384), ("1.5 MiB", "bytes", 1572864), ("2 MB", "bytes", 2_000_000),
    ("1_024 B", "bytes", 1024), ("2.1 GHz", "frequency", 2.1e9), ("1e3 MHz", "frequency", 1e9), ("0.5 cycles",
                                                                                                 "cycles", 0.5),
    ("1 cycle", "cycles", 1.0), ("16 B/cycle", "bandwidth", 16.0), ("2 KiB/cycle", "bandwidth",
                                                                    2048.0), ("3 ulp", "error", 3.0),
])  # fmt: skip
def test_quantities(text: str, dimension: str, value: float) -> None:
    assert parse_quantity(text, dimension) == value


WRONG = ["", "KiB", "16", "16 kib", "-1 B", "1 B B", "0x10 B", "1e B", "inf B", "nan B", ".5 B", "٣ B"]


@pytest.mark.parametrize("text", WRONG)
def test_no_quantities(text: str) -> None:
    with pytest.raises(QuantityError) as e:
        parse_quantity(text, "bytes")
    assert e.value.hint


@pytest.mark.parametrize("text", ["", "8 B", "1.5", "-1", "0x8", "eight", "9" * 70, "1048577"])
def test_no_counts(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_count(text)
    assert parse_count("1e3") == 1000


def test_the_json_schema_accepts_what_ships_and_refuses_what_is_broken() -> None:
    import yaml
    from jsonschema import Draft202012Validator

    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    json.dumps(schema)
    judge = Draft202012Validator(schema)
    for path in list_systems().values():
        assert list(judge.iter_errors(yaml.safe_load(path.read_text()))) == [], path
    for old, new in [("16 KiB", "16"), ("kind: managed", "kind: manged"), ("capacity", "capcity"), ("runs", "run"),
                     ("cells: 8", "cells: 8 B"), ("by: copy,", ""), ("isam: 1", "isam: 2"), ("12 cycles",
                                                                                             "12 B")]:  # fmt: skip
        assert list(judge.iter_errors(yaml.safe_load(TINY.replace(old, new, 1)))), new
    part = yaml.safe_load("isam: 1\nsystem: more\nunits: {mm: {clock: 2 GHz}}")  # only an extending system overrides
    assert list(judge.iter_errors(part))
    assert list(judge.iter_errors({**part, "extends": "tiny"})) == []


def test_packed_operands_lie_without_gaps() -> None:
    """IR-11: strides follow from inner dimensions of constant extent; what lies further out is free."""
    amx = load_system("x86_amx").instructions
    assert amx["tdpbssd"].contract("B").strides == (None, 4, 1)
    assert amx["tdpbssd"].contract("A").strides == (None, 1)
    assert amx["vpdpbusd_vv"].contract("A").strides == (4, 1)
    assert amx["vpdpbusd_vs"].contract("A").strides == (1,)
    assert load_system("arm_neon").instructions["smmla"].contract("C").strides == (2, 1)


def test_results_are_ways_for_data_too() -> None:
    """Accumulators that only an instruction empties need no move; a memory that nothing fills still does."""
    system = load_system("tpu_like")
    assert not any("acc" in (m.source, m.target) for m in system.moves)
    text = Path(system.source).read_text()
    with pytest.raises(IsamError) as e:
        parse_system(text.replace("W: [mxu], C: [acc]", "W: [mxu], C: [ub]"), "m.yaml")
    assert "'C' of 'activate_none' is read in 'acc'" in str(e.value)
