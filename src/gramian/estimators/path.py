"""A path over a parameter: the values tried, their held-out errors, and the value taken.

`EvidencePath` is the `path_` of every estimator. Two rules choose among candidates of which the
first is the baseline ("doing nothing"): where candidates are mixtures of one model with the
baseline, the least error decides, and among equals the one nearest to the model (`least`); where
each is a model of its own, it has to beat the baseline by more than chance (`earned`). Completions
have a rule of their own (`completion/_path.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.common.html import pyplot, shown_once
from gramian.common.storage import storable
from gramian.neighbours import nearest

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

NEIGHBOURS = 3
NEIGHBOUR_ERROR = f"error of {NEIGHBOURS} nearest neighbours"

GAIN_IN_STANDARD_ERRORS = 0.5
"""Standard errors by which a candidate must beat doing nothing. Mean errors of `KTA` on held-out
tests of wine, ionosphere and pima, six splits each: 2.5, 11.6, 28.9 with 0.5; 3.8, 11.6, 28.4 with
1; 3.8, 14.1, 29.3 with 2; Euclid's metric has 3.8, 15.6, 29.3."""

CLOSE_IN_STANDARD_ERRORS = 1.0
"""Standard errors within which a candidate nearer to doing nothing is as good as the best."""


def _renamed(old: str, new: str) -> property:
    """A deprecated name of an attribute; the warning says what the path holds."""

    def read(path: EvidencePath) -> Any:
        warnings.warn(
            f"path_.{old} is deprecated: read path_.{new} (this path holds {path.parameter} and "
            f"{path.measure})",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(path, new)

    return property(read, doc=f"Deprecated name of `{new}`.")


@storable
@dataclass(frozen=True)
class EvidencePath:
    """The values of a parameter that were tried, their held-out errors, and the value taken.

    Attributes
    ----------
    parameter : str
        The parameter whose values were tried.
    values : array
        Its values; the first is the baseline where there is one.
    errors : array
        The mean held-out error of each value.
    chosen : int
        The index of the value taken.
    measure : str
        What the errors are.
    held_out : int
        How many samples, pairs, anchors or ratings were held out.
    nothing : str or None
        The baseline; None where the path has none.
    by : str
        What has to improve on the baseline.
    """

    parameter: str
    values: Array
    errors: Array
    chosen: int
    measure: str
    held_out: int
    nothing: str | None = None
    by: str = "learning"

    lams = _renamed("lams", "values")
    rmse = _renamed("rmse", "errors")
    best = _renamed("best", "value")

    @property
    def value(self) -> float:
        """The value taken."""
        return float(self.values[self.chosen])

    @property
    def gained(self) -> bool:
        """False where the baseline was taken."""
        return self.nothing is None or self.chosen != 0

    def __str__(self) -> str:
        before, after = self.errors[0], self.errors[self.chosen]
        if not self.gained:
            return (
                f"nothing is gained by {self.by}: {self.nothing} is kept ({self.measure} "
                f"{before:.4g} of {self.held_out} held out, at best {self.errors.min():.4g} with "
                f"{self.parameter} = {self.values[int(np.argmin(self.errors))]:.4g})"
            )
        beside = "" if self.nothing is None else f", where {self.nothing} has {before:.4g}"
        return (
            f"{self.parameter} = {self.value:.4g} was taken: {self.measure} {after:.4g} of "
            f"{self.held_out} held out{beside}"
        )

    def plot(self) -> Any:
        """A figure of the held-out error against the parameter."""
        figure, axes = pyplot().subplots(layout="constrained")
        axes.plot(self.values, self.errors, "o-")
        axes.axvline(self.value, color="0.7", zorder=0)
        positive = self.values[self.values > 0]
        scale = "log" if positive.size == self.values.size else "symlog"
        axes.set_xscale(scale, **({} if scale == "log" else {"linthresh": positive.min()}))
        name = "λ" if self.parameter == "lam" else self.parameter
        axes.set(xlabel=name, ylabel=f"{self.measure}, held out")
        return shown_once(figure)


def chosen_by(
    losses: Sequence[Array],
    values: ArrayLike,
    *,
    parameter: str,
    measure: str,
    nothing: str,
    choose: Callable[[Sequence[Array]], int] | None = None,
    by: str = "learning",
) -> EvidencePath:
    """The path with the candidate that its losses speak for, by `earned` unless told.

    Each array of `losses` has a row for every value and a column for everything held out of one
    kind; the error is the mean of a kind, averaged over the kinds. The values go from nothing
    away from it.
    """
    errors = np.mean([np.mean(part, axis=1) for part in losses], axis=0)
    return EvidencePath(
        parameter,
        np.asarray(values, dtype=float),
        errors,
        (choose or earned)(losses),
        measure,
        int(sum(part.shape[1] for part in losses)),
        nothing,
        by,
    )


def earned(
    losses: Sequence[Array],
    *,
    needed: float = GAIN_IN_STANDARD_ERRORS,
    close: float = CLOSE_IN_STANDARD_ERRORS,
) -> int:
    """The first candidate that is nearly as good as the best, if that beats doing nothing clearly.

    Nearly and clearly are `close` and `needed` standard errors of the difference. Where one that is
    nearly the best does not beat doing nothing at all, the best may well be chance: nothing is
    done.
    """
    best = int(np.argmin(np.mean([np.mean(part, axis=1) for part in losses], axis=0)))
    gain, error = difference(losses, 0, best)
    if gain <= needed * error:
        return 0
    for place in range(1, best):
        behind, error = difference(losses, place, best)
        if behind <= close * error:
            return place if difference(losses, 0, place)[0] > 0 else 0
    return best


def least(losses: Sequence[Array]) -> int:
    """The candidate of the least error, of equals the one farthest from doing nothing.

    A mixture has one number to fit, and what it costs to choose it wrongly is small. Errors of
    `LMNN` on wine, ionosphere, segment and sonar, four splits each: with 1.5 standard errors to
    earn 4.2, 16.4, 7.9 and 18.2 %, by this rule 3.8, 14.3, 7.3 and 17.3; unmixed 3.8, 12.9, 6.5 and
    21.0; Euclid's metric has 3.8, 17.6, 13.0 and 17.7.
    """
    errors = np.mean([np.mean(part, axis=1) for part in losses], axis=0)
    return int(np.flatnonzero(errors <= errors.min())[-1])


def wrong_votes(mapped: Array, classes: Indices, kept: int, *, device: Any = None) -> Array:
    """1 for each held-out row, those after the kept ones, that its neighbours get wrong."""
    count = min(NEIGHBOURS, kept)
    near = nearest(mapped[:kept], count, queries=mapped[kept:], device=device).indices
    return outvoted(near, classes[:kept], classes[kept:])


def outvoted(near: Indices, classes: Indices, asked: Indices) -> Array:
    """1 for each query whose class is not that of most of its neighbours."""
    votes = np.zeros((near.shape[0], int(max(classes.max(), asked.max())) + 1), dtype=int)
    for column in near.T:
        votes[np.arange(near.shape[0]), classes[column]] += 1
    return (votes.argmax(axis=1) != asked).astype(float)


def misplaced(similar: Array, dissimilar: Array) -> tuple[Array, Array]:
    """For each distance the share of those of the other kind that it is on the wrong side of.

    First the distances of similar pairs, then those of dissimilar ones; the mean of either is
    1 − AUC (DeLong et al. 1988). Equal ones count half.
    """
    return _shares_below(similar, dissimilar), 1.0 - _shares_below(dissimilar, similar)


def _shares_below(values: Array, others: Array) -> Array:
    """For each value the share of the others below it; equal ones count half."""
    ranked = np.sort(others)
    below = np.searchsorted(ranked, values, side="left")
    up_to = np.searchsorted(ranked, values, side="right")
    shares: Array = 0.5 * (below + up_to) / max(1, others.size)
    return shares


def difference(losses: Sequence[Array], one: int, other: int) -> tuple[float, float]:
    """By how much the error of one is above that of another, and the standard error of that."""
    gaps = [part[one] - part[other] for part in losses]
    mean = float(np.mean([np.mean(gap) for gap in gaps]))
    square = sum(float(gap @ gap) / gap.size**2 for gap in gaps)
    return mean, float(np.sqrt(square))
