"""Cells are as expected and as the table says; the page is what its command writes now."""

from __future__ import annotations

import pytest

from tests.suite import SUITE
from tests.suite.cells import Cell, named, run
from tests.suite.columns import COLUMNS
from tests.suite.expected import expected, impossible, mapped, needs, written
from tests.suite.table import PAGE, load, page

CELLS, MACHINE = load()
AT = {(c.kernel, c.column): c for c in CELLS}


def test_every_cell_has_a_result_and_every_result_is_as_expected():
    assert set(AT) == {(k, c) for k in SUITE for c in COLUMNS}
    wrong = [f"{c.kernel} on {c.column}: {c}" for c in CELLS if not c.as_expected(expected(c.kernel, c.column))]
    assert wrong == []


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(CELLS, MACHINE), "run: python -m tests.suite.table"


def test_no_blind_step_where_the_paper_speaks():
    assert {c.blind for c in CELLS if named(c.kernel)} == {0}
    assert sum(named(k) for k in SUITE) > 50


def test_corrections_and_exceptions_name_cells_and_reasons():
    for name in ("exceptions.txt", "corrections.txt"):
        for kernels, columns, _, reason in written(name):
            assert kernels
            assert columns
            assert len(reason) > 10, (kernels, columns)


def same(a: Cell, b: Cell) -> bool:
    """Everything but the time."""
    keys = ("kind", "count", "chains", "mismatch", "expansions", "blind", "ended", "guessed")
    return all(getattr(a, k) == getattr(b, k) for k in keys)


@pytest.mark.parametrize("part", range(4))
def test_a_sample_of_cells_comes_out_as_the_table_says(part: int):
    """Every kernel with two columns, every column with several kernels; other kernels in each part."""
    columns = list(COLUMNS)
    for n, name in enumerate(SUITE):
        if n % 4 != part:
            continue
        for step in (n, n + 28):
            key = columns[step % len(columns)]
            got = run(name, key)
            assert same(got, AT[name, key]), f"{name} on {key}: {got}; the table says {AT[name, key]}"


def test_a_wrong_expectation_is_noticed():
    c = AT["matmul", "product"]
    assert c.as_expected(mapped(2))
    assert not c.as_expected(mapped(3))
    assert not c.as_expected(needs("factor"))
    assert not AT["depthwise_conv2d", "product"].as_expected(impossible("operation"))
