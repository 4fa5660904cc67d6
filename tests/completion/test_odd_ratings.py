"""Ratings unlike those of films: other scales, shapes and counts."""

import time

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from gramian.completion import MMMF, ImplicitCompletion, NuclearCompletion
from tests.slow import slow


def low_rank(m, n, share, *, noise=0.0, size=1.0, seed=0):
    rng = np.random.default_rng(seed)
    true = size * rng.normal(size=(m, 3)) @ rng.normal(size=(3, n)) / np.sqrt(3)
    rows, cols = np.nonzero(rng.random((m, n)) < share)
    values = true[rows, cols] + noise * size * rng.normal(size=rows.size)
    return rows, cols, values, true


def beside_the_mean(model, values, true, seen):
    """The error of unseen entries, in units of that of the mean alone."""
    pairs = np.argwhere(~seen)
    errors = model.predict(pairs) - true[~seen]
    return np.sqrt(np.mean(errors**2)) / np.sqrt(np.mean((values.mean() - true[~seen]) ** 2))


def mask(rows, cols, shape):
    seen = np.zeros(shape, dtype=bool)
    seen[rows, cols] = True
    return seen


@pytest.mark.parametrize("size", [slow(1e-6), slow(4.0), 1e6])
def test_continuous_scales_give_equivalent_fits(size):
    rows, cols, values, true = low_rank(500, 150, 0.3, noise=0.3, size=size)
    model = NuclearCompletion(random_state=0).fit((rows, cols, values))
    assert model.result_.status is gm.Status.SETTLED
    assert beside_the_mean(model, values, true, mask(rows, cols, true.shape)) < 0.4
    one = NuclearCompletion(random_state=0).fit((rows, cols, values / size))
    assert model.lam_ == pytest.approx(size * one.lam_, rel=1e-6)
    np.testing.assert_allclose(
        model.predict((rows, cols)), size * one.predict((rows, cols)), atol=0.02 * size
    )


def test_a_scale_from_minus_ten_to_ten_is_kept():
    rows, cols, values, true = low_rank(300, 120, 0.6, noise=0.5, size=4.0)
    values = np.clip(values, -10, 10)
    model = NuclearCompletion(random_state=0).fit((rows, cols, values))
    assert model.bounds_ == (values.min(), values.max())
    assert np.all(np.abs(model.predict(np.argwhere(np.ones(true.shape)))) <= 10)


def test_fits_a_nearly_dense_matrix():
    rows, cols, values, true = low_rank(260, 160, 0.9, noise=0.2)
    model = NuclearCompletion(random_state=0).fit((rows, cols, values))
    assert beside_the_mean(model, values, true, mask(rows, cols, true.shape)) < 0.3


def test_a_tiny_matrix_is_solved_to_its_optimum():
    rows, cols, values, true = low_rank(20, 10, 0.6)
    model = NuclearCompletion(random_state=0).fit((rows, cols, values))
    assert model.result_.status is gm.Status.CONVERGED
    assert beside_the_mean(model, values, true, mask(rows, cols, true.shape)) < 1.0


@pytest.mark.parametrize("count", [slow(2_000), 30_000])
def test_one_rating_per_row_gives_column_offsets(count):
    rng = np.random.default_rng(0)
    good = rng.normal(size=100)
    cols = rng.integers(0, 100, count)
    values = 3 + good[cols] + 0.5 * rng.normal(size=count)
    model = NuclearCompletion(random_state=0).fit((np.arange(count), cols, values))
    found = model.predict((np.full(100, -1), np.arange(100)))
    assert np.corrcoef(found, good)[0, 1] > 0.95
    assert np.sqrt(np.mean((found - 3 - good) ** 2)) < 0.5


@pytest.mark.parametrize("value", [0.0, 4.0])
@pytest.mark.parametrize("shape", [(30, 20), (300, 200)])
def test_fits_equal_ratings(shape, value):
    rows, cols = np.nonzero(np.random.default_rng(0).random(shape) < 0.5)
    model = NuclearCompletion(random_state=0).fit((rows, cols, np.full(rows.size, value)))
    assert np.all(model.predict((rows, cols)) == value)
    assert model.result_.status is gm.Status.CONVERGED and model.certificate_.gap == 0


@pytest.mark.parametrize("shape", [(30, 20), (300, 200)])
def test_ratings_that_differ_by_rounding_are_all_the_same(shape):
    """There is nothing to choose λ by: no path, and the λ of the equal ratings."""
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random(shape) < 0.5)
    equal = NuclearCompletion().fit((rows, cols, np.full(rows.size, 4.0)))
    noise = 4.0 * (1 + 1e-15 * rng.normal(size=rows.size))
    model = NuclearCompletion().fit((rows, cols, noise))
    assert model.lam_ == equal.lam_ and not hasattr(model, "path_")
    np.testing.assert_allclose(model.predict((rows, cols)), 4.0, rtol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("learner", [slow(NuclearCompletion), ImplicitCompletion])
def test_many_more_rows_and_columns_than_ratings_of_each(learner):
    """As 10⁵ users, 10⁶ items and 10⁶ ratings, in small: no time for the optimum."""
    rng = np.random.default_rng(0)
    m, n, count = 3_000, 30_000, 30_000
    cols = rng.choice(n, count, p=(weights := np.arange(1, n + 1) ** -0.7) / weights.sum())
    keys = np.unique(rng.integers(0, m, count) * n + cols)
    rows, cols = np.divmod(keys, n)
    values = np.clip(
        np.round(3.5 + rng.normal(size=m)[rows] + 0.5 * rng.normal(size=keys.size)), 1, 5
    )
    started = time.process_time()
    model = learner(random_state=0).fit((rows, cols, values))
    assert time.process_time() - started < 30
    assert model.result_.status is gm.Status.SETTLED
    assert model.certificate_.gap is not None and model.col_factors_.shape[1] <= 16
    if learner is NuclearCompletion:
        error = np.sqrt(np.mean((model.predict((rows, cols)) - values) ** 2))
        assert error < 0.8 * values.std()


@pytest.mark.parametrize("kind", ["polars", "pivot", "index", "indexed series"])
def test_accepts_other_frames_and_pivot_tables(kind):
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((12, 9)) < 0.5)
    frame = pd.DataFrame(
        {
            "user": [f"u{i}" for i in rows],
            "item": [f"i{j}" for j in cols],
            "stars": rng.integers(1, 6, rows.size).astype(float),
        }
    )
    plain = NuclearCompletion(lam=1.0).fit(frame)
    if kind == "polars":
        other = pytest.importorskip("polars").DataFrame(frame.to_dict("list"))
    elif kind == "pivot":
        other = frame.pivot(index="user", columns="item", values="stars")
    else:
        other = frame.set_index(["user", "item"])
        other = other if kind == "index" else other["stars"]
    model = NuclearCompletion(lam=1.0).fit(other)
    for user in ("u0", "u7"):
        names, values = model.recommend(user, 3)
        expected = plain.recommend(user, 3)
        assert names.tolist() == expected[0].tolist()
        np.testing.assert_allclose(values, expected[1], atol=1e-3)


def test_rejects_a_list_of_triples_and_a_series_with_a_message():
    triples = [(i, j, float(i + j)) for i in range(4) for j in range(3)]
    with pytest.raises(ValueError, match="as three arrays"):
        NuclearCompletion().fit(triples)
    with pytest.raises(ValueError, match="2-dimensional"):
        NuclearCompletion().fit(pd.Series([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="pairs must have shape"):
        NuclearCompletion(lam=1.0).fit(tuple(zip(*triples, strict=True))).predict(pd.Series([1, 2]))


def test_rejects_ratings_whose_squares_vanish():
    with pytest.raises(ValueError, match="entries of the ratings are too small"):
        NuclearCompletion(lam=1.0).fit(([0, 1, 1], [0, 0, 1], [1e-200, 2e-200, 1e-200]))


@pytest.mark.parametrize("learner", [NuclearCompletion, MMMF])
def test_warns_of_triples_in_one_array(learner):
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((12, 8)) < 0.4)
    triples = np.column_stack([user, item, rng.integers(1, 4, user.size)])
    with pytest.warns(UserWarning, match=r"matrix of .* rows and 3 columns.* pass .*tuple\(X\.T\)"):
        learner(lam=10.0, tol=0.1).fit(triples)
    survey = rng.integers(1, 4, (60, 3)).astype(float)  # a matrix: lines occur repeatedly
    learner(lam=10.0, tol=0.1).fit(survey)
