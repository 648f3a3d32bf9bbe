"""Functions handed over to a loaded artifact: each way of giving one works, or is refused before anything is called."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import isam
from isam.system.load import load_system

SCALE = """instruction scale(N)
  in  a: f64
  in  x: f64[N]
  out y: f64[N]
  forall i < N
    y[i] = a * x[i]
"""
FREE = {"x": (None,), "y": (None,)}
at = ctypes.c_double.from_address


@ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)
def c_scale(N, a, x, sx, y, sy):
    for i in range(N):
        at(y + 8 * sy * i).value = at(a).value * at(x + 8 * sx * i).value


def scale(a: Any, x: Any, y: Any) -> None:
    y[...] = a * x


class Named:
    """Of what these are called nothing follows."""

    instruction, address, by_integers = "scale", 123, 5

    def __call__(self, *integers: int) -> None:
        c_scale(*integers)


ADDRESS = ctypes.cast(c_scale, ctypes.c_void_p)
A, X = np.array(3.0), np.arange(9.0)


def made(function: Any, text: str = SCALE) -> Any:
    return isam.instruction(text, strides=FREE)(function)


@pytest.fixture(params=["C", "Python"])
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An artifact that calls the function in place of the product."""
    function = made(c_scale if request.param == "C" else scale)
    kernel = isam.parse(SCALE.replace("instruction scale", "kernel scaled"))
    machine = load_system("host").extended(function)
    isam.compile(kernel, on=machine, sizes={"N": 9}, require="scale").save(tmp_path / "k.isamc")
    return tmp_path / "k.isamc"


GIVEN: list[Callable[[], Any]] = [
    lambda: made(c_scale), lambda: made(scale), lambda: made(c_scale).function, lambda: c_scale, lambda: ADDRESS,
    lambda: ADDRESS.value, lambda: lambda N, a, x, sx, y, sy: c_scale(N, a, x, sx, y, sy), lambda: made(ADDRESS.value),
    Named, lambda: mock.Mock(side_effect=c_scale),
]  # fmt: skip


@pytest.mark.parametrize("given", GIVEN)
def test_what_may_be_given(saved: Path, given: Callable[[], Any]) -> None:
    np.testing.assert_array_equal(isam.load(saved, functions={"scale": given()})(A, X), 3 * X)


@pytest.mark.parametrize(("given", "said"), [
    ("scale", "is given 'scale', which is no function"), (None, "is given None"), (True, "is given True"),
    (0, "the address 0x0, where no code lies"), (-1, "where no code lies"), (1 << 64, "where no code lies"),
    (ctypes.CFUNCTYPE(None)(), "the address 0x0"), (1.5, "no function"),
    (ctypes.CFUNCTYPE(None, ctypes.c_int64)(print), "a C function of 1 arguments, not of 6 integers"),
    (scale, "a Python function that does not take 6 integers"),
])  # fmt: skip
def test_what_is_refused_when_it_is_loaded(saved: Path, given: Any, said: str) -> None:
    with pytest.raises(isam.IsamError, match="function 'scale' is given") as e:
        isam.load(saved, functions={"scale": given})
    assert said in str(e.value)
    assert "what isam.instruction returned for it" in e.value.diagnostics[0].hint


def test_a_function_of_another_instruction(saved: Path) -> None:
    with pytest.raises(isam.IsamError, match="another instruction"):
        isam.load(saved, functions={"scale": made(scale, SCALE.replace("f64", "f32"))})


@pytest.mark.parametrize("asked", [{}, {"strides": FREE, "align": {"x": 64}}], ids=["in a row", "aligned"])
def test_a_function_that_asks_more_of_its_operands(saved: Path, asked: dict[str, Any]) -> None:
    """The code calls it for operands that lie otherwise."""
    with pytest.raises(isam.IsamError, match=r"another instruction[^$]*x: strides"):
        isam.load(saved, functions={"scale": isam.instruction(SCALE, **asked)(scale)})


def test_which_names_are_called(saved: Path) -> None:
    with pytest.raises(isam.IsamError, match=r"calls the (C|Python) function 'scale'") as missing:
        isam.load(saved)
    assert [d.code for d in missing.value.diagnostics] == ["external-missing"]
    with pytest.raises(isam.IsamError, match="calls no function 'scael'") as e:
        isam.load(saved, functions={"scael": scale, "rest": scale})
    assert [d.hint for d in e.value.diagnostics] == ["did you mean 'scale'?", "it calls: scale"]
    assert str(saved) in str(e.value)
    with pytest.raises(isam.IsamError, match="functions= is no list"):
        isam.load(saved, functions=[scale])  # type: ignore[arg-type]


def test_a_kernel_that_calls_none(tmp_path: Path) -> None:
    isam.compile(isam.einsum("n->n"), sizes={"N": 3}).save(tmp_path / "k.isamc")
    with pytest.raises(isam.IsamError, match="calls no function 'scale'") as e:
        isam.load(tmp_path / "k.isamc", functions={"scale": scale})
    assert "it calls none" in str(e.value)


def test_the_kind_of_function_is_said() -> None:
    assert repr(made(c_scale)).endswith("by a C function")
    assert repr(made(scale)).endswith("by scale")


@pytest.mark.parametrize("wrapped", [made, lambda f: f])
def test_a_callback_that_nobody_else_holds_stays(saved: Path, wrapped: Callable[[Any], Any]) -> None:
    def callback(N, a, x, sx, y, sy):
        for i in range(N):
            at(y + 8 * sy * i).value = at(a).value * at(x + 8 * sx * i).value

    gone = {"scale": wrapped(ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)(callback))}
    held = weakref.ref(callback)
    fn = isam.load(saved, functions=gone)
    gone.clear()
    del callback
    gc.collect(1)
    assert held() is not None
    np.testing.assert_array_equal(fn(A, X), 3 * X)
