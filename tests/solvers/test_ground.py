"""The lowest eigenpairs of a dense gradient."""

import numpy as np
import pytest
import scipy.linalg

from gramian.methods.lowest_eigenpairs import exact_eigenpairs
from gramian.objectives import SymmetricOperator


def operator(G, errors=None):
    return SymmetricOperator(len(G), lambda V: G @ V, lambda: G, errors=errors)


@pytest.mark.parametrize("order", [30, 700])
def test_falls_back_to_another_eigenvalue_driver(monkeypatch, order):
    """LAPACK's dsyevr ends with an internal error for some matrices of close eigenvalues."""
    rng, eigh = np.random.default_rng(0), scipy.linalg.eigh
    G = rng.normal(size=(order, order))
    G = G + G.T
    expected = exact_eigenpairs(operator(G), 0.0, 5)

    def failing(*given, **named):
        if "driver" not in named:
            raise np.linalg.LinAlgError("Internal Error.")
        return eigh(*given, **named)

    monkeypatch.setattr(scipy.linalg, "eigh", failing)
    found = exact_eigenpairs(operator(G), 0.0, 5)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-10)
    assert found.vectors.shape == expected.vectors.shape


def test_the_bound_includes_the_rounding_of_the_entries():
    G = np.diag([1.0, 2.0, 3.0])
    found = exact_eigenpairs(operator(G, lambda: np.array([0.5, 0.25, 0.0])), 0.0, 2)
    assert found.bound == pytest.approx(0.25) and found.hope == pytest.approx(1.0)
