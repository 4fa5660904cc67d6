"""Metrics of few columns: F over factors with k columns, from several starting maps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.backends.arrays import host
from gramian.backends.dense import eigh
from gramian.problem import Problem
from gramian.solvers.base import Settings
from gramian.solvers.lbfgs import descend

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

SCALES = (0.0625, 0.25, 1.0, 4.0)
"""Multiples of a starting map of mean square 1 that are compared."""

TRIAL_STEPS = 8
"""L-BFGS steps from each starting map before the best of them is followed."""

GRADIENT = 1e-3
"""Relative gradient at which a descent ends."""

SMALL_RIDGE, LARGE_RIDGE = 1e-3, 1.0
"""Multiples of the mean eigenvalue added to the scatter within classes for the two discriminants.
On 509 spectra of 101 features the one ends lower than the other by up to 40 % of F."""

FILLED = 0.1
"""Size of the principal directions that fill a discriminant up to k columns."""


def starting_maps(X: Array, classes: Indices, k: int) -> list[Array]:
    """Two discriminants and the principal directions of centred samples, k columns each."""
    principal = eigh(X.T @ X)[1][:, ::-1][:, :k]
    return [
        *(_discriminant(X, classes, principal, ridge) for ridge in (SMALL_RIDGE, LARGE_RIDGE)),
        _of_unit_square(X, principal),
    ]


def _discriminant(X: Array, classes: Indices, principal: Array, ridge: float) -> Array:
    """The leading directions of Fisher's discriminant, those missing from the principal ones."""
    counts = np.bincount(classes)
    means = np.array([np.bincount(classes, column) for column in X.T]).T / counts[:, None]
    centred = X - means[classes]
    within = centred.T @ centred
    d, k = principal.shape
    values, vectors = eigh(within + ridge * max(float(np.trace(within)), 1e-300) / d * np.eye(d))
    R = vectors / np.sqrt(values)
    between = np.sqrt(counts)[:, None] * (means @ R)
    _, turned = eigh(between.T @ between)
    known = min(k, counts.size - 1)
    found = np.zeros((d, k))
    found[:, :known] = _of_unit_square(X, R @ turned[:, ::-1][:, :known])
    if known < k:
        found[:, known:] = FILLED * _of_unit_square(X, principal[:, : k - known])
    return found


def _of_unit_square(X: Array, L: Array) -> Array:
    """L at the scale at which the mapped samples have a mean square of 1 in each column."""
    square = float(np.mean((X @ L) ** 2))
    return L / np.sqrt(square) if square > 0 else L


def scaled(problem: Problem, L: Array) -> Array:
    """The multiple of L at which F is least, among a few."""
    if problem.domain.bounded:
        return problem.domain.rescale(L)
    return min((scale * L for scale in SCALES), key=problem.value)


def best_descent(
    problem: Problem, starts: Iterable[Array], settings: Settings, *, steps: int
) -> Array:
    """A local minimum over factors with k columns: the best of the starts is followed."""
    objective, domain = problem.objective, problem.domain

    def down(L: Any, steps: int) -> Any:
        return descend(objective, L, settings, iterations=steps, tol=GRADIENT, domain=domain)

    tried = [objective.place.put(np.ascontiguousarray(L)) for L in starts]
    if len(tried) > 1:
        tried = [down(L, TRIAL_STEPS) for L in tried]
    best = min(tried, key=problem.value)
    return np.asarray(host(down(best, steps)), dtype=float)
