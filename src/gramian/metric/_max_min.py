"""The bound on a max–min problem that its smoothed solution proves."""

from __future__ import annotations

from dataclasses import dataclass

from gramian.certificate import relative
from gramian.common.storage import storable


@storable
@dataclass(frozen=True)
class MaxMin:
    """What is proved of a largest minimum: the one reached, and one that none can pass.

    Attributes
    ----------
    value : float
        The smallest distance or margin of the fitted metric: what the model maximises.
    bound : float
        No metric of the model has a larger one.
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
