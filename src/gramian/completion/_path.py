"""The weight of the nuclear norm, from ratings held out: a path of warm solves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import clock, plotting
from gramian.storage import storable

Array = NDArray[np.floating]

HIGHEST, FALL, MOST = 1.5, 0.8, 12
"""The first λ in units of its guess, the factor to the next, and how many at most."""

CLOSE = 1e-3
"""Errors that differ less than this part say nothing about which λ is better."""


@storable
@dataclass(frozen=True)
class Path:
    """λ, falling, and the RMSE of the ratings held out for each.

    Attributes
    ----------
    lams, rmse : arrays of the same length
    """

    lams: Array
    rmse: Array

    @property
    def best(self) -> float:
        """The largest λ whose error is within a thousandth of the least."""
        return float(self.lams[self.rmse <= (1 + CLOSE) * self.rmse.min()][0])

    def plot(self) -> Any:
        """A figure of the error against λ."""
        figure, axes = plotting.pyplot().subplots(layout="constrained")
        axes.semilogx(self.lams, self.rmse, "o-")
        axes.axvline(self.best, color="0.7", zorder=0)
        axes.set(xlabel="λ", ylabel="RMSE of the ratings held out")
        return plotting.shown_once(figure)


def falling(
    guess: float, error_of: Callable[[float], float], enough: Callable[[], bool] = lambda: False
) -> Path:
    """Go down from a λ above the guess until the error has risen twice running.

    Where the first of them is the best, go up from it instead. No λ is begun once `enough` says so.
    """
    down = _until_it_rises(HIGHEST * guess, FALL, error_of, enough)
    up = down[:1]
    if min(error for _, error in down) == down[0][1] and not enough():
        up = [*up, *_until_it_rises(down[0][0] / FALL, 1 / FALL, error_of, enough)]
    lams, errors = np.array([*reversed(up), *down[1:]]).T
    return Path(lams, errors)


def _until_it_rises(
    lam: float, factor: float, error_of: Callable[[float], float], enough: Callable[[], bool]
) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    while len(found) < MOST and not (found and enough()):
        clock.phase(f"the path of λ: {lam:.3g}")
        found.append((lam, error_of(lam)))
        if len(found) > 2 and found[-1][1] > found[-2][1] > found[-3][1]:
            break
        lam *= factor
    return found
