"""What the kernels of the suite compute, in plain NumPy and SciPy and written independently of the language."""

from __future__ import annotations

import numpy as np
from scipy.linalg import khatri_rao
from scipy.special import log_softmax

from tests.corpus.references import E, einsum, softmax_rows, windows


def gathered(rule, other, axes, out, source="x"):
    """Sums over windows of ``source``: ``axes`` names, per windowed dimension, (dimension, count, tap)."""

    def apply(a, s, p):
        dims, counts, taps = zip(*axes, strict=True)
        cut = windows(a[source], dims, tuple(s[c] for c in counts), tuple(s[t] for t in taps), p.get("stride", 1),
                      p.get("dilation", 1))  # fmt: skip
        return {out: E(rule, cut, a[other])}

    return apply


def scattered(rule, first, second, axes, out):
    """The adjoint of :func:`gathered`: every tap adds a shifted picture. The rule's result begins with the taps."""

    def apply(a, s, p):
        stride, dilation = p.get("stride", 1), p.get("dilation", 1)
        parts = E(rule, a[first], a[second])
        taps = tuple(s[t] for _, _, t in axes)
        shape = list(parts.shape[len(taps):])
        for d, count, tap in axes:
            shape[d] = stride * (s[count] - 1) + dilation * (s[tap] - 1) + 1
        total = np.zeros(shape)
        for tap in np.ndindex(*taps):
            cut = [slice(None)] * total.ndim
            for (d, count, _), t in zip(axes, tap, strict=True):
                cut[d] = slice(t * dilation, t * dilation + stride * (s[count] - 1) + 1, stride)
            total[tuple(cut)] += parts[tap]
        return {out: total}

    return apply


def summed(out, source, axes):
    return lambda a, s, p: {out: a[source].sum(axes)}


ROW = [(2, "W", "S")]
IMAGE = [(2, "H", "R"), (3, "W", "S")]
VOLUME = [(2, "D", "Q"), (3, "H", "R"), (4, "W", "S")]
GROUPED = [(3, "H", "R"), (4, "W", "S")]
LAST = [(0, "H", "R"), (1, "W", "S")]


def separable(a, s, p):
    taps = windows(a["x"], (0, 1), (s["H"], s["W"]), (s["R"], s["S"]), 1, 1)
    return {"y": E("rshvc,rsc,ck->hvk", taps, a["d"], a["p"])}


def separable_q(a, s, p):
    taps = windows(a["x"], (0, 1), (s["H"], s["W"]), (s["R"], s["S"]), 1, 1)
    return {"y": E("rshvc,rscq,cqk->hvk", taps, a["d"], a["p"])}


def sepconv_dd(a, s, p):
    taps = windows(a["x"], (0, 1), (s["H"], s["W"]), (s["R"], s["S"]), 1, 1)
    return {"dd": E("rshvc,cqk,hvk->rscq", taps, a["p"], a["dy"])}


def sepconv_dp(a, s, p):
    taps = windows(a["x"], (0, 1), (s["H"], s["W"]), (s["R"], s["S"]), 1, 1)
    return {"dp": E("rshvc,rscq,hvk->cqk", taps, a["d"], a["dy"])}


def sepconv_dx(a, s, p):
    inner = E("cqk,rscq->rsck", a["p"], a["d"])
    return scattered("hvk,rsck->rshvc", "dy", "w", LAST, "dx")({"dy": a["dy"], "w": inner}, s, p)


def multi_query(a, s, p):
    return {"O": softmax_rows(a["Q"] @ a["K"].T) @ a["X"]}


def linear_attention(a, s, p):
    return {"O": a["Q"] @ (a["K"].T @ a["X"]) / (1 + a["Q"] @ a["K"].sum(0))[:, None]}


def rnn_step(a, s, p):
    return {"h": np.tanh(a["x"] @ a["w"] + a["h"] @ a["u"])}


def correlate(a, b, mode):
    from scipy.signal import correlate  # half a second, which not every collection of tests should pay

    return correlate(a, b, mode)


def correlated(a, s, p):
    return {"y": correlate(a["x"], a["w"], "valid")}


def laplace(a, s, p):
    return {"y": correlate(a["x"], np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]]), "valid")}


def jacobi(a, s, p):
    x = a["x"]
    sides = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] + x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1]
    return {"y": sides + a["f"]}


def box(a, s, p):
    return {"y": correlate(a["x"], np.ones((s["R"], s["R"])), "valid")}


def rms_norm(a, s, p):
    return {"y": a["x"] / np.sqrt((a["x"] ** 2).sum(1, keepdims=True) / a["count"] + 1e-5) * a["g"]}


def toeplitz(a, s, p):
    rows = np.lib.stride_tricks.sliding_window_view(a["t"], s["N"])
    return {"y": rows @ a["x"]}


def kronecker(a, s, p):
    return {"C": np.kron(a["A"], a["B"]).reshape(s["I"], s["K"], s["J"], s["L"])}


REFERENCES = {
    "conv2d_nchw": gathered("rsnchv,kcrs->nkhv", "w", IMAGE, "y"),
    "depthwise_conv1d": gathered("sncv,cs->ncv", "w", ROW, "y"),
    "depthwise_conv3d": gathered("qrsncdhv,cqrs->ncdhv", "w", VOLUME, "y"),
    "multiplier_conv2d": gathered("rsnchv,cprs->ncphv", "w", IMAGE, "y"),
    "grouped_conv1d": gathered("sngcv,gkcs->ngkv", "w", [(3, "W", "S")], "y"),
    "separable_conv2d": separable, "separable_staged": separable_q,
    "transposed_conv2d": scattered("nchv,ckrs->rsnkhv", "x", "w", IMAGE, "y"),
    "transposed_conv3d": scattered("cdhv,ckqrs->qrskdhv", "x", "w", [(1, "D", "Q"), (2, "H", "R"), (3, "W", "S")], "y"),
    "local_conv1d": gathered("svc,vsck->vk", "w", [(0, "W", "S")], "y"), "fir": correlated,
    "conv1d_dx": scattered("nkv,kcs->sncv", "dy", "w", ROW, "dx"),
    "conv1d_dw": gathered("sncv,nkv->kcs", "dy", ROW, "dw"), "conv1d_db": summed("db", "dy", (0, 2)),
    "conv2d_dx": scattered("nkhv,kcrs->rsnchv", "dy", "w", IMAGE, "dx"),
    "conv2d_dw": gathered("rsnchv,nkhv->kcrs", "dy", IMAGE, "dw"), "conv2d_db": summed("db", "dy", (0, 2, 3)),
    "conv3d_dx": scattered("nkdhv,kcqrs->qrsncdhv", "dy", "w", VOLUME, "dx"),
    "conv3d_dw": gathered("qrsncdhv,nkdhv->kcqrs", "dy", VOLUME, "dw"), "conv3d_db": summed("db", "dy", (0, 2, 3, 4)),
    "grouped_conv2d_dx": scattered("ngkhv,gkcrs->rsngchv", "dy", "w", GROUPED, "dx"),
    "grouped_conv2d_dw": gathered("rsngchv,ngkhv->gkcrs", "dy", GROUPED, "dw"),
    "grouped_conv2d_db": summed("db", "dy", (0, 3, 4)),
    "depthwise_conv2d_dx": scattered("nchv,crs->rsnchv", "dy", "w", IMAGE, "dx"),
    "depthwise_conv2d_dw": gathered("rsnchv,nchv->crs", "dy", IMAGE, "dw"),
    "multiplier_conv2d_dx": scattered("ncphv,cprs->rsnchv", "dy", "w", IMAGE, "dx"),
    "multiplier_conv2d_dw": gathered("rsnchv,ncphv->cprs", "dy", IMAGE, "dw"),
    "pointwise_conv2d_dx": einsum("nkhv,kc->nchv", "dy", "w", out="dx"),
    "pointwise_conv2d_dw": einsum("nchv,nkhv->kc", "x", "dy", out="dw"),
    "transposed_conv2d_dx": gathered("rsnkhv,ckrs->nchv", "w", IMAGE, "dx", "dy"),
    "transposed_conv2d_dw": gathered("rsnkhv,nchv->ckrs", "x", IMAGE, "dw", "dy"),
    "sepconv_dx": sepconv_dx, "sepconv_dd": sepconv_dd, "sepconv_dp": sepconv_dp,
    "matmul_ct": einsum("mk,kn->nm", "A", "B"), "batched_matmul_bt": einsum("lmk,lnk->lmn", "A", "B"),
    "broadcast_matmul": einsum("lmk,kn->lmn", "A", "B"), "broadcast_left_matmul": einsum("mk,lkn->lmn", "A", "B"),
    "summed_matmul": einsum("lmk,lkn->mn", "A", "B"), "blocked_matmul": einsum("prmk,rqkn->pqmn", "A", "B"),
    "mttkrp": lambda a, s, p: {"A": a["X"].reshape(s["I"], -1) @ khatri_rao(a["B"], a["C"])},
    "ttm": einsum("ijk,jr->irk", "X", "U", out="Y"), "tucker": einsum("ip,pq,jq->ij", "U", "G", "V", out="X"),
    "khatri_rao": lambda a, s, p: {"A": khatri_rao(a["B"], a["C"]).reshape(s["J"], s["K"], s["R"])},
    "kronecker": kronecker, "bilinear_layer": einsum("bi,oij,bj->bo", "x", "w", "y", out="z"),
    "quadratic_form": einsum("i,ij,j->", "x", "A", "y", out="z"),
    "ccsd_particle_ladder": lambda a, s, p: {"X": np.tensordot(a["V"], a["T"], 2)},
    "ccsd_hole_ladder": lambda a, s, p: {"X": np.tensordot(a["T"], a["V"], 2)},
    "ccsd_ring": einsum("kbcj,acik->abij", "V", "T", out="X"),
    "ccsd_triples": einsum("bcdk,adij->abcijk", "V", "T", out="X"),
    "ccsd_energy": lambda a, s, p: {"e": np.tensordot(a["V"], a["T"].transpose(2, 3, 0, 1), 4)},
    "trace_of_product": lambda a, s, p: {"t": np.trace(a["A"] @ a["B"])},
    "row_dots": einsum("ij,ij->i", "A", "B", out="y"),
    "batched_gemv": einsum("lmk,lk->lm", "A", "x", out="y"),
    "diagonal_product": lambda a, s, p: {"y": np.diag(a["A"])[:, None] * a["B"]}, "toeplitz_product": toeplitz,
    "triple_outer": einsum("i,j,k->ijk", "a", "b", "c", out="T"), "gram": lambda a, s, p: {"C": a["A"].T @ a["A"]},
    "powered_matmul": lambda a, s, p: {"C": np.linalg.matrix_power(a["A"], 2)},
    "multi_query_attention": multi_query, "multi_head_scores": einsum("bmgd,bngd->bgmn", "Q", "K", out="p"),
    "linear_attention": linear_attention, "rnn_step": rnn_step,
    "heat1d": lambda a, s, p: {"y": correlate(a["x"], [0.25, 0.5, 0.25], "valid")}, "laplace2d": laplace,
    "jacobi3d": jacobi, "box_blur": box, "weighted_stencil": correlated,
    "sum_pool": lambda a, s, p: {"y": a["x"].reshape(s["N"], s["C"], s["H"], 2, s["W"], 2).sum((3, 5))},
    "global_max_pool": lambda a, s, p: {"y": a["x"].max((2, 3))}, "rms_norm": rms_norm,
    "log_softmax": lambda a, s, p: {"y": log_softmax(a["x"], 1)},
}  # fmt: skip
