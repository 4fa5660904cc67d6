"""NPKL and RegPCP: formulas, duplicate pairs and input validation."""

import numpy as np
import pytest
import scipy.sparse as sp

import gramian as gm
from gramian import problems
from gramian.checks import check_gradient
from gramian.objectives.dense import value_dense

rng = np.random.default_rng(4)
N, LAM = 6, 0.7
MUST = np.array([(0, 1), (3, 2)])
CANNOT = np.array([(4, 0), (1, 5), (2, 5)])
W = np.triu(rng.uniform(0.1, 1.0, (N, N)), 1)
LAPLACIAN = np.diag((W + W.T).sum(axis=1)) - W - W.T
BASIS = rng.standard_normal((N, 4))
L = rng.standard_normal((N, 3))
NONE = np.empty((0, 2), dtype=int)


def misfit(Z, must=MUST, cannot=CANNOT):
    linked = sum((Z[i, j] - 1) ** 2 for i, j in must) + sum(Z[i, j] ** 2 for i, j in cannot)
    return linked + np.sum((np.diag(Z) - 1) ** 2)


def check(problem, factor, expected):
    assert problem.value(factor) == pytest.approx(expected)
    assert value_dense(problem.objective, factor @ factor.T) == pytest.approx(expected)
    check_gradient(problem.objective)


@pytest.mark.parametrize("laplacian", [LAPLACIAN, LAPLACIAN.tolist(), sp.csr_array(LAPLACIAN)])
def test_npkl_is_its_formula(laplacian):
    Z = L @ L.T
    problem = problems.npkl(laplacian, MUST, CANNOT, LAM)
    check(problem, L, np.trace(Z @ LAPLACIAN) + LAM / 2 * misfit(Z))
    assert problem.name == "npkl" and problem.order == N


def test_lower_bound_of_sparse_laplacian():
    C = LAPLACIAN + 0.3 * np.eye(N)
    lower = problems.npkl(sp.csr_array(C), MUST, CANNOT, LAM).objective.C.lower
    assert lower == pytest.approx(np.linalg.eigvalsh(C)[0])
    C = C - 2 * np.diag(np.arange(N))
    lower = problems.npkl(sp.csr_array(C), MUST, CANNOT, LAM).objective.C.lower
    assert lower <= np.linalg.eigvalsh(C)[0]


@pytest.mark.parametrize("basis", [BASIS, BASIS.tolist(), sp.csr_array(BASIS)])
def test_reg_pcp_is_its_formula(basis):
    Y = L[:4] @ L[:4].T
    problem = problems.reg_pcp(basis, MUST, CANNOT)
    check(problem, L[:4], misfit(BASIS @ Y @ BASIS.T))
    assert problem.name == "reg_pcp" and problem.order == 4


@pytest.mark.parametrize(("must", "cannot"), [(MUST, NONE), ([], CANNOT)])
def test_one_kind_of_link_is_enough(must, cannot):
    Z = L @ L.T
    problem = problems.npkl(LAPLACIAN, must, cannot, LAM)
    expected = np.trace(Z @ LAPLACIAN) + LAM / 2 * misfit(Z, must, cannot)
    assert problem.value(L) == pytest.approx(expected)


def test_duplicate_pairs_are_counted_once():
    once = problems.npkl(LAPLACIAN, MUST, CANNOT, LAM)
    twice = problems.npkl(LAPLACIAN, np.vstack([MUST, MUST[:, ::-1]]), CANNOT, LAM)
    assert twice.value(L) == pytest.approx(once.value(L))
    assert twice.objective.map.size == len(MUST) + len(CANNOT) + N


@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
def test_npkl_is_solved_to_a_certified_gap(solver):
    result = gm.minimize(problems.npkl(LAPLACIAN, MUST, CANNOT, LAM), solver, tol=1e-6)
    assert result.certificate.relative_gap <= 1e-6


def test_reg_pcp_fits_links_that_agree():
    """Two classes, a basis of their indicators, every target reachable: F* = 0."""
    basis = np.repeat(np.eye(2), 3, axis=0)
    result = gm.minimize(problems.reg_pcp(basis, [(0, 1), (3, 5)], [(0, 3)]), tol=1e-9)
    assert result.value == pytest.approx(0.0, abs=1e-8)
    np.testing.assert_allclose(result.matrix(), np.eye(2), atol=1e-3)


BAD = {
    "shape": ({"must_link": MUST.ravel()}, r"must_link must have shape \(p, 2\)"),
    "range": ({"cannot_link": CANNOT + 3}, r"cannot_link\[0\] = \[7, 3\] has an index outside"),
    "floats": ({"must_link": MUST + 0.5}, "must_link must be integers"),
    "self": ({"must_link": [(0, 1), (2, 2)]}, r"must_link\[1\] = \[2, 2\] links a point to itself"),
    "empty": ({"must_link": NONE, "cannot_link": []}, "must_link and cannot_link are both empty"),
    "both": (
        {"cannot_link": [(4, 0), (1, 0)]},
        r"the pair \[0, 1\] is in both must_link and cannot_link",
    ),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_rejects_bad_input(change, message):
    arguments = {"must_link": MUST, "cannot_link": CANNOT} | change
    with pytest.raises(ValueError, match=message):
        problems.npkl(LAPLACIAN, **arguments, lam=LAM)
    with pytest.raises(ValueError, match=message):
        problems.reg_pcp(BASIS, **arguments)


LAPLACIANS = {
    "skew": (np.triu(LAPLACIAN), "laplacian must be symmetric"),
    "skew sparse": (sp.csr_array(np.triu(LAPLACIAN)), "laplacian must be symmetric"),
    "nan": (LAPLACIAN * np.nan, "laplacian contains NaN or infinity"),
    "shape": (LAPLACIAN[:4], "laplacian must be a square matrix"),
    "small": (LAPLACIAN[:4, :4], r"outside 0\.\.3"),
}


@pytest.mark.parametrize(("laplacian", "message"), LAPLACIANS.values(), ids=LAPLACIANS)
def test_a_laplacian_is_checked(laplacian, message):
    with pytest.raises(ValueError, match=message):
        problems.npkl(laplacian, MUST, CANNOT, LAM)


@pytest.mark.parametrize("lam", [0.0, -1.0, np.inf, None])
def test_lam_is_checked(lam):
    with pytest.raises(ValueError, match="lam must be a finite number above 0"):
        problems.npkl(LAPLACIAN, MUST, CANNOT, lam)
