"""The path of a selection between named candidates, of which the first is the baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.common.html import pyplot, shown_once
from gramian.common.storage import storable
from gramian.common.types import Array
from gramian.estimators.path import EvidencePath

PARTS = 10
"""Parts of the held-out items for the nested estimate."""


@storable
@dataclass(frozen=True)
class CandidatePath(EvidencePath):
    """The candidate learners, their held-out errors, and the chosen one.

    `values` are the numbers of the candidates; the first is the baseline: the Euclidean metric, or
    the clusters of the graph.

    Attributes
    ----------
    names : tuple of str
        The learners.
    settings : array
        The selected parameter of each learner: its shrinkage, or δ of `ClassCollapse`; for `KTA` λ
        in units of 1/ḡ², ḡ the mean nonzero eigenvalue of XᵀX.
    standard_errors : array
        Standard errors of the differences from the baseline.
    seconds : array
        The time of the evaluation of each learner; 0 if it was not measured.
    nested_error : float
        An estimate of the error of the fitted learner that includes the selection: each part of the
        held-out items is judged with the candidate selected on the other parts.
    """

    names: tuple[str, ...] = ()
    settings: Array = ()  # type: ignore[assignment]
    standard_errors: Array = ()  # type: ignore[assignment]
    seconds: Array = ()  # type: ignore[assignment]
    nested_error: float = float("nan")

    @property
    def name(self) -> str:
        """The chosen learner."""
        return self.names[self.chosen]

    def __str__(self) -> str:
        best = int(np.argmin(self.errors))
        held = f"{self.measure} {{:.4g}} of {self.held_out} held out"
        if self.gained:
            first = (
                f"{self.name} was taken: {held.format(self.errors[self.chosen])}, "
                f"{self.nested_error:.4g} with the choice repeated, where {self.nothing} has "
                f"{self.errors[0]:.4g}"
            )
        else:
            first = (
                f"nothing is gained by {self.by}: {self.nothing} is kept "
                f"({held.format(self.errors[0])}, at best {self.errors[best]:.4g} with "
                f"{self.names[best]})"
            )
        return "\n".join([first, *self._rows()])

    def _rows(self) -> list[str]:
        """A line for each candidate: error, its difference from the baseline, seconds."""
        width = max(map(len, self.names))
        return [
            f"  {name:{width}}  {error:7.4f}  ({error - self.errors[0]:+.4f} ± {doubt:.4f})"
            + (f"  {taken:6.2f} s" if np.any(self.seconds) else "")
            for name, error, doubt, taken in zip(
                self.names, self.errors, self.standard_errors, self.seconds, strict=True
            )
        ]

    def plot(self) -> Any:
        """A figure of the held-out errors with their standard errors."""
        figure, axes = pyplot().subplots(layout="constrained")
        places = np.arange(len(self.names))
        axes.errorbar(self.errors, places, xerr=self.standard_errors, fmt="o", capsize=3)
        axes.axvline(self.errors[0], color="0.7", zorder=0)
        axes.set_yticks(places, self.names)
        axes.set(xlabel=f"{self.measure}, held out")
        return shown_once(figure)


def candidate_path(
    parameter: str,
    table: Array,
    choose: Callable[[Array], int],
    measure: str,
    *,
    names: tuple[str, ...],
    settings: Sequence[float],
    seconds: Sequence[float] | None = None,
    table_of: Callable[[Any], Array] | None = None,
    by: str = "learning",
) -> CandidatePath:
    """The path of a table of losses, with a row for each candidate; the first is the baseline.

    `table_of` gives the table with settings selected by some of the items.
    """
    size = table.shape[1]
    return CandidatePath(
        parameter,
        np.arange(len(table), dtype=float),
        table.mean(axis=1),
        choose(table),
        measure,
        size,
        names[0],
        by,
        names=names,
        settings=np.array(settings),
        standard_errors=(table - table[0]).std(axis=1) / np.sqrt(size),
        seconds=np.zeros(len(names)) if seconds is None else np.array(seconds),
        nested_error=nested_error(size, table_of or (lambda _: table), choose),
    )


def nested_error(
    size: int, table_of: Callable[[Any], Array], choose: Callable[[Array], int]
) -> float:
    """The error of a choice: each part of the items uses the row selected by the others."""
    lost = np.empty(size)
    for part in range(PARTS):
        inside = np.arange(size) % PARTS == part
        table = table_of(~inside)
        lost[inside] = table[choose(table[:, ~inside])][inside]
    return float(lost.mean())
