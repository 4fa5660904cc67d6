"""Small maps as one dense matrix."""

import numpy as np
import pytest

from gramian.losses import Squared, SquaredHinge
from gramian.maps import Congruence, Entries, PairDistances, triplet_margins
from gramian.maps.written import NUMBERS, Written, is_small
from gramian.objectives import Composite, GramQuadratic, Sum
from gramian.reductions.variants import written_out

RNG = np.random.default_rng(0)
N = 7
PAIRS = np.array([(i, j) for i in range(N) for j in range(i + 1, N)])
MAPS = {
    "entries": Entries(np.vstack([PAIRS, [(3, 3), (0, 1)]]), N),
    "distances": PairDistances(PAIRS, N),
    "triplets": triplet_margins([(0, 1, 2), (3, 4, 5), (6, 1, 0)], N),
    "congruence": Congruence(PairDistances(PAIRS, N), RNG.standard_normal((N, 4))),
}


@pytest.mark.parametrize("name", MAPS)
def test_values_and_adjoint_agree(name):
    plain = MAPS[name]
    written, n = Written(plain), plain.order
    U, V, w = RNG.standard_normal((n, 3)), RNG.standard_normal((n, 3)), RNG.random(plain.size)
    np.testing.assert_allclose(written.bilinear(U, V), plain.bilinear(U, V), atol=1e-13)
    np.testing.assert_allclose(written.of_factor(U), plain.of_factor(U), atol=1e-13)
    np.testing.assert_allclose(written.adjoint(w, V), plain.adjoint(w, V), atol=1e-13)
    np.testing.assert_allclose(written.adjoint_matrix(w), plain.adjoint_matrix(w), atol=1e-13)
    M = U @ V.T + V @ U.T
    assert written.of_matrix(M) @ w == pytest.approx(np.sum(M * written.adjoint_matrix(w)))


def test_used_by_small_objectives_only():
    small = Composite(MAPS["triplets"], SquaredHinge(), C=0.5)
    total = Sum([small, GramQuadratic(np.eye(N), np.eye(N), -np.eye(N))])
    L = RNG.standard_normal((N, 2))
    for objective in (small, total):
        steps = written_out(objective)
        there, here = steps.image(L), objective.image(L)
        assert steps.value(there) == pytest.approx(objective.value(here))
        np.testing.assert_allclose(
            steps.gradient_factor(there), objective.gradient_factor(here), atol=1e-12
        )
    assert isinstance(written_out(small).map, Written)
    edges = np.column_stack([np.arange(400), np.arange(1, 401)])
    assert edges.shape[0] * 401**2 > NUMBERS
    large = Composite(PairDistances(edges, 401), Squared(np.ones(400)))
    assert not is_small(large.map)
    assert written_out(large) is large


def test_certificates_use_the_original_map():
    """M_ii + M_jj − 2M_ij cancels for entries of 1e12: images use the original map."""
    plain = MAPS["distances"]
    objective = Composite(plain, Squared(np.full(plain.size, 1e-4)))
    far = np.hstack([1e6 * np.ones((N, 1)), 1e-2 * RNG.standard_normal((N, 2))])
    rows = far[PAIRS[:, 0]] - far[PAIRS[:, 1]]
    expected = np.sum(rows**2, axis=1)
    np.testing.assert_allclose(objective.image(far).z, expected, rtol=1e-12)
    lost = written_out(objective).image(far).z
    assert np.max(np.abs(lost - expected)) > 1e-3 * np.max(expected)
