"""Collapsing classes: a metric, or a map to few dimensions, that separates classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays.places import host, moved, place
from gramian.common import clock
from gramian.common.parameters import ABOVE_ZERO, TOLERANCE, one_of, or_auto
from gramian.common.types import Array, Indices
from gramian.constraints import check_class_sizes
from gramian.estimators.parameters import with_parameters
from gramian.estimators.path import NEIGHBOUR_ERROR, EvidencePath, chosen_by, smallest
from gramian.losses import Collapse
from gramian.losses.collapse import SoftCollapse, uniform_targets
from gramian.maps import BatchDistances
from gramian.metric._base import LARGE_RANK
from gramian.metric._evidence import TIME_SHARE, Candidates, Split, Trial
from gramian.metric._few_columns import (
    best_descent,
    certificate_in_time,
    of_columns,
    scaled,
    starting_maps,
)
from gramian.metric._partial_fit import Update
from gramian.metric._view import KernelMetricLearner, by_keys
from gramian.objectives.matrices import Dense
from gramian.outcome import Outcome, result_of
from gramian.problem import Problem
from gramian.problems.class_collapse import collapse_of_batches, target_unit
from gramian.problems.moments import moments
from gramian.result import Result, Status
from gramian.solvers.arguments import settings_for

BATCH = 1500
"""Maximum number of samples of a batch, within which pairs are formed: 18 MB."""

MOST = 8 * BATCH
"""Maximum number of samples used, evenly spaced."""

RIDGES = (0.1, 0.03, 0.01, 0.001)
"""Candidates for δ, each started from the map of the previous one; the first if there are too few
samples to hold out."""

KERNEL_RIDGES = (1.0, 0.1, 0.01, 0.001)
"""Candidates for δ with a kernel. Its feature space has about as many dimensions as samples, so the
mean eigenvalue ḡ is smaller. In five dimensions, two splits, the candidate 1.0 reduces the 3-NN
error from 19.2 to 13.1 % on ecoli and from 36.4 to 32.9 % on saheart."""

JUDGED, JUDGED_STEPS = 400, 30
"""Maximum number of samples for a map of a fold, and L-BFGS steps for each δ. Too few steps
regularise the map, so that a δ is selected that is too small for the converged one. Mean errors of
3-NN, five splits each, with 12 and 30 steps: 13.9 and 13.0 % on eight sets (wine, sonar, glass,
column3C, segment, spectrometer, dermatology, `examples/data/sensors.csv`), 14.2 and 14.0 % on eight
others."""

FOLDS = 2
"""Number of folds for the selection of δ."""

MOST_STEPS = 40
"""Maximum number of L-BFGS steps with all samples."""


@dataclass(frozen=True)
class _Batches:
    """Samples in batches, sorted by class within each."""

    X: Array
    classes: Indices
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, X: Array, classes: Indices) -> _Batches:
        """Batches of at most `BATCH` samples with the same proportions of classes."""
        order = np.argsort(classes, kind="stable")
        if order.size > MOST:
            order = order[np.linspace(0, order.size - 1, MOST).astype(np.intp)]
        count = -(-order.size // BATCH)
        order = np.concatenate([order[first::count] for first in range(count)])
        sizes = tuple(len(range(first, order.size, count)) for first in range(count))
        return cls(np.ascontiguousarray(X[order]), classes[order], sizes)

    @cached_property
    def unit(self) -> float:
        """ḡ."""
        return target_unit(self.X, self.classes, self.sizes)

    def problem(self, ridge: float, loss: Collapse) -> Problem:
        """The problem with a loss, which is not convex with a `SoftCollapse`."""
        return collapse_of_batches(self.X, self.sizes, loss, ridge * self.unit)

    def loss(self, targets: str) -> Collapse:
        if targets == "soft":
            return SoftCollapse(self.classes, self.sizes)
        return Collapse(uniform_targets(self.classes, self.sizes), self.sizes)

    def single(self) -> _Batches:
        """These batches in float32, for descents."""
        return _Batches(self.X.astype(np.float32), self.classes, self.sizes)


@with_parameters
class ClassCollapse(KernelMetricLearner, Update):
    """Learn a metric, or a map to few dimensions, that collapses and separates the classes.

    Solves min Σ_i [Σ_j q_ij d_M(i, j) + ln Σ_{k≠i} exp(−d_M(i, k))] + δ ḡ tr M over M ⪰ 0
    (Globerson and Roweis, "Metric learning by collapsing classes", NIPS 2005): the distributions
    p_ik ∝ exp(−d_M(i, k)) are fitted to targets q_i over the class of i. For given q the problem is
    convex. With ``n_components=k`` it is solved over factors with k columns, M = LLᵀ, from
    discriminants and principal directions. This is meant for maps to two to ten dimensions, where
    the leading directions of a metric of full rank are much worse. With a `kernel` the map is not
    linear in the features.

    With ``targets="uniform"`` q_i is uniform over the class of i, the paper's model. With "soft",
    the default, q_ij ∝ exp(−d_M(i, j)) over the class of i, at the fitted metric M: a sample has to
    be near some others of its class, not all of them. M is then a local minimum of
    −Σ_i ln Σ_{j of the class of i} p_ij + δ ḡ tr M, which is not convex.

    Parameters
    ----------
    n_components : int, optional
        The number of columns of L, and of `transform`; by default the rank of M is not limited.
    targets : {"soft", "uniform"}
        The targets q.
    ridge : float or "auto"
        δ; ḡ is the mean eigenvalue of the scatter Σ_i Σ_j (x_i − x_j)(x_i − x_j)ᵀ/(n_i − 1), j of
        the class of i, which has n_i samples. "auto" takes the best of 0.1, 0.03, 0.01 and 0.001
        for held-out neighbours, in the requested number of dimensions, or 0.1 if there are too few
        samples to hold out. With a kernel the largest candidate is 1, and 0.03 is none.
    init : fitted metric learner, optional
        Start from its metric as well.
    solver : str
        The solver of the problem of any rank, as in `gramian.minimize`; L-BFGS is used for a
        limited number of columns.

    Attributes
    ----------
    ridge_ : float
        δ.
    path_ : EvidencePath
        The candidates for δ and their held-out errors, if ridge="auto" selected one.
    certificate_ : Certificate
        A bound on the distance of M from the optimum of any rank of the convex problem with the
        targets q of the fit (those at M if they are soft). With few columns this bounds their cost.

    Notes
    -----
    All pairs of up to 1500 samples are used. More samples are divided into batches of at most 1500
    with the same proportions of classes, and k runs over the batch of i; of more than 12000
    samples, 12000 are used. ḡ tr M compares features: standardise them first.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from gramian.metric import ClassCollapse
    >>> X, y = load_wine(return_X_y=True)
    >>> collapse = ClassCollapse(n_components=2).fit(StandardScaler().fit_transform(X), y)
    >>> collapse.components_.shape
    (2, 13)
    """

    targets: str = "soft"
    ridge: float | str = "auto"
    tol: float = 1e-3
    init: Any = None

    _rules: ClassVar = {
        "targets": one_of("soft", "uniform"),
        "ridge": or_auto(ABOVE_ZERO),
        "tol": TOLERANCE,
    }
    rank: ClassVar[None] = None

    def fit(self, X: Any, y: ArrayLike) -> ClassCollapse:
        """Learn the metric from labelled samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,), −1 if unknown
        """
        started = clock.now()
        X, classes, _ = self._labelled(X, y)
        self._check(X.shape[0])
        check_class_sizes(classes, self.classes_, 1)
        X, classes, _, _ = self._in_order(X, classes)
        span, order = by_keys(self._dense_view(X))
        unit = _power_of_2(span.X)  # squares of the samples neither overflow nor vanish in float32
        samples, classes = span.X / unit, classes[order]
        most = samples.shape[1] if self.kernel is None else LARGE_RANK
        k = min(self.n_components or most, samples.shape[1])
        self.ridge_ = self._chosen_ridge(samples, classes, k)
        batches = _Batches.of(samples, classes)
        given = self._start(span.matrix)
        starts = starting_maps(moments(samples, classes), k)
        starts += [] if given is None else [of_columns(unit * given, k)]
        L = self._descended(batches, self.ridge_, starts, MOST_STEPS)
        with clock.grace():
            result = self._compared(batches, L, started)
        result = replace(result, seconds=clock.elapsed(started))
        gram = Dense(samples.T @ samples, lower=0.0)
        self._finish(result, result.factor / unit, gram, span.matrix)
        return self

    @property
    def _ridges(self) -> tuple[float, ...]:
        """The candidates for δ."""
        return RIDGES if self.kernel is None else KERNEL_RIDGES

    def _chosen_ridge(self, samples: Array, classes: Indices, k: int) -> float:
        """δ by the neighbours of held-out samples."""
        self._forget("path_")
        if self.ridge != "auto":
            return float(self.ridge)
        trial = Trial.of(samples, classes, FOLDS, self.device)
        if trial is None:
            return self._ridges[0]

        def metrics(split: Split) -> Candidates:
            return Candidates.alone(self._maps(trial.samples, trial.classes, split.kept, k))

        with clock.share(TIME_SHARE):
            errors = trial.votes(metrics)
        if errors is None:
            return self._ridges[0]
        self.path_: EvidencePath = chosen_by(
            [errors], self._ridges, parameter="ridge", measure=NEIGHBOUR_ERROR, choose=smallest
        )
        return self.path_.value

    def _maps(self, samples: Array, classes: Indices, rows: Indices, k: int) -> list[Array]:
        """A map for each δ, fitted to some of the rows, from the map of the previous δ.

        The first starts at the better conditioned discriminant: on six tables the best of all three
        starts takes twice the time for an F that is at most 0.2 % smaller. For m of n samples δ is
        multiplied by n/m, so that tr M has the weight of all samples.
        """
        rows = rows[np.linspace(0, rows.size - 1, min(JUDGED, rows.size)).astype(np.intp)]
        part, named = samples[rows], np.unique(classes[rows], return_inverse=True)[1]
        part, share = part - part.mean(axis=0), samples.shape[0] / rows.size
        batches, found = _Batches.of(part, named), list[Array]()
        for ridge in self._ridges:
            starts = found[-1:] or starting_maps(moments(part, named), k)[1:2]
            found.append(self._descended(batches, share * ridge, starts, JUDGED_STEPS))
            if clock.interrupted():
                raise clock.EndedError
        return found

    def _descended(self, batches: _Batches, ridge: float, starts: list[Array], steps: int) -> Array:
        """A local minimum over factors with as many columns as the starts, in float32."""
        problem = batches.single().problem(ridge, batches.loss(self.targets))
        problem = moved(problem, place(self.device))
        settings = settings_for(
            problem, None, self.tol, self.time_limit, self.random_state, clock.now()
        )
        singles = [L.astype(np.float32) for L in starts]
        if len(singles) > 1:
            singles = [scaled(problem, L) for L in singles]
        try:
            return best_descent(problem, singles, settings, steps=steps)
        except KeyboardInterrupt as error:
            clock.caught(error)
        latest = singles[0] if settings.state.latest is None else settings.state.latest[1]
        return np.asarray(host(latest), dtype=float)

    def _compared(self, batches: _Batches, L: Array, started: float) -> Result:
        """L with its certificate among metrics of any rank, refined if its rank is not limited."""
        loss = batches.loss(self.targets)
        if isinstance(loss, SoftCollapse):
            distances = BatchDistances(batches.sizes).of_factor(batches.X @ L)
            loss = Collapse(loss.soft_targets(distances), batches.sizes)
        problem = batches.problem(self.ridge_, loss)
        if (self.n_components or problem.order) >= problem.order:
            return self._minimize(problem, init=L)
        certificate = certificate_in_time(problem, problem.objective.image(L))
        late = clock.left() <= 0 or clock.interrupted()
        return result_of(
            problem,
            Outcome(L, certificate, Status.TIME_LIMIT if late else Status.LOCAL),
            tol=self.tol,
            solver=self.solver,
            route=("lbfgs",),
            started=started,
        )


def _power_of_2(X: Array) -> float:
    """A power of 2 near the root mean square of the entries, 1 if all are 0."""
    size = float(np.sqrt(np.mean(np.square(X, dtype=float)))) if X.size else 0.0
    return 2.0 ** int(np.frexp(size)[1])
