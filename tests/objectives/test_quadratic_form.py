"""A quadratic objective and its explicit rows agree."""

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.linalg.svec import smat, svec, triangle_size
from gramian.losses import Logistic, Squared
from gramian.maps import Congruence, Entries, Mix, PairDistances
from gramian.objectives import Composite, GramOperator, GramQuadratic, LowRankPlusIdentity, Sum
from gramian.objectives.dense import value_dense
from gramian.objectives.quadratic_form import (
    compress,
    map_rows,
    quadratic_form,
    row_bound,
)
from tests.cases import psd, symmetric

N = 6
_rng = np.random.default_rng(4)
FEW, MANY = 9, 40
DATA = _rng.standard_normal((8, N))
U = _rng.standard_normal((N, 2))


def edges(count, n=N):
    return np.array([_rng.choice(n, 2, replace=False) for _ in range(count)])


def composite(map, **options):
    target = _rng.standard_normal(map.size)
    loss = Squared(target, weight=_rng.uniform(0, 2, map.size))
    return Composite(map, loss, symmetric(_rng, N), **options)


OBJECTIVES = {
    "entries-few": composite(Entries(_rng.integers(0, N, (FEW, 2)), N)),
    "entries-many": composite(Entries(_rng.integers(0, N, (MANY, 2)), N), constant=3.0),
    "distances-few": composite(PairDistances(edges(FEW), N)),
    "distances-many": composite(PairDistances(edges(MANY), N)),
    "congruence-few": composite(Congruence(PairDistances(edges(FEW, 8), 8), DATA)),
    "congruence-many": composite(Congruence(Entries(_rng.integers(0, 8, (MANY, 2)), 8), DATA)),
    "mix": composite(Mix(PairDistances(edges(FEW), N), sp.random_array((5, FEW), density=0.5))),
    "no-weight": Composite(PairDistances(edges(FEW), N), Squared(1.0, weight=0.0), 0.5),
    "gram": GramQuadratic(psd(_rng, N), psd(_rng, N, 3), symmetric(_rng, N), constant=2.0),
    "gram-multiples": GramQuadratic(0.7, 1.5, symmetric(_rng, N)),
    "gram-linear": GramQuadratic(None, None, symmetric(_rng, N)),
    "gram-forms": GramQuadratic(GramOperator(DATA), LowRankPlusIdentity(N, 0.5, U), psd(_rng, N)),
}
OBJECTIVES["sum-sparse"] = Sum([OBJECTIVES["entries-few"], OBJECTIVES["distances-many"]])
OBJECTIVES["sum-dense"] = Sum([OBJECTIVES["gram"], OBJECTIVES["entries-few"]])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_form_is_the_objective(name):
    objective = OBJECTIVES[name]
    form = quadratic_form(objective)
    short = compress(form)
    assert form.order == objective.order
    assert short.B.shape[0] <= max(form.B.shape[0], triangle_size(N))
    for seed in range(5):
        M = symmetric(np.random.default_rng(seed), N)
        value = value_dense(objective, M)
        assert form.value(svec(M)) == pytest.approx(value, rel=1e-11, abs=1e-11)
        assert short.value(svec(M)) == pytest.approx(value, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", ["congruence-many", "gram", "gram-forms", "sum-dense"])
def test_dense_rows_compress_to_the_triangle(name):
    short = compress(quadratic_form(OBJECTIVES[name]))
    assert short.B.shape == (triangle_size(N), triangle_size(N))
    assert row_bound(OBJECTIVES[name]) == triangle_size(N)


def test_few_or_sparse_rows_are_unchanged():
    for name in ("congruence-few", "entries-many", "gram-multiples"):
        form = quadratic_form(OBJECTIVES[name])
        assert compress(form) is form
    assert row_bound(OBJECTIVES["congruence-few"]) == FEW


def test_rows_are_sparse_where_the_map_picks_entries():
    assert sp.issparse(map_rows(Entries(edges(FEW), N)))
    assert sp.issparse(map_rows(PairDistances(edges(FEW), N)))
    assert isinstance(map_rows(Congruence(PairDistances(edges(FEW, 8), 8), DATA)), np.ndarray)


def test_svec_keeps_inner_products_and_comes_back():
    M, K = symmetric(_rng, 5), symmetric(_rng, 5)
    assert svec(M) @ svec(K) == pytest.approx(np.sum(M * K))
    np.testing.assert_allclose(smat(svec(M), 5), M, rtol=1e-15)
    np.testing.assert_array_equal(
        svec(np.arange(9.0).reshape(3, 3)) / [1, np.sqrt(2), 1, np.sqrt(2), np.sqrt(2), 1],
        [0, 1, 4, 2, 5, 8],
    )


def test_no_form_of_other_objectives():
    logistic = Composite(PairDistances(edges(FEW), N), Logistic(1.0))
    for objective in (logistic, Sum([OBJECTIVES["gram"], logistic])):
        assert quadratic_form(objective) is None
        assert row_bound(objective) is None
