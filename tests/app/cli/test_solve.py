"""`gramian eigen` and `solve`: matrices and semidefinite programs in files."""

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from tests.app.cli.data import answer, refused


def test_eigen_and_solve(run, folder):
    facts = answer(run, "eigen", "kernel.npy", "-k", 3, "--out", "e.npz")
    exact = np.linalg.eigvalsh(np.load("kernel.npy"))[::-1][:3]
    np.testing.assert_allclose([row["eigenvalue"] for row in facts["rows"]], exact)
    facts = answer(run, "solve", "--entries", "correlations.csv", "--out", "L.npy")
    T, L = np.loadtxt("correlations.csv", delimiter=","), np.load("L.npy")
    values, vectors = np.linalg.eigh(T)
    nearest = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(L @ L.T, nearest, atol=1e-4)
    facts = answer(run, "solve", "-B", "kernel.npy", "-C", "kernel.npy", "--checkpoint", "run")
    assert facts["certificate"]["value"] == pytest.approx(0, abs=1e-6)
    assert answer(run, "info", "run")["order"] == 30


def test_solve_a_semidefinite_program(run, folder):
    triangle = np.ones((3, 3)) - np.eye(3)
    gm.io.write_sdpa(gm.problems.maxcut(triangle), "cut.dat-s")
    facts = answer(run, "solve", "cut.dat-s", "--dual", "y.csv", "--out", "factor.npy")
    assert facts["certificate"]["value"] == pytest.approx(-2.25, rel=1e-5)
    assert facts["violation"] <= 1e-6 and len(facts["dimacs"]) == 6
    assert pd.read_csv("y.csv")["y"].sum() == pytest.approx(-2.25, rel=1e-5)
    factor = np.load("factor.npy")
    np.testing.assert_allclose(np.sum(factor**2, axis=1), 1.0, atol=1e-5)
    status, out, _ = run("solve", "cut.dat-s")
    assert status == 0 and "dimacs" in out


def test_solve_rejects_matrix_options_with_a_program(run, folder):
    gm.io.write_sdpa(gm.problems.maxcut(np.ones((2, 2))), "cut.dat-s")
    status, _, err = run("solve", "cut.dat-s", "--trace", "2")
    assert status == 2 and "whole problem" in err
    status, _, err = run("solve", "--dual", "y.npy", "--entries", "cut.dat-s")
    assert status == 2
    (folder / "bad.dat-s").write_text("1\n1\n2\n1.0\n1 1 1 5 1.0\n")
    status, _, err = run("solve", "bad.dat-s")
    assert status == 2 and "line 5" in err


def test_matrices_of_other_commands_are_refused_with_the_option_that_fits(run, folder):
    assert "points.csv has 120 rows and 3 columns" in refused(run, "eigen", "points.csv")
    said = refused(run, "solve", "correlations.csv")
    assert "a matrix is given with --entries, -A, -B or -C" in said
    (folder / "bad.dat-s").write_text("nonsense\n")
    assert "--entries" not in refused(run, "solve", "bad.dat-s")


def test_matrices_are_refused_without_the_options_of_tables(run, folder):
    (folder / "gap.csv").write_text("a,b\n1,\n,1\n")
    (folder / "skew.csv").write_text("a,b\n1,2\n3,1\n")
    assert "gap.csv has missing cells" in refused(run, "eigen", "gap.csv")
    assert "write (K + Kᵀ)/2 if that is meant" in refused(run, "eigen", "skew.csv")
    assert "a matrix has numbers only" in refused(run, "eigen", "flowers.csv")


def test_small_matrices_have_all_their_eigenvalues(run, folder):
    M = pd.DataFrame(np.diag([3.0, 2.0, 1.0]), columns=list("abc"), index=list("abc"))
    M.to_csv("m.csv")
    assert [row["eigenvalue"] for row in answer(run, "eigen", "m.csv")["rows"]] == [3, 2, 1]
    assert "-k 4, but a matrix of order 3 has 3 eigenvalues" in refused(
        run, "eigen", "m.csv", "-k", 4
    )
    assert run("eigen", "m.csv", "-k", 2, "--out", "o.csv")[0] == 0
    assert list(pd.read_csv("o.csv")) == ["eigenvalue", "residual", "a", "b", "c"]
