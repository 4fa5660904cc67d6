"""What must not change an answer: names, the order of ratings, units, other rows asked with one.

The sizes are those at which λ is chosen: by rough solves of several splits below 20,000 ratings,
and by sweeps from there on.
"""

from functools import cache

import numpy as np
import pytest

from gramian.completion import MMMF, ImplicitCompletion, NuclearCompletion
from gramian.completion._base import LEAST_SWEPT, powers
from gramian.completion._canonical import canonical
from gramian.completion._reading import gather
from tests.slow import slow, slow_among, slow_except

LEARNERS = [NuclearCompletion, ImplicitCompletion, MMMF]
MMMF_SLOW = slow_among(LEARNERS, MMMF)
SHAPES = {"small": (70, 55), "swept": (420, 330)}
FEWER = 2, 3
"""Equal rows and equal columns at the end of the ratings."""


@cache
def stars(size, learner):
    """Ratings of one to five with users and items of very different counts, and equal ones."""
    rng = np.random.default_rng(0)
    m, n = SHAPES[size]
    taste, kind = rng.normal(size=(m, 3)), rng.normal(size=(n, 3))
    share = np.minimum(1, 0.25 / np.sqrt(np.linspace(0.05, 1, n)) * rng.uniform(0.3, 1.7, (m, 1)))
    seen = rng.random((m, n)) < share
    values = np.round(3.4 + 0.6 * taste @ kind.T / np.sqrt(3) + 0.7 * rng.normal(size=(m, n)))
    values = np.clip(values, 1, 5)
    for k in range(1, FEWER[0]):
        seen[-1 - k], values[-1 - k] = seen[-1], values[-1]
    for k in range(1, FEWER[1]):
        seen[:, -1 - k], values[:, -1 - k] = seen[:, -1], values[:, -1]
    if learner is ImplicitCompletion:
        values, seen = np.ones((m, n)), seen & (values >= 3)
    rows, cols = np.nonzero(seen)
    assert (rows.size >= LEAST_SWEPT) == (size == "swept")
    return rows, cols, values[rows, cols]


def renamed(how, size, count):
    """New names of rows and columns, and the order in which the ratings are given."""
    m, n = SHAPES[size]
    if how == "reversed":
        return np.arange(m)[::-1], np.arange(n)[::-1], np.arange(count)[::-1]
    rng = np.random.default_rng(5)
    return rng.permutation(m), rng.permutation(n), rng.permutation(count)


@cache
def plain(size, learner):
    return learner().fit(stars(size, learner))


def asked(size):
    m, n = SHAPES[size]
    return np.divmod(np.arange(m * n), n)


def scores(model, pairs):
    return model.decision_function(pairs) if isinstance(model, MMMF) else model.predict(pairs)


@pytest.mark.parametrize("how", [slow("reversed"), "permuted"])
@pytest.mark.parametrize("size", slow_except(SHAPES, "swept"))
@pytest.mark.parametrize("learner", MMMF_SLOW)
def test_invariant_to_ids_and_order_of_ratings(learner, size, how):
    rows, cols, values = stars(size, learner)
    row_names, col_names, order = renamed(how, size, rows.size)
    other = learner().fit((row_names[rows][order], col_names[cols][order], values[order]))
    known, (i, j) = plain(size, learner), asked(size)
    assert other.lam_ == known.lam_
    np.testing.assert_array_equal(other.path_.values, known.path_.values)
    before = scores(known, (i, j))
    after = scores(other, (row_names[i], col_names[j]))
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-6 * before.std())
    for k in (0, SHAPES[size][0] - 1):
        found = other.recommend(row_names[k], 5, exclude_seen=False)[1]
        expected = known.recommend(k, 5, exclude_seen=False)[1]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * before.std())
    assert other.result_.value == pytest.approx(known.result_.value, rel=1e-9)


@pytest.mark.parametrize("learner", MMMF_SLOW)
def test_ids_are_in_the_order_of_the_factors(learner):
    """Public arrays are in the order of the ids, whatever the order of the fit was."""
    rows, cols, _ = stars("small", learner)
    model = plain("small", learner)
    m, n = SHAPES["small"]
    np.testing.assert_array_equal(model.row_ids_, np.arange(m))
    np.testing.assert_array_equal(model.col_ids_, np.arange(n))
    i, j = asked("small")
    inner = np.sum(model.row_factors_[i] * model.col_factors_[j], axis=1)
    told = model.mean_ + model.row_biases_[i] + model.col_biases_[j] + inner
    if getattr(model, "bounds_", None) is not None:
        told = np.clip(told, *model.bounds_)
    np.testing.assert_allclose(scores(model, (i, j)), told, atol=1e-10)
    seen = set(zip(rows.tolist(), cols.tolist(), strict=True))
    for k in (0, 11):
        assert all((k, int(item)) not in seen for item in model.recommend(k, 20)[0])
    P, Q = np.split(model.result_.factor, [m])
    scaled = [powers(np.bincount(index), 0.5) ** -0.5 for index in (rows, cols)]
    products = (scaled[0][:, None] * P) @ (scaled[1][:, None] * Q).T
    np.testing.assert_allclose(products[i, j], inner, atol=1e-7 * np.abs(inner).max())


def test_features_are_permuted_with_their_rows():
    rows, cols, values = stars("small", NuclearCompletion)
    m, n = SHAPES["small"]
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(m, 3)), rng.normal(size=(n, 2))
    names, col_names, order = renamed("permuted", "small", rows.size)
    known = NuclearCompletion().fit((rows, cols, values), row_features=X, col_features=Y)
    other = NuclearCompletion().fit(
        (names[rows][order], col_names[cols][order], values[order]),
        row_features=(names, X),
        col_features=(col_names, Y),
    )
    i, j = asked("small")
    assert other.lam_ == pytest.approx(known.lam_, rel=1e-12)
    before = known.predict((i, j))
    np.testing.assert_allclose(
        other.predict((names[i], col_names[j])), before, atol=1e-6 * before.std()
    )
    np.testing.assert_allclose(
        other.complete_features(X[:3])[:, col_names], known.complete_features(X[:3]), atol=1e-6
    )


@pytest.mark.slow
def test_weights_are_permuted_with_their_ratings():
    rows, cols, values = stars("small", NuclearCompletion)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, rows.size)
    names, col_names, order = renamed("permuted", "small", rows.size)
    known = NuclearCompletion().fit((rows, cols, values), sample_weight=weights)
    other = NuclearCompletion().fit(
        (names[rows][order], col_names[cols][order], values[order]), sample_weight=weights[order]
    )
    assert other.lam_ == known.lam_
    i, j = asked("small")
    before = known.predict((i, j))
    np.testing.assert_allclose(
        other.predict((names[i], col_names[j])), before, atol=1e-6 * before.std()
    )


@pytest.mark.parametrize("size", slow_except(SHAPES, "swept"))
@pytest.mark.parametrize("power", [-10, 10])
def test_a_power_of_two_scales_lambda_and_predictions(size, power):
    rows, cols, values = stars(size, NuclearCompletion)
    known, scale = plain(size, NuclearCompletion), 2.0**power
    other = NuclearCompletion().fit((rows, cols, scale * values))
    assert other.lam_ == pytest.approx(scale * known.lam_, rel=1e-12)
    pairs = asked(size)
    before = known.predict(pairs)
    np.testing.assert_allclose(other.predict(pairs) / scale, before, atol=2e-2 * before.std())


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
def test_the_last_digits_of_the_values_do_not_change_the_split(learner):
    rows, cols, values = stars("small", learner)
    if learner is MMMF:
        pytest.skip("levels are told apart exactly")
    known, pairs = plain("small", learner), asked("small")
    before = known.predict(pairs)
    for seed in range(3):
        noise = np.random.default_rng(seed).normal(size=values.size)
        other = learner().fit((rows, cols, values * (1 + 1e-15 * noise)))
        assert other.lam_ == pytest.approx(known.lam_, rel=1e-9)
        np.testing.assert_allclose(other.predict(pairs), before, atol=2e-2 * before.std())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_lambda_is_within_two_steps_for_any_seed(seed):
    """Of 1,500 ratings a tenth is too few to choose λ by."""
    known = plain("small", NuclearCompletion)
    other = NuclearCompletion(random_state=seed).fit(stars("small", NuclearCompletion))
    assert 0.8**2.5 < other.lam_ / known.lam_ < 0.8**-2.5


@pytest.mark.parametrize("learner", MMMF_SLOW)
def test_transform_of_one_row_equals_that_in_a_batch(learner):
    model = plain("swept", learner)
    i, j = asked("swept")
    some = np.arange(0, i.size, 997)
    together = scores(model, (i[some], j[some]))
    alone = [scores(model, ([i[k]], [j[k]]))[0] for k in some]
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-12)
    names, values = model.recommend(np.arange(40), 6)
    for k in range(0, 40, 13):
        name, value = model.recommend(k, 6)
        np.testing.assert_allclose(value, values[k], rtol=1e-12, atol=1e-12)
        ranks = np.diff(value) < -1e-9
        if ranks.all():
            np.testing.assert_array_equal(name, names[k])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_canonical_order_of_many_ratings_is_that_of_few(weighted, monkeypatch):
    given = stars("small", NuclearCompletion)
    weights = np.random.default_rng(0).integers(1, 3, len(given[2])) * 0.5 if weighted else None
    few = canonical(gather(given, weights=weights))
    monkeypatch.setattr("gramian.arrays.entries.MANY", 1)
    many = canonical(gather(given, weights=weights))
    for side in (0, 1):
        np.testing.assert_array_equal(many.order[side], few.order[side])
        np.testing.assert_array_equal(many.equal[side], few.equal[side])
    assert (many.ratings.matrix != few.ratings.matrix).nnz == 0
    assert (many.known() != few.known()).nnz == 0


def test_the_canonical_order_is_a_permutation_and_finds_equal_rows():
    given = stars("small", NuclearCompletion)
    ratings = gather(given)
    ordered = canonical(ratings)
    m, n = ratings.shape
    np.testing.assert_array_equal(np.sort(ordered.order[0]), np.arange(m))
    np.testing.assert_array_equal(np.sort(ordered.order[1]), np.arange(n))
    assert (ordered.known() != ratings.matrix).nnz == 0
    for side, count in enumerate(FEWER):
        firsts, sizes = np.unique(ordered.equal[side], return_counts=True)
        assert sizes.max() == count
        twins = np.flatnonzero(ordered.equal[side] == firsts[np.argmax(sizes)])
        names = (ordered.order[0], ordered.order[1])[side][twins]
        assert set(names) == set((m, n)[side] - 1 - np.arange(count))
