"""Validation of the arguments of `minimize`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from gramian.common import clock
from gramian.common.parameters import TOLERANCE
from gramian.common.random_state import generator
from gramian.methods.base import Settings, Solver
from gramian.problem import Problem

PROOFS = ("auto", "proved", "estimated")


def check_proof(proof: str) -> None:
    """Raise ValueError if `proof` is unknown."""
    if proof not in PROOFS:
        raise ValueError(f"proof must be one of {', '.join(PROOFS)}, got {proof!r}")


def is_single(dtype: Any) -> bool:
    """Whether first-order steps are computed in float32."""
    if dtype is None:
        return False
    try:
        known = np.dtype(dtype)
    except TypeError:
        known = None
    if known not in (np.float32, np.float64):
        raise ValueError(f'dtype must be None, "float32" or "float64", got {dtype!r}')
    return bool(known == np.float32)


def settings_for(
    problem: Problem,
    rank: int | None,
    tol: float,
    time_limit: float | None,
    random_state: Any,
    started: float,
) -> Settings:
    """The settings of a run, validated."""
    if rank is not None:
        if not isinstance(rank, Integral) or isinstance(rank, bool):
            raise ValueError(f"rank must be a whole number, got {rank!r}")
        if not 1 <= rank <= problem.order:
            raise ValueError(
                f"rank must lie between 1 and the order of M, {problem.order}, got {rank}"
            )
    TOLERANCE.check(tol, "tol")
    if time_limit is not None and not (isinstance(time_limit, Real) and time_limit > 0):
        raise ValueError(f"time_limit must be a number of seconds above 0, got {time_limit!r}")
    deadline = np.inf if time_limit is None else started + time_limit
    deadline = min(deadline, clock.budget_end())
    return Settings(
        None if rank is None else int(rank), float(tol), generator(random_state), deadline, started
    )


def iteration_limit(max_iter: int | None, default: float) -> float:
    """The maximum number of iterations, validated."""
    if max_iter is None:
        return default
    if not isinstance(max_iter, Integral) or max_iter < 0:
        raise ValueError(f"max_iter must be a whole number of at least 0, got {max_iter!r}")
    return int(max_iter)


def check_options(solver: Solver, options: dict[str, Any], own: Iterable[str]) -> None:
    """Raise TypeError for unknown options; suggest the closest one of the solver and of `own`."""
    unknown = sorted(set(options) - set(solver.options))
    if unknown:
        known = [*own, *solver.options]
        near = difflib.get_close_matches(unknown[0], known, n=1)
        near = near or [name for name in known if unknown[0].startswith(name)]
        hint = f"did you mean {near[0]}? " if near else ""
        raise TypeError(
            f"solver {solver.name!r} has no option {', '.join(unknown)}; {hint}"
            f"it has: {', '.join(solver.options) or 'none'}"
        )
