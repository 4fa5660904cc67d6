"""Labeled Faces in the Wild: descriptors, and the restricted protocol of ten folds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score, roc_curve

from benchmarks.harness.learn import fitted
from gramian.metric import DMLEig

PLAIN, WHITENED, OURS, MODEL = METRICS = ("PCA", "PCA whitened", "DMLEig", "DMLEig(floor=0)")
PARTS = 3
"""The training folds are divided into parts, each scored by a metric of the other parts."""
CELLS, PATTERNS = (7, 5), 59
"""Of the local binary patterns."""


@dataclass(frozen=True)
class Outcome:
    """One metric on one fold: rates of correct answers, the area under its ROC curve, its cost."""

    rate: float
    train_rate: float
    area: float
    seconds: float = 0.0
    gap: float | None = None


@dataclass(frozen=True)
class Scores:
    """Scores of a fold's training pairs, of the same pairs held out, and of its test pairs."""

    train: np.ndarray
    held_out: np.ndarray
    test: np.ndarray


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
        sizes = zip(images.shape[1:], CELLS, strict=True)
        down, across = (np.arange(size) * cells // size for size, cells in sizes)
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
    """Every metric of one descriptor on one fold: in a child process."""
    outcomes: dict[tuple[str, int], Outcome] = {}
    scored: dict[str, Scores] = {}
    train = pairs.fold != fold
    Z = reduced(X, pairs, train, max(plan))
    fused = () if fused_at is None else (WHITENED, OURS)
    held_out = {metric: np.empty(train.size) for metric in fused}
    folds = np.unique(pairs.fold[train])
    for part in range(PARTS if fused else 0):
        held = train & np.isin(pairs.fold, folds[part::PARTS])
        rest = train & ~held
        Z_rest = reduced(X, pairs, rest, fused_at)
        for metric, scores in held_out.items():
            scores[held] = learned(metric, Z_rest, pairs, rest)[0][held]
    for metric, d in ((metric, d) for d, metrics in plan.items() for metric in metrics):
        scores, *cost = learned(metric, Z[:, :d], pairs, train)
        outcomes[metric, d] = outcome(scores, pairs.same, train, *cost)
        if d == fused_at and metric in fused:
            scored[metric] = Scores(scores[train], held_out[metric][train], scores[~train])
    return outcomes, scored


def learned(metric: str, Z: np.ndarray, pairs: Pairs, train: np.ndarray) -> tuple[Any, Any, Any]:
    """Scores of all pairs by a metric of the training pairs, and its seconds and gap.

    Scores are minus the distances, in units of their root mean square over the training images.
    """
    rows, which = np.unique(pairs.images[train], return_inverse=True)
    if metric == WHITENED:
        Z = Z / Z[rows].std(axis=0)
    seconds, gap, mapped = 0.0, None, Z[rows]
    if metric in (OURS, MODEL):
        learner = DMLEig(floor=0.0, shrinkage=0.0) if metric == MODEL else DMLEig()
        given = which.reshape(-1, 2), pairs.same[train]
        learner, seconds = fitted(learner, *given, method="fit_pairs", X=mapped)
        gap, mapped = learner.certificate_.relative_gap, learner.transform(mapped)
        scores = learner.pair_score(pairs.images, X=Z)
    else:
        scores = euclidean_scores(Z, pairs.images)
    return scores / float(np.sqrt(2 * mapped.var(axis=0).sum())), seconds, gap


def euclidean_scores(Z: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    return -np.linalg.norm(Z[pairs[:, 0]] - Z[pairs[:, 1]], axis=1)


def outcome(
    scores: np.ndarray, same: np.ndarray, train: np.ndarray, seconds: float, gap: float | None
) -> Outcome:
    right = (scores >= best_cut(scores[train], same[train])) == same
    area = float(roc_auc_score(same[~train], scores[~train]))
    return Outcome(right[~train].mean(), right[train].mean(), area, seconds, gap)


def best_cut(scores: np.ndarray, same: np.ndarray) -> float:
    """The threshold of the scores with the fewest errors, on equal numbers of each kind."""
    false, true, cuts = roc_curve(same, scores)
    return float(cuts[np.argmax(true - false)])
