"""The verdict: the error on held-out data with and without what was learned, in one sentence.

A certificate bounds the distance to the optimum; the verdict measures whether the model helps.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.manifold import trustworthiness
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize

from gramian.arrays.samples import checked_samples
from gramian.common import clock
from gramian.common.random_state import generator
from gramian.completion import MMMF, ImplicitCompletion
from gramian.graph import neighbor_graph, smoothest
from gramian.neighbours import nearest

Array = NDArray[np.floating]

FEW_GAINS = 30
"""Gains up to which their signs have to speak, too: a mean of few is no normal variable."""

CHANCE = 0.05
"""The probability of a coin that is as one-sided, up to which a difference is not chance."""

FOLDS, QUICK = 5, 2.0
"""Number of folds, and seconds of a fit up to which all of them are held out; otherwise one is."""

MOST_ASKED = 5000
"""Rows that k-NN is asked about at most, chosen by chance where there are more."""

FEWEST_LINKS, LINKS_OUT = 15, 5
"""Links from which on some are held out, and one in how many."""

LABELS_OUT, RATINGS_OUT = 3, 10
"""One in how many labels, and ratings, is held out."""

WIDE = 1000
"""Features beyond which the variance is not decomposed exactly."""

FEWEST_COMPARED, MOST_COMPARED = 100, 3000
"""Samples from which on ways along the graph are compared, and up to which, and neighbours."""

FEWEST_NEIGHBOURS, LANDMARKS, SHORTER = 4, 40, 0.13
"""Neighbours from which on ways are compared, samples that they begin at, and the share by which
one neighbour more makes them shorter where it is a short cut."""

DAMPED = 5.0
"""Ratings at the mean of all that a user's or an item's mean is damped by."""


@dataclass(frozen=True)
class Verdict:
    """A sentence for people, and the figures in it.

    Attributes
    ----------
    sentence : str
    measure : str
        What `before` and `after` are.
    before, after : float or None
        Without what was learned, and with it; None where nothing could be held out.
    held_out : int
        Rows, links, labels or ratings that they were measured on.
    """

    sentence: str
    measure: str = ""
    before: float | None = None
    after: float | None = None
    held_out: int = 0

    def __str__(self) -> str:
        return self.sentence


def untested(why: str) -> Verdict:
    """No verdict, and why."""
    return Verdict(f"Not tested on held-out data: {why}.")


# --- metrics ---------------------------------------------------------------------------


EUCLID_KEPT = (
    "Euclid's metric was kept: nothing that was learned was clearly better on held-out samples"
)
LARGEST_COMPARED = 2000
"""Features up to which a metric is compared with Euclid's."""


def verdict_of_metric(model: Any, X: Any, y: Any, *, k: int = 3, seconds: float = 0.0) -> Verdict:
    """The k-NN errors of a fitted metric by cross-validation, with all its choices in each fold.

    A fold is held out from everything: the steps before the metric, the choice of its weight, the
    metric and the neighbours. Where the model kept Euclid's metric, the error is that of Euclid's
    metric in all folds, since this is what the model does with new samples. At most `MOST_ASKED`
    rows are predicted; the only sample of a class is never held out.

    Parameters
    ----------
    model : a fitted metric learner, or a pipeline that ends with one
    X, y : the samples it was fitted to
    k : int
    seconds : float
        The time of the fit. All folds are held out if it, or the fit to the first fold, took at
        most `QUICK` seconds and the time limit permits; otherwise one. The first fit of a process
        includes compilation, so it can take much longer than those of the folds.
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
    chosen = [several[part] for _, part in parts]
    quick = kept or seconds <= QUICK
    for held_out in chosen:
        train = np.setdiff1d(np.arange(len(y)), held_out)
        test = some(held_out, MOST_ASKED // (folds if quick else 1))
        begun = _now()
        clock.phase("the verdict on held-out rows")
        try:
            again = _refitted(model, _rows(X, train), y[train], kept)
        except ValueError as reason:
            return untested(f"the model cannot be fitted to a part of the rows ({reason})")
        plain += again is not None and keeps_euclid(again)
        wrong.append(wrong_rows(again, _rows(X, train), y[train], _rows(X, test), y[test], k, kept))
        took = _now() - begun
        if not quick and (took > QUICK or clock.left() < 2 * folds * took):
            break
        quick = True
    where = f"{len(wrong)} of {folds} folds"
    if plain and not kept:
        where += f", of which {plain} kept Euclid's metric"
    return of_errors(np.concatenate(wrong), f"{k}-NN", where, kept)


def _refitted(model: Any, X: Any, y: Any, kept: bool) -> Any:
    """The model fitted to some rows; where it kept Euclid's metric, only the steps before it."""
    steps = before(model) if kept else model
    return None if steps is None else clone(steps).fit(X, y)


def keeps_euclid(model: Any) -> bool:
    """Whether a fitted metric is a multiple of Euclid's, in all directions."""
    learner = model[-1] if isinstance(model, Pipeline) else model
    rows = getattr(learner, "components_", None)
    if rows is None or len(rows) < rows.shape[1] or len(rows) > LARGEST_COMPARED:
        unchanged = learner.get_params() if hasattr(learner, "get_params") else {}
        whole = unchanged.get("n_components") is None and unchanged.get("rank") is None
        identity = unchanged.get("regularizer") == "identity"
        return bool(whole and identity and getattr(learner, "lam_", None) == 0)
    M = rows.T @ rows
    scale = float(np.trace(M)) / len(M)
    return bool(np.abs(M - scale * np.eye(len(M))).max() <= 1e-9 * scale)


def with_choice(verdict: Verdict, kept: bool) -> Verdict:
    """The verdict, after a sentence that says so where Euclid's metric was kept."""
    if not kept or verdict.sentence.startswith(EUCLID_KEPT):
        return verdict
    return replace(verdict, sentence=f"{EUCLID_KEPT}. {verdict.sentence}")


def wrong_rows(
    model: Any, X: Any, y: Any, X_test: Any, y_test: Any, k: int, kept: bool = False
) -> Array:
    """Whether k-NN errs on each test row, without the metric and with it.

    Where Euclid's metric was `kept`, `model` has only the steps before it, or is None.
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
    """The samples asked about, and the commonest class among the k nearest others of each.

    All of them, or where there are very many `MOST_ASKED` of them.
    """
    order = shuffled(len(y))
    X, y, size = checked_samples(X)[order], np.asarray(y)[order], len(y)
    asked, k = some(np.arange(size), MOST_ASKED), min(k, size - 1)
    if asked.size == size:
        near = nearest(X, k)
    else:
        near = nearest(X, k, queries=X[asked], apart=(np.arange(size), asked))
    return order[asked], commonest(near.indices, y)


def shuffled(size: int) -> NDArray[np.integer]:
    """An order of samples in which equally near ones, as in tables of categories, are drawn fairly.

    Files are often sorted by class, and of equally near samples the first are taken.
    """
    return generator(0).permutation(size)


def commonest(near: NDArray[np.integer], y: Any) -> NDArray[Any]:
    """The commonest class among the neighbours of each row, the first of equally common ones."""
    classes, codes = np.unique(y, return_inverse=True)
    votes = np.stack([(codes[near] == c).sum(axis=1) for c in range(classes.size)], axis=1)
    called: NDArray[Any] = classes[votes.argmax(axis=1)]
    return called


def some(rows: NDArray[np.integer], most: int) -> NDArray[np.integer]:
    """The rows, or so many of them by chance, in their order."""
    if rows.size <= most:
        return rows
    return np.sort(generator(0).choice(rows, most, replace=False))


def before(model: Any) -> Any:
    """What stands before the metric of a pipeline; None where nothing does."""
    return model[:-1] if isinstance(model, Pipeline) and len(model.steps) > 1 else None


def of_errors(wrong: Array, name: str, where: str, kept: bool = False) -> Verdict:
    """The sentence on the errors without and with the metric, in the columns of `wrong`."""
    better = int(np.sum(wrong[:, 0] > wrong[:, 1]))
    worse = int(np.sum(wrong[:, 1] > wrong[:, 0]))
    plain, learned = (float(np.mean(column)) for column in wrong.T)
    sentence = f"{name} error {percent(plain)} → {percent(learned)} on {len(wrong)} held-out rows"
    sentence = f"{sentence} ({where})"
    if kept:
        sentence = (
            f"{EUCLID_KEPT}; {name} error {percent(plain)} on {len(wrong)} held-out rows ({where})."
        )
    elif better == worse:
        sentence = f"No better than Euclid's metric: {sentence}; keep your features."
    elif chance(better, worse) > CHANCE:
        sentence = (
            f"No clear difference: {sentence}; "
            f"{better} {'row' if better == 1 else 'rows'} became right and {worse} wrong, "
            "which is within chance."
        )
    elif better > worse:
        sentence = f"It helped: {sentence}."
    else:
        sentence = f"Worse than Euclid's metric: {sentence}; keep your features."
    return Verdict(sentence, f"{name} error", plain, learned, len(wrong))


def chance(one: int, other: int) -> float:
    """The probability that a fair coin falls as often, or more, on the commoner side."""
    n, most = one + other, max(one, other)
    if n > 1000:
        return 0.5 * math.erfc((most - 0.5 - n / 2) / math.sqrt(n / 2))
    return sum(math.comb(n, j) for j in range(most, n + 1)) / 2**n


def beyond_chance(gain: Array) -> bool:
    """Whether a mean gain is more than chance makes: two standard errors, and by signs if few."""
    doubt = 2.0 * float(np.std(gain)) / math.sqrt(len(gain))
    by_signs = chance(int(np.sum(gain > 0)), int(np.sum(gain < 0))) <= CHANCE
    return abs(float(np.mean(gain))) > doubt and (by_signs or len(gain) > FEW_GAINS)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _now() -> float:
    return clock.now()


def _rows(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


# --- kernels ---------------------------------------------------------------------------


def verdict_of_kernel(model: Any, X: Any, codes: Any = None, *, seed: int = 0) -> Verdict:
    """Agreement of the clusters with held-out labels or links, by one more fit.

    Parameters
    ----------
    model : a fitted kernel learner
    X : the samples as they reach it
    codes : labels, −1 where unknown, optional
        Without them the verdict is on links.
    seed : int
    """
    if codes is not None:
        return _on_labels(model, X, np.asarray(codes), seed)
    links = model.links_
    count = len(links.pairs)
    alone = of_graph(model)
    if count < FEWEST_LINKS:
        kept, plain = (int(agreeing(labels, links).sum()) for labels in (model.labels_, alone))
        gain = (
            "the links changed nothing" if kept == plain else "links of the fit, not held-out ones"
        )
        return Verdict(
            f"The clusters keep {kept} of the {count} links, those of the graph alone {plain}: "
            f"{gain}; with {FEWEST_LINKS} links or more, some are held out for a test.",
            "links kept", plain / count, kept / count,
        )  # fmt: skip
    out = np.zeros(count, dtype=bool)
    out[generator(seed).permutation(count)[: count // LINKS_OUT]] = True
    clock.phase("the verdict on held-out links")
    again = clone(model).set_params(n_clusters=model.n_clusters_)
    again.fit(X, links=links.pairs[~out], targets=links.targets[~out], weights=links.weights[~out])
    right = np.column_stack([agreeing(labels, links)[out] for labels in (alone, again.labels_)])
    return _of_agreement(right.astype(float), "held-out links")


def _on_labels(model: Any, X: Any, codes: NDArray[Any], seed: int) -> Verdict:
    known = np.flatnonzero(codes >= 0)
    hidden = generator(seed).permutation(known)[: known.size // LABELS_OUT]
    left = codes.copy()
    left[hidden] = -1
    if hidden.size == 0 or np.unique(left[left >= 0]).size < np.unique(codes[known]).size:
        return untested("there are too few labels to hide some")
    clock.phase("the verdict on held-out labels")
    again = clone(model).set_params(n_clusters=model.n_clusters_).fit(X, left)
    right = np.column_stack(
        [
            named(labels, left)[hidden] == codes[hidden]
            for labels in (of_graph(model), again.labels_)
        ]
    )
    return _of_agreement(right.astype(float), "held-out labels")


def named(labels: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
    """Clusters called by the commonest known label in each, −1 where none is known."""
    names = np.full(int(labels.max()) + 1, -1)
    for cluster in np.unique(labels):
        own = codes[(labels == cluster) & (codes >= 0)]
        if own.size:
            names[cluster] = np.bincount(own).argmax()
    called: NDArray[Any] = names[labels]
    return called


def of_graph(model: Any) -> NDArray[Any]:
    """The clusters of the graph alone: k-means on its smoothest waves."""
    waves = smoothest(model.laplacian_, int(model.n_clusters_), constant=True)[1]
    labels: NDArray[Any] = model._k_means().fit(normalize(waves)).labels_
    return labels


def agreeing(labels: NDArray[Any], links: Any) -> NDArray[np.bool_]:
    """Whether clusters agree with each link, soft ones by the nearer side."""
    i, j = links.pairs.T
    same: NDArray[np.bool_] = (labels[i] == labels[j]) == (links.targets > 0.5)
    return same


def _of_agreement(right: Array, what: str) -> Verdict:
    plain, learned = (float(np.mean(column)) for column in right.T)
    gained = int(np.sum(right[:, 1] > right[:, 0]))
    lost = int(np.sum(right[:, 0] > right[:, 1]))
    sentence = (
        f"the clusters agree with {percent(learned)} of {len(right)} {what}, "
        f"those of the graph alone with {percent(plain)}"
    )
    if gained == lost:
        sentence = f"No better than the graph alone: {sentence}."
    elif chance(gained, lost) > CHANCE:
        sentence = f"{sentence[0].upper()}{sentence[1:]}: a difference within chance."
    else:
        sentence = f"{'It helped' if gained > lost else 'Worse than the graph alone'}: {sentence}."
    return Verdict(sentence, f"agreement with {what}", plain, learned, len(right))


# --- completions -----------------------------------------------------------------------


def verdict_of_completion(
    model: Any, rows: Any, cols: Any, values: Any, *, seed: int = 0
) -> Verdict:
    """The error on held-out ratings, compared with that of the means of users and items."""
    values = np.asarray(values, dtype=float)
    if isinstance(model, ImplicitCompletion):
        return _on_lists(model, np.asarray(rows), np.asarray(cols), values, seed)
    if np.ptp(values) == 0:
        return untested(
            f"every rating is {values[0]:g}, so any constant predicts them: for clicks and the "
            "like there is ImplicitCompletion (--method implicit)"
        )
    out = generator(seed).random(values.size) < 1 / RATINGS_OUT
    if out.sum() < 2 or (~out).sum() < 2:
        return untested("there are too few ratings")
    clock.phase("the verdict on held-out ratings")
    again = clone(model).set_params(lam=model.lam_)
    again.fit((rows[~out], cols[~out], values[~out]))
    truth = values[out]
    plain = means(rows[~out], cols[~out], values[~out], rows[out], cols[out])
    said = np.asarray(again.predict((rows[out], cols[out])), dtype=float)
    measure = "mean absolute error" if isinstance(model, MMMF) else "RMSE"
    if isinstance(model, MMMF):
        levels = np.unique(values)
        plain = levels[np.abs(plain[:, None] - levels).argmin(axis=1)]
        errors = np.abs(np.column_stack([plain, said]) - truth[:, None])
        of_means, learned = (float(e) for e in errors.mean(axis=0))
    else:
        errors = (np.column_stack([plain, said]) - truth[:, None]) ** 2
        of_means, learned = (float(np.sqrt(e)) for e in errors.mean(axis=0))
    return _of_ratings(errors, measure, of_means, learned)


def _fitted_to_less(model: Any, entries: tuple[Any, Any, Array]) -> Any:
    """The model fitted to a part of its entries: by its λ, or where that leaves nothing of so few
    by one that is chosen again, if it was chosen.
    """
    again = clone(model).set_params(lam=model.lam_).fit(entries)
    if again.result_.rank == 0 and model.lam == "auto":
        again = clone(model).fit(entries)
    return again


def _on_lists(model: Any, rows: Any, cols: Any, values: Array, seed: int) -> Verdict:
    """nDCG of lists of ten on held-out entries, compared with lists of the commonest columns."""
    codes = [np.unique(side, return_inverse=True)[1] for side in (rows, cols)]
    pairs = np.unique(codes[0] * (codes[1].max() + 1) + codes[1], return_inverse=True)[1]
    out = (generator(seed).random(pairs.max() + 1) < 1 / RATINGS_OUT)[pairs]
    if out.sum() < 2 or (~out).sum() < 2:
        return untested("there are too few entries")
    clock.phase("the verdict on held-out entries")
    again = _fitted_to_less(model, (rows[~out], cols[~out], values[~out]))
    if again.result_.rank == 0:
        return untested(
            f"of {percent(1 - 1 / RATINGS_OUT)} of the entries nothing is learned with λ = "
            f"{again.lam_:g}"
        )
    plain = copy(again)
    plain.row_factors_, plain.col_factors_ = (
        np.zeros((len(factors), 1)) for factors in (again.row_factors_, again.col_factors_)
    )
    plain.col_biases_ = np.bincount(again._known.indices, minlength=len(again.col_ids_)) * 1.0
    once = np.flatnonzero(out)[np.unique(pairs[out], return_index=True)[1]]
    gains = np.column_stack([one._list_gains(rows[once], cols[once]) for one in (plain, again)])
    if not len(gains):
        return untested("no user has entries both held out and left")
    common, learned = (float(mean) for mean in gains.mean(axis=0))
    sentence = (
        f"nDCG {learned:.3f} on {once.size:,} held-out entries of {len(gains):,} users, where "
        f"lists of what is most common have {common:.3f}"
    )
    gain = gains[:, 1] - gains[:, 0]
    if not beyond_chance(gain):
        sentence = f"{sentence}: a difference within chance."
    else:
        sentence = f"{'It helped' if gain.mean() > 0 else 'Worse than what is common'}: {sentence}."
    return Verdict(sentence, "nDCG", common, learned, once.size)


def _of_ratings(errors: Array, measure: str, plain: float, learned: float) -> Verdict:
    gain = errors[:, 0] - errors[:, 1]
    sentence = (
        f"{measure} {learned:.4g} on {len(gain):,} held-out ratings, where the means of users and "
        f"items have {plain:.4g}"
    )
    if not beyond_chance(gain):
        sentence = f"{sentence}: a difference within chance."
    elif np.mean(gain) > 0:
        sentence = f"It helped: {sentence}."
    else:
        sentence = f"Worse than means: {sentence}."
    return Verdict(sentence, measure, plain, learned, len(gain))


def means(rows: Any, cols: Any, values: Array, new_rows: Any, new_cols: Any) -> Array:
    """The mean of all, and what items and users differ from it by on average, damped."""
    mean = float(np.mean(values))
    items = _damped(cols, values - mean)
    rest = values - mean - np.array([items[c] for c in cols.tolist()])
    users = _damped(rows, rest)
    return mean + np.array(
        [
            items.get(c, 0.0) + users.get(r, 0.0)
            for r, c in zip(new_rows.tolist(), new_cols.tolist(), strict=True)
        ]
    )


def _damped(ids: Any, values: Array) -> dict[Any, float]:
    names, place = np.unique(ids, return_inverse=True)
    sums = np.bincount(place, weights=values) / (np.bincount(place) + DAMPED)
    return dict(zip(names.tolist(), sums.tolist(), strict=True))


# --- embeddings ------------------------------------------------------------------------


def verdict_of_embedding(fitted: Any, X: Any) -> Verdict:
    """How far distances are kept, and the share of the variance compared with that of PCA.

    Also the trustworthiness of the picture, and short cuts of the graph, which no unfolding can
    undo.
    """
    if hasattr(fitted, "torn_"):
        return _verdict_of_picture(fitted, X)
    k = fitted.embedding_.shape[1]
    learned = float(fitted.explained_variance_ratio_[:k].sum())
    words = {1: "One dimension holds", 2: "Two dimensions hold", 3: "Three dimensions hold"}
    sentence = f"{words.get(k, f'{k} dimensions hold')} {percent(learned)} of the variance"
    sentence = f"{_change(fitted)} {sentence}"
    if _given_distances(fitted):
        return Verdict(f"{sentence}.{_trusted(fitted, X)}")
    plain = float(_linear_shares(X, k).sum())
    sentence += f"; of the samples as they are, PCA's hold {percent(plain)}"
    if learned <= plain + 0.01:
        sentence += ": nothing was unfolded; fewer neighbours may (--neighbors)"
    sentence = f"{sentence}.{_trusted(fitted, X)}"
    cut = short_cut(X, fitted.n_neighbors)
    if cut is not None:
        first, loss = cut
        sentence += (
            f" With {first} neighbours the graph takes a short cut (ways along it are "
            f"{percent(loss)} shorter than with {first - 1}): try {first - 1}."
        )
    return Verdict(sentence, "share of the variance", plain, learned)


def edge_errors(fitted: Any) -> Array:
    """|d_e − D_e|/D_e of the distances between neighbours, D before and d after unfolding.

    An edge of length 0 is measured by the mean length.
    """
    i, j = fitted.graph_.edges.T
    found = np.linalg.norm(fitted.kernel_factor_[i] - fitted.kernel_factor_[j], axis=1)
    given = np.sqrt(fitted.graph_.sq_distances)
    errors: Array = np.abs(found - given) / np.where(given > 0, given, given.mean() or 1.0)
    return errors


def _change(fitted: Any) -> str:
    """How far distances between neighbours are kept, in words."""
    errors = edge_errors(fitted)
    return (
        f"Distances between neighbours change by {percent(float(np.median(errors)))} (median) and "
        f"{percent(float(errors.max()))} (largest)."
    )


def _verdict_of_picture(fitted: Any, X: Any) -> Verdict:
    """How far neighbourhoods are kept, compared with PCA, and the cost of few dimensions."""
    cost = fitted.certificate_.relative_gap
    sentence = f"{percent(fitted.torn_)} of the edges are torn"
    if cost is not None:
        sentence += (
            f", and no number of dimensions has a value that is better by more than {percent(cost)}"
        )
    if (
        _given_distances(fitted)
        or X.shape[0] > MOST_COMPARED
        or fitted.n_neighbors >= X.shape[0] / 2
    ):
        return Verdict(f"{sentence}.{_trusted(fitted, X)}")
    flat = TruncatedSVD(fitted.embedding_.shape[1], random_state=0)
    plain = flat.fit_transform(X if sp.issparse(X) else X - np.mean(X, axis=0))
    before, after = (
        trustworthiness(X, Z, n_neighbors=fitted.n_neighbors) for Z in (plain, fitted.embedding_)
    )
    sentence += f". Trustworthiness {after:.3f}, where PCA's picture has {before:.3f}."
    return Verdict(sentence, "trustworthiness", float(before), float(after))


def _given_distances(fitted: Any) -> bool:
    return getattr(fitted, "metric", "") == "precomputed"


def _trusted(fitted: Any, X: Any) -> str:
    n, near = X.shape[0], fitted.n_neighbors
    given = _given_distances(fitted)
    if n > MOST_COMPARED or near >= n / 2 or (given and sp.issparse(X)):
        return ""
    metric = "precomputed" if given else "euclidean"
    share = trustworthiness(X, fitted.embedding_, n_neighbors=near, metric=metric)
    return f" Trustworthiness {share:.3f}: 1 where all neighbours in the picture are neighbours."


def short_cut(X: Any, k: int) -> tuple[int, float] | None:
    """The first number of neighbours, up to k, that shortens the ways along the graph at a stroke.

    Ways get shorter by a few percent with each neighbour more. Where they do by more than
    `SHORTER`, edges have come in that leave the manifold: from one turn of a roll to the next.
    Returns that number and the share by which they are shorter, None where there is none.
    """
    if not FEWEST_NEIGHBOURS < k < X.shape[0] or not FEWEST_COMPARED <= X.shape[0] <= MOST_COMPARED:
        return None
    marks = generator(0).permutation(X.shape[0])[:LANDMARKS]
    before = _mean_way(X, FEWEST_NEIGHBOURS, marks)
    for count in range(FEWEST_NEIGHBOURS + 1, k + 1):
        now = _mean_way(X, count, marks)
        if now < (1.0 - SHORTER) * before:
            return count, 1.0 - now / before
        before = now
    return None


def _mean_way(X: Any, k: int, marks: NDArray[Any]) -> float:
    """The mean length of the shortest ways along the neighbourhood graph, from a few samples."""
    graph = neighbor_graph(X, k, connect="mst")
    i, j = graph.edges.T
    lengths = np.sqrt(np.maximum(graph.sq_distances, 1e-300))
    ways = sp.coo_array((lengths, (i, j)), shape=(X.shape[0],) * 2).tocsr()
    return float(np.mean(dijkstra(ways, directed=False, indices=marks)))


def _linear_shares(X: Any, k: int) -> Array:
    if X.shape[1] > WIDE:
        return np.asarray(TruncatedSVD(k, random_state=0).fit(X).explained_variance_ratio_)
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        scatter = (X.T @ X).toarray() / X.shape[0] - np.outer(mean, mean)
    else:
        scatter = np.cov(np.asarray(X, dtype=float), rowvar=False, bias=True)
    values = np.linalg.eigvalsh(np.atleast_2d(scatter))[::-1]
    return values[:k] / max(float(values.sum()), 1e-300)
