"""Recommendations from what rows did: optimum, lists, folding in, bad input."""

from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest

import gramian as gm
from gramian.completion import ImplicitCompletion, NuclearCompletion
from gramian.completion._items import RIDGE_PER_COUNT

RNG = np.random.default_rng(0)
M, N = 60, 40
TASTE = np.kron(np.eye(2), np.ones((M // 2, N // 2)))
DONE = RNG.random((M, N)) < 0.03 + 0.35 * TASTE
ROWS, COLS = np.nonzero(DONE)
COUNTS = RNG.integers(1, 5, ROWS.size).astype(float)


@pytest.fixture(scope="module")
def model():
    return ImplicitCompletion(lam=4.0, tol=1e-8).fit((ROWS, COLS, COUNTS))


def test_fit_equals_the_explicit_sum_over_all_entries(model):
    weights = np.ones((M, N))
    weights[ROWS, COLS] += model.alpha * COUNTS
    rows, cols = np.indices((M, N)).reshape(2, -1)
    scales = [
        np.sqrt(np.maximum(counts, 1) / counts.mean()) for counts in (DONE.sum(1), DONE.sum(0))
    ]
    problem = gm.problems.nuclear_completion(
        rows, cols, DONE.astype(float).ravel(), (M, N), 4.0,
        row_scale=scales[0], col_scale=scales[1], weights=weights.ravel(),
    )  # fmt: skip
    L = gm.minimize(problem, tol=1e-9).factor
    expected = (L[:M] @ L[M:].T) / np.sqrt(np.outer(*scales))
    np.testing.assert_allclose(model.row_factors_ @ model.col_factors_.T, expected, atol=1e-3)
    assert model.certificate_.relative_gap <= 1e-8 and model.certificate_.proved


def test_recommends_items_of_the_users_group(model):
    items, scores = model.recommend(np.arange(M), 5)
    own = (items < N // 2) == (np.arange(M) < M // 2)[:, None]
    assert own.mean() > 0.8 and np.all(np.diff(scores, axis=1) <= 0)
    left = np.argwhere(~DONE & (RNG.random((M, N)) < 0.2))
    told = model.evaluate((*left.T, np.ones(len(left))), k=5)
    assert set(told) == {"precision", "recall", "ndcg", "coverage", "rows"}
    assert 0 < told["ndcg"] <= 1


def test_lambda_is_selected_by_held_out_lists():
    chosen = ImplicitCompletion(random_state=0, tol=1e-3).fit((ROWS, COLS, COUNTS))
    assert chosen.lam_ == chosen.path_.value and np.all(chosen.path_.errors <= 1)
    assert chosen.path_.measure.startswith("1 − nDCG") and 0 < chosen.path_.held_out <= ROWS.size


def test_transform_of_training_rows_equals_their_factors(model):
    again = model.transform((ROWS, COLS, COUNTS))
    np.testing.assert_allclose(again, model.row_factors_, atol=1e-4)
    whole = model.complete((ROWS, COLS, COUNTS))
    np.testing.assert_allclose(whole, model.row_factors_ @ model.col_factors_.T, atol=1e-3)


@pytest.mark.slow
def test_fit_stops_when_held_out_lists_no_longer_improve(tmp_path):
    rng = np.random.default_rng(1)
    m, n = 700, 300
    taste = rng.integers(0, 4, m)[:, None] == rng.integers(0, 4, n)
    rows, cols = np.nonzero(rng.random((m, n)) < 0.03 + 0.3 * taste)
    fitted = ImplicitCompletion(random_state=0).fit((rows, cols, np.ones(rows.size)))
    assert fitted.result_.status is gm.Status.SETTLED
    best = gm.minimize(
        fitted._problem(fitted._ratings((rows, cols, np.ones(rows.size))), fitted.lam_), tol=1e-3
    )
    assert fitted.certificate_.lower_bound <= best.value
    assert fitted.result_.value >= best.certificate.lower_bound
    items = fitted.recommend(np.arange(m), 5)[0]
    assert np.mean(taste[np.arange(m)[:, None], items]) > 0.9
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(
        gm.load(tmp_path / "model").recommend(3)[0], fitted.recommend(3)[0]
    )


# --- item–item weights --------------------------------------------------------------------


@pytest.fixture(scope="module")
def blended():
    return ImplicitCompletion(lam=4.0, tol=1e-6, item_share=0.5).fit((ROWS, COLS, COUNTS))


def test_item_weights_are_the_regression_of_each_column_on_the_others(blended):
    X = DONE.astype(float)
    ridge = RIDGE_PER_COUNT * DONE.sum(axis=0).mean()
    weights = blended.item_weights_.weights[np.argsort(blended.item_weights_.columns)]
    weights = weights[:, np.argsort(blended.item_weights_.columns)]
    for j in (0, 7, N - 1):
        others = np.delete(np.arange(N), j)
        A = X[:, others]
        expected = np.linalg.solve(A.T @ A + ridge * np.eye(N - 1), A.T @ X[:, j])
        np.testing.assert_allclose(weights[others, j], expected, atol=1e-5)
    assert np.all(weights.diagonal() == 0)


def test_predictions_blend_factors_and_item_weights(blended, tmp_path):
    low_rank = blended.row_factors_ @ blended.col_factors_.T
    B = np.zeros((N, N))
    B[np.ix_(*[blended.item_weights_.columns] * 2)] = blended.item_weights_.weights
    expected = 0.5 * low_rank + 0.5 * DONE @ B
    every = np.indices((M, N)).reshape(2, -1)
    np.testing.assert_allclose(blended.predict(tuple(every)), expected.ravel(), atol=1e-6)
    again = blended.complete((ROWS, COLS, COUNTS))
    np.testing.assert_allclose(again, expected, atol=1e-3)
    unseen = np.where(DONE, -np.inf, expected)
    items, scores = blended.recommend(np.arange(M), 4)
    np.testing.assert_allclose(scores, -np.sort(-unseen, axis=1)[:, :4], atol=1e-6)
    lists = blended.recommend_new((ROWS, COLS, COUNTS), 4)[1]
    assert np.mean(lists == items) > 0.95
    blended.save(tmp_path / "model")
    np.testing.assert_array_equal(gm.load(tmp_path / "model").recommend(3)[1],
                                  blended.recommend(3)[1])  # fmt: skip


def test_update_keeps_the_weights_of_the_old_columns(blended):
    model = deepcopy(blended)
    before = model.predict(([5, 5], [3, 20]))
    model.update(([M], [-1], [1.0]))  # a new row and a new column, which is the first
    assert model.col_ids_[0] == -1
    np.testing.assert_allclose(model.predict(([5, 5], [3, 20])), before, atol=1e-6)


def test_item_share_is_selected_by_held_out_lists(monkeypatch):
    """Pairs of columns that occur together, which no matrix of low rank represents."""
    monkeypatch.setattr("gramian.completion._base.LEAST_SWEPT", 1000)
    rng = np.random.default_rng(0)
    first = rng.random((400, 200)) < 0.02
    done = np.hstack([first, first & (rng.random(first.shape) < 0.8)])
    rows, cols = np.nonzero(done)
    held = (cols >= 200) & (rng.random(rows.size) < 0.2)
    train, test = ((rows[k], cols[k], np.ones(k.sum())) for k in (~held, held))
    model = ImplicitCompletion(random_state=0).fit(train)
    assert model.item_share_ == model.item_path_.value > 0
    plain = ImplicitCompletion(random_state=0, item_share=0.0).fit(train)
    assert plain.item_weights_ is None and not hasattr(plain, "item_path_")
    assert model.evaluate(test)["ndcg"] > plain.evaluate(test)["ndcg"] + 0.05


@pytest.mark.parametrize(
    ("parameters", "values", "message"),
    [
        ({"item_share": 1.5}, COUNTS, "item_share must be"),
        ({}, np.zeros(ROWS.size), "above 0 .*got 0"),
        ({"alpha": 0.0}, COUNTS, "alpha must be"),
        ({"tol": "loose"}, COUNTS, "tol must be"),
    ],
)
def test_rejects_invalid_entries_and_parameters(parameters, values, message):
    with pytest.raises(ValueError, match=message):
        ImplicitCompletion(lam=1.0, **parameters).fit((ROWS, COLS, values))


# --- what comes after the fit -----------------------------------------------------------

TRUE = RNG.normal(size=(M, 2)) @ RNG.normal(size=(2, N)) + RNG.normal(size=N)
KNOWN = RNG.random((M, N)) < 0.5
ALL = *np.nonzero(KNOWN), TRUE[KNOWN]


def part(kept):
    return tuple(column[kept] for column in ALL)


@pytest.mark.parametrize("tuples", [False, True])
def test_new_rows_and_columns_are_predicted_nearly_as_by_a_fit(tuples):
    i, j, _ = ALL
    old = (i < 50) & (j < 34)
    given = ALL
    if tuples:  # names that cannot be ordered
        names = np.empty(M, dtype=object)
        names[:] = [("user", k) if k % 2 else k for k in range(M)]
        given = names[i], j, ALL[2]
    some = [tuple(column[kept] for column in given) for kept in (old, ~old)]
    model = NuclearCompletion(lam=1.0, tol=1e-6, bounds="auto").fit(some[0])
    assert model.update(some[1]) is model
    assert len(model.row_ids_) == M and len(model.col_ids_) == N
    whole = NuclearCompletion(lam=1.0, tol=1e-6).fit(given)
    unseen = np.argwhere(~KNOWN)
    asked = (names[unseen[:, 0]] if tuples else unseen[:, 0], unseen[:, 1])
    errors = [np.sqrt(np.mean((m.predict(asked) - TRUE[~KNOWN]) ** 2)) for m in (model, whole)]
    assert errors[0] < 1.25 * errors[1] < 0.5 * TRUE.std()
    assert model._known.nnz == KNOWN.sum() and model.bounds_ == pytest.approx(whole.bounds_)
    np.testing.assert_allclose(model._known.toarray().sum(), whole._known.toarray().sum())


def test_update_keeps_other_factors():
    model = NuclearCompletion(lam=1.0, tol=1e-6).fit(ALL)
    before = model.row_factors_.copy(), model.col_factors_.copy()
    model.update(([3], [5], [9.0]))
    others = np.delete(np.arange(M), 3), np.delete(np.arange(N), 5)
    np.testing.assert_array_equal(model.row_factors_[others[0]], before[0][others[0]])
    np.testing.assert_array_equal(model.col_factors_[others[1]], before[1][others[1]])
    assert model._known[3, 5] == 9.0 and np.any(model.row_factors_[3] != before[0][3])
    items = model.recommend(3, N)[0]
    assert 5 not in items


def test_update_replaces_repeated_entries():
    model = NuclearCompletion(lam=0.1, tol=1e-6, bounds=None).fit(ALL)
    count, (i, j) = model._known.nnz, (ALL[0][0], ALL[1][0])
    before = model.predict([[i, j]])[0]
    model.update(([i], [j], [ALL[2][0] + 3.0]))
    assert model._known.nnz == count and model._known[i, j] == ALL[2][0] + 3.0
    assert model.predict([[i, j]])[0] > before + 0.3


def test_update_equals_a_fit_with_the_other_factors_fixed(model):
    updated = ImplicitCompletion(lam=4.0, tol=1e-8).fit((ROWS, COLS, COUNTS))
    new = np.flatnonzero(~DONE[0])[:3]
    updated.update((np.zeros(3, dtype=int), new, np.ones(3)))
    rows, cols = np.append(ROWS, np.zeros(3, dtype=int)), np.append(COLS, new)
    whole = ImplicitCompletion(lam=4.0, tol=1e-8).fit((rows, cols, np.append(COUNTS, np.ones(3))))
    one, two = (m.row_factors_ @ m.col_factors_.T for m in (updated, whole))
    np.testing.assert_allclose(one[0], two[0], atol=0.1)
    before = model.row_factors_[0] @ model.col_factors_.T
    assert np.linalg.norm(one[0] - two[0]) < 0.5 * np.linalg.norm(before - two[0])


def test_reads_logs_of_actions():
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((20, 12)) < 0.3)
    expected = ImplicitCompletion(lam=1.0).fit((user, item, np.ones(user.size)))
    frame = pd.DataFrame({"user": user, "item": item})
    pairs = np.column_stack([user, item])
    for log in ((user, item), pairs, frame, pl.from_pandas(frame)):
        model = ImplicitCompletion(lam=1.0).fit(log)
        np.testing.assert_array_equal(model.predict(pairs), expected.predict(pairs))
        assert model.evaluate(log, k=3) == expected.evaluate((user, item, np.ones(user.size)), k=3)
    named = ImplicitCompletion(lam=1.0).fit(frame.assign(user="u" + frame["user"].astype(str)))
    assert named.columns_ == ("user", "item")
    new = pd.DataFrame({"item": [0, 5], "when": [1, 2], "user": ["new", "new"]})
    assert named.update(new).row_ids_.tolist()[0] == "new"
    with pytest.raises(ValueError, match="repetitions in all: pass duplicates="):
        ImplicitCompletion(lam=1.0).fit(np.vstack([pairs, pairs[:3]]))
    counted = ImplicitCompletion(lam=1.0, duplicates="sum").fit(np.vstack([pairs, pairs[:3]]))
    assert counted._known.max() == 2
