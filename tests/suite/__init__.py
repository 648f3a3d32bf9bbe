"""The suite: kernels of every kind the mapper must cope with, each with sizes and an independent reference.

``SUITE`` maps a name to a :class:`Member`: kernels of this folder and kernels of ``tests/corpus``, with their
compile-time constants set (``conv2d_nchw/stride=2``).

>>> SUITE["ttm"].load().name
'ttm'
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from isam.ir.kernel import Kernel
from isam.ir.text import parse_file
from tests import corpus
from tests.corpus import Reference
from tests.suite.references import REFERENCES

FOLDER = Path(__file__).parent
SIZES = {
    "A": 2, "B": 3, "C": 3, "D": 2, "G": 2, "H": 3, "I": 2, "J": 3, "K": 2, "L": 3, "M": 4, "N": 2, "O": 2, "P": 2,
    "Q": 2, "R": 2, "S": 3, "T": 2, "V": 3, "W": 4, "X": 3,
}  # fmt: skip

CORPUS = (
    "conv1d", "conv1d/stride=2", "conv1d/dilation=2", "conv2d_nhwc", "conv3d", "grouped_conv2d", "depthwise_conv2d",
    "depthwise_conv2d/stride=2", "pointwise_conv2d", "pointwise_conv2d_nhwc/stride=2", "padded_conv2d_where",
    "padded_conv2d_temp", "transposed_conv1d", "correlate_reversed", "conv2d", "sepconv", "max_pool",
    "matmul", "matmul_at", "matmul_bt", "matmul_atbt", "matmul_acc", "batched_matmul", "bias_relu_matmul", "gemv",
    "gemv_t", "dot", "ger", "axpy", "triangular", "syrk", "chain3", "bilinear", "attention", "causal_attention",
    "softmax", "layer_norm", "batch_norm_inference", "residual_relu", "rnn", "gru_step", "lstm_step", "gru", "lstm",
    "stencil", "transpose", "broadcast_add", "gelu_erf",
)  # fmt: skip
"""The kernels of the corpus that belong to the suite."""

CONSTANTS = {
    "conv2d_nchw": ((), ("stride", 2), ("dilation", 2)), "conv1d_dx": ((), ("stride", 2)),
    "conv1d_dw": ((), ("stride", 2)), "conv2d_dx": ((), ("stride", 2), ("dilation", 2)),
    "conv2d_dw": ((), ("stride", 2), ("dilation", 2)),
}  # fmt: skip
"""Compile-time constants other than the defaults, for kernels of this folder."""


@dataclass(frozen=True)
class Member:
    """A kernel of the suite: where its text is, the constants set, sizes to run it at, what it should compute."""

    name: str
    kernel: str
    params: tuple[tuple[str, int], ...]
    sizes: dict[str, int]
    reference: Reference | None

    def load(self) -> Kernel:
        return _source(self.kernel).with_params(**dict(self.params))


def _source(name: str) -> Kernel:
    return own()[name] if name in own() else corpus.sources()[name]


@cache
def own() -> dict[str, Kernel]:
    """The kernels of this folder by name."""
    files = [parse_file(path.read_text(encoding="utf-8"), path.name) for path in sorted(FOLDER.glob("*.isam"))]
    found = {k.name: k for file in files for k in file.kernels}
    assert not found.keys() & corpus.sources().keys()
    return found


def _members() -> dict[str, Member]:
    out: dict[str, Member] = {}
    for label in CORPUS:
        case = corpus.CASES[label]
        out[label] = Member(label, case.kernel, case.params, case.small[0], case.reference)
    for name, k in own().items():
        for chosen in CONSTANTS.get(name, ((),)):
            params = (chosen,) if chosen else ()
            label = f"{name}/{chosen[0]}={chosen[1]}" if chosen else name
            out[label] = Member(label, name, params, {s.name: SIZES[s.name] for s in k.syms}, REFERENCES.get(name))
    return out


SUITE = _members()
