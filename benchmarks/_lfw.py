"""Labeled Faces in the Wild: descriptors, and the restricted protocol of ten folds."""

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score, roc_curve

from gramian.metric import DMLEig

PLAIN, WHITENED, OURS, MODEL = "PCA", "PCA whitened", "DMLEig", "DMLEig(floor=0)"
METRICS = (PLAIN, WHITENED, OURS, MODEL)
PARTS = 3
"""Into so many parts the training folds fall, each scored by a metric of the others."""
CELLS, PATTERNS = (7, 5), 59
"""Of the local binary patterns."""


@dataclass(frozen=True)
class Outcome:
    """One metric on one fold: rates of right answers, the area under its ROC curve, its cost."""

    rate: float
    train_rate: float
    area: float
    seconds: float = 0.0
    gap: float | None = None


@dataclass(frozen=True)
class Scores:
    """Of one fold: scores of the training pairs, of the same held out, and of the test pairs."""

    train: np.ndarray
    held_out: np.ndarray
    test: np.ndarray


Outcomes = dict[tuple[str, int], list[Outcome]]
"""By metric and dimension, one for each fold."""
Scored = dict[str, list[Scores]]
"""By metric, one for each fold."""


@dataclass(frozen=True)
class Pairs:
    """Two images each, whether they show the same person, and the fold."""

    images: np.ndarray
    same: np.ndarray
    fold: np.ndarray


def faces(arrays: Mapping[str, np.ndarray], folds: int) -> tuple[np.ndarray, Pairs]:
    """The images that occur in pairs of the first folds, and the pairs."""
    kept = arrays["pairs_fold"] < folds
    used, which = np.unique(arrays["pairs"][kept], return_inverse=True)
    images = arrays["X"][used].reshape(-1, *arrays["image_shape"])
    same = arrays["pairs_same"][kept] == 1
    return images, Pairs(which.reshape(-1, 2), same, arrays["pairs_fold"][kept])


def describe(name: str, images: np.ndarray) -> np.ndarray:
    """The descriptors of all images, in rows."""
    if name == "pixels":
        return images.reshape(len(images), -1).astype(np.float32) / 255
    try:
        from skimage.feature import hog, local_binary_pattern
    except ImportError as error:
        raise LookupError(
            "the descriptors need scikit-image: install the 'bench' extra of gramian"
        ) from error
    if name == "HOG":
        found = [hog(image, 9, (8, 8), (2, 2)) for image in images]
    else:
        down, across = (
            np.arange(size) * cells // size
            for size, cells in zip(images.shape[1:], CELLS, strict=True)
        )
        cell = (down[:, None] * CELLS[1] + across) * PATTERNS
        bins = CELLS[0] * CELLS[1] * PATTERNS
        codes = (local_binary_pattern(image, 8, 2, "nri_uniform") for image in images)
        found = [np.bincount((cell + c.astype(int)).ravel(), minlength=bins) for c in codes]
    return np.asarray(found, dtype=np.float32)


def reduced(X: np.ndarray, pairs: Pairs, train: np.ndarray, order: int) -> np.ndarray:
    """All images in the principal components of those of the training pairs."""
    seen = X[np.unique(pairs.images[train])]
    pca = PCA(order, svd_solver="randomized", iterated_power=4, random_state=0).fit(seen)
    return pca.transform(X).astype(float)


def measure(
    X: np.ndarray, pairs: Pairs, fold: int, plan: Mapping[int, Sequence[str]], fused_at: int | None
) -> tuple[dict[tuple[str, int], Outcome], dict[str, Scores]]:
    """Every metric of one descriptor on one fold: what the child process does."""
    outcomes: dict[tuple[str, int], Outcome] = {}
    scored: dict[str, Scores] = {}
    train = pairs.fold != fold
    Z = reduced(X, pairs, train, max(plan))
    fused = () if fused_at is None else (WHITENED, OURS)
    held_out = {} if fused_at is None else _held_out(fused, X, pairs, train, fused_at)
    for metric, d in ((metric, d) for d, metrics in plan.items() for metric in metrics):
        fitted = _Fitted(metric, Z[:, :d], pairs, train)
        scores = fitted.scores(pairs.images)
        outcomes[metric, d] = outcome(scores, pairs.same, train, fitted.seconds, fitted.gap)
        if d == fused_at and metric in fused:
            scored[metric] = Scores(scores[train], held_out[metric], scores[~train])
    return outcomes, scored


def _held_out(
    metrics: Iterable[str], X: np.ndarray, pairs: Pairs, train: np.ndarray, order: int
) -> dict[str, np.ndarray]:
    """Scores of the training pairs by metrics, and components, that have not seen them."""
    found = {metric: np.empty(train.size) for metric in metrics}
    folds = np.unique(pairs.fold[train])
    for part in range(PARTS):
        held = train & np.isin(pairs.fold, folds[part::PARTS])
        rest = train & ~held
        Z = reduced(X, pairs, rest, order)
        for metric, scores in found.items():
            scores[held] = _Fitted(metric, Z, pairs, rest).scores(pairs.images[held])
    return {metric: scores[train] for metric, scores in found.items()}


class _Fitted:
    """A metric of some of the pairs; its scores of any."""

    learner: DMLEig | None = None
    seconds: float = 0.0
    gap: float | None = None

    def __init__(self, metric: str, Z: np.ndarray, pairs: Pairs, train: np.ndarray) -> None:
        rows, which = np.unique(pairs.images[train], return_inverse=True)
        self.Z = Z if metric != WHITENED else Z / Z[rows].std(axis=0)
        mapped = self.Z[rows]
        if metric in (OURS, MODEL):
            self._learn(metric, mapped, which.reshape(-1, 2), pairs.same[train])
            mapped = self.learner.transform(mapped)
        self.unit = float(np.sqrt(2 * mapped.var(axis=0).sum()))

    def _learn(self, metric: str, Z: np.ndarray, pairs: np.ndarray, same: np.ndarray) -> None:
        self.learner = DMLEig(floor=0.0, shrinkage=0.0) if metric == MODEL else DMLEig()
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.learner.fit_pairs(pairs, same, X=Z)
        self.seconds = time.perf_counter() - start
        self.gap = self.learner.certificate_.relative_gap

    def scores(self, pairs: np.ndarray) -> np.ndarray:
        """Minus the distances, in units of their root mean square over the training images."""
        if self.learner is None:
            return euclidean_scores(self.Z, pairs) / self.unit
        return self.learner.pair_score(pairs, X=self.Z) / self.unit


def euclidean_scores(Z: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    return -np.linalg.norm(Z[pairs[:, 0]] - Z[pairs[:, 1]], axis=1)


def outcome(
    scores: np.ndarray, same: np.ndarray, train: np.ndarray, seconds: float, gap: float | None
) -> Outcome:
    cut = best_cut(scores[train], same[train])
    right = (scores >= cut) == same
    area = roc_auc_score(same[~train], scores[~train])
    return Outcome(right[~train].mean(), right[train].mean(), float(area), seconds, gap)


def best_cut(scores: np.ndarray, same: np.ndarray) -> float:
    """The score from which to say "the same", with the fewest errors on as many of each kind."""
    false, true, cuts = roc_curve(same, scores)
    return float(cuts[np.argmax(true - false)])
