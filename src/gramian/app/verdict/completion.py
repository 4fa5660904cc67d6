"""The verdict on completions: the error on held-out ratings."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from gramian.app.verdict.base import (
    Verdict,
    beyond_chance,
    compared,
    percent,
    untested,
)
from gramian.common import clock
from gramian.common.random_state import generator
from gramian.common.types import Array
from gramian.completion import MMMF, ImplicitCompletion

RATINGS_OUT = 10
"""One in this many ratings is held out."""

DAMPED = 5.0
"""Number of ratings at the overall mean that is added to those of each user and item."""


def verdict_of_completion(model: Any, rows: Any, cols: Any, values: Any) -> Verdict:
    """The error on held-out ratings, compared with that of the means of users and items."""
    values = np.asarray(values, dtype=float)
    if isinstance(model, ImplicitCompletion):
        return _on_lists(model, np.asarray(rows), np.asarray(cols), values)
    if np.ptp(values) == 0:
        return untested(
            f"every rating is {values[0]:g}, so any constant predicts them: for clicks or "
            "purchases use ImplicitCompletion (--method implicit)"
        )
    out = generator(0).random(values.size) < 1 / RATINGS_OUT
    if out.sum() < 2 or (~out).sum() < 2:
        return untested("there are too few ratings")
    clock.phase("the verdict on held-out ratings")
    again = clone(model).set_params(lam=model.lam_)
    again.fit((rows[~out], cols[~out], values[~out]))
    plain = means(rows[~out], cols[~out], values[~out], rows[out], cols[out])
    said = np.asarray(again.predict((rows[out], cols[out])), dtype=float)
    graded = isinstance(model, MMMF)
    if graded:
        levels = np.unique(values)
        plain = levels[np.abs(plain[:, None] - levels).argmin(axis=1)]
    errors = np.abs(np.column_stack([plain, said]) - values[out][:, None]) ** (1 if graded else 2)
    of_means, learned = (errors.mean(axis=0) ** (1.0 if graded else 0.5)).tolist()
    measure = "mean absolute error" if graded else "RMSE"
    gain = errors[:, 0] - errors[:, 1]
    figures = [f"{figure:.4g}" for figure in (of_means, learned)]
    if graded and levels.size == 2:  # such as -1 and 1
        measure, (of_means, learned) = "share of errors", (errors > 0).mean(axis=0).tolist()
        figures = [percent(of_means), percent(learned)]
    sentence = (
        f"{measure} {figures[1]} on {len(gain):,} held-out ratings, where the means of users and "
        f"items have {figures[0]}"
    )
    sentence = compared(sentence, gain.mean(), beyond_chance(gain), "means")
    return Verdict(sentence, measure, of_means, learned, len(gain))


def _on_lists(model: Any, rows: Any, cols: Any, values: Array) -> Verdict:
    """nDCG of lists of ten on held-out entries, compared with lists of the commonest columns."""
    codes = [np.unique(side, return_inverse=True)[1] for side in (rows, cols)]
    pairs = np.unique(codes[0] * (codes[1].max() + 1) + codes[1], return_inverse=True)[1]
    out = (generator(0).random(pairs.max() + 1) < 1 / RATINGS_OUT)[pairs]
    if out.sum() < 2 or (~out).sum() < 2:
        return untested("there are too few entries")
    clock.phase("the verdict on held-out entries")
    entries = rows[~out], cols[~out], values[~out]
    share = getattr(model, "item_share_", 0.0)  # absent in older model files
    again = clone(model).set_params(lam=model.lam_, item_share=share).fit(entries)
    if again.result_.rank == 0 and model.lam == "auto":  # λ is too large for fewer entries
        again = clone(model).fit(entries)
    if again.result_.rank == 0:
        fitted = percent(1 - 1 / RATINGS_OUT)
        return untested(f"from {fitted} of the entries nothing is learned with λ = {again.lam_:g}")
    plain = copy(again)
    plain.row_factors_, plain.col_factors_ = (
        np.zeros((len(factors), 1)) for factors in (again.row_factors_, again.col_factors_)
    )
    plain.item_weights_ = None
    plain.col_biases_ = np.bincount(again._known.indices, minlength=len(again.col_ids_)) * 1.0
    once = np.flatnonzero(out)[np.unique(pairs[out], return_index=True)[1]]
    gains = np.column_stack([one._list_gains(rows[once], cols[once]) for one in (plain, again)])
    if not len(gains):
        return untested("no user has both held-out and other entries")
    common, learned = gains.mean(axis=0).tolist()
    sentence = (
        f"nDCG {learned:.3f} on {once.size:,} held-out entries of {len(gains):,} users, where "
        f"lists of the most common items have {common:.3f}"
    )
    gain = gains[:, 1] - gains[:, 0]
    sentence = compared(sentence, gain.mean(), beyond_chance(gain), "the most common items")
    return Verdict(sentence, "nDCG", common, learned, once.size)


def means(rows: Any, cols: Any, values: Array, new_rows: Any, new_cols: Any) -> Array:
    """The overall mean plus the damped mean deviations of items and users."""
    mean = float(np.mean(values))
    items = _damped(cols, values - mean)
    rest = values - mean - np.array([items[c] for c in cols.tolist()])
    users = _damped(rows, rest)
    pairs = zip(new_rows.tolist(), new_cols.tolist(), strict=True)
    return mean + np.array([items.get(c, 0.0) + users.get(r, 0.0) for r, c in pairs])


def _damped(ids: Any, values: Array) -> dict[Any, float]:
    names, place = np.unique(ids, return_inverse=True)
    sums = np.bincount(place, weights=values) / (np.bincount(place) + DAMPED)
    return dict(zip(names.tolist(), sums.tolist(), strict=True))
