"""What kernel learners refuse or take before anything is computed."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from gramian import Status
from gramian.estimators import fitting
from gramian.kernel import NPKL, PCP, AutoKernel, InductiveKernel, KernelKMeans, RegPCP
from tests.slow import slow

LEARNERS = {
    "NPKL": NPKL(),
    "PCP": PCP(),
    "RegPCP": RegPCP(),
    "InductiveKernel": InductiveKernel(),
    "KernelKMeans": KernelKMeans(n_clusters=3),
    "KernelKMeans, rbf": KernelKMeans(n_clusters=3, kernel="rbf"),
}
EVERY_LEARNER = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
FROM_LABELS = pytest.mark.parametrize(
    "learner", list(LEARNERS.values())[:4], ids=list(LEARNERS)[:4]
)

Y = np.arange(45) % 3
X = np.random.default_rng(0).normal(size=(45, 20)) + 4 * np.eye(3, 20)[Y]
PARTIAL = np.where(np.arange(45) < 15, Y, -1)
MASKED = np.ma.masked_array(X, X > 4)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@EVERY_LEARNER
def test_samples_whose_squares_overflow_are_refused(learner, form):
    with pytest.raises(ValueError, match=r"entries of X are too large .*; rescale X"):
        clone(learner).fit(form(1e200 * X), PARTIAL)


@EVERY_LEARNER
def test_masked_samples_are_refused(learner):
    with pytest.raises(ValueError, match=r"X has .* masked entries"):
        clone(learner).fit(MASKED, PARTIAL)
    fitted = clone(learner).fit(X, PARTIAL)
    with pytest.raises(ValueError, match=r"X has .* masked entries"):
        (fitted.transform if hasattr(fitted, "transform") else fitted.predict)(MASKED)


@pytest.mark.parametrize(
    "labels",
    [
        np.ma.masked_array(Y, PARTIAL < 0),
        np.where(PARTIAL < 0, np.nan, PARTIAL),
        slow(np.array([None if y < 0 else y for y in PARTIAL], dtype=object)),
        slow(np.array([pd.NA if y < 0 else y for y in PARTIAL], dtype=object)),
        np.array([None if y < 0 else "abc"[y] for y in PARTIAL], dtype=object),
    ],
    ids=["masked", "NaN", "None", "NA", "None among words"],
)
@FROM_LABELS
def test_a_label_that_is_missing_is_unknown(learner, labels):
    expected, found = clone(learner).fit(X, PARTIAL), clone(learner).fit(X, labels)
    np.testing.assert_array_equal(found.kernel_factor_, expected.kernel_factor_)


def test_masked_links_are_refused():
    with pytest.raises(ValueError, match="must_link has 1 masked"):
        NPKL().fit(X, must_link=np.ma.masked_array([[0, 3], [1, 4]], [[0, 0], [0, 1]]))
    with pytest.raises(ValueError, match="targets has 1 masked"):
        NPKL().fit(X, links=[[0, 3], [1, 4]], targets=np.ma.masked_array([1.0, 0.0], [0, 1]))


@pytest.mark.parametrize("seed", ["abc", -1, 1.5])
@pytest.mark.parametrize("learner", [NPKL(), KernelKMeans(n_clusters=3)], ids=["NPKL", "k-means"])
def test_seeds_that_are_none_are_refused(learner, seed):
    with pytest.raises(ValueError, match="random_state must be a whole number of at least 0"):
        clone(learner).set_params(random_state=seed).fit(X, PARTIAL)


def test_any_seed_of_numpy_seeds_k_means():
    for seed in (2**40, np.int64(3), [1, 2]):
        one, two = (KernelKMeans(n_clusters=3, random_state=seed).fit(X) for _ in range(2))
        np.testing.assert_array_equal(one.labels_, two.labels_)


@EVERY_LEARNER
def test_indices_of_64_bits_are_taken(learner):
    long = sp.csr_array(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    fitted = clone(learner).fit(long, PARTIAL)
    (fitted.transform if hasattr(fitted, "transform") else fitted.predict)(long)


def test_new_samples_far_from_the_origin_find_their_neighbours():
    far = X + 1e8
    fitted, near = NPKL().fit(far, PARTIAL), NPKL().fit(far - 1e8, PARTIAL)
    mapped, expected = fitted.transform(far + 0.25), near.transform(far - 1e8 + 0.25)
    np.testing.assert_allclose(mapped @ mapped.T, expected @ expected.T, atol=1e-2)


@pytest.mark.parametrize("learner", [AutoKernel(), NPKL(), PCP(), RegPCP()], ids=str)
def test_says_why_there_are_no_clusters(learner):
    fitted = clone(learner).fit(X, must_link=[[0, 3]], cannot_link=[[0, 1]])
    assert not hasattr(fitted, "labels_")
    with pytest.raises(AttributeError, match="'labels_': there are no clusters: pass n_clusters"):
        _ = fitted.labels_
    for call in (fitted.fit_predict, fitted.predict):
        with pytest.raises(ValueError, match="pass n_clusters"):
            call(X)
    with pytest.raises(AttributeError, match=r"no attribute 'labels_'$"):
        _ = clone(learner).labels_
    assert pickle.loads(pickle.dumps(fitted)).n_clusters_ is None


def test_warns_of_fewer_clusters_than_classes():
    with pytest.warns(UserWarning, match="n_clusters=2, but y has 3 classes: no clusters satisfy"):
        assert NPKL(n_clusters=2).fit(X, PARTIAL).n_clusters_ == 2
    with pytest.warns(UserWarning, match="n_clusters=1, but there are cannot-links"):
        NPKL(n_clusters=1).fit(X, cannot_link=[[0, 1]])
    apart = [[a, b] for a in range(4) for b in range(a)]
    with pytest.warns(UserWarning, match="n_clusters=3, but .* between each two of 0, 1, 2, 3: no"):
        NPKL(n_clusters=3, tol=0.1).fit(X, cannot_link=apart)
    unknown = NPKL().fit(X, np.full(45, -1), must_link=[[0, 3]])
    assert unknown.n_clusters_ is None


def test_inductive_kernel_without_time_is_not_called_zero(ticking):
    ticking(1.0)
    with pytest.raises(TimeoutError, match="increase time_limit"):
        InductiveKernel(time_limit=1.5, shrinkage=0.0).fit(X, PARTIAL)


def test_inductive_kernel_interrupted_at_its_start_is_not_called_zero(monkeypatch):
    def pressed(*given, **named):
        return replace(
            minimize(*given, **named), status=Status.INTERRUPTED, factor=np.zeros((2, 1))
        )

    minimize = fitting.minimize
    monkeypatch.setattr(fitting, "minimize", pressed)
    with pytest.raises(KeyboardInterrupt):
        InductiveKernel(shrinkage=0.0).fit(X, PARTIAL)
