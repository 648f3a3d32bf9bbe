"""``range``: a kernel for a range of batch sizes, and what that loses beside code for each."""

from __future__ import annotations

from math import exp, log

import pytest

SIZES = ("-D", "N=16,K=24")


def test_sizes_of_a_range_are_measured(cli, matmul, tmp_path, monkeypatch):
    monkeypatch.setenv("ISAM_CACHE", str(tmp_path / "kept"))
    said = cli("range", matmul, "M=1:40", *SIZES, "--variants", "3", "--at", "1,23,40", "--json").json("range")
    assert (said["size"], said["limits"]) == ("M", [1, 40])
    assert 1 in said["variants"]
    assert len(said["variants"]) <= 3
    assert [r["rows"] for r in said["regrets"]] == [1, 23, 40]
    for r in said["regrets"]:
        assert r["left"] == ""
        assert sum(r["parts"]) >= r["rows"]
        assert set(r["parts"]) <= set(said["variants"])
        assert r["ratio"] == pytest.approx(r["seconds"] / r["own"])
    ratios = [r["ratio"] for r in said["regrets"]]
    assert said["worst"] == max(ratios)
    assert said["mean"] == pytest.approx(exp(sum(map(log, ratios)) / 3))
    shown = cli("range", matmul, "M=1:40", *SIZES, "--variants", "3")
    assert shown.code == 0
    assert "variants of 1" in shown.out
    assert "mean regret" in shown.out
    assert f"  {40:8} " in shown.out


def test_of_a_machine_that_is_simulated_only_the_variants_are_told(cli, matmul):
    said = cli("range", matmul, "M=1:8", *SIZES, "--on", "toy", "--variants", "2", "--at", "8", "--json").json("range")
    (row,) = said["regrets"]
    assert "runs on this CPU" in row["left"]
    assert said["mean"] is None
    assert said["worst"] is None


@pytest.mark.parametrize(("given", "code", "says"), [
    (["M=1"], "cli-range", "M=1:512"),
    (["M=5:2", *SIZES], "range-limits", "no range: it begins behind its end"),
    (["M=1:9", *SIZES, "--likely", "3"], "cli-range", "NUMBER=WEIGHT"),
    (["M=1:9", *SIZES, "--likely", "33=1"], "range-limits", "between 1 and 9"),
    (["M=1:9", *SIZES, "--at", "1,10"], "cli-range", "between 1 and 9"),
    (["K=1:9", "-D", "M=4,N=4"], "range-batch", "do not lie together"),
    (["M=1:9", "-D", "N=4"], "size-open", "K = ..."),
])  # fmt: skip
def test_mistakes(cli, matmul, given, code, says):
    said = cli("range", matmul, *given)
    assert said.code == 2
    assert code in said.err
    assert says in said.err
