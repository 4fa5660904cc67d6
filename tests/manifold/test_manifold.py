"""MVU, ColoredMVU and RegMVU: embeddings and input validation."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_swiss_roll
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian as gm
from gramian.common import clock
from gramian.manifold import MVU, ColoredMVU, NeighborLayout, RegMVU
from tests.conic import _Model

ROLL, ALONG = make_swiss_roll(500, random_state=0)


@parametrize_with_checks(
    [
        MVU(tol=1e-2, lam=1.0),
        ColoredMVU(tol=1e-2, lam=1.0),
        RegMVU(tol=1e-2),
        NeighborLayout(rounds=1, tol=0.1, solver="lbfgs"),
    ]
)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([MVU(tol=1e-2), ColoredMVU(tol=1e-2)])
def test_variant(estimator, check):
    check(estimator)


def correlation(u, v):
    return abs(np.corrcoef(u, v)[0, 1])


def sheet(n=120, seed=0):
    """A flat sheet bent into a half pipe: unfolded, its parameters are the coordinates."""
    rng = np.random.default_rng(seed)
    along, across = rng.uniform(0, np.pi, n), rng.uniform(0, 1, n)
    return np.column_stack([np.cos(along), np.sin(along), across]), along, across


@pytest.mark.parametrize("learner", [MVU, RegMVU])
def test_a_bent_sheet_is_unfolded(learner):
    X, along, across = sheet()
    fitted = learner(n_neighbors=8).fit(X)
    assert fitted.certificate_.relative_gap <= fitted.tol
    assert correlation(fitted.embedding_[:, 0], along) > 0.97
    assert fitted.explained_variance_ratio_[0] > 0.8
    assert np.all(np.diff(fitted.explained_variance_ratio_) <= 1e-12)
    if learner is MVU:
        assert correlation(fitted.embedding_[:, 1], across) > 0.9


def test_roll_is_unfolded_with_small_edge_error():
    fitted = MVU(n_neighbors=6, tol=1e-2).fit(ROLL)
    assert correlation(fitted.embedding_[:, 0], ALONG) > 0.97
    i, j = fitted.graph_.edges.T
    found = np.sum((fitted.kernel_factor_[i] - fitted.kernel_factor_[j]) ** 2, axis=1)
    D = fitted.graph_.sq_distances
    assert np.sum(np.abs(found - D)) < 0.05 * D.sum()
    assert fitted.edge_error_ == pytest.approx(np.max(np.abs(found - D) / D))


def equality_variance(edges, D, n):
    """max tr M over M ⪰ 0 with M1 = 0 and the edges' lengths kept, by Clarabel."""
    clarabel = pytest.importorskip("clarabel")
    model = _Model(n)
    i, j = edges.T
    rows = model.of_M(lambda M: M[i, i] + M[j, j] - 2 * M[i, j])
    model.nonnegative(rows, -D)
    model.nonnegative(-rows, D)
    total = model.of_M(lambda M: np.sum(M)[None])
    model.nonnegative(-total, 0.0)
    model.add_linear(-model.of_M(lambda M: np.trace(M)[None])[0])
    return -model.minimum(clarabel)


@pytest.mark.parametrize("n", [12, 20])
def test_constrained_unfolding_agrees_with_clarabel(n):
    X, _, _ = sheet(n)
    fitted = MVU(n_neighbors=4, max_edge_error=1e-3, tol=1e-5).fit(X)
    assert fitted.result_.status is gm.Status.CONVERGED
    assert fitted.edge_error_ <= 1e-3
    expected = equality_variance(fitted.graph_.edges, fitted.graph_.sq_distances, n)
    assert np.sum(fitted.kernel_factor_**2) == pytest.approx(expected, rel=5e-3)


def test_time_limit_and_warning_of_edge_error(ticking):
    X, _, _ = sheet(70)
    ticking(0.01)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        fitted = MVU(n_neighbors=4, max_edge_error=1e-9, tol=1e-9, time_limit=1.0).fit(X)
    assert clock.now() < 2.5  # each solve had a limit of its own before
    assert fitted.certificate_.violation > 0.5e-9
    assert fitted.edge_error_ > 1e-9


def test_components_share_time_limit():
    X, _, _ = sheet(12)
    apart = np.vstack([X, X + 100.0])
    model = MVU(n_neighbors=4, max_edge_error=1e-2, connect="components", time_limit=60.0)
    fitted = model.fit(apart)
    first, second = fitted.parts_
    assert second.time_limit < first.time_limit <= fitted.time_limit == 60.0
    worst = max(part.certificate_.violation for part in fitted.parts_)
    assert fitted.certificate_.violation == worst > 0


@pytest.mark.slow
def test_invariant_to_scale_translation_and_order():
    X, _, _ = sheet(80)
    plain = MVU(n_neighbors=6, tol=1e-5).fit(X)
    moved = MVU(n_neighbors=6, tol=1e-5).fit(1e3 * X + 7.0)
    assert moved.lam_ == pytest.approx(plain.lam_)
    order = np.random.default_rng(1).permutation(80)
    turned = MVU(n_neighbors=6, tol=1e-5).fit(X[order])

    def kernel(fitted):
        return fitted.kernel_factor_ @ fitted.kernel_factor_.T

    size = np.abs(kernel(plain)).max()
    np.testing.assert_allclose(kernel(moved) / 1e6, kernel(plain), atol=2e-2 * size)
    np.testing.assert_allclose(
        kernel(turned), kernel(plain)[np.ix_(order, order)], atol=2e-2 * size
    )


@pytest.mark.slow
def test_colored_mvu_follows_labels():
    X, along, across = sheet()
    colored = ColoredMVU(n_neighbors=8).fit(X, across)
    plain = MVU(n_neighbors=8).fit(X)
    assert correlation(colored.embedding_[:, 0], across) > correlation(
        plain.embedding_[:, 0], across
    )
    halves = ColoredMVU(n_neighbors=8).fit(X, along > np.pi / 2)
    assert correlation(halves.embedding_[:, 0], along) > 0.9
    both = ColoredMVU(n_neighbors=8).fit(X, np.column_stack([along, across]))
    assert both.certificate_.relative_gap <= both.tol


@pytest.mark.parametrize("learner", [MVU, RegMVU])
def test_transform_places_points_near_neighbours(learner):
    X, along, _ = sheet(150)
    fitted = learner(n_neighbors=8).fit(X[:130])
    placed = fitted.transform(X[130:])
    assert placed.shape == (20, 2)
    slope, start = np.polyfit(along[:130], fitted.embedding_[:, 0], 1)
    assert np.abs(placed[:, 0] - start - slope * along[130:]).max() < 0.3
    scale = np.abs(fitted.embedding_).max()
    np.testing.assert_allclose(fitted.transform(X[:130]), fitted.embedding_, atol=0.05 * scale)


def test_frames_and_sparse_samples_give_the_same_unfolding():
    X, _, _ = sheet(70)
    plain = MVU(tol=1e-4).fit(X)
    sparse = MVU(tol=1e-4).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.result_.value, plain.result_.value, rtol=1e-3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = MVU(tol=1e-2).set_output(transform="pandas").fit(frame)
    assert list(named.transform(frame).columns) == ["mvu0", "mvu1"]


def test_connect():
    X, _, _ = sheet(60)
    apart = np.vstack([X, X + 100.0])
    joined = MVU(tol=1e-2).fit(apart)
    assert joined.graph_.n_parts == 1
    with pytest.raises(ValueError, match="falls into 2 components of 60, 60 points"):
        MVU(connect="error").fit(apart)


def test_warns_of_limits_and_keeps_parameters():
    X, _, _ = sheet(100)
    model = MVU(tol=1e-9, max_iter=1)
    before = model.get_params()
    with pytest.warns(ConvergenceWarning, match="MVU did not converge"):
        model.fit(X)
    assert model.get_params() == before == clone(model).get_params()


def test_a_rank_limit_is_kept():
    X, _, _ = sheet(90)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = MVU(rank=2, max_iter=50).fit(X)
    assert fitted.kernel_factor_.shape[1] <= 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": -1.0}, "lam must be"),
        ({"lam": "large"}, 'lam must be a finite number above 0, or "auto"'),
        ({"max_edge_error": 0}, "max_edge_error must be"),
        ({"n_components": 0}, "n_components must be"),
        ({"n_components": 90}, "unfold to at most"),
        ({"n_neighbors": 0}, "n_neighbors must be"),
        ({"connect": "tape"}, "connect must be"),
        ({"solver": "newton"}, "unknown solver"),
    ],
)
def test_rejects_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        MVU(**options).fit(sheet(90)[0])


def test_rejects_bad_input():
    X, _, _ = sheet(30)
    with pytest.raises(ValueError, match="n_basis must be"):
        RegMVU(n_basis=0).fit(X)
    with pytest.raises(ValueError, match="lam must be"):
        RegMVU(lam="large").fit(X)
    with pytest.raises(ValueError, match="identical"):
        MVU().fit(np.ones((10, 2)))
    with pytest.raises(ValueError, match="the same for all samples"):
        ColoredMVU().fit(X, np.ones(30, dtype=int))
    with pytest.raises(ValueError, match="y is None"):
        ColoredMVU().fit(X)


def test_the_estimators_are_found_from_the_top():
    assert gm.manifold.MVU is MVU


def two_sheets():
    X, along, _ = sheet(80)
    return np.vstack([X, X[:50] + np.array([0, 0, 40.0])]), np.append(along, along[:50])


@pytest.mark.parametrize("learner", [MVU, RegMVU])
def test_components_are_unfolded_separately(learner):
    X, along = two_sheets()
    with pytest.raises(ValueError, match=r'2 components of 80, 50 .*"components"'):
        learner(connect="error").fit(X)
    fitted = learner(connect="components").fit(X)
    first = learner().fit(X[:80])
    assert len(fitted.parts_) == 2 and fitted.graph_.n_parts == 2
    np.testing.assert_allclose(fitted.embedding_[:80], first.embedding_)
    gaps = [part.certificate_.gap for part in fitted.parts_]
    assert fitted.certificate_.gap == pytest.approx(sum(gaps))
    assert fitted.certificate_.relative_gap <= fitted.tol
    assert correlation(fitted.embedding_[80:, 0], along[80:]) > 0.95
    worst = max(part.edge_error_ for part in fitted.parts_)
    assert fitted.edge_error_ == pytest.approx(worst, rel=1e-12)
    np.testing.assert_allclose(fitted.transform(X), fitted.embedding_, atol=1e-12)


def test_parts_of_two_points_and_sides_that_do_not_vary():
    pairs = np.array([[0.0, 0], [1, 0], [50, 0], [50, 2], [90, 0], [90, 3]])
    fitted = MVU(n_neighbors=1, connect="components").fit(pairs)
    np.testing.assert_allclose(np.ptp(fitted.embedding_[2:4, 0]), 2.0, rtol=0.1)
    assert np.all(fitted.embedding_[:, 1] == 0)
    X, _ = two_sheets()
    with pytest.raises(ValueError, match="constant on a component"):
        ColoredMVU(connect="components").fit(X, np.repeat(["a", "b"], [80, 50]))


@pytest.mark.parametrize("components", [1, 2, 3])
def test_the_picture_shows_points_graph_and_spectrum(components, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, along, _ = sheet(60)
    fitted = RegMVU(n_components=components).fit(X)
    for color in (None, along, along > 1, np.array(["a", "b"])[(along > 1).astype(int)]):
        figure = fitted.plot(color)
        places, spectrum = figure.axes[:2]
        kinds = [type(drawn).__name__ for drawn in places.collections]
        assert any(kind.startswith("Line") for kind in kinds)
        drawn = [c for c in places.collections if not type(c).__name__.startswith("Line")]
        assert sum(len(c.get_offsets()) for c in drawn) == 60
        heights = [bar.get_height() for bar in spectrum.patches]
        np.testing.assert_allclose(heights, fitted.explained_variance_ratio_[:20])
        matplotlib.pyplot.close(figure)
    assert len(fitted.plot(graph=False).axes[0].collections) == 1
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.plot(along[:5])
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"gramian\[plot\]"):
        fitted.plot()


@pytest.mark.slow
def test_many_points_start_from_few_eigenvectors(monkeypatch):
    X, along, _ = sheet(200)
    plain = MVU(n_neighbors=6, tol=1e-4, random_state=0).fit(X)
    monkeypatch.setattr("gramian.manifold.mvu.MANY", 100)
    lifted = MVU(n_neighbors=6, tol=1e-4, random_state=0).fit(X)
    assert lifted.lam_ == pytest.approx(plain.lam_)
    assert lifted.certificate_.value == pytest.approx(plain.certificate_.value, rel=2e-4)
    assert correlation(lifted.embedding_[:, 0], along) > 0.97


@pytest.mark.slow
def test_automatic_number_of_components():
    X, _, _ = sheet(150)
    fitted = MVU(n_neighbors=8, n_components="auto").fit(X)
    kept = fitted.embedding_.shape[1]
    share = np.cumsum(fitted.explained_variance_ratio_)
    assert share[kept - 1] >= 0.95 and (kept == 1 or share[kept - 2] < 0.95)
    assert list(fitted.get_feature_names_out())[-1] == f"mvu{kept - 1}"
    assert fitted.transform(X[:5]).shape == (5, kept)
    apart = np.vstack([X, X[:60] + 100.0])
    parts = MVU(n_neighbors=8, n_components="auto", connect="components").fit(apart)
    assert parts.transform(apart[:4]).shape == (4, parts.embedding_.shape[1])
    with pytest.raises(ValueError, match="number of at least 1, or \"auto\", got 'some'"):
        MVU(n_components="some").fit(X)


def test_transform_error_and_inverse_transform():
    X, _, _ = sheet(150)
    fitted = MVU(n_neighbors=8).fit(X[:130])
    places, error = fitted.transform(X[130:], return_error=True)
    np.testing.assert_array_equal(places, fitted.transform(X[130:]))
    assert error.shape == (20,) and np.all(error >= 0) and np.median(error) < 0.5
    known, none = fitted.transform(X[:10], return_error=True)
    np.testing.assert_allclose(known, fitted.embedding_[:10], atol=1e-9)
    np.testing.assert_array_equal(none, 0.0)
    _, far = fitted.transform(X[130:] + 50.0, return_error=True)
    assert far.min() > 0.5
    np.testing.assert_allclose(fitted.inverse_transform(fitted.embedding_[:10]), X[:10], atol=1e-6)
    back = fitted.inverse_transform(places)
    assert np.median(np.linalg.norm(back - X[130:], axis=1)) < 0.3
    with pytest.raises(ValueError, match="2 coordinates here, got 3"):
        fitted.inverse_transform(np.zeros((4, 3)))
