"""Every kernel of the corpus on `host`, proved, equal to the interpreter. The rest of the sizes, and `blas`, are one
command: ``python -m tests.native_corpus``."""

from __future__ import annotations

import pytest

import isam
from tests import native_corpus
from tests.corpus import CASES
from tests.native_corpus import fault, largest


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_interpreter(name):
    assert fault(CASES[name], largest(CASES[name]), "host") is None


@pytest.mark.parametrize("name", ["matmul", "softmax", "conv_same"])
def test_every_size(name):
    found = [fault(CASES[name], sizes, "host", seed=k) for k, sizes in enumerate(CASES[name].small)]
    assert not any(found), found


def test_the_judge_sees_one_wrong_element(monkeypatch):
    def spoiled(fn, kernel, arrays):
        got = called(fn, kernel, arrays)
        got["C"][0, 0] += abs(got["C"]).max() * 1e-4
        return got

    called = native_corpus.called
    monkeypatch.setattr(native_corpus, "called", spoiled)
    told = fault(CASES["matmul"], largest(CASES["matmul"]), "host")
    assert told is not None
    assert "C[0, 0]" in told


def test_compiled_code_leaves_its_inputs_alone():
    case = CASES["attention"]
    kernel, sizes = case.load(), case.small[0]
    native_corpus.called(isam.compile(kernel, on="host", sizes=sizes), kernel, native_corpus.data(kernel, sizes, 5))
