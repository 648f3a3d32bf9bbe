"""``run``: arrays, sizes, instructions, threads and figures."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import isam
from tests.cli.conftest import DIAGONAL, SMALL


def test_run_takes_and_writes_arrays(cli, two, tmp_path):
    x, y = np.arange(7, dtype=np.int32), np.array([5, -3, 8, 1, 2, 9, -7], np.int32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    ran = cli("run", f"{two}:add", "--on", "toy", "-D", "N=7", "--input", f"x={tmp_path}/x.npy", "--input",
              f"y={tmp_path}/y.npy", "--output", f"z={tmp_path}/z.npy", "--json")  # fmt: skip
    d = ran.json("run")
    assert d["outputs"] == {"z": {"dtype": "int32", "shape": [7]}}
    assert d["operations"] == 7
    assert d["check"] is None
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), x + y)
    ran = cli("run", f"{two}:scale", "-D", "N=33", "-D", "by=5", "--check", "--repeat", 2)
    assert ran.code == 0, ran.err


def test_results_of_bf16_are_arguments_again(cli, tmp_path):
    """NumPy's files have no name for the type: elements are bytes there."""
    (tmp_path / "k.isam").write_text("kernel k(N)\n  in x: bf16[N]\n  in s: f32[N]\n  out y: bf16[N]\n  forall i < N\n"
                                     "    y[i] = bf16(f32(x[i]) * s[i])\n")
    s = np.array([1, 2, -3, 0.5, 7], np.float32)
    np.save(tmp_path / "s.npy", s)
    run = ("run", tmp_path / "k.isam", "--on", "host-generic", "-D", "N=5", "--input", f"s={tmp_path}/s.npy")
    assert cli(*run, "--output", f"y={tmp_path}/y.npy").code == 0
    y = np.load(tmp_path / "y.npy")
    assert y.dtype.kind == "V"
    again = cli(*run, "--input", f"x={tmp_path}/y.npy", "--output", f"y={tmp_path}/z.npy")
    assert again.code == 0, again.err
    first, second = (a.view(ml_dtypes.bfloat16) for a in (y, np.load(tmp_path / "z.npy")))
    assert second.tobytes() == (first.astype("f4") * s).astype(ml_dtypes.bfloat16).tobytes()
    np.save(tmp_path / "v.npy", np.zeros(5, "V4"))
    for wrong in (f"x={tmp_path}/v.npy", f"s={tmp_path}/v.npy"):
        assert "must be" in cli(*run[:-2], "--input", wrong).err


def test_run_demands_an_instruction(cli, matmul, tmp_path):
    sizes = ("--on", "host-generic", *SMALL, "--json")
    assert cli("run", matmul, *sizes, "--require", "fma_sv_f32").code == 0
    assert cli("run", matmul, *sizes, "--require", "acc_max_s_f32").code == 1
    out = tmp_path / "a"
    assert cli("compile", matmul, *SMALL, "-o", out).code == 0
    every = {"--require": "fma_sv_f32", "--approach": "greedy", "--replay": out, "--threads": 2}
    ran = cli("run", out, *(word for option in every.items() for word in option))
    assert ran.code == 2  # it is compiled already
    assert all(f"{option} is for kernels" in ran.err for option in every)
    assert cli("run", out).code == 0


def test_sizes_that_cannot_be_meant_are_answered_with_those_that_can(cli, matmul, tmp_path):
    other = cli("run", matmul, "-D", "m=5", "-D", "N=18,K=3")
    assert (other.code, "has no size 'm'" in other.err, "did you mean 'M'?" in other.err) == (2, True, True)
    out = tmp_path / "a"
    assert cli("compile", matmul, *SMALL, "-o", out).code == 0
    assert cli("run", out, "-D", "M=5").code == 0
    ran = cli("run", out, "-D", "M=6", "-D", "N=17")
    assert ran.code == 2
    assert "the artifact is compiled for M = 5\n  hint: isam compile -D M=6" in ran.err
    assert "the artifact is compiled for N = 18" in ran.err
    assert f"hint: a compiled kernel? isam run {out}" in cli("schedule", out).err


def test_constants_may_be_given_where_sizes_are(cli, two):
    assert "sizes: N; constants: by" in cli("run", f"{two}:scale", "-D", "N=3,Z=5").err
    assert "did you mean 'by'?" in cli("run", f"{two}:scale", "-D", "N=3,bye=5").err
    assert "hint: sizes: N\n" in cli("run", f"{two}:add", "-D", "N=3,Z=5").err


def test_run_takes_threads_as_schedule_does(cli, tmp_path):
    """Code is made for that many; an artifact is made already."""
    from unittest.mock import patch

    file = tmp_path / "scale.isam"
    file.write_text("kernel scale(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = x[i] * 2\n")
    with patch("isam.compile", wraps=isam.compile) as seen:
        ran = cli("run", file, "--on", "host-generic", "-D", "N=100", "--threads", 2, "--check")
    assert ran.code == 0, ran.out
    assert seen.call_args.kwargs["threads"] == 2
    assert cli("compile", file, "--on", "toy", "-D", "N=8", "-o", tmp_path / "a").code == 0
    assert "--threads is for kernels" in cli("run", tmp_path / "a", "--threads", 2).err


def test_an_artifact_is_run_on_what_it_was_compiled_for(cli, tmp_path):
    isam.compile(isam.einsum("n->n"), on="toy", sizes={"N": 3}).save(tmp_path / "a")
    ran = cli("run", tmp_path / "a", "--on", "host")
    assert ran.code == 2
    assert "cli-option" in ran.err
    assert "--on is for kernels" in ran.err


def test_operations_are_those_that_conditions_admit(cli, tmp_path):
    from unittest.mock import patch

    file = tmp_path / "d.isam"
    file.write_text(DIAGONAL)
    d = cli("run", file, "--on", "host-generic", "-D", "T=30", "--json").json("run")
    assert (d["operations"], d["exact"]) == (30, True)
    with patch("isam.ir.counting.MOST", 3):
        d = cli("run", file, "--on", "host-generic", "-D", "T=30", "--json").json("run")
        assert (d["operations"], d["exact"]) == (900, False)
        assert "Gop/s of all points of the loops" in cli("run", file, "--on", "host-generic", "-D", "T=30").out


def test_a_simulator_has_steps_and_no_speed(cli, matmul, tmp_path):
    from isam.codegen.simulator.run import Simulation
    from isam.schedule.serial import from_json

    for spec, more in ((matmul, ("--on", "toy", *SMALL)), (tmp_path / "a", ())):
        ran = cli("run", spec, *more, "--repeat", 2)
        assert "simulated: " in ran.out
        assert "the simulator took" in ran.out
        assert "op/s" not in ran.out
        d = cli("run", spec, *more, "--json").json("run")
        fn = isam.compile(matmul.read_text(), on="toy", sizes={"M": 5, "N": 18, "K": 3})
        fn.save(tmp_path / "a")
        simulation = Simulation(from_json(fn.artifact.parts["schedule.json"]))
        simulation.call({"A": np.ones((5, 3), np.float32), "B": np.ones((3, 18), np.float32)})
        assert d["simulated"] == simulation.figures.steps
    assert cli("run", matmul, "--on", "host-generic", *SMALL, "--json").json("run")["simulated"] is None
