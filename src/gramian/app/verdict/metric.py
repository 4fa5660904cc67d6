"""The verdict on metrics: the error of k-NN on held-out rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline

from gramian.app.verdict.base import (
    CHANCE,
    LARGEST_COMPARED,
    Verdict,
    chance,
    percent,
    untested,
)
from gramian.arrays.samples import checked_samples
from gramian.common import clock
from gramian.common.random_state import generator
from gramian.common.types import Array
from gramian.neighbours import nearest

FOLDS, QUICK = 5, 250_000
"""Number of folds, and the size of the samples (their number times the smaller side) up to which
all are held out, otherwise one. The sizes decide, and not the seconds of a fit, so that the same
seed gives the same verdict under any load."""

MOST_ASKED = 5000
"""Rows that k-NN predicts at most, chosen at random if there are more."""

EUCLID_KEPT = (
    "The Euclidean metric was kept: no learned metric was clearly better on held-out samples"
)


def verdict_of_metric(model: Any, X: Any, y: Any, *, k: int = 3) -> Verdict:
    """The k-NN errors of a fitted metric by cross-validation, with all its choices in each fold.

    A fold is held out from everything: the steps before the metric, the choice of its weight, the
    metric and the neighbours. If the model kept the Euclidean metric, the error is that of the
    Euclidean metric in all folds, because the model uses it for new samples. At most `MOST_ASKED`
    rows are predicted; the only sample of a class is never held out. Only one fold is held out of
    samples that are larger than `QUICK`, and no fold that would exceed a time limit.
    """
    y = np.asarray(y)
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    several = np.flatnonzero(counts[codes] > 1)
    kept = keeps_euclid(model)
    if several.size == 0:
        return with_choice(untested("no class has two samples"), kept)
    folds = min(FOLDS, int(counts[counts > 1].min()))
    wrong: list[Array] = []
    plain = 0
    parts = StratifiedKFold(folds, shuffle=True, random_state=0).split(several, codes[several])
    planned = folds if kept or len(y) * min(X.shape) <= QUICK else 1
    asked = MOST_ASKED // planned
    learner = before(model) if kept else model
    for held_out in [several[part] for _, part in list(parts)[:planned]]:
        train = np.setdiff1d(np.arange(len(y)), held_out)
        test = some(held_out, asked)
        begun = clock.now()
        clock.phase("the verdict on held-out rows")
        try:
            again = None if learner is None else clone(learner).fit(_rows(X, train), y[train])
        except ValueError as reason:
            return untested(f"the model cannot be fitted to a part of the rows ({reason})")
        plain += again is not None and keeps_euclid(again)
        wrong.append(wrong_rows(again, _rows(X, train), y[train], _rows(X, test), y[test], k, kept))
        if clock.elapsed(begun) > clock.left() / 2:
            break
    where = f"{len(wrong)} of {folds} folds"
    if plain and not kept:
        where += f", of which {plain} kept the Euclidean metric"
    return of_errors(np.concatenate(wrong), f"{k}-NN", where, kept)


def keeps_euclid(model: Any) -> bool:
    """Whether a fitted metric is a multiple of the Euclidean one in all directions."""
    learner = model[-1] if isinstance(model, Pipeline) else model
    rows = getattr(learner, "components_", None)
    if rows is None or len(rows) < rows.shape[1] or len(rows) > LARGEST_COMPARED:
        given = learner.get_params() if hasattr(learner, "get_params") else {}
        whole = given.get("n_components") is None and given.get("rank") is None
        identity = given.get("regularizer") == "identity"
        return bool(whole and identity and getattr(learner, "lam_", None) == 0)
    M = rows.T @ rows
    scale = float(np.trace(M)) / len(M)
    return bool(np.abs(M - scale * np.eye(len(M))).max() <= 1e-9 * scale)


def with_choice(verdict: Verdict, kept: bool) -> Verdict:
    """The verdict, preceded by a sentence about the Euclidean metric if it was kept."""
    if not kept or verdict.sentence.startswith(EUCLID_KEPT):
        return verdict
    return replace(verdict, sentence=f"{EUCLID_KEPT}. {verdict.sentence}")


def with_selection(verdict: Verdict, path: Any) -> Verdict:
    """A verdict without a test, followed by the held-out error by which the learner was chosen."""
    nested = getattr(path, "nested_error", np.nan)
    if verdict.measure or np.isnan(nested):
        return verdict
    errors = f"{percent(float(path.errors[0]))} → {percent(nested)}"
    chosen = f"The learner was chosen by the {path.measure}: {errors} of {path.held_out:,} samples"
    return replace(verdict, sentence=f"{verdict.sentence} {chosen}.")


def wrong_rows(
    model: Any, X: Any, y: Any, X_test: Any, y_test: Any, k: int, kept: bool = False
) -> Array:
    """Whether k-NN errs on each test row, without the metric and with it.

    If the Euclidean metric was `kept`, `model` has only the steps before it, or is None.
    """
    columns = []
    for view in [model] if kept else [before(model), model]:
        mapped, test = (X, X_test) if view is None else (view.transform(X), view.transform(X_test))
        order = shuffled(len(y))
        mapped, test = checked_samples(mapped)[order], checked_samples(test)
        near = nearest(mapped, min(k, len(y)), queries=test).indices
        columns.append(commonest(near, y[order]) != y_test)
    return np.column_stack([columns[0], columns[-1]]).astype(float)


def voted(X: Any, y: Any, k: int) -> tuple[NDArray[np.integer], NDArray[Any]]:
    """Some samples (all up to `MOST_ASKED`), and the commonest class of their k neighbours."""
    order = shuffled(len(y))
    X, y, size = checked_samples(X)[order], np.asarray(y)[order], len(y)
    asked, k = some(np.arange(size), MOST_ASKED), min(k, size - 1)
    if asked.size == size:
        near = nearest(X, k)
    else:
        near = nearest(X, k, queries=X[asked], apart=(np.arange(size), asked))
    return order[asked], commonest(near.indices, y)


def shuffled(size: int) -> NDArray[np.integer]:
    """A random order of samples, which avoids a bias among equally near ones.

    Files are often sorted by class, and of equally near samples the first are taken.
    """
    return generator(0).permutation(size)


def commonest(near: NDArray[np.integer], y: Any) -> NDArray[Any]:
    """The commonest class among the neighbours of each row, the first of equally common ones."""
    classes, codes = np.unique(y, return_inverse=True)
    votes = np.stack([(codes[near] == c).sum(axis=1) for c in range(classes.size)], axis=1)
    return classes[votes.argmax(axis=1)]


def some(rows: NDArray[np.integer], most: int) -> NDArray[np.integer]:
    """The rows, or a random choice of `most` of them, in their order."""
    return rows if rows.size <= most else np.sort(generator(0).choice(rows, most, replace=False))


def before(model: Any) -> Any:
    """The steps before the metric of a pipeline; None without any."""
    return model[:-1] if isinstance(model, Pipeline) and len(model.steps) > 1 else None


def of_errors(wrong: Array, name: str, where: str, kept: bool = False) -> Verdict:
    """The verdict on the errors without and with the metric, in the columns of `wrong`."""
    better = int(np.sum(wrong[:, 0] > wrong[:, 1]))
    worse = int(np.sum(wrong[:, 1] > wrong[:, 0]))
    plain, learned = (float(np.mean(column)) for column in wrong.T)
    errors = percent(plain) if kept else f"{percent(plain)} → {percent(learned)}"
    sentence = f"{name} error {errors} on {len(wrong)} held-out rows ({where})"
    if kept:
        sentence = f"{EUCLID_KEPT}; {sentence}."
    elif better == worse:
        sentence = (
            f"The learned metric is no better than the Euclidean one: {sentence}; "
            "you do not need it."
        )
    elif chance(better, worse) > CHANCE:
        rows = "row" if better == 1 else "rows"
        sentence = (
            f"No clear difference: {sentence}; {better} {rows} became right and {worse} wrong, "
            "which is within chance."
        )
    elif better > worse:
        sentence = f"It helped: {sentence}."
    else:
        sentence = f"The learned metric is worse than the Euclidean one: {sentence}; do not use it."
    return Verdict(sentence, f"{name} error", plain, learned, len(wrong))


def _rows(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
