"""Conjugate gradients for A x = b with a symmetric operator A, on arrays of any backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import inner

Array = NDArray[Any]
Product = Callable[[Array], Array]


class Solution(NamedTuple):
    """Result of `conjugate_gradient`."""

    x: Array
    residual: Array
    """b − A x, from the recurrence."""
    products: int
    """Number of products with A."""
    curved: Array | None = None
    """The direction p with pᵀAp ≤ 0 that ended the iteration, if there was one."""


def conjugate_gradient(
    product: Product,
    right: Array,
    *,
    steps: int,
    precondition: Product | None = None,
    tol: float = 0.0,
    residual: float = 0.0,
    axis: int | None = None,
) -> Solution:
    """Solve A x = b by conjugate gradients from x = 0, in at most `steps` products.

    The iteration stops if rᵀBr ≤ tol² bᵀBb for the residual r = b − A x and the preconditioner
    B (the identity by default), if ‖r‖ ≤ `residual`, or at a direction p with pᵀAp ≤ 0. If that
    is the first direction, x = p, which is a direction of descent of ½ xᵀAx − bᵀx (Steihaug 1983).

    With `axis`, the host array b contains many systems, and inner products are sums along that
    axis: with ``axis=1`` each row is a system. A system that has reached `tol` is not changed
    further, so that its solution does not depend on the others.
    """
    x, r = 0.0 * right, right
    z = r if precondition is None else precondition(r)
    p, energy = z, _inner(r, z, axis)
    enough, some = tol * tol * energy, bool if axis is None else np.any
    for taken in range(steps):
        live = energy > enough
        if not some(live) or (residual > 0 and _inner(r, r, None) <= residual * residual):
            return Solution(x, r, taken)
        image = product(p)
        bend = _inner(p, image, axis)
        live = live & (bend > 0)
        if not some(live):
            x, r = (p, r - image) if taken == 0 else (x, r)
            return Solution(x, r, taken + 1, p)
        length = _quotient(energy, bend, live)
        x, r = x + length * p, r - length * image
        z = r if precondition is None else precondition(r)
        energy, last = _inner(r, z, axis), energy
        p = z + _quotient(energy, last, live) * p
    return Solution(x, r, steps)


def _inner(U: Array, V: Array, axis: int | None) -> Any:
    """⟨U, V⟩, or one for each system."""
    if axis is not None:
        return np.sum(U * V, axis=axis, keepdims=True)
    return float(U @ V) if U.ndim == 1 else inner(U, V)


def _quotient(above: Any, below: Any, live: Any) -> Any:
    """above/below if live, else 0."""
    if isinstance(above, float):
        return above / below
    return np.where(live, above / np.where(live, below, 1.0), 0.0)
