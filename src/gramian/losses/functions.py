"""Functions of losses that are not in the array API standard."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from gramian.arrays.places import namespace, number


def positive(s: Any) -> Any:
    """max(s, 0)."""
    return namespace(s).clip(s, 0.0, None)


def negative(s: Any) -> Any:
    """min(s, 0)."""
    return namespace(s).clip(s, None, 0.0)


def where(condition: Any, s: Any, otherwise: float) -> Any:
    """s if the condition holds, else a number."""
    xp = namespace(s)
    return xp.where(condition, s, xp.full_like(s, otherwise))


def indicator(condition: Any, like: Any) -> Any:
    """1 if the condition holds, else 0, in the precision of another array."""
    return namespace(like).astype(condition, like.dtype)


def softplus(s: Any) -> Any:
    """ln(1 + exp(s))."""
    return namespace(s).logaddexp(s, namespace(s).zeros_like(s))


def expit(s: Any) -> Any:
    """1/(1 + exp(−s))."""
    if isinstance(s, np.ndarray):
        return special.expit(s)
    return namespace(s).exp(-softplus(-s))


def entropy(s: Any) -> Any:
    """s ln s, 0 at 0."""
    xp = namespace(s)
    live = s > 0
    return xp.where(live, s * xp.log(xp.where(live, s, xp.ones_like(s))), xp.zeros_like(s))


def logsumexp(s: Any) -> float:
    """ln Σ exp(s)."""
    xp = namespace(s)
    top = xp.max(s)
    found: float = number(top + xp.log(xp.sum(xp.exp(s - top))))
    return found


def softmax(s: Any) -> Any:
    """exp(s)/Σ exp(s)."""
    xp = namespace(s)
    weights = xp.exp(s - xp.max(s))
    return weights / xp.sum(weights)
