"""The lowest eigenpairs of a pencil, and their proof."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from gramian.methods.pencil import PencilBounds
from gramian.proofs import SparseForm


def laplacian(weights):
    """Of a ring with chords, without its first point."""
    n = weights.size // 2
    i = np.tile(np.arange(n), 2)
    j = np.concatenate([(np.arange(n) + 1) % n, (np.arange(n) + 17) % n])
    W = sp.coo_array((weights, (i, j)), shape=(n, n))
    W = sp.csr_array(W + W.T)
    return sp.csr_array(sp.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W)[1:, 1:]


@pytest.mark.parametrize("fronted", [50, 10**9])
@pytest.mark.parametrize("last", [0.0, 1e-3, 100.0])
def test_the_lowest_eigenpairs_are_found_and_proved(fronted, last, monkeypatch):
    monkeypatch.setattr("gramian.proofs.sparse.MIN_FRONT_POINTS", fronted)
    rng = np.random.default_rng(0)
    S, P = laplacian(rng.normal(0.3, 1.0, 1200)), laplacian(np.ones(1200))
    U = np.full((599, 1), 600**-0.5)
    form = SparseForm(S, U, np.array([0.1]), unit=P)
    true, vectors = scipy.linalg.eigh(S.toarray() + 0.1 * U @ U.T, P.toarray())
    bottoms = PencilBounds(np.random.default_rng(1), {0: last})
    found = bottoms.look(form, 1.0, 1e-9)
    assert found.value == pytest.approx(true[0], rel=1e-6)
    assert found.shift <= true[0]
    inside = vectors[:, :5].T @ (P @ found.vectors)
    np.testing.assert_allclose(np.linalg.norm(inside, axis=1), 1.0, atol=1e-3)
    bottom = bottoms.proved(form, found, 1e-9)
    assert bottom.proved and 1.05 * true[0] <= bottom.value <= true[0]
    missed = replace(found, value=0.5 * true[0], shift=100 * true[0])
    bottom = bottoms.proved(form, missed, 1e-9)
    assert bottom.proved and 6 * true[0] <= bottom.value <= true[0]
