"""Systems of single rows compared with the diagonal blocks of the Hessian."""

from __future__ import annotations

import numpy as np
import pytest

from gramian.arrays import row_systems as module
from gramian.arrays.row_systems import row_systems
from gramian.maps import Entries


def blocks(map, w, base, V):
    """b_i I + the diagonal blocks of D ↦ 4𝒜*(w ∘ 𝒜(sym(VDᵀ)))V, one column at a time."""
    n, rank = V.shape
    found = base[:, None, None] * np.eye(rank)
    for i in range(n):
        for a in range(rank):
            D = np.zeros((n, rank))
            D[i, a] = 1.0
            found[i, :, a] += 4 * map.adjoint(w * map.bilinear(V, D), V)[i]
    return found


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("n", "pairs", "rank"), [(30, 100, 5), (40, 30, 8), (25, 10, 1)])
def test_solves_diagonal_blocks(compiled, n, pairs, rank):
    rng = np.random.default_rng(n)
    links = np.vstack([rng.integers(0, n, (pairs, 2)), np.column_stack([np.arange(n)] * 2)])
    map, base = Entries(links, n), 1 + rng.random(n)
    w = np.where(rng.random(len(links)) < 0.2, 0.0, rng.random(len(links)))
    V, R = rng.standard_normal((2, n, rank))
    solve = row_systems(map.pattern, w, base, V, compiled=compiled)
    expected = np.linalg.solve(blocks(map, w, base, V), R[:, :, None])[:, :, 0]
    np.testing.assert_allclose(solve(R), expected, rtol=1e-10, atol=1e-12)


def test_rows_without_pairs_are_divided_by_their_base():
    map = Entries([(0, 1)], 4)
    base = np.array([1.0, 2.0, 4.0, 8.0])
    V = np.ones((4, 2))
    for compiled in (False, True):
        found = row_systems(map.pattern, np.ones(1), base, V, compiled=compiled)(np.ones((4, 2)))
        np.testing.assert_allclose(found[2:], [[0.25, 0.25], [0.125, 0.125]])


@pytest.mark.parametrize("compiled", [False, True])
def test_keeps_precision_of_factor(compiled):
    rng = np.random.default_rng(3)
    links = np.vstack([rng.integers(0, 50, (80, 2)), np.column_stack([np.arange(50)] * 2)])
    map, w, base = Entries(links, 50), np.ones(130), np.ones(50)
    V, R = rng.standard_normal((2, 50, 6))
    solve = row_systems(map.pattern, w, base, V.astype(np.float32), compiled=compiled)
    found = solve(R.astype(np.float32))
    assert found.dtype == np.float32
    expected = row_systems(map.pattern, w, base, V, compiled=compiled)(R)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_dense_systems_agree(monkeypatch):
    rng = np.random.default_rng(4)
    links = np.vstack([rng.integers(0, 40, (90, 2)), np.column_stack([np.arange(40)] * 2)])
    map, w, base = Entries(links, 40), rng.random(130), 1 + rng.random(40)
    V, R = rng.standard_normal((2, 40, 4))
    own = links[:, 0] == links[:, 1]
    found = module.dense_row_systems(map.pattern, w, own, base, V)(R)
    np.testing.assert_allclose(found, row_systems(map.pattern, w, base, V)(R), rtol=1e-9)
    monkeypatch.setattr(module, "MAX_DEVICE_ELEMENTS", 40 * 4**2 - 1)
    assert module.dense_row_systems(map.pattern, w, own, base, V) is None
