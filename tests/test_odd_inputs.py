"""Samples and labels in unusual forms: each is read like the plain array, or rejected first."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from gramian.kernel import InductiveKernel, KernelKMeans, RegPCP
from gramian.manifold import ColoredMVU, NeighborLayout, RegMVU
from gramian.metric import KTA, ClassCollapse, LinearSeparation, MetricClassifier, MetricRegressor
from gramian.spectral import LowRankKernel
from tests.slow import slow_among

Y = np.arange(18) % 3
X = np.random.default_rng(0).normal(size=(18, 4)).round(2) + 4 * np.eye(3, 4)[Y]
NAMES = np.array(["a", "b", "c"], dtype=object)[Y]
GAPS = np.where(np.arange(18) == 4, None, NAMES)

ESTIMATORS = {
    "KTA": KTA(lam=1e-3),
    "LinearSeparation": LinearSeparation(lam=1e-3),
    "ClassCollapse": ClassCollapse(ridge=0.1),
    "MetricClassifier": MetricClassifier(metric=KTA(lam=1e-3)),
    "MetricRegressor": MetricRegressor(),
    "RegPCP": RegPCP(shrinkage=0.0),
    "InductiveKernel": InductiveKernel(),
    "KernelKMeans": KernelKMeans(n_clusters=3),
    "RegMVU": RegMVU(),
    "ColoredMVU": ColoredMVU(tol=0.1),
    "NeighborLayout": NeighborLayout(rounds=1, tol=0.1, random_state=0),
    "LowRankKernel": LowRankKernel(n_components=3, kernel="linear"),
}
IGNORES_TARGETS = ("RegMVU",)
KNOWS_GAPS = ("RegPCP", "InductiveKernel", "NeighborLayout")
FROM_CLASSES = [name for name in ESTIMATORS if name not in ("KernelKMeans", "LowRankKernel")]
CLASS_LEARNERS = [
    name for name in FROM_CLASSES if name not in ("MetricRegressor", *IGNORES_TARGETS)
]
DENSE_ONLY = ("MetricRegressor",)
OF_ANY_SCALE = ("ClassCollapse", "InductiveKernel", "KernelKMeans", "RegPCP", "RegMVU")


def of(name):
    return clone(ESTIMATORS[name])


def found_by(name, samples, y=Y):
    """The Gram matrix of the features or samples that a fit finds, of trace 1."""
    fitted = of(name).fit(samples, y)
    own = vars(getattr(fitted, "metric_", fitted))
    if name == "KernelKMeans":
        rows = np.eye(3)[own["labels_"]]
    else:
        rows = own["components_"].T if "components_" in own else own["kernel_factor_"]
    return rows @ rows.T / np.sum(rows**2)


def twice(make):
    """A sparse matrix that stores each entry in two parts."""
    rows, cols = np.indices(X.shape).reshape(2, -1)
    ends = np.tile(rows, 2), np.tile(cols, 2)
    return make(sp.coo_array((np.tile(X.ravel(), 2) / 2, ends), shape=X.shape))


FRAME = pd.DataFrame(X, columns=list("abcd"))
FORMS = {
    "coo twice": twice(sp.coo_array),
    "csc twice": twice(sp.csc_array),
    "objects": FRAME.astype(object),
    "polars": pl.from_pandas(FRAME),
    "lists": X.tolist(),
    "words": X.astype(str),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", slow_among(list(ESTIMATORS), "ColoredMVU", "NeighborLayout"))
def test_form_of_samples_does_not_matter(name, form):
    if name in DENSE_ONLY and "twice" in form:
        with pytest.raises(TypeError, match="Sparse data was passed for X"):
            of(name).fit(FORMS[form], Y)
        return
    np.testing.assert_allclose(found_by(name, FORMS[form]), found_by(name, X), atol=1e-6)


ODD = {
    "inf": (np.where(X[3, 2] == X, np.inf, X), "contains infinity"),
    "overflow": (1e160 * X, "entries of X are too large .*rescale X"),
    "underflow": (1e-160 * X, "entries of X are too small .*rescale X"),
    "category": (FRAME.assign(d=pd.Categorical(NAMES)), "text or dates .* in 'd'"),
    "dates": (FRAME.assign(d=pd.date_range("2020", periods=18)), "text or dates .* in 'd'"),
    "complex": (X + 1j, "Complex data not supported"),
    "gaps": (FRAME.round().astype("Int64").mask(X > 4), "contains NaN"),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_rejects_odd_samples(name, odd):
    samples, message = ODD[odd]
    with pytest.raises(ValueError, match=message):
        of(name).fit(samples, Y)


@pytest.mark.parametrize("scale", [1e36, 1e-36])
@pytest.mark.parametrize("name", OF_ANY_SCALE)
def test_samples_in_float32_may_be_very_large_or_small(name, scale):
    samples = (scale * X).astype(np.float32)
    np.testing.assert_allclose(found_by(name, samples), found_by(name, X), atol=1e-3)


FORMS_OF_CLASSES = {
    "series": pd.Series(Y, index=np.arange(18)[::-1]),
    "categories": pd.Series(pd.Categorical(NAMES)),
    "polars": pl.Series(NAMES.tolist()),
    "bytes": Y.astype(np.uint8),
}


@pytest.mark.parametrize("form", FORMS_OF_CLASSES)
@pytest.mark.parametrize("name", [name for name in FROM_CLASSES if name != "MetricRegressor"])
def test_form_of_classes_does_not_matter(name, form):
    np.testing.assert_array_equal(found_by(name, X, FORMS_OF_CLASSES[form]), found_by(name, X))


ODD_TARGETS = {
    "short": (Y[:15], "18"),
    "two columns": (np.column_stack([Y, 1 - Y]), "should be a 1d array"),
    "inf": (np.where(Y == 0, np.inf, Y), "infinity"),
    "complex": (Y + 1j, "Complex data not supported"),
}


@pytest.mark.parametrize("odd", ODD_TARGETS)
@pytest.mark.parametrize("name", FROM_CLASSES)
def test_rejects_odd_targets(name, odd):
    targets, message = ODD_TARGETS[odd]
    if name in IGNORES_TARGETS or (name == "ColoredMVU" and odd == "two columns"):
        of(name).fit(X, targets)
        return
    with pytest.raises(ValueError, match=message):
        of(name).fit(X, targets)


@pytest.mark.parametrize("name", FROM_CLASSES)
@pytest.mark.parametrize("gaps", [GAPS, np.ma.masked_array(Y, GAPS == None)])  # noqa: E711
def test_gaps_in_targets_are_rejected_or_unknown(name, gaps):
    if name in IGNORES_TARGETS:
        of(name).fit(X, gaps)
    elif name in KNOWS_GAPS:
        unknown = np.where(np.arange(18) == 4, -1, Y)
        np.testing.assert_array_equal(found_by(name, X, gaps), found_by(name, X, unknown))
    else:
        with pytest.raises(ValueError, match=r"is no label|masked entries|must hold numbers"):
            of(name).fit(X, gaps)


@pytest.mark.parametrize("y", [NAMES, pd.date_range("2020", periods=18)], ids=["text", "dates"])
def test_regressor_rejects_targets_that_are_no_numbers(y):
    with pytest.raises(ValueError, match=r"y must hold numbers, got .*: MetricClassifier learns"):
        MetricRegressor().fit(X, y)


def test_colored_unfolding_takes_sparse_columns():
    dense = found_by("ColoredMVU", X, np.eye(3)[Y])
    np.testing.assert_array_equal(found_by("ColoredMVU", X, sp.csr_array(np.eye(3)[Y])), dense)


@pytest.mark.parametrize("word", ["unknown", "NaN", " ? "])
@pytest.mark.parametrize("name", slow_among(CLASS_LEARNERS, "ColoredMVU", "NeighborLayout"))
def test_warns_of_a_class_that_is_called_unknown(name, word):
    renamed = np.where(np.arange(18) < 6, word, NAMES)
    message = f"'{re.escape(word)}' in y is the name of a class like any other: if it marks"
    with pytest.warns(UserWarning, match=message):
        of(name).fit(X, renamed)
