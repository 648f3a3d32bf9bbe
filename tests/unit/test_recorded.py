"""Recordings that are damaged, foreign or of another version: a diagnostic that says what is wrong and where."""

from __future__ import annotations

import json

import pytest

from isam.approach import SCHEMA
from isam.approach.choice import Approach, Choice, Trace
from isam.diagnostics import IsamError, Loc


def recording() -> str:
    trace = Trace(Approach())
    trace.about({"kernel": "k", "machine": "m"})
    for _ in range(2):
        trace.choose(Choice("tile", ["a", "b"], {"axis": "i"}, [1.0, 2.0]))
    return trace.to_json()


def edited(**parts: object) -> str:
    return json.dumps({**json.loads(recording()), **parts})


def decided(**parts: object) -> str:
    first, second = json.loads(recording())["decisions"]
    return edited(decisions=[first, {**second, **parts}])


def faults(text: str) -> list[str]:
    with pytest.raises(IsamError) as e:
        Trace.replaying(text, Loc("t.json", 1, 1))
    assert {(d.code, d.loc.file) for d in e.value.diagnostics} == {("trace-read", "t.json")}
    return [d.message for d in e.value.diagnostics]


def test_what_was_written_is_read():
    again = Trace.replaying(recording())
    for _ in range(2):
        assert again.choose(Choice("tile", ["a", "b"], {"axis": "i"}, [1.0, 2.0])) == "a"
    assert again.to_json() == recording()


@pytest.mark.parametrize(("text", "said"), [
    ("", "Expecting value"), ("no JSON", "Expecting value"), ("[" * 100_000, "nested too deeply"),
    ("9" * 5000, "a number in it is too large"), ("[1]", f"no trace of schema {SCHEMA}, its schema is None"),
    ("null", "its schema is None"), ('{"name": "another program\'s"}', "its schema is None"),
    (edited(schema="isam.trace/3"), "its schema is 'isam.trace/3'"),
    (edited(decisions={}), "'decisions' is not a list"),
    (edited(subject={"kernel": 3}), "'subject' is not an object of texts"), (edited(more=1), "there is no 'more'"),
    (edited(decisions=[3]), "decision 0: not an object"),
    (decided(chosen="1"), "decision 1: 'chosen' is not a whole number"),
    (decided(chosen=2), "decision 1: option 2 of 2 is chosen"), (decided(costs=["x"]), "decision 1: 'costs' is not"),
    (decided(context=[]), "decision 1: 'context' is not an object"),
    (decided(more=1), "decision 1: there is no 'more'"),
])  # fmt: skip
def test_anything_else_is_refused_with_what_is_wrong(text, said):
    (message,) = faults(text)
    assert message.startswith("this is no trace")
    assert said in message


def test_a_fault_of_the_text_has_its_line_and_all_faults_of_the_parts_are_told():
    with pytest.raises(IsamError) as e:
        Trace.replaying(recording().replace('"count": 2', '"count": ', 2), Loc("t.json", 1, 1))
    assert e.value.diagnostics[0].loc.line == 2
    assert len(faults(decided(chosen="1", label=3, why=None))) == 3
    with pytest.raises(IsamError) as e:
        Trace.replaying("{}")
    assert str(e.value).startswith("<trace>:1:1: ")
