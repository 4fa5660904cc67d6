"""Samples and labels in unusual forms: each is read like the plain array, or rejected first."""

import re
import traceback
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

from gramian import completion, kernel, manifold, metric, minimize, spectral
from gramian.completion import MMMF, ImplicitCompletion, NuclearCompletion
from gramian.constraints import local_pairs
from gramian.graph import neighbor_graph, normalized_laplacian, smoothest
from gramian.kernel import NPKL, PCP, AutoKernel, InductiveKernel, KernelKMeans, RegPCP
from gramian.manifold import MVU, ColoredMVU, NeighborLayout, RegMVU
from gramian.metric import (
    KTA,
    LMNN,
    AutoMetric,
    ClassCollapse,
    DMLEig,
    LinearSeparation,
    LMNNEig,
    MetricClassifier,
    MetricRegressor,
    TripletMetric,
)
from gramian.problems.kernel import pcp_to
from gramian.reductions.feature_scaling import feature_scaling
from gramian.result import Status
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


# --- every public estimator ------------------------------------------------------------

WHOLE = (8 * X).round()
"""Samples that all types of numbers below hold exactly."""

EVERY = {
    "KTA": KTA(),
    "AutoMetric": AutoMetric(),
    "LinearSeparation": LinearSeparation(),
    "ClassCollapse": ClassCollapse(ridge=0.1),
    "LMNN": LMNN(shrinkage=0.0, n_neighbors=2),
    "DMLEig": DMLEig(shrinkage=0.0),
    "LMNNEig": LMNNEig(shrinkage=0.0),
    "TripletMetric": TripletMetric(shrinkage=0.0),
    "MetricClassifier": MetricClassifier(metric=KTA(lam=1e-3)),
    "MetricRegressor": MetricRegressor(),
    "NPKL": NPKL(shrinkage=0.0, tol=0.01),
    "PCP": PCP(shrinkage=0.0, tol=0.01),
    "RegPCP": RegPCP(shrinkage=0.0),
    "AutoKernel": AutoKernel(shrinkage=0.0, tol=0.01),
    "InductiveKernel": InductiveKernel(shrinkage=0.0),
    "KernelKMeans": KernelKMeans(n_clusters=3),
    "MVU": MVU(tol=0.1),
    "RegMVU": RegMVU(tol=0.1),
    "ColoredMVU": ColoredMVU(tol=0.1),
    "NeighborLayout": NeighborLayout(rounds=1, tol=0.1, random_state=0),
    "LowRankKernel": LowRankKernel(n_components=3, kernel="linear"),
    "NuclearCompletion": NuclearCompletion(lam=2.0),
    "ImplicitCompletion": ImplicitCompletion(lam=2.0),
    "MMMF": MMMF(lam=2.0),
}
SLOW_ESTIMATORS = ("AutoMetric", "AutoKernel", "ColoredMVU", "NeighborLayout", "MMMF")
COMPLETIONS = ("NuclearCompletion", "ImplicitCompletion", "MMMF")


def test_table_has_every_public_estimator():
    public = {
        name
        for module in (completion, kernel, manifold, metric, spectral)
        for name in module.__all__
        if isinstance(made := getattr(module, name), type) and issubclass(made, BaseEstimator)
    }
    assert public == set(EVERY)


def results_of(name, samples, y=Y):
    """What a fit finds and predicts."""
    fitted = clone(EVERY[name]).fit(samples, y)
    if name in COMPLETIONS:
        pairs = fitted.row_ids_[[0, 1, 0]], fitted.col_ids_[[0, 0, 1]]
        return np.asarray(fitted.predict(pairs), dtype=float)
    ways = [way for way in ("transform", "predict") if hasattr(fitted, way)]
    if hasattr(fitted, "components_"):
        ways = ["transform"]  # a metric predicts pairs
    return np.hstack([np.asarray(getattr(fitted, way)(samples)).reshape(18, -1) for way in ways])


@cache
def plain_results(name):
    return results_of(name, WHOLE + 40.0 if name == "ImplicitCompletion" else WHOLE)


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


KINDS = {
    "int8": (lambda A: A.astype(np.int8)),
    "float16": (lambda A: A.astype(np.float16)),
    "longdouble": (lambda A: A.astype(np.longdouble)),
    "big-endian": (lambda A: A.astype(">f8")),
    "read-only": read_only,
    "Fortran": np.asfortranarray,
    "strided": (lambda A: np.repeat(A, 2, axis=0)[::2]),
    "index": (lambda A: pd.DataFrame(A, columns=list("abcd"), index=[7] * 18)),
}


@pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")
@pytest.mark.parametrize("kind", slow_among(KINDS, "big-endian", "strided"))
@pytest.mark.parametrize("name", slow_among(list(EVERY), *SLOW_ESTIMATORS))
def test_every_estimator_reads_all_kinds_of_numbers(name, kind):
    if kind == "index" and name in COMPLETIONS:
        pytest.skip("the index of a matrix of ratings holds ids")
    samples = WHOLE + 40.0 if name == "ImplicitCompletion" else WHOLE
    found = results_of(name, KINDS[kind](samples))
    np.testing.assert_allclose(found, plain_results(name), rtol=1e-4, atol=1e-4)


DEGENERATE = {
    "one column": (WHOLE[:, :1], Y),
    "constant column": (np.column_stack([WHOLE, np.full(18, 3.0)]), Y),
    "all equal": (np.full((18, 4), 3.0), Y),
    "all zero": (np.zeros((18, 4)), Y),
    "booleans": (WHOLE > 0, Y),
    "repeated rows": (np.repeat(WHOLE[:6], 3, axis=0), Y),
    "one class": (WHOLE, np.zeros(18, dtype=int)),
    "classes of one": (WHOLE, np.arange(18)),
    "truths": (WHOLE, Y > 0),
    "two rows": (WHOLE[:2], Y[:2]),
    "one row": (WHOLE[:1], Y[:1]),
    "no rows": (WHOLE[:0], Y[:0]),
    "no columns": (WHOLE[:, :0], Y),
    "1e300": (1e300 * WHOLE, Y),
    "1e-300": (1e-300 * WHOLE, Y),
    "subnormal": ((1e-40 * WHOLE).astype(np.float32), Y),
    "numbers as classes": (WHOLE, X[:, 0]),
    "short y": (WHOLE, Y[:15]),
    "no y": (WHOLE, None),
    "text": (np.full((18, 4), "a"), Y),
    "None": (None, Y),
    "name of a file": ("samples.csv", Y),
    "dictionary": ({"a": WHOLE[:, 0]}, Y),
    "ragged": ([[1.0, 2.0], [3.0]] * 9, Y),
    "one dimension": (WHOLE[:, 0], Y),
    "three dimensions": (WHOLE[None], Y),
    "dates": (WHOLE.astype("datetime64[s]"), Y),
    "columns of one name": (pd.DataFrame(WHOLE, columns=list("aabb")), Y),
    "stored zeros": (
        sp.csr_array((np.r_[0.0, WHOLE.ravel()[1:]], np.indices((18, 4)).reshape(2, -1))),
        Y,
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:.*did not converge")
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("name", slow_among(list(EVERY), *SLOW_ESTIMATORS))
def test_every_estimator_fits_or_says_what_is_wrong(name, case):
    """Results are finite; an error is raised by a check, not by a computation."""
    samples, y = DEGENERATE[case]
    try:
        fitted = clone(EVERY[name]).fit(samples, y)
    except (TypeError, ValueError) as refusal:
        last = traceback.extract_tb(refusal.__traceback__)[-1].filename
        assert "gramian" in last or "sklearn" in last, f"raised in {last}: {refusal}"
        assert len(str(refusal)) > 20
        return
    arrays = [value for value in vars(fitted).values() if isinstance(value, np.ndarray)]
    numbers = [array for array in arrays if array.dtype.kind == "f"]
    assert all(np.isfinite(array).all() for array in numbers)
    if hasattr(fitted, "transform") and name not in COMPLETIONS:
        assert np.all(np.isfinite(np.asarray(fitted.transform(samples), dtype=float)))


USED = {name: EVERY[name] for name in ("MetricClassifier", "MetricRegressor", "KTA", "NPKL", "MVU")}


@pytest.mark.parametrize("name", USED)
def test_fitted_estimators_reject_odd_samples(name):
    fitted = clone(USED[name]).fit(WHOLE, Y)
    use = fitted.predict if "Metric" in name else fitted.transform
    texts = pd.DataFrame({"a": ["x", "y"], "b": 1.0, "c": 2.0, "d": 3.0})
    with pytest.warns(UserWarning), pytest.raises(ValueError, match=r"text or dates .* in 'a'"):
        use(texts)
    with pytest.raises(ValueError, match="X must be an array or a data frame, got NoneType"):
        use(None)
    if name != "KTA":  # a linear map
        with pytest.raises(ValueError, match="entries of X are too large"):
            use(1e300 * WHOLE)


def test_pair_distances_do_not_overflow():
    model = KTA(lam=0.1).fit(WHOLE, Y)
    with pytest.raises(ValueError, match="entries of X are too large"):
        model.pair_distance([[0, 1]], X=1e300 * WHOLE)
    with pytest.raises(ValueError, match="entries of pairs are too large"):
        model.pair_distance(1e300 * WHOLE[None, :2])


@pytest.mark.parametrize("form", ["array", "frame", "polars"])
def test_dates_are_not_numbers(form):
    dates = pd.date_range("2020", periods=18)
    samples = {
        "array": np.column_stack([dates, dates]),
        "frame": pd.DataFrame({"a": dates, "b": np.arange(18.0)}),
        "polars": pl.DataFrame({"a": pl.Series(dates), "b": np.arange(18.0)}),
    }[form]
    with pytest.raises(ValueError, match="dates where numbers belong"):
        KTA().fit(samples, Y)


# --- other arguments ---------------------------------------------------------------------

PAIRS, SAME = np.array([[0, 3], [0, 1], [2, 5], [4, 6]]), np.array([True, False, True, False])
AFFINITIES = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2))
GRAPH = neighbor_graph(X, 5, connect="mst")


def weighed(weights, **parameters):
    return LinearSeparation(lam=0.01, **parameters).fit(X, Y, sample_weight=weights)


def linked(**links):
    return NPKL(n_clusters=3, shrinkage=0.0).fit(X, **links)


def of_affinity(matrix, affinity):
    return RegPCP(n_clusters=3, affinity=affinity).fit(matrix, np.where(Y == 2, -1, Y))


def metric_of(u, v):
    return KTA(lam=0.1).fit(X, Y).get_metric()(u, v)


def twice_fitted(classes):
    model = KTA(lam=0.1).partial_fit(X[:9], Y[:9], classes=[0, 1, 2])
    return model.partial_fit(X[9:], Y[9:], classes=classes)


REJECTED = {
    "weights of text": (lambda: weighed(["a"] * 18), "sample_weight must hold real numbers"),
    "large weights": (lambda: weighed(np.full(18, 1e300)), "sample_weight are too large"),
    "small weights": (lambda: weighed(np.full(18, 1e-300)), "sample_weight are too small"),
    "large class weights": (
        lambda: weighed(None, class_weight={0: 1e300}),
        "entries of the weights are too large",
    ),
    "dates as labels": (
        lambda: KTA().fit(X, pd.Series(pd.period_range("2020", periods=18, freq="D"))),
        "y holds objects of type Period: convert them to strings",
    ),
    "large numbers as labels": (lambda: KTA().fit(X, 1e20 * Y), "Unknown label type"),
    "tuples as labels": (
        lambda: InductiveKernel().fit(X, pd.MultiIndex.from_arrays([Y, Y])),
        "must hold one label per sample",
    ),
    "labels in a row": (lambda: ColoredMVU().fit(X, Y[None]), "inconsistent numbers of samples"),
    "matrices in a metric": (lambda: metric_of(X[:2], X[2:4]), "u must be a vector, got shape"),
    "short vector": (lambda: metric_of(X[0], X[1, :2]), "v has 2 features, but KTA was fitted to"),
    "vector of text": (lambda: metric_of(list("abcd"), X[0]), "u must hold real numbers"),
    "pairs of unequal length": (
        lambda: DMLEig().fit_pairs([[0, 3], [1]], [True, False], X=X),
        "the rows of pairs differ in length",
    ),
    "links of unequal length": (
        lambda: linked(must_link=[[0, 3], [1]]),
        "the rows of must_link differ in length",
    ),
    "unknown mark": (
        lambda: DMLEig().fit_pairs(
            PAIRS, pd.Series([True, None, True, False], dtype="boolean"), X=X
        ),
        "same must be booleans",
    ),
    "large link weights": (
        lambda: linked(links=PAIRS, targets=SAME, weights=[1, 1, 1, 1e300]),
        "entries of weights are too large",
    ),
    "large entries of links": (
        lambda: linked(links=sp.csr_array(([1e300, -1], ([0, 1], [3, 2])), shape=(18, 18))),
        "entries of links are too large",
    ),
    "other parameter of a kernel": (
        lambda: KTA(kernel="rbf", kernel_params={"gama": 1.0}).fit(X, Y),
        r"kernel_params has 'gama', but the parameters of kernel=\"rbf\" are \['gamma'\]",
    ),
    "negative bandwidth": (
        lambda: KTA(kernel="rbf", kernel_params={"gamma": -1.0}).fit(X, Y),
        r"kernel_params\['gamma'\] must be a finite number above 0",
    ),
    "list of kernel parameters": (
        lambda: KernelKMeans(n_clusters=2, kernel="rbf", kernel_params=[1.0]).fit(X),
        "kernel_params must be a dictionary",
    ),
    "asymmetric kernel": (
        lambda: KTA(kernel=lambda A, B: A @ np.triu(np.ones((4, 4))) @ B.T).fit(X, Y),
        "the kernel must be symmetric",
    ),
    "negative kernel": (
        lambda: InductiveKernel(kernel=lambda A, B: -A @ B.T).fit(X, Y),
        "no positive eigenvalue",
    ),
    "ignored kernel parameters": (
        lambda: LowRankKernel(kernel_params={"gamma": 1.0}).fit(X),
        'the parameters of kernel="rbf" are gamma, degree and coef0',
    ),
    "gamma as text": (lambda: LowRankKernel(gamma="scale").fit(X), "gamma must be a finite number"),
    "masked matrix": (
        lambda: spectral.top_eigen(np.ma.masked_array(AFFINITIES, AFFINITIES > 0.5), 2),
        "K has .* masked entries",
    ),
    "other classes": (lambda: twice_fitted([0, 1, 3]), "classes differ from those of the first"),
    "negative weights of edges": (
        lambda: GRAPH.laplacian(-np.ones(len(GRAPH.edges))),
        "weights must be .* finite numbers of at least 0",
    ),
    "asymmetric affinities": (
        lambda: normalized_laplacian(sp.csr_array(np.triu(AFFINITIES))),
        "W must be symmetric",
    ),
    "negative affinities": (lambda: normalized_laplacian(sp.csr_array(-AFFINITIES)), "W has neg"),
    "asymmetric Laplacian": (lambda: smoothest(np.triu(AFFINITIES), 2), "must be symmetric"),
    "affinities as Laplacian": (
        lambda: of_affinity(AFFINITIES, "precomputed_laplacian"),
        "X is no Laplacian",
    ),
    "negative Laplacian": (
        lambda: of_affinity(-GRAPH.laplacian(), "precomputed_laplacian"),
        "X is no Laplacian",
    ),
    "asymmetric X": (lambda: of_affinity(np.triu(AFFINITIES), "precomputed"), "X must be symm"),
    "text in constraints": (
        lambda: local_pairs(FRAME.assign(d="a"), Y),
        "X has text or dates where numbers belong, in 'd'",
    ),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("case", REJECTED)
def test_rejects_other_odd_arguments(case):
    attempt, message = REJECTED[case]
    with pytest.raises(ValueError, match=message):
        attempt()


def test_marks_of_pairs_may_be_objects():
    plain = LinearSeparation(lam=0.01).fit_pairs(PAIRS, SAME, X=X)
    given = LinearSeparation(lam=0.01).fit_pairs(PAIRS, SAME.astype(object), X=X)
    np.testing.assert_array_equal(given.components_, plain.components_)


def test_later_calls_may_repeat_the_classes():
    plain = KTA(lam=0.1).partial_fit(X, Y)
    np.testing.assert_allclose(
        twice_fitted([0, 1, 2]).get_mahalanobis_matrix(), plain.get_mahalanobis_matrix(), atol=1e-9
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["KTA", "LinearSeparation"])
def test_few_columns_with_classes_of_one_sample(name):
    """A fold of the selection of λ has no sample of such a class."""
    y = np.r_[0, 0, 0, 1, 1, 1, 1, 2, 3]
    fitted = clone(EVERY[name]).set_params(n_components=1).fit(X[:9], y)
    assert np.all(np.isfinite(fitted.transform(X)))


def test_tiny_affinities_do_not_determine_the_units_of_a_program():
    """Far samples have affinities such as 1e-28."""
    n = 13
    near = np.add.outer(np.arange(n) % 3, -(np.arange(n) % 3)) == 0
    C = np.where(near, -0.1, -1e-28) + 1.1 * np.eye(n)
    diagonal = np.column_stack([np.arange(n), np.arange(n)])
    problem = pcp_to(C, diagonal, np.ones(n))
    assert feature_scaling(problem).d is None
    assert minimize(problem, tol=1e-4).status is Status.CONVERGED
