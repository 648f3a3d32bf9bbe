"""Instructions that contradict themselves are refused where they are loaded, each fault at its exact place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.codegen.llvm.judge import judge
from isam.codegen.llvm.lanes import lanes_of
from isam.codegen.llvm.reading import read
from isam.diagnostics import IsamError
from isam.system.check import check
from isam.system.load import load_system, parse_system
from tests.clock import quickest
from tests.unit.system.broken_instructions import BROKEN, MACHINE


@pytest.mark.parametrize("name", BROKEN)
def test_refused_where_it_is(name: str) -> None:
    old, new, places, message, hint = BROKEN[name]
    assert MACHINE.count(old) >= 1
    with pytest.raises(IsamError) as e:
        parse_system(MACHINE.replace(old, new, 1), "machine.yaml")
    found = e.value.diagnostics
    assert [f"{d.loc.line}:{d.loc.column} {d.code}" for d in found] == places
    assert all(d.hint and d.message for d in found)
    assert message in found[0].message
    assert hint in found[0].hint


def test_the_machine_itself_is_sound() -> None:
    assert check(parse_system(MACHINE)) == []
    assert len(BROKEN) >= 45


def test_places_in_families_are_those_of_the_template_as_written() -> None:
    """``{E}`` is shorter than ``float`` and ``double``: what follows it in the line is still found."""
    broken = MACHINE.replace("{E} 1.0)", "{E} 1.0, i32 $Q)").replace("ptr %x, i32", "ptr %x, {E} %y, i32")
    with pytest.raises(IsamError) as e:
        parse_system(broken, "m.yaml")
    line = next(n for n, text in enumerate(broken.split("\n"), 1) if "$Q" in text)
    text = broken.split("\n")[line - 1]
    places = [(d.loc.line, d.loc.column) for d in e.value.diagnostics]
    assert places == [(line, text.index("{E} %y") + 5), (line, text.index("$Q") + 1)]  # each once, of two members


def test_machines_made_in_code_are_judged_too() -> None:
    machine = parse_system(MACHINE)
    fma = machine.instructions["fma"]
    for template, code in (("%p = fmul $f64 %A, %B\n%C = fadd $f64 %C, %p", "emission-type"),
                           ("%C = fadd $f32 %C, %A", "emission-operand"),
                           ("%C = fadd $f32 %Z, %A", "emission-name"), (None, "emission-missing")):  # fmt: skip
        worse = replace(fma, emission={"llvm": template} if template else {})
        found = check(replace(machine, instructions={**machine.instructions, "fma": worse}))
        assert {d.code for d in found} == {code}
        assert found[0].loc == fma.loc


@pytest.mark.parametrize("system", ["host-avx512", "host-avx2", "host-generic", "blas-avx512"])
def test_templates_that_ship_are_sound_and_wrong_types_in_them_are_found(system: str) -> None:
    """Every vector type that a template's own line spells with an operand is made wrong once."""
    machine = load_system(system)
    assert list(judge(machine)) == []
    wrong = {"$f32": "$f64", "$f64": "$f32", "$i32": "$i64", "$i64": "$i32", "$i16": "$i8", "$i8": "$i16"}
    tried = 0
    for i in machine.instructions.values():
        template = i.emission["llvm"]
        for line in read(template, lanes_of(machine)):
            text = template.split("\n")[line.number - 1]
            for name, type_, column in line.values:
                before = text[: column - 1].rstrip()
                spelt = next((w for w in wrong if before.endswith(w)), None)
                if spelt is None or not type_ or name not in i.operands:
                    continue
                begin = len(before) - len(spelt)
                worse = text[:begin] + wrong[spelt] + text[len(before) :]
                broken = replace(i, emission={"llvm": template.replace(text, worse, 1)})
                found = list(judge(replace(machine, instructions={i.name: broken}, moves=())))
                assert "emission-type" in {f.code for f in found}, (i.name, worse)
                tried += 1
    assert tried > 100


@pytest.mark.parametrize(("line", "type_"), [
    ("%a = fadd $f32 %x, %y", "<8 x float>"),
    ("%a = fcmp ogt $f64 %x, %y", "<8 x i1>"),
    ("%a = icmp eq i32 %x, 0", "i1"),
    ("%a = select $i1 %m, $i8 %x, $i8 %y", "<8 x i8>"),
    ("%a = sext $i8 %x to $i32", "<8 x i32>"),
    ("%a = bitcast $f16 %x to <$L x half>", "<8 x half>"),
    ("%a = extractelement <4 x double> %x, i32 0", "double"),
    ("%a = shufflevector $f32 %x, $f32 poison, <2 x i32> zeroinitializer", "<2 x float>"),
    ("%a = insertelement $i32 poison, i32 %s, i64 0", "<8 x i32>"),
    ("%a = call float @llvm.fabs.f32(float %x)", "float"),
    ("%a = load float, ptr %x, align 4", "float"),
    ("%a = each erf f64(%x)", "<8 x double>"),
    ("%a = somethingnew $f32 %x", ""),
])  # fmt: skip
def test_the_type_of_what_a_line_makes(line: str, type_: str) -> None:
    assert read(line, 8)[0].type == type_


LONG = ["%a = fadd $f32 " + " " * 60_000, "<" * 60_000, "< " * 30_000, "%" * 60_000, "use a(" + ")" * 60_000 + "x",
        "%x = use a(" + " )" * 30_000 + "x", "%" + "a" * 60_000, "i" + "9" * 60_000, "$" * 60_000,
        "$stride(" + "a." * 30_000, "ptr align " * 6000]  # fmt: skip


@pytest.mark.parametrize("line", LONG, ids=range(len(LONG)))
def test_hostile_lines_are_read_in_no_time(line: str) -> None:
    assert quickest(lambda: read(line, 8), 0.2) < 0.2
