"""Input validation of problems."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from gramian import constraints, problems

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 2
SIMILAR, DISSIMILAR = np.array([[0, 2], [4, 6], [1, 3], [5, 7]]), np.array([[0, 1], [2, 3]])
TRIPLETS = np.array([[0, 2, 1], [1, 3, 2]])
EDGES = np.array([[0, 1], [1, 2], [2, 3]])
MASKED = np.ma.masked_array(X, X > 1)


def completion(rows=(0, 1), cols=(0, 1), values=(1.0, 2.0), shape=(2, 2), **options):
    return problems.nuclear_completion(list(rows), list(cols), values, shape, 1.0, **options)


def margins(rows=(0, 1), cols=(0, 1), signs=(1, -1), shape=(2, 2), **options):
    return problems.mmmf(list(rows), list(cols), signs, shape, 1.0, **options)


def margins_eig(rows=(0, 1), cols=(0, 1), signs=(1, -1), shape=(2, 2)):
    return problems.mmmf_eig(list(rows), list(cols), signs, shape, 0.5, 0.1)


ENTRIES = pytest.mark.parametrize("make", [completion, margins, margins_eig])


@ENTRIES
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cols": (0,)}, "equal lengths, got 2 and 1"),
        ({"rows": (0, 2)}, r"rows\[1\] = \[2\] has an index outside 0..1"),
        ({"cols": (0, 5)}, r"cols\[1\] = \[5\] has an index outside 0..1"),
        ({"cols": (0, -1)}, "outside 0..1"),
        ({"rows": (0, 2**32)}, "outside 0..1"),
        ({"rows": (0.0, 0.5)}, "rows must be integers"),
        ({"rows": ([0], [1])}, "rows must be one-dimensional"),
        ({"rows": (), "cols": ()}, "rows must"),
        ({"shape": (2.5, 2)}, "shape must be two integers"),
    ],
)
def test_rejects_bad_entries(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: completion([0, 1], [0, 0], [1.0]), "values must hold one number for each of 2"),
        (lambda: completion(values=[1.0, 2.0, 3.0]), "values must hold one number for each of 2"),
        (lambda: completion(values=1.0), "values must hold one number for each of 2"),
        (lambda: completion(values=["a", "b"]), "values must hold real numbers"),
        (lambda: completion(values=[None, 1.0]), r"values\[0\] = nan is not finite"),
        (lambda: completion(values=[1e200, 1.0]), "entries of values are too large"),
        (lambda: completion(values=np.ma.masked_array([1.0, 2], [0, 1])), "1 masked"),
        (lambda: completion(row_scale=[1.0]), "row_scale must be one number or 2 numbers"),
        (lambda: completion(col_scale=[1.0, 2, 3]), "col_scale must be one number or 2"),
        (lambda: margins(signs=[1]), "signs must hold one number for each of 2"),
        (lambda: margins(signs=[2, 0]), r"signs\[0\] = 2.0 is neither 1 nor -1"),
        (lambda: margins(margin=[1.0]), "margin must hold one number for each of 2"),
        (lambda: margins_eig(signs=[1]), "signs must hold one number for each of 2"),
        (lambda: margins_eig(signs=[2, 0]), r"signs\[0\] = 2.0 is neither 1 nor -1"),
        (lambda: problems.mvu(EDGES, 1.0, 4, 1.0), "one number for each of 3 edges"),
        (lambda: problems.reg_mvu(X[:4], EDGES, [1.0], 1.0), "one number for each of 3 edges"),
    ],
)
def test_rejects_wrong_number_of_values(call, message):
    with pytest.raises(ValueError, match=message):
        call()


LABELLED = {
    "lmnn": lambda y: problems.lmnn(X, y, 2, 1.0),
    "kta": lambda y: problems.kta(X, y, 1.0),
    "linear_separation": lambda y: problems.linear_separation(X, y, 1.0),
    "all_pairs": constraints.all_pairs,
    "random_pairs": lambda y: constraints.random_pairs(y, 3),
    "random_triplets": lambda y: constraints.random_triplets(y, 3),
    "local_pairs": lambda y: constraints.local_pairs(X, y, 1),
    "local_triplets": lambda y: constraints.local_triplets(X, y, 1),
}
BAD_LABELS = {
    "NaN": (np.where(Y == 0, np.nan, 1.0), "y contains NaN"),
    "infinity": (np.where(Y == 0, np.inf, 1.0), "y contains NaN or infinity"),
    "None": (np.array([*Y[:3], None, *Y[4:]], dtype=object), r"y\[3\] is None, which is no label"),
    "words and None": (["a", None] * 6, r"y\[1\] is None, which is no label"),
    "NA": (pd.array([pd.NA, *Y[1:]], dtype="Int64"), "y contains NaN"),
    "NA among words": (pd.Series(["a", pd.NA] * 6, dtype=object), r"y\[1\] is <NA>"),
    "masked": (np.ma.masked_array(Y, Y == 0), "y has 6 masked entries"),
    "a column": (Y[:, None], "one label per sample"),
    "of two kinds": (np.array(["a", 1] * 6, dtype=object), r"y mixes labels .*\(int, str\)"),
}


@pytest.mark.parametrize("case", BAD_LABELS)
@pytest.mark.parametrize("make", LABELLED.values(), ids=LABELLED)
def test_rejects_missing_labels(make, case):
    labels, message = BAD_LABELS[case]
    with pytest.raises(ValueError, match=message):
        make(labels)


FROM_SAMPLES = {
    "triplets": lambda X: problems.triplets(X, TRIPLETS, 1.0, 0.5),
    "lmnn": lambda X: problems.lmnn(X, Y, 2, 1.0),
    "dml_eig": lambda X: problems.dml_eig(X, SIMILAR, DISSIMILAR, 0.1),
    "lmnn_eig": lambda X: problems.lmnn_eig(X, SIMILAR, TRIPLETS, 0.5, 0.1),
    "kta": lambda X: problems.kta(X, Y, 1.0),
    "linear_separation": lambda X: problems.linear_separation(X, Y, 1.0),
    "local_pairs": lambda X: constraints.local_pairs(X, Y, 2),
}
FROM_MATRICES = {
    "reg_pcp": lambda Q: problems.reg_pcp(Q, [[0, 1]], [[1, 2]]),
    "reg_mvu": lambda Q: problems.reg_mvu(Q, EDGES, [1.0, 1.0, 1.0], 1.0),
    "npkl": lambda Q: problems.npkl(Q @ Q.T, [[0, 1]], [[1, 2]], 1.0),
    "mvu": lambda Q: problems.mvu(EDGES, [1.0, 1.0, 1.0], 12, 1.0, Q @ Q.T),
    "top_eigen": lambda Q: problems.top_eigen(Q @ Q.T),
    "quadratic": lambda Q: problems.quadratic(Q @ Q.T, None, 1.0),
    "nearest": lambda Q: problems.nearest(Q @ Q.T),
}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("make", FROM_SAMPLES.values(), ids=FROM_SAMPLES)
def test_rejects_samples_that_overflow_or_underflow(make, form):
    with pytest.raises(ValueError, match=r"entries of X are too large .* overflow; rescale X"):
        make(form(1e200 * X))
    with pytest.raises(ValueError, match=r"entries of X are too small .* vanish; rescale X"):
        make(form(1e-200 * X))


@pytest.mark.parametrize("make", FROM_MATRICES.values(), ids=FROM_MATRICES)
def test_rejects_matrices_that_overflow(make):
    with pytest.raises(ValueError, match=r"too large .* overflow; rescale"):
        make(1e100 * X)


MASKS = FROM_SAMPLES | {
    "reg_pcp": lambda _: problems.reg_pcp(MASKED, [[0, 1]], [[1, 2]]),
    "reg_mvu": lambda _: problems.reg_mvu(
        X[:4], EDGES, np.ma.masked_array([1, 2, 3], [0, 1, 0]), 1
    ),
    "mvu": lambda _: problems.mvu(np.ma.masked_array(EDGES, EDGES > 2), [1, 2, 3], 4, 1.0),
    "mvu target": lambda _: problems.mvu(EDGES, [1, 2, 3], 4, 1.0, masked_eye(4)),
    "npkl": lambda _: problems.npkl(masked_eye(4), [[0, 1]], [], 1.0),
    "npkl links": lambda _: problems.npkl(np.eye(4), np.ma.masked_array([[0, 1]], [[0, 1]]), [], 1),
    "top_eigen": lambda _: problems.top_eigen(masked_eye(4)),
    "quadratic": lambda _: problems.quadratic(None, None, masked_eye(4)),
    "triplets themselves": lambda _: problems.triplets(
        X, np.ma.masked_array(TRIPLETS, TRIPLETS > 2), 1.0, 0.5
    ),
}


def masked_eye(n):
    return np.ma.masked_array(np.eye(n), np.eye(n) > 0)


@pytest.mark.parametrize("make", MASKS.values(), ids=MASKS)
def test_rejects_masked_entries(make):
    with pytest.raises(ValueError, match="masked entries"):
        make(MASKED)


@pytest.mark.parametrize("make", FROM_SAMPLES.values(), ids=FROM_SAMPLES)
def test_accepts_masked_array_without_masked_entries(make):
    make(np.ma.masked_array(X, np.zeros(X.shape, dtype=bool)))


@pytest.mark.parametrize("kind", ["nuclear", "offsets", "implicit", "signs", "margins"])
def test_entries_of_a_completion_may_come_in_any_order(kind):
    rng = np.random.default_rng(0)
    rows, cols = np.nonzero(rng.random((7, 5)) < 0.6)
    values, weights = rng.standard_normal(rows.size), rng.uniform(1.5, 3.0, rows.size)
    signs = np.where(values > 0, 1.0, -1.0)

    def made(e):
        at = (rows[e], cols[e])
        if kind == "implicit":
            return problems.implicit_completion(*at, weights[e], (7, 5), 0.3)
        if kind in ("signs", "margins"):
            margin = 1.0 if kind == "signs" else weights[e]
            return problems.mmmf(*at, signs[e], (7, 5), 0.3, margin=margin)
        ridge = 0.5 if kind == "offsets" else None
        given = {"ridge": ridge, "weights": weights[e]}
        return problems.nuclear_completion(*at, values[e], (7, 5), 0.3, **given)

    L = rng.standard_normal((12, 3))
    shuffled = made(rng.permutation(rows.size))
    assert shuffled.value(L) == pytest.approx(made(np.arange(rows.size)).value(L), rel=1e-12)


@pytest.mark.parametrize("given", [{"C": 1e100}, {"trace": 1e100}, {"weights": 1e100 * np.eye(2)}])
def test_nearest_rejects_numbers_whose_squares_overflow(given):
    with pytest.raises(ValueError, match=r"too large .*: sums of their squares overflow; rescale"):
        problems.nearest(np.eye(2), **given)
