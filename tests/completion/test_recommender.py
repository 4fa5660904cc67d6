"""What a fitted completion answers: lists for many rows, neighbours, and how good they are."""

import numpy as np
import pandas as pd
import pytest

from gramian.completion import MMMF, NuclearCompletion, leave_last_out, temporal_split

RNG = np.random.default_rng(0)
M, N = 40, 30
TRUE = RNG.normal(size=(M, 3)) @ RNG.normal(size=(3, N))
ROWS, COLS = np.nonzero(RNG.random(TRUE.shape) < 0.5)
VALUES = TRUE[ROWS, COLS]


@pytest.fixture(scope="module")
def model():
    return NuclearCompletion(lam=2.0, bounds=None).fit((ROWS, COLS, VALUES))


def test_recommend_for_many_rows_equals_single_calls(model, monkeypatch):
    monkeypatch.setattr("gramian.completion._recommender.BLOCK_NUMBERS", 70)  # two rows at a time
    asked = np.array([4, 0, 17, 4])
    items, values = model.recommend(asked, 5)
    assert items.shape == values.shape == (4, 5)
    for line, row in enumerate(asked):
        alone = model.recommend(row, 5)
        np.testing.assert_array_equal(items[line], alone[0])
        np.testing.assert_allclose(values[line], alone[1])
    again = model.recommend(pd.Series(asked), 5)[0]
    np.testing.assert_array_equal(again, items)


def test_a_row_with_few_columns_left_has_nan_for_the_rest(model):
    seen = int(np.sum(ROWS == 4))
    items, values = model.recommend([4, 5], 100)
    assert items.shape == (2, N)
    assert int(np.isnan(values[0]).sum()) == seen
    assert not np.isnan(values[0, : N - seen]).any()
    assert not np.isnan(model.recommend([4], N, exclude_seen=False)[1]).any()
    with pytest.raises(ValueError, match="row 99 is not in the fit"):
        model.recommend([4, 99])


def test_rows_with_similar_factors_are_similar():
    twins = np.vstack([TRUE, TRUE[3] + 1e-3])
    i, j = np.nonzero(RNG.random(twins.shape) < 0.9)
    fitted = NuclearCompletion(lam=0.5, biases=False).fit((i, j, twins[i, j]))
    like, cosines = fitted.similar_users(3, 4)
    assert like[0] == M and cosines[0] > 0.95 and np.all(np.diff(cosines) <= 0)
    with pytest.raises(ValueError, match="row 999 is not in the fit"):
        fitted.similar_users(999)


@pytest.mark.parametrize("several", [[0, 1], range(2)])
def test_rejects_several_ids_for_one(model, several):
    for method in (model.similar_items, model.similar_users):
        with pytest.raises(ValueError, match="one id is needed"):
            method(several)
    with pytest.raises(ValueError, match="one id is needed"):
        model.recommend(range(2))


def test_ids_that_are_tuples_are_one_row():
    names = np.empty(ROWS.size, dtype=object)
    names[:] = [("user", int(i)) for i in ROWS]
    fitted = NuclearCompletion(lam=2.0).fit((names, COLS, VALUES))
    plain = NuclearCompletion(lam=2.0).fit((ROWS, COLS, VALUES))
    best = fitted.recommend(("user", 4), 3)[0]
    np.testing.assert_array_equal(best, plain.recommend(4, 3)[0])
    like = [("user", int(i)) for i in plain.similar_users(4, 3)[0]]
    assert list(fitted.similar_users(("user", 4), 3)[0]) == like


def test_evaluate_equals_explicit_loops(model):
    held = np.setdiff1d(np.arange(M * N), ROWS * N + COLS)
    held = RNG.choice(held, 200, replace=False)
    i, j = np.divmod(held, N)
    told = model.evaluate((i, j, TRUE[i, j]), k=4, relevant=0.5)
    errors = model.predict((i, j)) - TRUE[i, j]
    assert told["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert told["mae"] == pytest.approx(np.mean(np.abs(errors)))
    precision, recall, ndcg, covered = [], [], [], set()
    for row in np.unique(i):
        good = set(j[(i == row) & (TRUE[i, j] >= 0.5)])
        if not good:
            continue
        items = model.recommend(row, 4)[0]
        hits = [item in good for item in items]
        precision.append(sum(hits) / 4)
        recall.append(sum(hits) / len(good))
        most = sum(1 / np.log2(h + 2) for h in range(min(4, len(good))))
        ndcg.append(sum(hit / np.log2(h + 2) for h, hit in enumerate(hits)) / most)
        covered |= set(items.tolist())
    assert told["rows"] == len(precision)
    assert told["precision"] == pytest.approx(np.mean(precision))
    assert told["recall"] == pytest.approx(np.mean(recall))
    assert told["ndcg"] == pytest.approx(np.mean(ndcg))
    assert told["coverage"] == pytest.approx(len(covered) / N)


def test_evaluate_accepts_unknown_rows_and_columns(model):
    told = model.evaluate(([4, 4, 999], [0, 888, 1], [9.0, 9.0, 9.0]), k=40)
    assert told["rows"] == 1 and told["recall"] <= 0.5
    nobody = model.evaluate(([999], [0], [1.0]))
    assert nobody["rows"] == 0 and np.isnan(nobody["ndcg"])


def test_levels_are_evaluated_as_levels():
    levels = np.digitize(TRUE, [-1, 1]) + 1.0
    fitted = MMMF(lam=2.0).fit((ROWS, COLS, levels[ROWS, COLS]))
    i, j = np.nonzero(~np.isin(np.arange(M * N), ROWS * N + COLS).reshape(M, N))
    told = fitted.evaluate((i, j, levels[i, j]))
    errors = fitted.predict((i, j)) - levels[i, j]
    assert told["mae"] == pytest.approx(np.mean(np.abs(errors)))


def test_the_last_ratings_of_each_row_are_held_out():
    rows = np.array(["a", "b", "a", "a", "c", "b"])
    times = np.array([3, 1, 9, 5, 2, 7])
    assert leave_last_out(rows, times).tolist() == [0, 0, 1, 0, 0, 1]
    assert leave_last_out(rows, times, n=2).tolist() == [0, 0, 1, 1, 0, 0]
    # of equal times those given later
    assert leave_last_out([1, 1, 1], [5, 5, 5]).tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="as many"):
        leave_last_out(rows, times[:3])


def test_the_newest_ratings_are_held_out():
    times = np.array([3.0, 1.0, 9.0, 5.0, 2.0, 7.0, 0.0, 4.0, 6.0, 8.0])
    assert np.flatnonzero(temporal_split(times, share=0.3)).tolist() == [2, 5, 9]
    assert temporal_split(np.ones(10)).tolist() == [False] * 9 + [True]
    for share in (0.0, 1.0):
        with pytest.raises(ValueError, match="share must be between"):
            temporal_split(times, share=share)
    with pytest.raises(ValueError, match="has no times"):
        temporal_split([1.0, np.nan])
