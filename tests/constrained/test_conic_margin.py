"""Further calls of Clarabel with a margin, if the first solution gives no close lower bound."""

import numpy as np
import pytest

import gramian as gm
from gramian.constrained.conic import ConicForm
from gramian.constrained.model import Model

pytest.importorskip("clarabel")


def uneven(seed, n=12, m=20, rank=4):
    """A program whose optimum is known: a pair M, S with MS = 0, rows of M from 0.1 to 10."""
    rng, d = np.random.default_rng(seed), np.logspace(-1, 1, n)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    sizes = rng.uniform(0.5, 2, n)
    M = (Q[:, :rank] * sizes[:rank]) @ Q[:, :rank].T
    S = (Q[:, rank:] * sizes[rank:]) @ Q[:, rank:].T
    A = rng.standard_normal((m, n, n))
    A = A + A.transpose(0, 2, 1)
    C = S + np.einsum("k,kij->ij", rng.standard_normal(m), A)
    b, units = np.einsum("kij,ij->k", A, M), np.outer(1 / d, 1 / d)
    return gm.problems.sdp(C * units, list(A * units), b), float(np.sum(C * M))


@pytest.mark.parametrize("seed", range(4))
def test_a_margin_in_units_of_m_closes_the_gap(seed):
    problem, best = uneven(seed)
    result = gm.minimize(problem, "clarabel", tol=1e-6, time_limit=60)
    assert result.route == ("clarabel",)
    assert result.certificate.relative_gap <= 1e-6
    assert result.certificate.violation <= 1e-6
    assert result.value == pytest.approx(best, rel=1e-6)
    assert result.certificate.lower_bound <= best + 1e-9 * abs(best)


def test_units_of_the_rows_do_not_change_the_program():
    problem, _ = uneven(0)
    model, d = Model.of(problem), np.logspace(-1, 1, 12)
    N = np.random.default_rng(0).standard_normal((12, 5))
    M = (d[:, None] * N) @ (d[:, None] * N).T
    form = ConicForm(model, d)
    i, j = np.divmod(form.place, 12)
    x = (N @ N.T)[i, j] * np.where(i == j, 1.0, np.sqrt(2.0))
    np.testing.assert_allclose(form.A @ x, model.rows.whole() @ M.ravel())
    assert form.q @ x == pytest.approx(float(np.sum(model.linear.dense() * M)))
    L = form.factor(x)
    np.testing.assert_allclose(L @ L.T, M, atol=1e-12 * np.max(M))
