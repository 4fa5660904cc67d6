"""Dual points shifted along the edges of a graph are feasible in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.losses import Squared
from gramian.maps import Mix, PairDistances, inner_products
from gramian.objectives import Composite
from gramian.objectives.pencil import pencil_root, pencil_shift
from gramian.proofs import PencilRoot

N = 12


def squares_of(seed, spread):
    """Rows ω_k v_k v_kᵀ with orthonormal v_k: 𝒜*(1) has the condition of the ω."""
    rng = np.random.default_rng(seed)
    omega = 10 ** np.linspace(0, -spread, N)
    V = np.linalg.qr(rng.standard_normal((N, N)))[0]
    rows = omega[:, None, None] * np.einsum("ik,jk->kij", V, V)
    map = inner_products(sp.csr_array(rows.reshape(N, N * N)), N)
    w = np.abs(rng.standard_normal(N))
    w[-1] = -0.3  # the row of the least weight decides
    return Composite(map, Squared(np.ones(N))), w, rows


def is_psd(A):
    """Whether a symmetric matrix of fractions is PSD, by its exact pivots."""
    A = [list(row) for row in A]
    for k in range(len(A)):
        if A[k][k] < 0 or (A[k][k] == 0 and any(A[k][k + 1 :])):
            return False
        for i in range(k + 1, len(A)):
            if A[k][k]:
                share = A[i][k] / A[k][k]
                A[i] = [a - share * b for a, b in zip(A[i], A[k], strict=True)]
    return True


def exact(rows, w):
    """Σ w_k A_k in fractions."""
    terms = [[[Fraction(float(a)) * Fraction(float(v)) for a in line] for line in row]
             for row, v in zip(rows, w, strict=True)]  # fmt: skip
    return [[sum(column, Fraction(0)) for column in zip(*lines, strict=True)]
            for lines in zip(*terms, strict=True)]  # fmt: skip


@pytest.mark.parametrize("spread", [2.0, 6.0, 8.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_shifted_dual_point_is_feasible_in_exact_arithmetic(seed, spread):
    objective, w, rows = squares_of(seed, spread)
    shift = pencil_shift(objective, w)
    if shift is not None:
        assert is_psd(exact(rows, w + shift))


def test_a_well_conditioned_pencil_has_a_tight_shift():
    objective, w, _ = squares_of(0, 1.0)
    assert pencil_root(objective) is not None
    assert pencil_shift(objective, w) == pytest.approx(0.3, rel=1e-10)


def test_unknown_null_space_gives_no_bound():
    """P of rank N − 1, whose null vector is not that of a graph."""
    rows = np.array(
        [np.outer(v, v) for v in np.linalg.qr(np.vander(np.arange(1.0, 6)))[0][:, :4].T]
    )
    objective = Composite(inner_products(sp.csr_array(rows.reshape(4, 25)), 5), Squared(np.ones(4)))
    assert pencil_root(objective) is None


@pytest.mark.parametrize("weighed", [False, True])
def test_the_constants_of_a_graph_are_a_null_space(weighed):
    pairs = np.column_stack([np.arange(N - 1), np.arange(1, N)])
    map = PairDistances(pairs, N)
    if weighed:
        map = Mix(map, sp.csr_array(sp.diags_array(np.linspace(1, 2, N - 1))))
    root = pencil_root(Composite(map, Squared(np.ones(N - 1))))
    assert root is not None and root.null.shape == (N, 1)


def test_error_of_root_is_bounded():
    P = np.diag([1.0, 1e-4, 0.0])
    root = PencilRoot.of(P, np.zeros(3))
    assert root is not None and root.null.shape == (3, 1)
    assert root.skew <= 1e-9
    unsure = PencilRoot.of(P, np.array([0.0, 1e-6, 0.0]))
    assert unsure is not None and unsure.skew >= 1e-2
    assert PencilRoot.of(P, np.array([0.0, 1.0, 0.0])) is None
