"""``bench`` and ``demo``: figures, and what they are of."""

from __future__ import annotations

import json
from importlib import resources

import pytest


def test_bench_takes_no_file_and_no_simulator(cli, matmul):
    ran = cli("bench", matmul)
    assert ran.code == 2
    assert f"hint: isam run {matmul} --repeat" in ran.err
    assert "hint: did you mean 'tiny'?\n" in cli("bench", "--only", "tinny").err
    assert "hint: isam bench --only tiny\n" in cli("bench", "tiny").err
    ran = cli("bench", "--on", "toy", "--only", "tiny")
    assert ran.code == 2
    assert "bench-backend" in ran.err
    assert "isam schedule FILE --on toy --time" in ran.err
    assert "FILE" not in cli("bench", "--help").out.split("\n")[0]


def test_bench_of_no_shape_is_refused(cli):
    ran = cli("bench", "--only", "tiny", "--shape", "running_sum")
    assert (ran.code, ran.out) == (2, "")
    assert "no shape of these groups has 'running_sum' in its name\n  hint: there are some in: scans\n" in ran.err
    assert "hint: such as 1x1x1" in cli("bench", "--only", "tiny", "--shape", "nowhere").err


def test_bench_writes_its_figures(cli, tmp_path):
    out = tmp_path / "figures.json"
    ran = cli("bench", "--only", "square", "--shape", "16x16x16", "--rounds", 1, "--seconds", 0.005, "--save", out,
              "--plots", tmp_path / "drawn", "--json")  # fmt: skip
    assert ran.code in (0, 1), ran.err
    d = ran.json("bench")
    assert sorted(p.name for p in (tmp_path / "drawn").iterdir()) == ["figures-ratios.svg", "figures-roofline.svg"]
    assert d["roofs"]["rates"]["f32"] > 0 < d["roofs"]["reads"]["ram"]
    assert json.loads(out.read_text())["schema"] == "isam.bench/2"
    assert [r["name"] for r in d["square"]] == ["16x16x16"]
    assert "numpy" in d["square"][0]["against"]
    assert d["resnet50"] is None


def test_bench_draws_only_where_it_can(tmp_path):
    from isam.cli.bench import _drawn
    from isam.diagnostics import IsamError

    (tmp_path / "file").write_text("")
    with pytest.raises(IsamError, match="cannot write into"):
        _drawn({"square": []}, tmp_path / "file", "figures")
    assert _drawn({"square": []}, tmp_path, "figures")[0] == f"wrote {tmp_path / 'figures-ratios.svg'}"


def test_demo(cli):
    d = cli("demo", "--size", 14, "--seconds", 0.01, "--json").json("demo")
    assert d["obligations"] == 11
    assert 0 < d["check"]["share"] <= 1
    assert d["operations"] == 14 * 14 * 64 * (2 * 9 * 64 + 1)
    text = cli("demo", "--size", 5, "--seconds", 0.01)
    assert text.code == 0
    assert "times as fast as NumPy" in text.out


def test_demo_measures_numpy_at_its_best_whatever_the_environment(cli, monkeypatch):
    """A variable that holds NumPy's library back reaches this process, and not the one that measures."""
    free = cli("demo", "--size", 4, "--seconds", 0.01, "--json").json("demo")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    held = cli("demo", "--size", 4, "--seconds", 0.01, "--json").json("demo")
    assert held["numpy"]["library"] == free["numpy"]["library"]
    assert "Prescott" not in held["numpy"]["library"]


def test_the_ways_of_the_demo_all_compute_the_layer():
    from isam.cli.contest import arrays, ways
    from isam.ir.bounds import enclose, outside
    from isam.ir.text import parse_kernel

    sizes = {"H": 5, "W": 4, "C": 3, "K": 2}
    text = (resources.files("isam.cli") / "templates" / "conv.isam").read_text()
    data = arrays(sizes)
    want = enclose(parse_kernel(text).with_sizes(sizes), data)
    for name, way in ways(data).items():
        assert outside({"y": way()}, want) is None, name
    data["x"][2, 1, 0] += 1
    assert outside({"y": ways(data)["nine matmuls"]()}, want) is not None


def test_demo_on_a_simulator_has_no_times(cli):
    d = cli("demo", "--size", 2, "--on", "toy", "--json").json("demo")
    assert d["simulated"] > 0
    assert (d["isam"], d["numpy"], d["speed"]) == (None, None, None)
    assert "NumPy" not in cli("demo", "--size", 2, "--on", "toy").out
