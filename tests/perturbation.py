"""Inputs changed in their last bits, for `pytest --perturb SEED`.

A correct result does not depend on the order of additions, so a test that passes for some inputs
must pass for inputs that differ from them by rounding. The change is a function of the number
alone: equal numbers stay equal, symmetric matrices symmetric, and copies of a row copies of it.
Powers of two are factored out first, so that data in other units are changed alike. Numbers with
a short mantissa (whole numbers, halves, labels, counts) are meant exactly and stay as they are.
"""

import importlib
from functools import wraps

import numpy as np
import scipy.sparse as sp

SIZE = 1e-15
"""The relative change, at most twice this."""

SHORT = 2.0**16
"""Mantissas that are multiples of 1/SHORT stay as they are."""

ESTIMATORS, PROBLEMS, LOSSES = (
    "gramian.estimators.persistence",
    "gramian.problems",
    "gramian.losses",
)


def perturbed(values, seed):
    """The numbers of a float64 array times 1 + SIZE·noise, the noise a function of the number."""
    mantissa, _ = np.frexp(np.abs(values))
    with np.errstate(over="ignore"):
        bits = np.asarray(mantissa).view(np.uint64) ^ np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
        noise = 4.0 * (bits >> np.uint64(11)).astype(float) / 2.0**53 - 2.0
    exact = ~np.isfinite(values) | (mantissa * SHORT == np.round(mantissa * SHORT))
    return np.asarray(np.where(exact, values, values * (1.0 + SIZE * noise)))


def perturbed_argument(given, seed):
    """An argument with its float64 arrays perturbed; anything else as it is."""
    if type(given) in (tuple, list):
        return type(given)(perturbed_argument(part, seed) for part in given)
    if type(given) is np.ndarray:
        return perturbed(given, seed) if given.dtype == np.float64 else given
    if type(given).__module__.startswith("pandas") and hasattr(given, "select_dtypes"):
        floats, changed = given.select_dtypes("float64"), given.copy()
        changed[floats.columns] = perturbed(floats.to_numpy(), seed)
        return changed
    if not sp.issparse(given) or type(given).__name__.startswith(("lil", "dok")):
        return given
    changed = given.copy()
    changed.data = perturbed_argument(given.data, seed)
    return changed


def perturb_everything(seed):
    """Perturb what enters the estimators, the problems and the losses from now on."""
    depth = 0

    def taking(function):
        @wraps(function)
        def called(*given, **named):
            nonlocal depth
            if depth == 0:  # what a problem hands on to its losses is perturbed already
                given = tuple(perturbed_argument(part, seed) for part in given)
                named = {name: perturbed_argument(part, seed) for name, part in named.items()}
            depth += 1
            try:
                return function(*given, **named)
            finally:
                depth -= 1

        return called

    estimators = importlib.import_module(ESTIMATORS)
    at_hand = estimators._at_hand

    def perturbed_at_hand(given):
        found = at_hand(given)  # which calls this function for each part of a tuple
        return found if isinstance(given, tuple) else perturbed_argument(found, seed)

    estimators._at_hand = perturbed_at_hand
    problems, losses = importlib.import_module(PROBLEMS), importlib.import_module(LOSSES)
    for name in problems.__all__:
        setattr(problems, name, taking(getattr(problems, name)))
    for name in losses.__all__:
        loss = getattr(losses, name)
        if "__init__" in vars(loss):
            loss.__init__ = taking(loss.__init__)
