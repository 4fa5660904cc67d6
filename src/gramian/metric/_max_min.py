"""The bound on a max–min problem from its smoothed solution."""

from __future__ import annotations

from dataclasses import dataclass

from gramian.certificate import relative
from gramian.common.storage import storable


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
