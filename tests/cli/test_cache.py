"""``cache``: what is kept from one process to the next."""

from __future__ import annotations

import isam


def test_run_uses_what_is_kept_and_others_compile_anew(cli, matmul, tmp_path, monkeypatch):
    from isam.compiler import function

    monkeypatch.setenv("ISAM_CACHE", str(tmp_path / "kept"))
    made, given = [], (matmul, "--on", "toy", "-D", "M=4,N=4,K=4")
    monkeypatch.setattr(function, "run_stages", lambda *a, _f=function.run_stages, **k: made.append(1) or _f(*a, **k))
    for verb, more in (("map", []), ("schedule", []), ("compile", ["-o", tmp_path / "a"])):
        assert cli(verb, *(given[:3] if verb == "map" else given), *more).code == 0
    assert cli("cache", "--json").json("cache")["entries"] == 0
    for _ in range(2):
        assert cli("run", *given).code == 0
    assert cli("cache", "--json").json("cache")["entries"] == 1
    assert len(made) == 1


def test_cache(cli, tmp_path, monkeypatch):

    assert cli("cache").out.startswith("nothing is kept")
    assert cli("cache", "--json").json("cache")["folder"] is None
    monkeypatch.setenv("ISAM_CACHE", str(tmp_path / "kept"))
    isam.compile(isam.einsum("n->n"), sizes={"N": 8})
    shown = cli("cache", "--json").json("cache")
    assert shown["entries"] == 1
    assert shown["bytes"] > 1000
    assert "1 kernels" in cli("cache").out
    assert cli("cache", "--clear", "--json").json("cache")["cleared"] == 1
    assert cli("cache", "--json").json("cache")["entries"] == 0
