"""Common parts of local metric learners: the neighbour search, the ridge, the floor, the bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramian.arrays.dense import eigh, row_signs
from gramian.certificate import relative
from gramian.common.parameters import ABOVE_ZERO, BELOW_ONE, NOT_NEGATIVE, one_of, or_auto
from gramian.common.storage import storable
from gramian.common.types import Array, Indices
from gramian.constraints import other_class_neighbors, same_class_neighbors
from gramian.estimators.parameters import with_parameters
from gramian.maps import PairDistances
from gramian.metric._shrinkage import ShrunkLearner
from gramian.metric.kta import KTA
from gramian.problems.local_metric import whitening
from gramian.reductions.floor import Floor
from gramian.reductions.scatter_whitening import ScatterWhitening
from gramian.reductions.span import Span

RIDGE, CROWDED = 1e-3, 1.0
"""Ridge of the scatter of similar pairs, relative to its mean eigenvalue: by default, and with more
than half as many directions as samples, because the scatter is poorly determined then."""

LEARNED, ENOUGH = 0.3, 10
"""The learned part 1 − ρ of S, with this many samples per direction."""

CLEAR = 16
"""Largest number of columns of a rough starting point. For USPS it has 63 and the optimum 10:
it doubles the number of evaluations, each of which takes four times as long."""


@storable
@dataclass(frozen=True)
class MaxMin:
    """The minimum reached by a metric, and an upper bound on the minimum of any metric.

    Attributes
    ----------
    value : float
        The smallest distance or margin of the fitted metric, which the model maximises.
    bound : float
        An upper bound for all metrics of the model.
    """

    value: float
    bound: float

    @property
    def gap(self) -> float:
        return self.bound - self.value

    @property
    def relative_gap(self) -> float:
        return relative(self.gap, self.value)

    def __str__(self) -> str:
        return (
            f"smallest {self.value:.6g}, and no metric has more than {self.bound:.6g} "
            f"(relative {self.relative_gap:.1e})"
        )


@with_parameters
class LocalLearner(ShrunkLearner):
    """A learner from nearest samples, whitened by the scatter of similar pairs.

    Parameters
    ----------
    neighbor_metric : {"kta", "euclidean"}
        The metric of the search for target neighbours and impostors: a quick alignment with the
        labels (`KTA`), or the Euclidean metric of the features.
    ridge : float or "auto"
        Added to the scatter X_S of the similar pairs, in units of its mean eigenvalue. "auto" is
        1e-3, or 1 if the dimension of the samples' span is more than half their number.

    Attributes
    ----------
    ridge_ : float
        The ridge used.
    """

    neighbor_metric: str = "kta"
    ridge: float | str = "auto"

    _rules: ClassVar = {
        "neighbor_metric": one_of("kta", "euclidean"),
        "ridge": or_auto(NOT_NEGATIVE),
    }

    def _amounts(self, samples: Array) -> dict[str, Any]:
        return {**super()._amounts(samples), "ridge": ridge_for(self.ridge, samples)}

    def _search_metric(self, X: Array, classes: Indices) -> tuple[Array, float | None]:
        """A factor L of the metric for the neighbour search, KTA's or Euclidean, and KTA's λ in its
        units; a λ that is known needs no selection.

        Euclidean neighbours depend on the features with the largest scale; alignment with the
        labels, which needs one product XᵀX, gives better target neighbours. It uses the samples at
        unit size, so that their scale has no effect. It is computed on the host, except for
        held-out neighbours, which are the same everywhere: targets must not depend on the device.
        """
        size = float(np.sqrt(np.mean(X * X)))
        if self.neighbor_metric == "euclidean" or size == 0:
            return np.eye(X.shape[1]), None
        known = getattr(self, "_alignment_units", None)
        learner = KTA(tol=1e-2)._fit(X / size, classes, units=known, votes_on=self.device)
        return learner.components_.T / size, learner.lam_ / learner._unit


@with_parameters
class FlooredLearner(LocalLearner):
    """A learner of local metrics with a floor and a smoothing.

    Parameters
    ----------
    floor : float in [0, 1) or "auto"
        ρ; 0 is the paper's model. "auto" is 0.7, and closer to 1 with fewer than ten samples per
        feature; it is 0 if the rank is limited, because a metric above a floor has full rank.
        ``rank=n_features`` keeps the floor and truncates. Mean error of 3-NN of `DMLEig` on 16
        sets, four splits each, limited and truncated: 23.2 and 22.0 % in two dimensions, 14.8 and
        14.5 % in five.

    Attributes
    ----------
    mu_, floor_, ridge_ : float
        The smoothing, the floor and the ridge used.
    """

    mu: float | str = "auto"
    floor: float | str = "auto"

    _rules: ClassVar = {"mu": or_auto(ABOVE_ZERO), "floor": or_auto(BELOW_ONE)}

    def _check_sizes(self, n_samples: int) -> None:
        super()._check_sizes(n_samples)
        k = self._limit(self._most_directions(n_samples))
        if self.floor not in ("auto", 0) and k is not None:
            raise ValueError(
                f"floor={self.floor:g} makes a metric of full rank, and rank {k} is asked for: "
                "pass floor=0, or rank=n_features to truncate a metric of full rank"
            )

    def _amounts(self, samples: Array) -> dict[str, Any]:
        floor = floor_for(self.floor, samples, self._limit(samples.shape[1]))
        return {**super()._amounts(samples), "floor": floor}

    def _local_neighbors(
        self, samples: Array, classes: Indices
    ) -> tuple[Indices, Indices, float | None]:
        """The targets and impostors of each sample, and λ of the metric of the search."""
        quick, units = self._search_metric(samples, classes)
        space, k, device = samples @ quick, self.n_neighbors, self.device
        near = same_class_neighbors(space, classes, k, device=device)
        return near, other_class_neighbors(space, classes, k, device=device), units

    def _whitened(self, X: Array, similar: Indices) -> tuple[ScatterWhitening, Array]:
        """The whitening by the scatter of similar pairs, along principal axes of the result, and
        the whitened samples.

        Its coordinates do not depend on rotations of the features. Sets the ridge and the floor.
        """
        self.ridge_ = ridge_for(self.ridge, X)
        R = whitening(X, similar, ridge=self.ridge_).matrix
        Z = X @ R
        self.floor_ = floor_for(self.floor, Z, self._limit(Z.shape[1]))
        _, axes = eigh(Z.T @ Z)
        along = np.ascontiguousarray(Z @ axes)
        signs = row_signs(along.T)
        along *= signs
        return ScatterWhitening(R @ (axes * signs)), along

    def _above(
        self, floor: Floor, span: Span, rough: Array | None, white: ScatterWhitening
    ) -> Array | None:
        """A starting point above the floor; None if the rough one mostly consists of the floor of
        other pairs."""
        start = floor.coordinates(self._begin(span, rough, white))
        blurred = self.init is None and start is not None and start.shape[1] > CLEAR
        return None if blurred else start


def floor_for(floor: float | str, X: Array, rank: int | None = None) -> float:
    """ρ; "auto" learns a smaller part of S if there are few samples per direction.

    It is 0 with a rank limit, because a metric above a floor has full rank.
    """
    if floor != "auto":
        return float(floor)
    if rank is not None:
        return 0.0
    n, d = X.shape
    return 1.0 - LEARNED * min(1.0, n / (ENOUGH * d))


def targets_of(triplets: Indices) -> Indices:
    """The pairs (anchor, same) of triplets without duplicates."""
    pairs: Indices = np.unique(triplets[:, :2], axis=0)
    return pairs


def ridge_for(ridge: float | str, samples: Array) -> float:
    """The ridge; "auto" is larger if there are nearly as many directions as samples."""
    if ridge != "auto":
        return float(ridge)
    n, order = samples.shape
    return CROWDED if 2 * order > n else RIDGE


def distances(Z: Array, pairs: Indices) -> Array:
    """‖z_i − z_j‖² of the pairs."""
    return PairDistances(pairs, Z.shape[0]).bilinear(Z, Z)
