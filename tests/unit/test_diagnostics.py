"""How a diagnostic is shown."""

from __future__ import annotations

from isam.diagnostics import Diagnostic, Loc, did_you_mean, with_source


def test_control_characters_do_not_reach_the_terminal():
    shown = str(Diagnostic("x-y", "bad \x1b[31m name", Loc("a\x07", 1, 3), "drop \x9b", "a \x1b[31mb"))
    assert all(c == "\n" or c.isprintable() for c in shown)
    assert "\n    a \ufffd[31mb\n      ^" in shown


def test_a_long_line_is_shown_around_its_column():
    line = "x" * 5000 + "!" + "y" * 5000
    (d,) = with_source([Diagnostic("x-y", "m", Loc("f", 1, 5001))], line)
    _, source, caret = str(d).split("\n")
    assert len(source) < 200
    assert source[caret.index("^")] == "!"
    for column in (1, 20, 10001):
        (d,) = with_source([Diagnostic("x-y", "m", Loc("f", 1, column))], line)
        _, source, caret = str(d).split("\n")
        assert (source + " ")[caret.index("^")] == (line + " ")[column - 1]


def test_what_has_no_place_shows_none():
    assert str(Diagnostic("x-y", "m")) == "error[x-y]: m"


def test_a_word_is_no_hint_for_itself():
    assert did_you_mean("tmp", ["tmp"]) == ""
    assert did_you_mean("tpm", ["tmp"])


def test_a_word_in_other_case_is_meant_rather_than_one_spelt_alike():
    assert did_you_mean("t", ["M", "T"]) == "did you mean 'T'?"
    assert did_you_mean("ROWS", ["ROW", "rows"]) == "did you mean 'rows'?"
    assert did_you_mean("t", ["M", "K"]) == ""
    assert did_you_mean("m2", ["M", "m"]) == "did you mean 'm'?"


def test_of_two_letters_one_may_be_another():
    assert did_you_mean("mn", ["copy", "mm", "vec"]) == "did you mean 'mm'?"
    assert did_you_mean("nm", ["copy", "mm"]) == "did you mean 'mm'?"
    assert did_you_mean("ab", ["cd", "ba"]) == "did you mean 'ba'?"
    assert did_you_mean("ab", ["cd", "abcde", "de"]) == "", "more letters than it has are missing, or none is shared"


def test_of_longer_words_more_letters_may_be_wrong():
    assert did_you_mean("matmull", ["matmul", "matvec"]) == "did you mean 'matmul'?"
    assert did_you_mean("float32", ["f64", "f32", "bf16"]) == "did you mean 'f32'?"
    assert did_you_mean("copy", ["load", "move"]) == ""


def test_all_that_are_equally_close_are_named_unless_they_are_many():
    assert did_you_mean("rc", ["ra", "rb"]) == "did you mean 'ra' or 'rb'?"
    assert did_you_mean("add_f32", ["add_s_f32", "mul_s_f32", "add_v_f32", "add_w_f32"]) == (
        "did you mean 'add_s_f32', 'add_v_f32' or 'add_w_f32'?")  # fmt: skip
    assert did_you_mean("rx", ["r0", "r1", "r2", "r3"]) == "", "the words that there are say more"
    assert did_you_mean("rx", ["r0", "r0"]) == "did you mean 'r0'?"
