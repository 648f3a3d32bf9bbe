"""Convolutions, depthwise ones and blocks as what they are to every library: an image and layers, channels first."""

from __future__ import annotations

from dataclasses import dataclass

from ..data import placed
from ..shapes import Convolution, Shape
from .library import Array, Given

WORKS = ("convolution", "depthwise", "block")


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution, an addition of ``bias`` if there is one, and if ``cut`` what is below 0 or above 6 cut off.
    ``weight``: filters, channels per group, rows, columns."""

    weight: Array
    stride: int
    pad: int = 0
    groups: int = 1
    bias: Array | None = None
    cut: bool = False

    def out(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The result's shape."""
        n, _, h, w = shape
        filters, _, r, s = self.weight.shape
        return n, filters, *((x + 2 * self.pad - t) // self.stride + 1 for x, t in ((h, r), (w, s)))


def layers(shape: Shape, given: Given) -> tuple[Array, list[Layer]]:
    """The image, and the layers that it goes through."""
    if isinstance(shape, Convolution):
        weight = placed(given["w"].transpose(3, 2, 0, 1))
        return channels_first(given["x"]), [Layer(weight, shape.stride, shape.pad)]
    stride, channels = dict(shape.sizes)["stride"], given["w"].shape[2]
    wide = placed(given["w"].transpose(2, 0, 1)[:, None])
    image = channels_first(given["X"])
    if shape.work == "depthwise":
        return image, [Layer(wide, stride, groups=channels)]
    narrow = placed(given["p"].T[:, :, None, None])
    return image, [Layer(wide, stride, 0, channels, given["b"], True), Layer(narrow, 1, bias=given["q"], cut=True)]


def shape_after(image: Array, chain: list[Layer]) -> tuple[int, ...]:
    """The shape of what the last of them returns."""
    shape = image.shape
    for layer in chain:
        shape = layer.out(shape)
    return shape


def channels_first(x: Array) -> Array:
    """Images of (height, width, channels) as (number, channels, height, width)."""
    return placed(x.reshape(-1, *x.shape[-3:]).transpose(0, 3, 1, 2))


def channels_last(y: Array) -> Array:
    """And back; a single image without its number."""
    y = y.transpose(0, 2, 3, 1)
    return y[0] if len(y) == 1 else y
