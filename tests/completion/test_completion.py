"""Completing matrices: optima, certificates, ids, predictions, folding in, and bad input."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian as gm
from gramian import problems
from gramian.checks import check_gradient
from gramian.completion import MMMF, NuclearCompletion
from gramian.completion._fold_in import ridge_rows
from tests.conic import Term, conic_minimum
from tests.slow import slow, slow_among

RNG = np.random.default_rng(0)
M, N, RANK = 40, 30, 3
TRUE = RNG.normal(size=(M, RANK)) @ RNG.normal(size=(RANK, N))
KNOWN = RNG.random(TRUE.shape) < 0.5
GAPPED = np.where(KNOWN, TRUE, np.nan)
ROWS, COLS = np.nonzero(KNOWN)
VALUES = TRUE[KNOWN]


class Folding(NuclearCompletion):
    """The transformer: `predict` takes pairs of a row and a column, which no check has."""

    @property
    def predict(self):
        raise AttributeError("pairs, not samples")


SAMPLES = "a row given twice is two rows, with factors and offsets of their own"
NOT_OURS = {
    "check_sample_weight_equivalence_on_dense_data": SAMPLES,
    "check_sample_weight_equivalence_on_sparse_data": SAMPLES,
    "check_sample_weights_pandas_series": "a frame of two columns may be pairs, and is refused",
}


@parametrize_with_checks([Folding(lam=1.0)], expected_failed_checks=lambda _: NOT_OURS)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [Folding(lam=1.0, biases=False)], expected_failed_checks=lambda _: NOT_OURS
)
def test_variant(estimator, check):
    check(estimator)


def soft_thresholded(R, lam):
    U, s, Vt = np.linalg.svd(R, full_matrices=False)
    return U * np.maximum(s - lam, 0) @ Vt


@pytest.mark.parametrize("solver", ["auto", "staircase", "lbfgs", "bilgo", "lro"])
def test_a_full_matrix_is_soft_thresholded(solver):
    rank = {"rank": 12} if solver in ("lbfgs", "lro") else {}
    model = NuclearCompletion(lam=5.0, biases=False, weight_power=0.0, solver=solver, bounds=None,
                              tol=1e-8, random_state=0, **rank).fit(TRUE)  # fmt: skip
    found = model.row_factors_ @ model.col_factors_.T
    np.testing.assert_allclose(found, soft_thresholded(TRUE, 5.0), atol=1e-3)


def test_weights_are_those_of_the_weighted_trace_norm():
    a, b = RNG.uniform(0.5, 2, M), RNG.uniform(0.5, 2, N)
    rows, cols = np.indices((M, N)).reshape(2, -1)
    problem = problems.nuclear_completion(
        rows, cols, TRUE.ravel(), (M, N), 3.0, row_scale=a, col_scale=b
    )
    check_gradient(problem.objective)
    result = gm.minimize(problem, tol=1e-8)
    U = (result.factor[:M] @ result.factor[M:].T) / np.sqrt(np.outer(a, b))
    scaled = np.sqrt(np.outer(a, b)) * U
    nuclear = np.linalg.svd(scaled, compute_uv=False).sum()
    value = 0.5 * np.sum((U - TRUE) ** 2) + 3.0 * nuclear
    assert result.value == pytest.approx(value, rel=1e-6)


def test_offsets_are_fitted_with_the_matrix():
    i, j, R = ROWS, COLS, VALUES + 3.0
    problem = problems.nuclear_completion(i, j, R, (M, N), 2.0, ridge=0.7)
    check_gradient(problem.objective)
    result = gm.minimize(problem, tol=1e-8)
    L = result.factor
    b, c = problem.objective.loss.offsets(problem.objective.map.bilinear(L, L))
    left = R - np.sum(L[:M][i] * L[M:][j], axis=1) - b[i] - c[j]
    np.testing.assert_allclose(np.bincount(i, left, minlength=M), 0.7 * b, atol=1e-6)
    np.testing.assert_allclose(np.bincount(j, left, minlength=N), 0.7 * c, atol=1e-6)
    value = 0.5 * left @ left + 0.35 * (b @ b + c @ c) + np.sum(L * L)
    assert result.value == pytest.approx(value, rel=1e-8)
    moved = L + 0.05 * RNG.standard_normal(L.shape)
    assert gm.certify(problem, moved).lower_bound <= result.value
    assert result.certificate.relative_gap <= 1e-8


@pytest.fixture(scope="module")
def default_fit():
    return NuclearCompletion(random_state=0).fit(GAPPED)


def test_missing_entries_are_predicted_with_the_defaults(default_fit):
    model = default_fit
    assert model.certificate_.relative_gap <= 1e-4
    error = model.predict(np.argwhere(~KNOWN)) - TRUE[~KNOWN]
    assert np.sqrt(np.mean(error**2)) < 0.4 * TRUE.std()
    assert model.path_.value == model.lam_ and model.path_.values.size == model.path_.errors.size
    assert np.all(np.diff(model.path_.values) < 0)


FORMS = {
    "array": GAPPED,
    "csr": sp.csr_array((VALUES, (ROWS, COLS)), shape=(M, N)),
    "coo": sp.coo_array((VALUES, (ROWS, COLS)), shape=(M, N)),
    "triples": (ROWS, COLS, VALUES),
    "frame": pd.DataFrame({"who": ROWS, "what": COLS, "stars": VALUES}),
    "wide frame": pd.DataFrame(GAPPED),
    "masked": np.ma.masked_array(np.where(KNOWN, TRUE, 7.0), mask=~KNOWN),
    "frame with times": pd.DataFrame(
        {"time": 9.0 * ROWS, "userId": ROWS, "movie_id": COLS, "Rating": VALUES, "x": COLS}
    ),
}


@pytest.fixture(scope="module")
def exact_fit():
    return NuclearCompletion(lam=2.0, tol=1e-8).fit(GAPPED)


@pytest.mark.parametrize("name", slow_among(FORMS, "coo", "wide frame", "frame with times"))
def test_all_input_formats_give_the_same_fit(name, exact_fit):
    form = FORMS[name]
    model = NuclearCompletion(lam=2.0, tol=1e-8).fit(form)
    expected = exact_fit
    np.testing.assert_allclose(
        model.row_factors_ @ model.col_factors_.T,
        expected.row_factors_ @ expected.col_factors_.T,
        atol=1e-4,
    )
    folded = model.transform(form)
    np.testing.assert_allclose(folded, model.row_factors_, atol=1e-3)


def test_the_order_of_ratings_does_not_matter():
    order = RNG.permutation(ROWS.size)
    one = NuclearCompletion(lam=2.0, tol=1e-8).fit((ROWS, COLS, VALUES))
    two = NuclearCompletion(lam=2.0, tol=1e-8).fit((ROWS[order], COLS[order], VALUES[order]))
    np.testing.assert_allclose(one.predict((ROWS, COLS)), two.predict((ROWS, COLS)), atol=1e-6)


def test_accepts_any_ids_and_predicts_unknown_ids_by_offsets():
    names = np.array([f"user{k}" for k in range(M)])
    films = [("film", k) if k % 2 else k for k in range(N)]  # of two kinds, in no order
    cols = np.empty(COLS.size, dtype=object)
    cols[:] = [films[j] for j in COLS]
    model = NuclearCompletion(lam=2.0, tol=1e-8).fit((names[ROWS], cols, VALUES + 4.0))
    plain = NuclearCompletion(lam=2.0, tol=1e-8).fit((ROWS, COLS, VALUES + 4.0))
    asked = np.empty(2, dtype=object)
    asked[:] = [("film", 3), ("film", 99)]
    values, known = model.predict((["user5", "user5"], asked), return_known=True)
    assert known.tolist() == [True, False]
    assert values[0] == pytest.approx(plain.predict([[5, 3]])[0], abs=1e-4)
    assert values[1] == pytest.approx(plain.mean_ + plain.row_biases_[5], abs=1e-4)
    nobody, known = plain.predict([[500, 3], [-1, 3]], return_known=True)
    assert not known.any()
    np.testing.assert_allclose(nobody, plain.mean_ + plain.col_biases_[3])
    with pytest.warns(UserWarning, match="no row or column .* 500 and -3: the prediction"):
        assert plain.predict([[500, -3]])[0] == plain.mean_
    frame = pd.DataFrame({"who": [5, 7], "what": [3, 4]})
    np.testing.assert_allclose(plain.predict(frame), plain.predict([[5, 3], [7, 4]]))


@pytest.mark.parametrize("learner", [NuclearCompletion, slow(MMMF)])
def test_frames_are_read_by_the_names_of_the_fit(learner, tmp_path):
    model = learner(lam=2.0)
    frame = pd.DataFrame({"who": ROWS, "what": COLS, "stars": VALUES.round()})
    model.fit(frame)
    expected = model.predict((ROWS, COLS))
    shuffled = frame.assign(when=np.arange(ROWS.size))[["when", "what", "stars", "who"]]
    model.save(tmp_path / "model")
    for fitted in (model, gm.load(tmp_path / "model")):
        assert fitted.columns_ == ("who", "what", "stars")
        np.testing.assert_array_equal(fitted.predict(shuffled), expected)
        np.testing.assert_array_equal(fitted.predict(frame[["what", "who"]]), expected)
        with pytest.raises(ValueError, match="no column 'who', by which"):
            fitted.predict(frame.rename(columns={"who": "whom"}))
        twice = pd.concat([frame, frame[["who"]]], axis=1)
        with pytest.raises(ValueError, match="two columns named 'who'"):
            fitted.predict(twice)
    model.fit((ROWS, COLS, VALUES.round()))
    assert model.columns_ is None
    np.testing.assert_array_equal(model.predict(frame.iloc[:, :2]), model.predict((ROWS, COLS)))


def test_rows_are_folded_in_by_the_names_of_the_fit():
    frame = pd.DataFrame({"who": ROWS, "what": COLS, "stars": VALUES})
    model = NuclearCompletion(lam=2.0).fit(frame)
    shuffled = frame.assign(when=np.arange(ROWS.size))[["when", "stars", "what", "who"]]
    np.testing.assert_array_equal(model.transform(shuffled), model.transform(frame))
    np.testing.assert_array_equal(model.complete(shuffled), model.complete(frame))
    with pytest.raises(ValueError, match="no column 'who' or 'what'"):
        model.transform(pd.DataFrame({"a": ROWS, "b": COLS, "stars": VALUES}))


def test_frame_of_ratings_with_more_columns_is_not_a_matrix():
    frame = pd.DataFrame({"userId": ROWS, "movieId": COLS, "rating": VALUES, "timestamp": ROWS})
    model = NuclearCompletion(lam=2.0).fit(frame)
    assert model.columns_ == ("userId", "movieId", "rating")
    expected = NuclearCompletion(lam=2.0).fit((ROWS, COLS, VALUES))
    np.testing.assert_array_equal(model.predict(frame), expected.predict((ROWS, COLS)))


def test_recommends_the_largest_unseen_predictions():
    model = NuclearCompletion(lam=2.0, bounds=None).fit((ROWS, COLS, VALUES))
    items, values = model.recommend(4, 5)
    seen = COLS[ROWS == 4]
    assert not np.isin(items, seen).any() and np.all(np.diff(values) <= 0)
    others = np.setdiff1d(np.arange(N), np.append(seen, items))
    pairs = np.column_stack([np.full(others.size, 4), others])
    assert model.predict(pairs).max() <= values[-1]
    items, _ = model.recommend(4, 100, exclude_seen=False)
    assert sorted(items) == list(range(N))
    like, cosines = model.similar_items(2, 4)
    assert 2 not in like and np.all(np.diff(cosines) <= 0) and cosines[0] <= 1 + 1e-12
    with pytest.raises(ValueError, match="fold it in with transform"):
        model.recommend(1000)
    with pytest.raises(ValueError, match="column 1000 is not in the fit"):
        model.similar_items(1000)


def test_transform_solves_a_ridge_problem_for_each_new_row():
    model = NuclearCompletion(lam=2.0, tol=1e-9).fit(GAPPED[:35])
    new = model.transform(GAPPED[35:])
    assert new.shape == (5, model.col_factors_.shape[1])
    Q = np.column_stack([model.col_factors_, np.ones(N)])
    j = np.flatnonzero(KNOWN[35])
    target = GAPPED[35, j] - model.mean_ - model.col_biases_[j]
    counts = KNOWN[:35].sum(axis=1)
    ridge = np.full(Q.shape[1], 2.0 * np.sqrt(j.size / counts.mean()))
    ridge[-1] = model.bias_ridge_
    expected = np.linalg.solve(Q[j].T @ Q[j] + np.diag(ridge), Q[j].T @ target)
    np.testing.assert_allclose(new[0], expected[:-1], atol=1e-8)
    unseen = model.transform((["a", "a", "b"], [0, 999, 3], [1.0, 2.0, 0.5]))
    assert unseen.shape[0] == 2


def test_ridge_rows_without_entries_are_zero():
    Q = RNG.normal(size=(6, 3))
    R = sp.csr_array(([1.0, -2.0], ([1, 1], [0, 4])), shape=(3, 6))
    P = ridge_rows(R, Q, np.ones((3, 3)))
    assert np.all(P[[0, 2]] == 0)
    of = [0, 4]
    expected = np.linalg.solve(Q[of].T @ Q[of] + np.eye(3), Q[of].T @ np.array([1.0, -2.0]))
    np.testing.assert_allclose(P[1], expected)


@pytest.mark.slow
def test_predictions_stay_within_bounds():
    stars = np.clip(np.round(VALUES) + 3, 1, 5)
    pairs = np.argwhere(np.ones((M, N), dtype=bool))
    found = {}
    for bounds in ("auto", (2, 4), None):
        model = NuclearCompletion(lam=0.5, bounds=bounds, tol=1e-2).fit((ROWS, COLS, stars))
        values = model.predict(pairs)
        found[bounds] = (values.min(), values.max())
    assert found["auto"] == (1.0, 5.0) and found[2, 4] == (2.0, 4.0)
    assert found[None][1] > 5.0


def test_rows_of_a_matrix_are_completed():
    model = NuclearCompletion(lam=2.0, tol=1e-9).fit(GAPPED)
    whole = model.complete(GAPPED)
    assert whole.shape == (M, N)
    np.testing.assert_allclose(whole[KNOWN], model.predict(np.argwhere(KNOWN)), atol=1e-4)
    with pytest.raises(ValueError, match="features"):
        model.complete(GAPPED[:, :7])


def test_duplicates_raise_or_are_merged():
    twice = ([0, 1, 0, 1], [0, 0, 0, 1], [1.0, 2.0, 4.0, 3.0])
    with pytest.raises(ValueError, match=r"row 0 and column 0 have 2 ratings, .*duplicates="):
        NuclearCompletion(lam=1e-6, bounds=None).fit(twice)
    for policy, value in (("mean", 2.5), ("last", 4.0)):
        model = NuclearCompletion(lam=0.01, biases=False, duplicates=policy).fit(twice)
        assert model.predict([[0, 0]])[0] == pytest.approx(value, abs=0.05)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([], [], []), "there are no ratings"),
        (([0], [0]), "three arrays"),
        (([0, 1], [0], [1.0]), "must be as many"),
        (([0], [0], [np.nan]), "rating 0 is nan"),
        (([0, 1], [0, 1], [1.0, np.inf]), "rating 1 is inf"),
        (([0], [0], ["good"]), "must be numbers"),
        (([0, 1], [0, 1], [1.0, 1e200]), "entries of the ratings are too large"),
        (1e200 * TRUE, "entries of the ratings are too large"),
        (([None, 1], [0, 1], [1.0, 2.0]), "rating 0 has no row id"),
        (([0.0, 1.0], [np.nan, 1.0], [1.0, 2.0]), "rating 0 has no column id"),
        (np.full((3, 3), np.nan), "every entry of the matrix is missing"),
        (np.array([[1.0, np.inf], [2.0, 3.0]]), "infinity"),
        (([[0]], [[0]], [[1.0]]), "one-dimensional"),
    ],
)
def test_rejects_invalid_ratings_with_a_reason(given, message):
    with pytest.raises(ValueError, match=message):
        NuclearCompletion(lam=1.0).fit(given)


TIMED = pd.DataFrame({"who": ROWS, "what": COLS, "liking": VALUES, "when": 1.5 * ROWS})


@pytest.mark.parametrize("learner", [NuclearCompletion, MMMF])
@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (TIMED, r"4 columns \(who, what, liking, when\).*select three.*to_numpy"),
        (TIMED.assign(when=np.where(ROWS > 3, np.nan, 1.0)), "select three"),
        (TIMED.rename(columns={"who": "user", "liking": "rating"}), "select three"),
        (TIMED[["who", "what"]], "select three"),
        (TIMED.assign(user=1, item=2, **{str(k): np.nan for k in range(9)}), "select three"),
        (TIMED[["liking", "who", "what"]].rename(columns={"liking": "rating"}), "in the order"),
    ],
)
def test_rejects_ambiguous_narrow_frames(learner, frame, message):
    with pytest.raises(ValueError, match=message):
        learner(lam=1.0).fit(frame)


def test_narrow_frames_with_gaps_are_matrices():
    narrow = pd.DataFrame(GAPPED[:, :5])
    assert NuclearCompletion(lam=1.0).fit(narrow).col_factors_.shape[0] == 5
    assert NuclearCompletion(lam=1.0).fit(pd.DataFrame(TRUE)).col_factors_.shape[0] == N


def test_masked_integers_are_missing_and_masked_triples_are_rejected():
    stars = np.clip(np.round(TRUE) + 3, 1, 5).astype(int)
    masked = NuclearCompletion(lam=1.0).fit(np.ma.masked_array(stars, mask=~KNOWN))
    plain = NuclearCompletion(lam=1.0).fit(np.where(KNOWN, stars, np.nan))
    np.testing.assert_array_equal(masked.col_factors_, plain.col_factors_)
    with pytest.raises(ValueError, match="values has 1 masked"):
        NuclearCompletion(lam=1.0).fit(([0, 1], [0, 1], np.ma.masked_array([1.0, 2], [0, 1])))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_rejects_missing_ids(missing):
    ids = np.array(["a", missing], dtype=object)
    with pytest.raises(ValueError, match="rating 1 has no row id"):
        NuclearCompletion(lam=1.0).fit((ids, [0, 1], [1.0, 2.0]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lam": 0.0}, "lam must be"),
        ({"lam": "big"}, "lam must be"),
        ({"bias_ridge": -1.0}, "bias_ridge must be"),
        ({"weight_power": 2.0}, "weight_power must be"),
        ({"bounds": (3, 1)}, "bounds must be"),
        ({"bounds": "wide"}, "bounds must be"),
        ({"duplicates": "first"}, "duplicates must be"),
        ({"rank": 0}, "rank must be a whole number of at least 1, or None"),
        ({"rank": 2.5}, "rank must be"),
        ({"rank": "3"}, "rank must be"),
    ],
)
def test_rejects_invalid_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        NuclearCompletion(**{"lam": 1.0, **parameters}).fit(GAPPED)


def test_accepts_one_rating_and_empty_rows():
    one = NuclearCompletion().fit((["me"], ["it"], [4.0]))
    assert one.predict((["me"], ["it"]))[0] == pytest.approx(4.0)
    holes = sp.csr_array(([5.0, 1.0], ([0, 3], [0, 2])), shape=(5, 4))
    model = NuclearCompletion(lam=0.1).fit(holes)
    assert np.all(np.isfinite(model.predict([[1, 1], [4, 3]])))
    with pytest.raises(ValueError, match=r"shape \(k, 2\)"):
        model.predict([[1, 2, 3]])
    with pytest.raises(ValueError, match="as many rows as columns"):
        model.predict(([0, 1], [0]))


def test_reads_the_path_of_an_older_model_file(default_fit, tmp_path):
    file, model = tmp_path / "old", default_fit
    model.save(file)
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    content = json.loads(parts["content.json"])
    new = dict(content["content"]["dict"])["estimator"]["state"]["path_"]
    old = {"lams": new["state"]["values"], "rmse": new["state"]["errors"]}
    new.update({"class": "gramian.completion.Path", "state": old})
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in (parts | {"content.json": json.dumps(content)}).items():
            archive.writestr(name, part)
    path = gm.load(file).path_
    np.testing.assert_array_equal(path.errors, model.path_.errors)
    assert path.value == model.lam_


@pytest.mark.slow
def test_a_path_can_be_drawn(default_fit):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = default_fit.path_.plot()
    assert figure.axes[0].get_xlabel() == "λ"
    matplotlib.pyplot.close(figure)


# --- margins ---------------------------------------------------------------------------


def signs_of(m, n, seed=0):
    rng = np.random.default_rng(seed)
    Y = np.sign(rng.normal(size=(m, 2)) @ rng.normal(size=(2, n)))
    rows, cols = np.nonzero(rng.random((m, n)) < 0.6)
    return rows, cols, Y[rows, cols], Y


@pytest.mark.slow
def test_both_forms_of_mmmf_have_one_optimum():
    """γ tr M + Σ ξ and the max–min of Theorem 8, whose optimum is its reciprocal."""
    rows, cols, y, _ = signs_of(8, 7)
    gamma = 0.5
    primal = gm.minimize(problems.mmmf(rows, cols, y, (8, 7), 2 * gamma, mu=0.1), tol=1e-7)
    hinges = Term("smoothed-hinge", lambda K: y * K[rows, 8 + cols], 1.0, mu=0.1)
    expected = conic_minimum(15, [hinges], gamma * np.eye(15))
    assert primal.value == pytest.approx(expected, rel=1e-5)
    primal = gm.minimize(problems.mmmf(rows, cols, y, (8, 7), 2 * gamma, mu=1e-3), tol=1e-5)
    eig = problems.mmmf_eig(rows, cols, y, (8, 7), gamma, 1e-5)
    check_gradient(problems.mmmf_eig(rows, cols, y, (8, 7), gamma, 0.05).objective)
    best = gm.minimize(eig, tol=1e-6)
    assert -1.0 / best.value == pytest.approx(primal.value, rel=2e-3)
    wolfe = gm.minimize(problems.mmmf_eig(rows, cols, y, (8, 7), gamma, 1e-3), "frank-wolfe",
                        tol=1e-2, max_iter=5000)  # fmt: skip
    assert -1.0 / wolfe.value == pytest.approx(primal.value, rel=5e-2)


def test_signs_are_predicted_with_a_margin():
    rows, cols, y, Y = signs_of(30, 25)
    model = MMMF(biases=False, random_state=0).fit((rows, cols, y))
    assert model.certificate_.relative_gap <= 1e-3
    unseen = np.argwhere(~np.isin(np.arange(750), rows * 25 + cols).reshape(30, 25))
    assert np.mean(model.predict(unseen) == Y[tuple(unseen.T)]) > 0.85
    assert set(model.predict(unseen)) == {-1.0, 1.0}
    scores = model.decision_function(unseen)
    np.testing.assert_array_equal(np.sign(scores), model.predict(unseen))
    sharp = MMMF(biases=False, lam=model.lam_, mu=0.1).fit((rows, cols, y))
    assert 0 <= sharp.hinge_gap_ < model.hinge_gap_


@pytest.mark.slow
def test_levels_are_predicted_by_thresholds():
    levels = np.digitize(TRUE, [-2, -0.7, 0.7, 2]) + 1.0
    model = MMMF(random_state=0).fit((ROWS, COLS, levels[KNOWN]))
    assert model.classes_.tolist() == [1, 2, 3, 4, 5]
    error = np.abs(model.predict(np.argwhere(~KNOWN)) - levels[~KNOWN])
    constant = np.abs(np.median(levels[KNOWN]) - levels[~KNOWN])
    assert error.mean() < 0.7 * constant.mean()
    with pytest.raises(ValueError, match="NuclearCompletion predicts numbers"):
        MMMF().fit((ROWS, COLS, VALUES))
    with pytest.raises(ValueError, match="mu must be"):
        MMMF(mu=0.0).fit((ROWS, COLS, levels[KNOWN]))


@pytest.mark.parametrize("offset, noise", [(2.0, 0.3), (0.1, 1.0)])
def test_offsets_shrink_by_their_share_of_the_variance(offset, noise):
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 80, 900), rng.integers(0, 60, 900)
    pairs = np.unique(np.column_stack([rows, cols]), axis=0)
    values = offset * rng.normal(size=80)[pairs[:, 0]] + noise * rng.normal(size=len(pairs))
    held = np.arange(len(pairs)) % 5 == 0

    def fitted(scale=1.0, shift=0.0, **parameters):
        model = NuclearCompletion(lam=50.0, **parameters)  # offsets only
        return model.fit((*pairs[~held].T, scale * values[~held] + shift))

    def error(model):
        return np.sqrt(np.mean((model.predict(pairs[held]) - values[held]) ** 2))

    found, few, many = fitted(), fitted(bias_ridge=1.0), fitted(bias_ridge=5.0)
    assert found.bias_ridge_ == fitted(scale=1e3, shift=-1e6).bias_ridge_
    assert error(found) <= 1.01 * min(error(few), error(many))
    assert error(found) < 0.85 * max(error(few), error(many)) or offset < noise
    assert found.bias_ridge_ == (1.0 if offset > noise else 5.0)
