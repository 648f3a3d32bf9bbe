"""torch's forms of the kernels that are more than one operation: blocks, attention, recurrent units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Call = Callable[[], Any]


def block(torch: Any, given: dict[str, Any], sizes: dict[str, int]) -> dict[str, Call]:
    """Two convolutions of oneDNN, channels last: with weights laid out beforehand and what follows within them, the
    image as it is or laid out beforehand too; or each on its own."""
    last, f = torch.channels_last, torch.nn.functional
    image = given["X"].permute(2, 0, 1)[None].contiguous(memory_format=last)
    wide = given["w"].permute(2, 0, 1)[:, None].contiguous(memory_format=last)
    narrow = given["p"].t()[:, :, None, None].contiguous(memory_format=last)
    stride, c, b, q = [sizes["stride"]] * 2, sizes["C"], given["b"], given["q"]

    def plain() -> Any:
        d = f.conv2d(image, wide, b, stride, 0, 1, c).clamp_(0, 6)
        return f.conv2d(d, narrow, q).clamp_(0, 6)

    found: dict[str, Call] = {"onednn plain": plain}
    try:
        pack, run = torch.ops.mkldnn._reorder_convolution_weight, torch.ops.mkldnn._convolution_pointwise
        zero, one, cut = [0, 0], [1, 1], ("hardtanh", [0, 6], "")
        first = pack(wide, zero, stride, one, c, list(image.shape))
        second = pack(narrow, zero, one, one, 1, [1, c, sizes["H"], sizes["W"]])

        def fused() -> Any:
            d = run(image, first, b, zero, stride, one, c, *cut)
            return run(d, second, q, zero, one, one, 1, *cut)

        fused()
        found["onednn fused"] = fused
    except (AttributeError, RuntimeError):
        pass
    return found


def attention(torch: Any, given: dict[str, Any], sizes: dict[str, int]) -> dict[str, Call]:
    """torch's function in each way it has, and the three steps one after the other."""
    q, k, x = (given[n][None] for n in "QKX")
    f = torch.nn.functional.scaled_dot_product_attention
    turned, scale = given["K"].transpose(1, 2), sizes["D"] ** -0.5
    heads, rows, columns = sizes["H"], sizes["M"], sizes["N"]
    scores, nothing = q.new_empty(heads, rows, columns), q.new_zeros(())

    def steps() -> Any:
        torch.baddbmm(nothing, given["Q"], turned, beta=0, alpha=scale, out=scores)
        torch.softmax(scores, -1, out=scores)
        return scores @ given["X"]

    found: dict[str, Call] = {"torch fused": lambda: f(q, k, x)[0], "torch steps": steps}
    for name, backend in (("flash", "FLASH_ATTENTION"), ("math", "MATH")):
        found[f"torch {name}"] = _with_backend(torch, backend, lambda: f(q, k, x)[0])
    return found


def _with_backend(torch: Any, name: str, call: Call) -> Call:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    chosen = getattr(SDPBackend, name)

    def run() -> Any:
        with sdpa_kernel(chosen):
            return call()

    return run


def gru(torch: Any, given: dict[str, Any], sizes: dict[str, int]) -> dict[str, Call]:
    """torch's module; and its steps with the input's product ahead and weights packed for MKL and for oneDNN."""
    steps, batch, units = sizes["T"], sizes["B"], sizes["H"]
    layer = torch.nn.GRU(sizes["X"], units).eval().to(given["x"].dtype)
    w, u = (given[n].transpose(1, 2).reshape(3 * units, -1).contiguous() for n in "wu")
    b = given["b"].reshape(-1)
    c = torch.cat([b.new_zeros(2 * units), given["c"]])
    layer.weight_ih_l0.data, layer.weight_hh_l0.data, layer.bias_ih_l0.data, layer.bias_hh_l0.data = w, u, b, c
    x, g = given["x"], given["g"][None]
    found: dict[str, Call] = {"torch module": lambda: layer(x, g)[0]}
    ahead, out = x.new_empty(steps, batch, 3 * units), x.new_empty(steps, batch, units)
    flat = x.reshape(steps * batch, -1)

    def by_hand(wide: Callable[[Any], Any], narrow: Callable[[Any], Any]) -> Call:
        def run() -> Any:
            torch.add(wide(flat).view(ahead.shape), b, out=ahead)
            h = given["g"]
            for t in range(steps):
                v, a = narrow(h), ahead[t]
                gates = (a[:, : 2 * units] + v[:, : 2 * units]).sigmoid_()
                n = (v[:, 2 * units :] + given["c"]).mul_(gates[:, :units]).add_(a[:, 2 * units :]).tanh_()
                h = torch.addcmul(n, gates[:, units:], h - n, out=out[t])
            return out.clone()

        return run

    for library in ("mkl", "mkldnn"):
        try:
            forms = [_packed(torch, library, m, rows) for m, rows in ((w, steps * batch), (u, batch))]
            call = by_hand(*forms)
            call()
            found[f"torch packed {library}"] = call
        except (AttributeError, RuntimeError):
            pass
    return found


def _packed(torch: Any, library: str, weight: Any, rows: int) -> Callable[[Any], Any]:
    """A product with a weight laid out beforehand."""
    if library == "mkl":
        packed = torch.ops.mkl._mkl_reorder_linear_weight(weight, rows)
        return lambda x: torch.ops.mkl._mkl_linear(x, packed, weight, None, rows)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
    return lambda x: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")


NETWORKS: dict[str, Callable[[Any, dict[str, Any], dict[str, int]], dict[str, Call]]] = {
    "block": block, "attention": attention, "gru": gru,
}  # fmt: skip
