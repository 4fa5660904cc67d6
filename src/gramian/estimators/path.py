"""A selection path: the values of a parameter, their held-out errors, and the chosen value.

`EvidencePath` is the `path_` of every estimator. Two rules choose among candidates of which the
first is the baseline (nothing is learned). If candidates are mixtures of one model with the
baseline, the smallest error decides, with ties resolved in favour of the model (`least`). If each
candidate is a separate model, it must beat the baseline significantly (`earned`). Completions have
their own rule (`completion/_selection.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gramian.common.html import pyplot, shown_once
from gramian.common.storage import storable
from gramian.common.types import Array, Indices
from gramian.common.warnings import warn
from gramian.neighbours import nearest

NEIGHBOURS = 3
NEIGHBOUR_ERROR = f"error of {NEIGHBOURS} nearest neighbours"

GAIN_IN_STANDARD_ERRORS = 0.5
"""Standard errors by which a candidate must beat the baseline. Mean errors of `KTA` on held-out
tests of wine, ionosphere and pima, six splits each: 2.5, 11.6, 28.9 with 0.5; 3.8, 11.6, 28.4 with
1; 3.8, 14.1, 29.3 with 2; the Euclidean metric has 3.8, 15.6, 29.3."""

CLOSE_IN_STANDARD_ERRORS = 1.0
"""Standard errors within which a candidate closer to the baseline counts as equal to the best."""


def _renamed(old: str, new: str) -> property:
    """A deprecated name of an attribute; the warning describes the path."""

    def read(path: EvidencePath) -> Any:
        warn(
            f"path_.{old} is deprecated: read path_.{new} (this path holds {path.parameter} and "
            f"{path.measure})",
            FutureWarning,
        )
        return getattr(path, new)

    return property(read, doc=f"Deprecated name of `{new}`.")


@storable
@dataclass(frozen=True)
class EvidencePath:
    """The values of a parameter that were tried, their held-out errors, and the chosen value.

    Attributes
    ----------
    parameter : str
        Name of the parameter.
    values : array
        Its values; the first is the baseline, if there is one.
    errors : array
        The mean held-out error of each value.
    chosen : int
        The index of the chosen value.
    measure : str
        Description of the errors.
    held_out : int
        Number of held-out samples, pairs, anchors or ratings.
    nothing : str or None
        The baseline; None if the path has none.
    by : str
        What is compared with the baseline.
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
        """The chosen value."""
        return float(self.values[self.chosen])

    @property
    def gained(self) -> bool:
        """False if the baseline was chosen."""
        return self.nothing is None or self.chosen != 0

    def __str__(self) -> str:
        before, after = self.errors[0], self.errors[self.chosen]
        if not self.gained:
            return (
                f"nothing is gained by {self.by}: {self.nothing} is kept ({self.measure} "
                f"{before:.4g} on {self.held_out} held out; the best candidate, {self.parameter} = "
                f"{self.values[int(np.argmin(self.errors))]:.4g}, has {self.errors.min():.4g})"
            )
        baseline = "" if self.nothing is None else f" ({self.nothing}: {before:.4g})"
        return (
            f"{self.parameter} = {self.value:.4g} was chosen: {self.measure} {after:.4g} on "
            f"{self.held_out} held out{baseline}"
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
    nothing: str | None = None,
    choose: Callable[[Sequence[Array]], int] | None = None,
    by: str = "learning",
) -> EvidencePath:
    """The path with the candidate chosen from its losses, by default with `earned`.

    Each array of `losses` has a row for every value and a column for every held-out item of one
    kind; the error is the mean over a kind, averaged over the kinds. The values are ordered by
    their distance from the baseline.
    """
    return EvidencePath(
        parameter,
        np.asarray(values, dtype=float),
        _errors(losses),
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
    """The first candidate nearly as good as the best, if that beats the baseline clearly.

    "Nearly" and "clearly" are `close` and `needed` standard errors of the difference. If the first
    such candidate does not beat the baseline at all, the best may be due to chance, and the
    baseline is chosen.
    """
    best = smallest(losses)
    gain, error = difference(losses, 0, best)
    if gain <= needed * error:
        return 0
    for place in range(1, best):
        behind, error = difference(losses, place, best)
        if behind <= close * error:
            return place if difference(losses, 0, place)[0] > 0 else 0
    return best


def least(losses: Sequence[Array]) -> int:
    """The candidate of the smallest error; of equals, the one farthest from the baseline.

    A mixture has one parameter, and a wrong choice costs little. Errors of `LMNN` on wine,
    ionosphere, segment and sonar, four splits each: with a required gain of 1.5 standard errors
    4.2, 16.4, 7.9 and 18.2 %, by this rule 3.8, 14.3, 7.3 and 17.3; unmixed 3.8, 12.9, 6.5 and
    21.0; the Euclidean metric has 3.8, 17.6, 13.0 and 17.7.
    """
    errors = _errors(losses)
    return int(np.flatnonzero(errors <= errors.min())[-1])


def smallest(losses: Sequence[Array]) -> int:
    """The first candidate of the smallest error, for a path without a baseline."""
    return int(np.argmin(_errors(losses)))


def wrong_votes(mapped: Array, classes: Indices, kept: int, *, device: Any = None) -> Array:
    """1 for each held-out row (those after `kept`) that its neighbours misclassify, else 0."""
    count = min(NEIGHBOURS, kept)
    near = nearest(mapped[:kept], count, queries=mapped[kept:], device=device).indices
    return outvoted(near, classes[:kept], classes[kept:])


def outvoted(near: Indices, classes: Indices, asked: Indices) -> Array:
    """1 for each query whose class is not the majority class of its neighbours, else 0."""
    votes = np.zeros((near.shape[0], int(max(classes.max(), asked.max())) + 1), dtype=int)
    for column in near.T:
        votes[np.arange(near.shape[0]), classes[column]] += 1
    return (votes.argmax(axis=1) != asked).astype(float)


def misplaced(similar: Array, dissimilar: Array) -> tuple[Array, Array]:
    """For each distance, the fraction of the other kind that is on its wrong side.

    First the distances of similar pairs, then those of dissimilar ones; the mean of either is
    1 − AUC (DeLong et al. 1988). Ties count half.
    """
    return _shares_below(similar, dissimilar), 1.0 - _shares_below(dissimilar, similar)


def _shares_below(values: Array, others: Array) -> Array:
    """For each value, the fraction of the others below it; ties count half."""
    ranked = np.sort(others)
    below = np.searchsorted(ranked, values, side="left")
    up_to = np.searchsorted(ranked, values, side="right")
    return 0.5 * (below + up_to) / max(1, others.size)


def _errors(losses: Sequence[Array]) -> Array:
    """The mean loss of each candidate over a kind of items, averaged over the kinds."""
    return np.mean([np.mean(part, axis=1) for part in losses], axis=0)


def difference(losses: Sequence[Array], one: int, other: int) -> tuple[float, float]:
    """The difference of the errors of two candidates, and its standard error."""
    gaps = [part[one] - part[other] for part in losses]
    mean = float(np.mean([np.mean(gap) for gap in gaps]))
    square = sum(float(gap @ gap) / gap.size**2 for gap in gaps)
    return mean, float(np.sqrt(square))
