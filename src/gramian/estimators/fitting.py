"""Functions shared by estimators: solving, setting result attributes, rotating a factor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from gramian.arrays.samples import naming_text, ready, refuse_masked
from gramian.common import clock
from gramian.common.types import Array
from gramian.common.warnings import warn
from gramian.methods.columns import columns_by_size
from gramian.problem import Problem
from gramian.result import Result, Status
from gramian.run import minimize

AUTO = 1e-4
"""The tolerance of tol="auto" if the optimum is affordable."""


def solve(estimator: Any, problem: Problem, init: Array | None = None, **changes: Any) -> Result:
    """`minimize` with the solver, tolerance and limits of an estimator.

    `changes` are other arguments of `minimize`; None has no effect. The rank is not limited unless
    it is given here.
    """
    options = {
        "tol": AUTO if estimator.tol == "auto" else estimator.tol,
        "max_iter": estimator.max_iter,
        "time_limit": estimator.time_limit,
        "random_state": estimator.random_state,
        "progress": estimator.progress != "plot" and bool(estimator.progress),
        "device": estimator.device,
        "dtype": getattr(estimator, "_sweeps", None),
    }
    options |= {name: value for name, value in changes.items() if value is not None}
    return minimize(problem, estimator.solver, init=init, **options)


def sweeps_for(data: Any) -> str | None:
    """The precision of first-order steps for these data: float32 if the data are."""
    return "float32" if getattr(data, "dtype", None) == np.float32 else None


def settle(estimator: Any, result: Result) -> None:
    """Set `result_`, `certificate_` and `n_iter_`, and warn if the run did not converge."""
    if clock.interrupted() and result.status is not Status.INTERRUPTED:
        result = replace(result, status=Status.INTERRUPTED)  # in another phase than the solve
    estimator.result_, estimator.certificate_ = result, result.certificate
    estimator.n_iter_ = max(1, result.iterations)
    if not result.status.converged:
        warn(
            f"{type(estimator).__name__} did not converge: {result.status.sentence} "
            f"({result.certificate})",
            ConvergenceWarning,
        )


def principal(factor: Array) -> Array:
    """The factor rotated so that its columns are orthogonal with decreasing norms."""
    if factor.shape[1] == 0:
        return np.zeros((factor.shape[0], 1))
    values, turn = columns_by_size(factor)
    kept = values > 1e-12 * max(float(values[0]), 1e-300)
    kept[0] = True
    turned = (factor @ turn)[:, kept]
    largest = turned[np.argmax(np.abs(turned), axis=0), np.arange(turned.shape[1])]
    return np.ascontiguousarray(turned * np.where(largest < 0, -1.0, 1.0))


def validated(estimator: Any, X: Any, *, sparse: Any = "csr", least: int = 1, reset: bool) -> Any:
    """The samples of an estimator, validated as scikit-learn does; masked arrays are rejected."""
    refuse_masked(X, "X")
    kinds = [np.float64, np.float32]
    with naming_text(X):
        X = validate_data(
            estimator, X, accept_sparse=sparse, dtype=kinds, ensure_min_samples=least, reset=reset
        )
    return ready(X)
