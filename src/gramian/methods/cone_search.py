"""Exact minimisation over M = W S Wᵀ for all S ⪰ 0, with a few columns W."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from gramian.arrays.dense import eigh
from gramian.arrays.places import (
    beside,
    column_squares,
    contiguous,
    eye,
    host,
    namespace,
    side_by_side,
)
from gramian.common.types import Array
from gramian.domains import Domain
from gramian.linalg import Slice, cone_quadratic
from gramian.linalg.svec import smat, svec, triangle
from gramian.methods.lowest_eigenpairs import LowestEigenpairs
from gramian.objectives import Objective

MAX_COLUMNS = 26
"""Maximum number of columns of W: n(n+1)/2 = 351 unknowns take about a tenth of a second."""

MAX_ENTRIES = 10_000_000
"""Maximum number of entries of the restriction of F to W."""

FIRST_EIGENVECTORS, ADDED_EIGENVECTORS = 12, 4
"""Eigenvectors in W at the start, and in every later search."""

KEPT_COLUMNS = 4
"""Columns kept from the last search."""

MAX_LOST_FRACTION = 1e-2
"""Fraction of the decrease of a search that may be given up for a smaller rank."""

VALUE_ROUNDING = 1e-14
"""Relative difference below which two values of F count as equal."""


@dataclass
class ConeSearch:
    """The searches of one run, and the state between them."""

    objective: Objective
    domain: Domain
    leftover: Array | None = None
    """Columns that the last search dropped for a smaller rank."""
    inside: list[Array] = field(default_factory=list)
    """Interior points of the cone visited by the last search over the whole space."""
    damping: float = 1e-6
    """Term added to the curvature of a model that is not F itself."""

    def __post_init__(self) -> None:
        self.widest = _widest(self.objective)

    @property
    def whole(self) -> bool:
        """Whether W can span the whole space."""
        return self.objective.order <= self.widest

    def columns(self, image: Any, eigenpairs: LowestEigenpairs | None = None) -> Array:
        """An orthonormal W for the search: the identity if the order is small."""
        if self.whole:
            return eye(self.objective.order, self.objective.place)
        L = image.factor
        rank = L.shape[1]
        blocks = [L]
        if eigenpairs is not None:
            blocks.append(
                eigenpairs.falling()[
                    :, : ADDED_EIGENVECTORS if rank else min(FIRST_EIGENVECTORS, self.widest)
                ]
            )
        room = self.widest - sum(block.shape[1] for block in blocks)
        if self.leftover is not None and room > 0:
            blocks.append(self.leftover[:, :room])
        return _orthonormal(blocks)

    def best(self, image: Any, W: Array, spare: float) -> Any | None:
        """The best W S Wᵀ, at the smallest rank that loses at most `spare` of its decrease.

        If W does not span the whole space, it may also lose `MAX_LOST_FRACTION` of the
        decrease. None if F has no curvature, as in the linear region of a hinge.
        """
        if W.shape[1] == 0:
            return image
        restriction = self.objective.subspace(W)
        part = host(W.T @ image.factor)
        here = svec(part @ part.T)
        H, gradient = restriction.hessian(here), restriction.gradient(here)
        if not np.any(np.diag(H) > 0):
            return None
        trace = self.domain.trace
        within = None if trace is None else Slice(np.eye(W.shape[1]), trace)
        damping = 0.0 if restriction.quadratic else self.damping
        found = cone_quadratic(H, gradient, here, within, damping=damping)
        there = svec(found.S)
        if not restriction.quadratic:
            there, length = _best_between(restriction, here, there)
            self.damping = min(1.0, max(1e-8, self.damping * (10.0 if length < 0.3 else 0.1)))
        self.inside = found.inside if self.whole else []
        factor, leftover = self._least_rank(restriction, H, here, there, spare)
        new = self.objective.image(contiguous(W @ beside(W, factor)))
        before, after = self.objective.value(image), self.objective.value(new)
        if not after < before + VALUE_ROUNDING * abs(before):
            self.leftover = None
            return image
        self.leftover = W @ beside(W, leftover)
        return new

    def _least_rank(
        self, restriction: Any, H: Array, here: Array, there: Array, spare: float
    ) -> tuple[Array, Array]:
        """B with BBᵀ near S, and the next few columns, which were dropped."""
        order = int(np.sqrt(2 * there.size))
        i, j, _ = triangle(order)
        S, bend = smat(there, order), np.diag(H)[i == j]
        weight = np.maximum(bend, 1e-16 * max(float(np.max(bend)), 1e-300)) ** 0.25
        values, vectors = eigh(S * np.outer(weight, weight))
        B = (vectors * np.sqrt(np.maximum(values, 0.0)) / weight[:, None])[:, ::-1]
        best = restriction.value(there)
        won = restriction.value(here) - best
        spare = spare if self.whole else max(spare, MAX_LOST_FRACTION * won)
        rank = order
        while rank > 1:
            fewer = self.domain.rescale(B[:, : rank - 1])
            if not restriction.value(svec(fewer @ fewer.T)) <= best + spare:
                break
            rank -= 1
        if not self.domain.bounded and restriction.value(np.zeros_like(there)) <= best + spare:
            rank = 0
        return self.domain.rescale(B[:, :rank]), B[:, rank : rank + KEPT_COLUMNS]


def _widest(objective: Objective) -> int:
    """Maximum number of columns of a search."""
    columns = MAX_COLUMNS
    while columns > 1 and objective.subspace_cost(columns) > MAX_ENTRIES:
        columns -= 1
    return columns


def _orthonormal(blocks: list[Array]) -> Array:
    """An orthonormal basis of the span of the columns, each scaled to unit length."""
    columns = side_by_side(blocks)
    lengths = np.sqrt(host(column_squares(columns)))
    columns = columns[:, np.flatnonzero(lengths)] / beside(columns, lengths[lengths > 0])
    if columns.shape[1] == 0:
        return columns
    if not isinstance(columns, np.ndarray):
        return _orthonormal_there(columns)
    Q, R, _ = scipy.linalg.qr(columns, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diag(R))
    return contiguous(Q[:, : sizes.size][:, sizes > 1e-10 * sizes[0]])


def _orthonormal_there(columns: Array) -> Array:
    """`_orthonormal` on a device: eigenvectors of the small Gram matrix, followed by QR."""
    values, turn = eigh(host(columns.T @ columns))
    live = values > 1e-13 * values[-1]
    turned = columns @ beside(columns, (turn[:, live] / np.sqrt(values[live]))[:, ::-1])
    return namespace(columns).linalg.qr(turned)[0]


def _best_between(restriction: Any, here: Array, there: Array) -> tuple[Array, float]:
    """The best point of the segment, along which F is convex, and its position on the segment.

    If the model has no curvature, its minimum may lie far beyond that of F.
    """
    move = there - here
    value = restriction.along(here, move)
    start, reach = value(0.0), 1.0
    if abs(value(1.0) - start) <= VALUE_ROUNDING * abs(start):
        return there, 1.0  # equal to rounding in F, but the gradient is smaller
    while not value(reach) < start and reach > 1e-15:
        reach *= 0.25
    found = scipy.optimize.minimize_scalar(
        lambda part: value(part * reach), bounds=(0.0, min(4.0, 1.0 / reach)), method="bounded"
    )
    ends = (float(found.x), 1.0, 1.0 / reach if reach > 0.25 else 1.0)
    part = reach * min(ends, key=lambda part: value(part * reach))
    return here + part * move, part
