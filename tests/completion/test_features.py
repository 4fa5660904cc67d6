"""Features of rows and columns: an independent optimum, cold rows, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.completion import NuclearCompletion
from gramian.objectives.halves import halves_of
from gramian.problems import nuclear_completion


def _planted(m=400, n=60, d=4, per=25, share=0.7, seed=0):
    """Ratings whose factors of rows are in part a map of features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    P = np.sqrt(share / d) * X @ rng.normal(size=(d, 3))
    P += np.sqrt(1 - share) * rng.normal(size=(m, 3))
    R = 3.0 + 0.8 * P @ rng.normal(size=(3, n)) / np.sqrt(3)
    rows = np.repeat(np.arange(m), per)
    cols = np.concatenate([rng.permutation(n)[:per] for _ in range(m)])
    return X, rows, cols, R[rows, cols] + 0.5 * rng.normal(size=rows.size)


def _rmse(model, rows, cols, values):
    return float(np.sqrt(np.mean((model.predict((rows, cols)) - values) ** 2)))


def _by_proximal_steps(rows, cols, R, shape, lam, ridge, X, Y, steps=4000):
    """min ½ Σ ((ZΘWᵀ)_e + b_i + c_j − R_e)² + λ‖Θ‖_* + κ/2 ‖b, c‖², Z = [I X], W = [I Y]."""
    m, n = shape
    Z, W = np.hstack([np.eye(m), X]), np.hstack([np.eye(n), Y])
    theta, b, c = np.zeros((Z.shape[1], W.shape[1])), np.zeros(m), np.zeros(n)
    step = 1.0 / (np.linalg.norm(Z, 2) ** 2 * np.linalg.norm(W, 2) ** 2 + m + n + ridge)
    last, t = (theta, b, c), 1.0
    for _ in range(steps):
        now, t_next = (theta, b, c), 0.5 * (1 + np.sqrt(1 + 4 * t * t))
        y, yb, yc = (a + (t - 1) / t_next * (a - z) for a, z in zip(now, last, strict=True))
        last, t = now, t_next
        left = np.zeros(shape)
        left[rows, cols] = (Z @ y @ W.T)[rows, cols] + yb[rows] + yc[cols] - R
        U, s, Vt = np.linalg.svd(y - step * Z.T @ left @ W, full_matrices=False)
        theta = (U * np.maximum(s - step * lam, 0)) @ Vt
        b = yb - step * (left.sum(axis=1) + ridge * yb)
        c = yc - step * (left.sum(axis=0) + ridge * yc)
    left = (Z @ theta @ W.T)[rows, cols] + b[rows] + c[cols] - R
    norm = np.linalg.svd(theta, compute_uv=False).sum()
    return 0.5 * left @ left + lam * norm + 0.5 * ridge * (b @ b + c @ c)


def test_the_optimum_is_that_of_an_operator_on_rows_and_features():
    rng = np.random.default_rng(3)
    m, n = 12, 9
    rows, cols = np.nonzero(rng.random((m, n)) < 0.6)
    R, X, Y = rng.normal(size=rows.size), rng.normal(size=(m, 2)), rng.normal(size=(n, 3))
    problem = nuclear_completion(
        rows, cols, R, (m, n), 0.8, ridge=2.0, row_features=X, col_features=Y
    )
    result = gm.minimize(problem, tol=1e-8, random_state=0)
    wanted = _by_proximal_steps(rows, cols, R, (m, n), 0.8, 2.0, X, Y)
    assert result.certificate.relative_gap <= 1e-8
    np.testing.assert_allclose(result.value, wanted, rtol=1e-6)


def test_sweeps_minimise_the_objective_with_features():
    X, rows, cols, values = _planted(m=80, n=30, per=12)
    Y = np.random.default_rng(1).normal(size=(30, 2))
    scales = (
        np.random.default_rng(2).uniform(0.5, 2, 80),
        np.random.default_rng(4).uniform(1, 2, 30),
    )
    problem = nuclear_completion(
        rows, cols, values - 3, (80, 30), 2.0, ridge=5.0, row_scale=scales[0],
        col_scale=scales[1], row_features=0.3 * X, col_features=0.3 * Y,
    )  # fmt: skip
    halves = halves_of(problem.objective, np.float32)
    state = np.random.default_rng(5).normal(size=(110, 9)).astype(np.float32)
    told = [halves.refit_upper(state, 3), halves.refit_lower(state, 3)]
    for _ in range(300):
        told += [halves.refit_upper(state, 3), halves.refit_lower(state, 3)]
    assert np.all(np.diff(told) <= 1e-5 * told[0])
    value = problem.value(halves.factor(state))
    np.testing.assert_allclose(value, told[-1], rtol=1e-5)
    best = gm.minimize(problem, tol=1e-6, random_state=0).value
    assert best * (1 - 1e-6) <= value <= best * 1.002


@pytest.mark.slow
def test_cold_rows_are_predicted_by_their_features():
    X, rows, cols, values = _planted()
    cold = rows >= 320
    seen = rows[~cold], cols[~cold], values[~cold]
    plain = NuclearCompletion(random_state=0, tol=1e-2).fit(seen)
    model = NuclearCompletion(random_state=0).fit(seen, row_features=X)
    others = rows[cold], cols[cold], values[cold]
    assert _rmse(model, *others) < 0.85 * _rmse(plain, *others)
    assert model.row_ids_.size == 400
    alone = model.complete_features(X[320:])
    np.testing.assert_allclose(
        alone[rows[cold] - 320, cols[cold]], model.predict(others[:2]), atol=2e-2
    )
    assert model.certificate_.gap is not None and model.result_.status.converged
    assert len(model.recommend(399, 5)[0]) == 5


@pytest.mark.slow
def test_cold_columns_are_predicted_by_their_features():
    X, rows, cols, values = _planted()
    cold = rows >= 320
    model = NuclearCompletion(random_state=0).fit(
        (cols[~cold], rows[~cold], values[~cold]), col_features=X
    )
    plain = NuclearCompletion(random_state=0, tol=1e-2).fit(
        (cols[~cold], rows[~cold], values[~cold])
    )
    others = cols[cold], rows[cold], values[cold]
    assert _rmse(model, *others) < 0.85 * _rmse(plain, *others)


def test_features_are_found_by_ids_of_any_order(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, rows, cols, values = _planted(m=100)
    names = np.array([f"u{k:03d}" for k in range(100)])
    turned = np.random.default_rng(0).permutation(100)
    frame = pandas.DataFrame(X[turned], index=names[turned])
    given = names[rows], cols, values
    model = NuclearCompletion(random_state=0).fit(given, row_features=frame)
    same = NuclearCompletion(random_state=0).fit(given, row_features=(names, X))
    np.testing.assert_allclose(model.row_factors_, same.row_factors_)
    model.save(tmp_path / "model.gramian")
    again = gm.load(tmp_path / "model.gramian")
    np.testing.assert_allclose(again.complete_features(X[:3]), model.complete_features(X[:3]))


def test_new_entries_of_a_row_with_features():
    X, rows, cols, values = _planted()
    late = (rows >= 320) & (np.random.default_rng(0).random(rows.size) < 0.6)
    first = rows < 320
    model = NuclearCompletion(random_state=0).fit(
        (rows[first], cols[first], values[first]), row_features=X
    )
    rest = (rows >= 320) & ~late
    before = _rmse(model, rows[rest], cols[rest], values[rest])
    model.update((rows[late], cols[late], values[late]))
    assert _rmse(model, rows[rest], cols[rest], values[rest]) < before


@pytest.mark.slow
def test_fit_without_features_deletes_earlier_features():
    X, rows, cols, values = _planted(m=60)
    model = NuclearCompletion(random_state=0).fit((rows, cols, values), row_features=X)
    model.fit((rows, cols, values))
    assert model.row_coefficients_ is None
    with pytest.raises(ValueError, match="pass them to fit"):
        model.complete_features(X)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.zeros(60), "table of rows and features"),
        (np.full((60, 2), np.nan), "gaps or infinite"),
        (([0, 0], np.zeros((2, 1))), "twice"),
        (([1], np.zeros((2, 1))), "has 2 rows, but 1 ids"),
        ((["a", "b"], np.zeros((2, 1))), "none of the ids"),
    ],
)
def test_rejects_invalid_features(features, message):
    _, rows, cols, values = _planted(m=60)
    with pytest.raises(ValueError, match=message):
        NuclearCompletion().fit((rows, cols, values), row_features=features)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_rejects_features_counted_from_0_for_ids_counted_from_1(kind):
    pd = pytest.importorskip("pandas")
    rows, cols = np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6)
    X = np.random.default_rng(0).normal(size=(6, 2))
    given = X if kind == "array" else pd.DataFrame(X)
    values = rows + cols % 3.0
    with pytest.raises(ValueError, match="count from 1"):
        NuclearCompletion().fit((rows + 1, cols, values), row_features=given)
    named = pd.DataFrame(X, index=np.arange(1, 7))
    NuclearCompletion(lam=1.0).fit((rows + 1, cols, values), row_features=named)
    NuclearCompletion(lam=1.0).fit((rows, cols, values), row_features=given)


def test_features_need_offsets_and_the_processor():
    X, rows, cols, values = _planted(m=60)
    with pytest.raises(ValueError, match="biases"):
        NuclearCompletion(biases=False).fit((rows, cols, values), row_features=X)
    with pytest.raises(ValueError, match="must have 4 columns"):
        model = NuclearCompletion(random_state=0).fit((rows, cols, values), row_features=X)
        model.complete_features(X[:, :2])
