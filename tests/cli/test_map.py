"""``map`` and ``explain``: which instructions carry a kernel out, and why not."""

from __future__ import annotations

import re

from tests.cli.conftest import SMALL


def test_map_names_instructions(cli, matmul):
    d = cli("map", matmul, "--on", "toy", "--json").json("map")
    assert [m["instruction"] for m in d["mappings"]] == ["m_fill_f32", "mm4_f32"]
    assert d["mappings"][1]["operands"] == {"A": "A", "B": "B", "C": "C"}
    ran = cli("map", matmul, "--on", "toy", "-i", "mm4_f32")
    assert ran.code == 0
    assert "2 mappings onto mm4_f32" in ran.out
    required = cli("map", matmul, "--on", "toy", "--require", "v_exp_f32")
    assert required.code == 1


def test_mappings_are_certified(cli, matmul, tmp_path):
    for more, count in (((), 1), (("--instruction", "s_mac_f32"), None)):
        ran = cli("map", matmul, "--on", "toy", *SMALL, *more, "--certify", "--json")
        assert ran.code == 0
        d = ran.json("map")
        assert len(d["certificates"]) == (count or len(d["mappings"]))
        out = tmp_path / "map.json"
        out.write_text(ran.out)
        assert cli("verify", out).code == 0
        out.write_text(ran.out.replace('"proved"', '"assumed"', 1))
        ran = cli("verify", out)
        assert ran.code == 1
        assert "the obligations are not the seven, proved" in ran.out
    assert "proved: obligations 1 to 7, 1 certificate\n" in cli("map", matmul, "--on", "toy", *SMALL, "--certify").out
    (tmp_path / "none.json").write_text("[]")
    assert cli("verify", tmp_path / "none.json").code == 2


def test_map_and_explain_say_no(cli, matmul):
    for verb in ("map", "explain"):
        ran = cli(verb, matmul, "--on", "tiny")
        assert ran.code == 1
        assert "no instruction offered can write a constant to f32" in ran.out
        assert cli(verb, matmul, "--on", "tiny", "--json").json(verb)["verdict"] == "no"
    ran = cli("explain", matmul, "--on", "toy", "-i", "v_exp_f32")
    assert ran.code == 1
    assert f"{matmul}:" in ran.out
    assert "^" in ran.out


def test_an_instruction_that_sets_registers_fits_nothing(cli, matmul):
    for verb in ("map", "explain"):
        ran = cli(verb, matmul, "--on", "gemmini", "-i", "config_ex_nn")
        assert (ran.code, "nothing: it does nothing" in ran.out) == (1, True)


def test_explain_says_yes(cli, matmul):
    d = cli("explain", matmul, "--on", "toy", "-i", "mm4_f32", "--json").json("explain")
    assert d["fits"]
    assert len(d["mappings"]) == 2
    assert cli("explain", matmul, "--on", "toy").code == 0
    assert cli("explain", matmul, "--on", "toy", *SMALL, "--json").json("explain")["scheduled"] is True


def test_a_cover_is_told_from_a_schedule(cli, matmul):
    """Where the instructions suffice and the memories do not: map names the command that says so, explain says it."""
    large = ("-D", "M=1000000,N=1000000", "-D", "K=1000000")
    ran = cli("map", matmul, "--on", "toy", *large)
    assert ran.code == 0
    assert f"isam schedule {matmul} --on toy -D M=1000000,N=1000000 -D K=1000000\n" in ran.out
    assert "isam schedule" not in cli("map", matmul, "--on", "toy", "-i", "mm4_f32").out
    assert cli("schedule", matmul, "--on", "toy", *large).code == 1
    ran = cli("explain", matmul, "--on", "toy", *large)
    assert ran.code == 1
    assert "\nno schedule: memory 'dram', the home, needs 12000000000000 bytes for arguments" in ran.out
    d = cli("explain", matmul, "--on", "toy", *large, "--json").json("explain")
    assert (d["verdict"], d["fits"], d["scheduled"], len(d["mappings"])) == ("no", True, False, 2)
    ran = cli("explain", matmul, "--on", "toy", "-D", "M=4")
    assert f"isam schedule {matmul} --on toy -D M=4 -D N=...,K=...\n" in ran.out
    assert cli("explain", matmul, "--on", "toy", "-D", "M=4", "--json").json("explain")["scheduled"] is None
    add = "kernel add(N)\n  inout x: f32[N]\n  in y: f32[N]\n  forall i < N\n    x[i] += y[i]\n"
    assert "'arm_neon' has no back end" in cli("map", "-", "--on", "arm_neon", stdin=add).out


def test_of_a_file_of_several_kernels_those_are_remarked_on_that_are_meant(cli, tmp_path):
    one = "kernel {0}(N)\n  in x: f32[N]\n  in q: f32\n  out y: f32[N]\n  forall i < N\n    y[i] = x[i]\n"
    (tmp_path / "two.isam").write_text(one.format("one") + "\n" + one.format("two").replace("  in q: f32\n", ""))
    ran = {name: cli("map", f"{tmp_path}/two.isam:{name}", "--on", "toy") for name in ("one", "two")}
    assert [r.code for r in ran.values()] == [0, 0]
    assert "L243" in ran["one"].err
    assert ran["two"].err == ""
    assert "L243" in cli("check", f"{tmp_path}/two.isam").err


def test_what_further_permissions_are_worth_is_told(cli, tmp_path):
    from tests.unit.test_grants import KERNEL, MACHINE

    (tmp_path / "two.yaml").write_text(MACHINE.format(takes="flush", cycles=8))
    (tmp_path / "k.isam").write_text(KERNEL.format(permits="contract"))
    for verb in ("map", "explain"):
        ran = cli(verb, tmp_path / "k.isam", "--on", tmp_path / "two.yaml", *SMALL)
        assert "\nwith 'permits contract, flush' (flush: a denormal may count as zero): pquick could carry" in ran.out
        (told,) = cli(verb, tmp_path / "k.isam", "--on", tmp_path / "two.yaml", *SMALL, "--json").json(verb)["grants"]
        assert told in ran.out


def test_a_cover_of_several_says_that_there_are_others(cli, tmp_path):
    """Schedules of all are compared, so that another may be carried out than the one that is shown."""
    k = tmp_path / "k.isam"
    k.write_text("kernel k(M, N)\n  in x: f32[M, N]\n  out y: f32[M]\n  forall i < M\n    y[i] = 0\n"
                 "  forall i < M, j < N\n    y[i] += x[i, j]\n")  # fmt: skip
    ran = cli("map", k, "--on", "host", "-D", "M=64,N=256")
    others = cli("map", k, "--on", "host", "-D", "M=64,N=256", "--json").json("map")["others"]
    assert others
    last = ran.out.splitlines()[-1]
    assert re.match(r"no schedule yet; shown is the first of [23] covers, the others? by ", last)
    assert others[0] in last
    assert ": which schedule is quickest, and whether the machine holds and moves what this needs: isam " in last
