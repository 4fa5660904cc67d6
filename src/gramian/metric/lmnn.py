"""Large margin nearest neighbours: targets near, all impostors beyond a margin."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.certificate import Certificate, relative, rounding
from gramian.constraints import as_pairs, check_class_sizes, same_class_neighbors
from gramian.metric._base import MetricLearner
from gramian.metric._impostors import violated_triplets
from gramian.metric._local import (
    check_neighbor_metric,
    dense_coordinates,
    joined,
    neighbor_space,
)
from gramian.objectives.matrices import Dense
from gramian.problems.local_metric import lmnn_of_triplets, whitened, whitening
from gramian.result import Result, Status

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

ROUNDS = 25
"""Refreshes of the active triplets at most."""

COARSE, FEW = 10_000, 4_000
"""Beyond so many samples the first rounds take so many anchors only."""

MOST = 30_000_000
"""Active triplets at most; of more, those of the largest margins are kept."""

SLACK = 0.5
"""Triplets that are met by more than this are dropped from the active ones."""


class LMNN(MetricLearner):
    """Learn the metric that has each sample's targets near and all impostors beyond a margin.

    Solves min Σ_S d_M(i, j) + λ Σ_R max(0, 1 − d_M(i, l) + d_M(i, j))² over M ⪰ 0 (BILGO eq. 8),
    S the samples with their k nearest of the same class, R those pairs with *every* sample l of
    another class. Only triplets that are violated matter; they are found again as the metric
    moves, and the certificate is that of the whole problem: the value counts all triplets, and
    leaving some out only lowers the bound.

    Parameters
    ----------
    n_components : int, optional
        How many directions `transform` returns, those in which the mapped samples vary most; by
        default all that M has.
    n_neighbors : int
        The number k of targets.
    lam : float
        The weight λ of the impostors.
    neighbor_metric : {"kta", "euclidean"}
        Where targets are nearest: after a quick alignment with the labels (`KTA`), or in the
        features as they are.
    ridge : float
        δ of a term δ·ḡ·tr M that keeps M bounded where targets do not differ, ḡ the mean
        eigenvalue of the scatter of S.
    rank : int, optional
        The largest rank of M; the certificate then says what the limit can cost.
    init : fitted metric learner, optional
        Start from its metric.
    solver, tol, max_iter, time_limit, random_state, progress :
        As in `gramian.minimize`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Lᵀ, rows in decreasing order of the variance of the mapped samples.
    n_active_ : int
        Triplets that the fitted metric violates.
    result_ : Result
    certificate_ : Certificate
        How far from the optimum M can be.
    classes_, n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from gramian.metric import LMNN
    >>> X, y = load_wine(return_X_y=True)
    >>> lmnn = LMNN().fit(StandardScaler().fit_transform(X), y)
    >>> lmnn.certificate_.relative_gap < 1e-4
    True
    """

    def __init__(
        self,
        *,
        n_components: int | None = None,
        n_neighbors: int = 3,
        lam: float = 1.0,
        neighbor_metric: str = "kta",
        ridge: float = 1e-6,
        solver: str = "auto",
        rank: int | None = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        init: Any = None,
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.lam = lam
        self.neighbor_metric = neighbor_metric
        self.ridge = ridge
        self.solver = solver
        self.rank = rank
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.init = init
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: ArrayLike) -> LMNN:
        """Learn the metric from labelled samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,)
        """
        started = time.perf_counter()
        X, classes = self._labelled(X, y)
        self._check_sizes()
        check_neighbor_metric(self.neighbor_metric)
        check_class_sizes(classes, self.classes_, self.n_neighbors)
        samples, basis = dense_coordinates(X, "LMNN")
        space = neighbor_space(samples, classes, self.neighbor_metric)
        near = same_class_neighbors(space, classes, self.n_neighbors)
        R = whitening(samples, as_pairs(near), ridge=self.ridge)
        task = _Task(whitened(samples, R), classes, near, float(self.lam))
        basis = joined(basis, R)
        result = self._rounds(task, self._start(basis), started)
        self._finish(result, result.factor, Dense(task.X.T @ task.X, lower=0.0), basis)
        return self

    def _rounds(self, task: _Task, start: Array | None, started: float) -> Result:
        """Solve for the active triplets, find those that are violated now, and so on."""
        factor = task.start() if start is None else start
        if task.n > COARSE and start is None:
            factor = self._coarse(task, factor, started)
        lower, gap, result = -np.inf, 1.0, None
        active = np.empty(0, dtype=np.int64)
        for _ in range(ROUNDS):
            found = task.violated(factor, task.anchors)
            value = found.pull + found.push
            certificate = _certificate(result, value, lower)
            if result is not None:
                result = replace(result, value=value, certificate=certificate)
                self.n_active_ = found.count
                gap = certificate.relative_gap or 0.0
                if gap <= self.tol or self._expired(started):
                    break
            active = np.union1d(active, found.keys)
            problem = task.problem(active)
            result = self._minimize(
                problem,
                init=factor,
                tol=max(0.3 * self.tol, min(1e-2, 0.03 * gap)),
                time_limit=self._left(started),
            )
            factor = result.factor
            lower = max(lower, result.certificate.lower_bound)
            margins = problem.objective.image(factor).z
            active = active[margins < 1.0 + SLACK]
        assert result is not None
        if gap <= self.tol:
            return replace(result, status=Status.CONVERGED)
        status = Status.TIME_LIMIT if self._expired(started) else Status.MAX_ITER
        return replace(result, status=status if result.status.converged else result.status)

    def _coarse(self, task: _Task, factor: Array, started: float) -> Array:
        """A first metric from a few of the anchors."""
        few = np.linspace(0, task.n - 1, FEW).astype(np.intp)
        active = np.empty(0, dtype=np.int64)
        for _ in range(3):
            active = np.union1d(active, task.violated(factor, few).keys)
            problem = task.problem(active, share=FEW / task.n)
            limit = self._left(started)
            factor = self._minimize(problem, init=factor, tol=1e-2, time_limit=limit).factor
            if self._expired(started):
                break
        return factor

    def _left(self, started: float) -> float | None:
        """Seconds of the time limit that are left."""
        if self.time_limit is None:
            return None
        return max(1e-3, self.time_limit - (time.perf_counter() - started))

    def _expired(self, started: float) -> bool:
        return self.time_limit is not None and time.perf_counter() - started >= self.time_limit


@dataclass(frozen=True)
class _Violated:
    """The triplets that a factor violates, as keys, and the two parts of F."""

    keys: NDArray[np.int64]
    count: int
    pull: float
    push: float


@dataclass(frozen=True)
class _Task:
    """LMNN in coordinates where the pull is tr M."""

    X: Array
    classes: Indices
    near: Indices
    lam: float

    @property
    def n(self) -> int:
        return self.X.shape[0]

    @property
    def anchors(self) -> Indices:
        return np.arange(self.n)

    def start(self) -> Array:
        """The best multiple of I, by the margins of some of the anchors."""
        few = np.linspace(0, self.n - 1, min(self.n, 200)).astype(np.intp)
        X, order = self.X, self.X.shape[1]
        squares = np.sum(X * X, axis=1)
        far = squares[few][:, None] + squares - 2 * X[few] @ X.T
        close = np.sum((X[few][:, None] - X[self.near[few]]) ** 2, axis=2)
        across = self.classes[few][:, None] != self.classes
        margins = (far[:, None, :] - close[:, :, None])[
            np.broadcast_to(across[:, None, :], (few.size, close.shape[1], self.n))
        ]
        pull = order * few.size / self.n
        typical = 1.0 / max(float(np.median(np.abs(margins))), 1e-300)
        scales = typical * np.logspace(-3, 3, 61)
        costs = [
            s * pull + self.lam * float(np.sum(np.maximum(0.0, 1 - s * margins) ** 2))
            for s in scales
        ]
        return np.sqrt(scales[int(np.argmin(costs))]) * np.eye(order)

    def violated(self, factor: Array, anchors: Indices) -> _Violated:
        """Every violated triplet of the anchors; the strongest where they are too many."""
        Z, n, k = self.X @ factor, self.n, self.near.shape[1]
        keys, push, count = [np.empty(0, dtype=np.int64)], 0.0, 0
        for triplets, margins in violated_triplets(Z, self.classes, self.near, anchors):
            push += float(np.sum(margins * margins))
            count += margins.size
            most = max(k, MOST * np.unique(triplets[:, 0]).size // anchors.size)
            if margins.size > most:
                triplets = triplets[np.argpartition(-margins, most)[:most]]
            i, j, l = triplets.T.astype(np.int64)
            keys.append((i * n + j) * n + l)
        pull = float(np.sum(factor * factor))
        return _Violated(np.concatenate(keys), count, pull, self.lam * push)

    def problem(self, keys: NDArray[np.int64], *, share: float = 1.0) -> Any:
        """LMNN with the triplets of the keys alone; `share` of the pull."""
        n = self.n
        triplets = np.column_stack([keys // n // n, keys // n % n, keys % n])
        if keys.size == 0:  # nothing is violated: any one triplet makes a problem of it
            other = int(np.flatnonzero(self.classes != self.classes[0])[0])
            triplets = np.array([[0, self.near[0, 0], other]])
        return lmnn_of_triplets(self.X, as_pairs(self.near), triplets, self.lam, pull=share)


def _certificate(result: Result | None, value: float, lower: float) -> Certificate:
    """The value of all triplets against the bound of the active ones, which is below theirs."""
    gap = max(0.0, value - lower) + rounding(value, 0.0)
    inner = None if result is None else result.certificate
    return Certificate(
        value,
        np.nan if inner is None else inner.lambda_min,
        np.nan if inner is None else inner.complementarity,
        gap if np.isfinite(gap) else None,
        relative(gap, value, lower) if np.isfinite(gap) else None,
        "none" if inner is None else f"{inner.method} of the active triplets",
        np.nan if inner is None else inner.trace,
    )
