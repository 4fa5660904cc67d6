"""The sentence of a verdict, and when a difference counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from gramian.common.types import Array

CHANCE, FEW_GAINS = 0.05, 30
"""Largest probability under a fair coin of a difference that counts, and the number of gains up to
which their signs must pass this test too: a mean of few gains is not normally distributed."""

LARGEST_COMPARED = 2000
"""Maximum number of features for the comparison with the Euclidean metric and for PCA."""


@dataclass(frozen=True)
class Verdict:
    """A sentence, and the numbers in it.

    The `measure` is `before` without the learned model and `after` with it, on `held_out` rows,
    links, labels or ratings; the numbers are None if nothing could be held out.
    """

    sentence: str
    measure: str = ""
    before: float | None = None
    after: float | None = None
    held_out: int = 0

    def __str__(self) -> str:
        return self.sentence


def untested(why: str) -> Verdict:
    """No verdict, with the reason."""
    return Verdict(f"Not tested on held-out data: {why}.")


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def chance(one: int, other: int) -> float:
    """The probability that a fair coin falls at least as often on the more frequent side."""
    return float(binom.sf(max(one, other) - 1, one + other, 0.5))


def beyond_chance(gain: Array) -> bool:
    """Whether a mean gain exceeds two standard errors, and few gains also the test of signs."""
    doubt = 2.0 * float(np.std(gain)) / math.sqrt(len(gain))
    by_signs = chance(int(np.sum(gain > 0)), int(np.sum(gain < 0))) <= CHANCE
    return abs(float(np.mean(gain))) > doubt and (by_signs or len(gain) > FEW_GAINS)


def compared(sentence: str, gain: float, clear: bool, plain: str) -> str:
    """The sentence about a gain over a baseline, which is called `plain`."""
    if not clear:
        return f"{sentence[0].upper()}{sentence[1:]}: a difference within chance."
    return f"{'It helped' if gain > 0 else f'Worse than {plain}'}: {sentence}."
