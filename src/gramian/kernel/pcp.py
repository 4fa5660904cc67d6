"""Pairwise constraint propagation."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gramian.common.parameters import ABOVE_ZERO
from gramian.common.types import Array
from gramian.estimators.parameters import with_parameters
from gramian.kernel._links import Links
from gramian.kernel.npkl import Penalised
from gramian.problems.kernel import pcp_to
from gramian.result import Result

ONCE = 100.0
"""λ of the penalised fits that replace exact constraints while parameters are selected."""


@with_parameters
class PCP(Penalised):
    """The smoothest kernel along the graph that satisfies all links exactly.

    Solves min tr(ZL) over Z ⪰ 0 with Z_ii = 1, Z_ij = 1 for must-links and 0 for cannot-links
    (thesis eqs. 3.5–3.9), where L is the normalised Laplacian. Samples joined by must-links are
    merged into one point; cannot-links and the diagonal are linear constraints
    (`gramian.constrained`). A fit issues a warning if it violates them by more than
    `max_violation`. The clusters also satisfy the links: samples joined by must-links are one point
    in k-means, and cannot-linked samples are separated where possible.

    Parameters
    ----------
    max_violation : float
        The largest |Z_ij − T_ij| allowed.
    n_clusters, shrinkage, affinity, n_neighbors, bandwidth, approximate, rank :
        As in `NPKL`.
    solver, tol, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize` for problems with constraints, which run on the CPU.

    Attributes
    ----------
    smoothness_ : float
        tr(ZL).
    kernel_factor_, labels_, n_clusters_, links_, constraint_violation_, laplacian_, shrinkage_, \
path_, links_met_ :
        As in `NPKL`.
    result_, certificate_, n_features_in_, feature_names_in_, n_iter_ :
        As in `NPKL`; `certificate_.violation` is that of all constraints.
    """

    max_violation: float = 1e-2

    _rules: ClassVar = {"max_violation": ABOVE_ZERO}

    _keeps_links = True

    def _accepted(self, links: Links) -> Links:
        if links.soft:
            raise ValueError("PCP satisfies links exactly: use NPKL or RegPCP for soft targets")
        return links

    def _settings(self) -> tuple[float, ...]:
        return (ONCE,)

    def _take(self, setting: float) -> None:
        """No parameter is selected, because the links are constraints."""

    def _learn_roughly(self) -> Array:
        return self._penalised(ONCE, None, merge=True)[1]

    def _learn(self, start: Array | None) -> tuple[Result, Array]:
        entries, targets, _ = self.links_.with_diagonal(True)
        merge = self.links_.merge
        problem = pcp_to(merge.summed(self.laplacian_), entries, targets)
        start = None if start is None else merge.coordinates(start)
        # The solver's tolerance bounds ‖Z − T‖/2 over the constraints.
        tol = min(self.tol, 0.5 * self.max_violation)
        result = self._minimize(problem, start, tol=tol)
        factor = merge.factor(result.factor)
        self.smoothness_ = float(np.sum(factor * (self.laplacian_ @ factor)))
        return result, factor
