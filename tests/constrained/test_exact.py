"""Dual points are feasible to the last bit: their slack is factorised in rational numbers."""

from fractions import Fraction

import numpy as np
import pytest

import gramian as gm
from gramian.constrained.dual import Repair
from gramian.constrained.model import Model


def exactly_psd(S):
    """Whether a symmetric matrix of fractions is PSD, by its pivots."""
    S = [list(row) for row in S]
    n = len(S)
    for k in range(n):
        pivot = S[k][k]
        if pivot < 0 or (pivot == 0 and any(S[k][j] != 0 for j in range(k + 1, n))):
            return False
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                S[i][j] -= S[i][k] * S[k][j] / pivot if pivot else 0
    return True


def slack(C, A, y):
    """C − Σ y_k A_k without rounding."""
    n = len(C)
    exact = [[Fraction(C[i][j]) for j in range(n)] for i in range(n)]
    for weight, matrix in zip(y, A, strict=True):
        for i in range(n):
            for j in range(n):
                exact[i][j] -= Fraction(float(weight)) * Fraction(float(matrix[i, j]))
    return exact


def integers(rng, n):
    """A symmetric matrix of integers, which are exact."""
    M = rng.integers(-3, 4, (n, n)).astype(float)
    return M + M.T


@pytest.mark.parametrize("way", ["interior", "along the identity"])
@pytest.mark.parametrize(("size", "floor"), [(1.0, 1.0), (1e3, 2.0**-20), (1e6, 2.0**-20)])
def test_a_repaired_point_is_feasible_without_rounding(way, size, floor):
    rng, n = np.random.default_rng(0), 3
    seen = 0
    for _ in range(60):
        A = [integers(rng, n) for _ in range(3)]
        C = floor * np.eye(n) if way == "interior" else integers(rng, n)
        if way != "interior":
            A.append(np.eye(n))
        model = Model.of(gm.problems.sdp(C, A, np.ones(len(A))))
        image = model.objective.image(rng.standard_normal((n, 2)))
        point = Repair(model)(image, size * rng.standard_normal(len(A)))
        if point is not None:
            seen += 1
            assert exactly_psd(slack(C, A, point.dual))
    assert seen > 30


def test_combination_of_large_dual_points_subtracts_their_rounding():
    """Rows that cancel: multipliers of a million leave a slack of a millionth."""
    rng, floor, seen = np.random.default_rng(1), 2.0**-20, 0
    for _ in range(60):
        D = integers(rng, 3)
        C, A = floor * np.eye(3), [D, -D]
        model = Model.of(gm.problems.sdp(C, A, np.zeros(2)))
        image = model.objective.image(rng.standard_normal((3, 2)))
        repair = Repair(model)
        large = rng.uniform(1e6, 2e6) * np.ones(2)
        assert repair(image, large) is not None
        repair.origin = None  # so that the way leads from the large ones
        point = repair(image, large + np.array([rng.uniform(1e-6, 1e-3), 0.0]))
        if point is not None:
            seen += 1
            assert exactly_psd(slack(C, A, point.dual))
    assert seen > 30
