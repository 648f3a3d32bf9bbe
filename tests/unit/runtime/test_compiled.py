"""What inspect, copy and pickle make of a compiled kernel, of whatever class."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import isam

TEXT = """kernel scale(N)
  in  x: f32[N]
  const w: f32[N]
  out y: f32[N]
  forall i < N
    y[i] = x[i] * w[i]
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    kernel = isam.parse(TEXT, "scale.isam")
    w, path = np.ones(4, np.float32), tmp_path_factory.mktemp("a") / "scale.isamc"
    fixed, opened = isam.compile(kernel, on="toy", sizes={"N": 4}), isam.compile(kernel, on="toy")
    fixed.save(path)
    return {"fixed": fixed, "open": opened, "loaded": isam.load(path),
            "bound": fixed.bind(w=w), "open bound": opened.bind(w=w), "path": path,
            "ranged": isam.compile_range(kernel, "N", 1, 4, on="toy", variants=1)}  # fmt: skip


@pytest.mark.parametrize("which", ["fixed", "open", "loaded", "bound", "open bound"])
def test_python_is_told_the_call_and_copies_share_it(compiled, which):
    fn = compiled[which]
    assert str(inspect.signature(fn)) == ("(x, *, y=None)" if "bound" in which else "(x, w, *, y=None)")
    assert copy.copy(fn) is fn
    assert copy.deepcopy([fn])[0] is fn
    assert next(iter(inspect.signature(type(fn)).parameters)) in ("kernel", "artifact", "function")


@pytest.mark.parametrize("which", ["fixed", "open", "loaded", "bound", "open bound"])
def test_pickles_are_refused_with_what_to_do_instead(compiled, which):
    """Also a ``TypeError``, which whoever tries to pickle expects."""
    with pytest.raises(isam.IsamError) as e:
        pickle.dumps(compiled[which])
    (d,) = e.value.diagnostics
    assert isinstance(e.value, TypeError)
    assert d.code == "not-pickled"
    assert d.loc.file == (str(compiled["path"]) if which == "loaded" else "scale.isam")
    assert "isam.load(FILE)" in d.hint
    assert ("scale.save(FILE)" in d.hint, ".bind(w=...)" in d.hint) == ("bound" not in which, "bound" in which)


@pytest.mark.parametrize("which", ["fixed", "open", "loaded", "bound", "open bound", "ranged"])
def test_constants_are_bound_by_name(compiled, which):
    fn = compiled[which]
    for act in (lambda: fn.bind(np.ones(4, np.float32)), lambda: fn.bind(3, x=np.ones(4, np.float32))):
        with pytest.raises(isam.IsamError, match=r"bind-role.*by name") as e:
            act()
        assert ("bind(w=...)" in e.value.diagnostics[0].hint) == ("bound" not in which)
    with pytest.raises(isam.IsamError, match="'self' does not exist"):
        fn.bind(self=3)


def test_constants_of_open_sizes_are_bound_one_after_the_other():
    fn = isam.compile(TEXT.replace("in  x", "const x"), on="toy").bind(x=np.float32([1, 2, 3]))
    np.testing.assert_array_equal(fn.bind(w=np.float32([4, 5, 6]))(), [4, 10, 18])
    with pytest.raises(isam.IsamError, match="'x' is bound already"):
        fn.bind(x=np.float32([1, 2, 3]))


def test_arguments_called_like_words_of_python_go_by_their_places():
    def shown(text: str) -> str:
        return str(inspect.signature(isam.compile(isam.parse(text), on="toy")))

    text = TEXT.replace("x", "lambda")
    assert shown(text) == "(lambda, /, w, *, y=None)"
    assert shown(TEXT.replace("y", "is").replace("x", "a")) == "(a, w, **outputs)"
