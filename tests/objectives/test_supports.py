"""Linear functions below an objective, and the resulting bounds of sums."""

import numpy as np
import pytest
import scipy.sparse as sp

import gramian as gm
from gramian.losses import Logistic, Squared, SquaredHinge
from gramian.maps import BlockEntries, Entries, PairDistances
from gramian.objectives import Composite, GramQuadratic, LowRankPlusIdentity, Sum
from gramian.objectives.supports import Growth
from gramian.proofs import lowest
from tests.slow import slow

N = 7
RNG = np.random.default_rng(5)
PAIRS = np.array([[i, j] for i in range(N) for j in range(i, N)])
DIAGONAL = np.column_stack([np.arange(N), np.arange(N)])
TARGET = RNG.standard_normal(len(PAIRS))
X = RNG.standard_normal((N, N))
SHAPES = {
    "composite": Composite(Entries(PAIRS, N), Squared(TARGET), 0.3),
    "quadratic": GramQuadratic(X @ X.T, 0.5, LowRankPlusIdentity(N, 0.2), constant=2.0),
    "flat-quadratic": GramQuadratic(X[:, :2] @ X[:, :2].T, None, X + X.T),
    "sum": Sum(
        [
            GramQuadratic(X @ X.T, 0.5, -X - X.T),
            Composite(PairDistances(PAIRS[PAIRS[:, 0] < PAIRS[:, 1]], N), Logistic(1.0), 0.4),
            Composite(Entries(DIAGONAL, N), Squared(1.0)),
        ]
    ),
    "sum-of-sums": Sum(
        [
            Sum([Composite(Entries(PAIRS, N), SquaredHinge(TARGET), 0.1)]),
            Composite(Entries(DIAGONAL, N), Squared(1.0), 0.2),
        ]
    ),
}


def linear_terms(objective):
    """⟨C, N⟩, the limit of the scaled slope."""
    if isinstance(objective, Sum):
        return sum(linear_terms(part) for part in objective.parts)
    return (2 if isinstance(objective, GramQuadratic) else 1) * objective.C.dense()


@pytest.mark.parametrize("name", SHAPES)
def test_changed_support_is_below_objective(name):
    objective, rng = SHAPES[name], np.random.default_rng(0)
    C = linear_terms(objective)
    for _ in range(20):
        image = objective.image(10 ** rng.uniform(-1, 1) * rng.standard_normal((N, 2)))
        support, G = objective.support(image), objective.gradient(image).dense()
        touching = support.value + np.sum(G * (image.factor @ image.factor.T))
        assert touching == pytest.approx(objective.value(image), rel=1e-9, abs=1e-9)
        other = objective.image(10 ** rng.uniform(-1, 1) * rng.standard_normal((N, 3)))
        K, value = other.factor @ other.factor.T, objective.value(other)
        slack = 1e-9 * (1 + abs(value))
        assert support.floor <= np.linalg.eigvalsh(C)[0] + 1e-9
        s, t = rng.uniform(0, 1), 10 ** rng.uniform(-2, 2)
        assert support.shrunk(s) + np.sum((s * G + (1 - s) * C) * K) <= value + slack
        if support.shifted is not None:
            assert support.shifted(t) + np.sum(G * K) + t * np.trace(K) <= value + slack


def test_shifts_the_part_that_can_be_shifted():
    assert SHAPES["flat-quadratic"].support(SHAPES["flat-quadratic"].image(X)).shifted is None
    for name in ("composite", "quadratic", "sum", "sum-of-sums"):
        assert SHAPES[name].support(SHAPES[name].image(X)).shifted is not None


def shards(n, links, rng, parts):
    """NPKL by edges of its graph, split into shards of links and the diagonal."""
    edges = np.unique(np.sort(rng.integers(0, n, (links, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] < edges[:, 1]]
    signs = rng.choice([-1.0, 1.0], len(edges))
    ring = np.arange(n)
    L = sp.csr_array((np.ones(n), (ring, (ring + 1) % n)), shape=(n, n))
    L = sp.diags_array(np.full(n, 2.0)) - L - L.T
    diagonal = np.column_stack([ring, ring])
    whole = Composite(
        Entries(np.vstack([diagonal, edges]), n),
        Squared(np.concatenate([np.ones(n), signs]), weight=2.0),
        L,
    )
    cut = [Composite(Entries(diagonal, n), Squared(1.0, weight=2.0), L)]
    for piece in np.array_split(np.arange(len(edges)), parts):
        cut.append(Composite(Entries(edges[piece], n), Squared(signs[piece], weight=2.0)))
    return gm.Problem(whole), gm.Problem(Sum(cut))


@pytest.mark.parametrize("n", [40, slow(1600)])
def test_sum_of_shards_has_the_same_certificate(n):
    whole, cut = shards(n, 2 * n, np.random.default_rng(n), 3)
    assert cut.objective.facts.rank_bound(n) == whole.objective.facts.rank_bound(n) < n
    L = gm.minimize(whole, tol=1e-2).factor
    for factor in (L, 1.01 * L, L + 1e-3 * np.random.default_rng(0).standard_normal(L.shape)):
        own, sharded = gm.certify(whole, factor), gm.certify(cut, factor)
        assert sharded.proved and sharded.proof == own.proof
        assert sharded.gap == pytest.approx(own.gap, rel=1e-6, abs=1e-9 * abs(own.value))


def test_sum_of_shards_has_the_same_optimum():
    whole, cut = shards(40, 80, np.random.default_rng(40), 3)
    result = gm.minimize(cut, tol=1e-6)
    assert result.value == pytest.approx(gm.minimize(whole, tol=1e-6).value, rel=2e-6)
    assert result.status.name == "CONVERGED" and result.certificate.proved
    w = cut.objective.dual(cut.objective.image(result.factor))
    assert w.shape == (cut.objective.facts.terms,)
    assert gm.certify(cut, result.factor, dual=w).relative_gap <= 1e-5


def test_blocks_and_spans_are_proved_as_parts_of_a_sum():
    """Ratings in two shards, and a low-rank sum: each has the structure of the whole."""
    rng, m, n = np.random.default_rng(1), 900, 800
    rows, cols = np.sort(rng.integers(0, m, 4000)), rng.integers(0, n, 4000)
    values = rng.standard_normal(4000)
    parts = [
        Composite(BlockEntries(rows[k], cols[k], (m, n)), Squared(values[k], weight=0.5), 1.5)
        for k in (slice(0, 2000), slice(2000, 4000))
    ]
    problem = gm.Problem(Sum(parts))
    certificate = gm.certify(problem, 0.1 * rng.standard_normal((m + n, 2)))
    assert certificate.proof == "blocks" and certificate.gap is not None
    U = rng.standard_normal((1700, 5))
    low = LowRankPlusIdentity(1700, 0.5, U, -np.ones(5))
    parts = [low, LowRankPlusIdentity(1700, 0.1)]
    flat = Sum([GramQuadratic(None, 1.0, C) for C in parts])
    gradient = flat.gradient(flat.image(0.1 * U))
    bottom, least = lowest(gradient), np.linalg.eigvalsh(gradient.dense())[0]
    assert bottom.how == "span" and bottom.proved
    assert least - 1e-9 * abs(least) <= bottom.value <= least + 1e-9 * abs(least)


def test_sum_without_support():
    class Bare(GramQuadratic):
        def support(self, image):
            return None

    objective = Sum([Bare(X @ X.T, None, X + X.T), SHAPES["composite"]])
    assert objective.support(objective.image(X)) is None
    assert objective.dual(objective.image(X)) is None


def test_growth_of_a_sum_is_the_sum_of_growths():
    total = Growth(1.0, 2.0, 3.0) + Growth(4.0, -9.0, 6.0)
    assert total == Growth(5.0, -7.0, 9.0)
    assert total.least == pytest.approx(5.0 - 49.0 / 36.0)
