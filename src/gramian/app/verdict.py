"""The verdict: the error on held-out data with and without the learned model, in one sentence.

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
from scipy.stats import binom
from sklearn.base import clone
from sklearn.decomposition import PCA, TruncatedSVD
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

CHANCE, FEW_GAINS = 0.05, 30
"""Largest probability under a fair coin of a difference that counts, and the number of gains up to
which their signs must pass this test too: a mean of few gains is not normally distributed."""

FOLDS, QUICK = 5, 2.0
"""Number of folds, and the seconds of a fit up to which all of them are held out, not only one."""

MOST_ASKED = 5000
"""Rows that k-NN predicts at most, chosen at random if there are more."""

FEWEST_LINKS = 15
"""Number of links from which on some are held out."""

LINKS_OUT, LABELS_OUT, RATINGS_OUT = 5, 3, 10
"""One in this many links, labels and ratings is held out."""

LARGEST_COMPARED = 2000
"""Features up to which a metric is compared with Euclid's, and samples are analysed by PCA."""

FEWEST_COMPARED, MOST_COMPARED = 100, 3000
"""Numbers of samples between which path lengths are compared; neighbourhoods up to the second."""

FEWEST_NEIGHBOURS, LANDMARKS, SHORTER = 4, 40, 0.13
"""Neighbours from which on path lengths are compared, samples at which the paths start, and the
relative decrease of path lengths by one more neighbour that indicates a short cut."""

DAMPED = 5.0
"""Number of ratings at the overall mean that is added to those of each user and item."""

EUCLID_KEPT = "Euclid's metric was kept: no learned metric was clearly better on held-out samples"


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


def _compared(sentence: str, gain: float, clear: bool, plain: str) -> str:
    """The sentence about a gain over a baseline, which is called `plain`."""
    if not clear:
        return f"{sentence[0].upper()}{sentence[1:]}: a difference within chance."
    return f"{'It helped' if gain > 0 else f'Worse than {plain}'}: {sentence}."


# --- metrics ---------------------------------------------------------------------------


def verdict_of_metric(model: Any, X: Any, y: Any, *, k: int = 3, seconds: float = 0.0) -> Verdict:
    """The k-NN errors of a fitted metric by cross-validation, with all its choices in each fold.

    A fold is held out from everything: the steps before the metric, the choice of its weight, the
    metric and the neighbours. If the model kept Euclid's metric, the error is that of Euclid's
    metric in all folds, since this is what the model does with new samples. At most `MOST_ASKED`
    rows are predicted; the only sample of a class is never held out. All folds are held out if the
    fit (which took `seconds`) or that to the first fold took at most `QUICK` seconds and the time
    limit permits; otherwise one. The first fit of a process includes compilation, so it can take
    much longer than those of the folds.
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
    quick = kept or seconds <= QUICK
    learner = before(model) if kept else model
    for held_out in [several[part] for _, part in parts]:
        train = np.setdiff1d(np.arange(len(y)), held_out)
        test = some(held_out, MOST_ASKED // (folds if quick else 1))
        begun = clock.now()
        clock.phase("the verdict on held-out rows")
        try:
            again = None if learner is None else clone(learner).fit(_rows(X, train), y[train])
        except ValueError as reason:
            return untested(f"the model cannot be fitted to a part of the rows ({reason})")
        plain += again is not None and keeps_euclid(again)
        wrong.append(wrong_rows(again, _rows(X, train), y[train], _rows(X, test), y[test], k, kept))
        took = clock.now() - begun
        if not quick and (took > QUICK or clock.left() < 2 * folds * took):
            break
        quick = True
    where = f"{len(wrong)} of {folds} folds"
    if plain and not kept:
        where += f", of which {plain} kept Euclid's metric"
    return of_errors(np.concatenate(wrong), f"{k}-NN", where, kept)


def keeps_euclid(model: Any) -> bool:
    """Whether a fitted metric is a multiple of Euclid's, in all directions."""
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
    """The verdict, preceded by a sentence about Euclid's metric if it was kept."""
    if not kept or verdict.sentence.startswith(EUCLID_KEPT):
        return verdict
    return replace(verdict, sentence=f"{EUCLID_KEPT}. {verdict.sentence}")


def wrong_rows(
    model: Any, X: Any, y: Any, X_test: Any, y_test: Any, k: int, kept: bool = False
) -> Array:
    """Whether k-NN errs on each test row, without the metric and with it.

    If Euclid's metric was `kept`, `model` has only the steps before it, or is None.
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
    called: NDArray[Any] = classes[votes.argmax(axis=1)]
    return called


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
        sentence = f"No better than Euclid's metric: {sentence}; keep your features."
    elif chance(better, worse) > CHANCE:
        rows = "row" if better == 1 else "rows"
        sentence = (
            f"No clear difference: {sentence}; {better} {rows} became right and {worse} wrong, "
            "which is within chance."
        )
    elif better > worse:
        sentence = f"It helped: {sentence}."
    else:
        sentence = f"Worse than Euclid's metric: {sentence}; keep your features."
    return Verdict(sentence, f"{name} error", plain, learned, len(wrong))


def _rows(X: Any, rows: Any) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


# --- kernels ---------------------------------------------------------------------------


def verdict_of_kernel(model: Any, X: Any, codes: Any = None) -> Verdict:
    """Agreement of the clusters with held-out labels or links, by one more fit.

    X are the samples as they reach the fitted kernel learner, and `codes` the labels, −1 if
    unknown; without them the verdict is on links.
    """
    again = clone(model).set_params(n_clusters=model.n_clusters_)
    alone = of_graph(model)
    if codes is not None:
        codes = np.asarray(codes)
        known = np.flatnonzero(codes >= 0)
        hidden = generator(0).permutation(known)[: known.size // LABELS_OUT]
        left = codes.copy()
        left[hidden] = -1
        if hidden.size == 0 or np.unique(left[left >= 0]).size < np.unique(codes[known]).size:
            return untested("there are too few labels to hide some")
        clock.phase("the verdict on held-out labels")
        found = alone, again.fit(X, left).labels_
        right = [majority(labels, left)[labels[hidden]] == codes[hidden] for labels in found]
        return _of_agreement(right, "held-out labels")
    links = model.links_
    count = len(links.pairs)
    if count < FEWEST_LINKS:
        kept, plain = (int(agreeing(labels, links).sum()) for labels in (model.labels_, alone))
        gain = "the links changed nothing" if kept == plain else "these links were in the fit"
        return Verdict(
            f"The clusters agree with {kept} of the {count} links, those of the graph alone with "
            f"{plain}: {gain}; with {FEWEST_LINKS} links or more, some are held out for a test.",
            "links kept", plain / count, kept / count,
        )  # fmt: skip
    out = np.zeros(count, dtype=bool)
    out[generator(0).permutation(count)[: count // LINKS_OUT]] = True
    clock.phase("the verdict on held-out links")
    again.fit(X, links=links.pairs[~out], targets=links.targets[~out], weights=links.weights[~out])
    right = [agreeing(labels, links)[out] for labels in (alone, again.labels_)]
    return _of_agreement(right, "held-out links")


def majority(labels: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
    """The commonest known label in each cluster, −1 if none is known."""
    known = codes >= 0
    counts = np.zeros((int(labels.max()) + 1, int(codes.max(initial=0)) + 1))
    np.add.at(counts, (labels[known], codes[known]), 1)
    return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)


def of_graph(model: Any) -> NDArray[Any]:
    """The clusters of the graph alone: k-means on its smoothest eigenvectors."""
    waves = smoothest(model.laplacian_, int(model.n_clusters_), constant=True)[1]
    labels: NDArray[Any] = model._k_means().fit(normalize(waves)).labels_
    return labels


def agreeing(labels: NDArray[Any], links: Any) -> NDArray[np.bool_]:
    """Whether clusters agree with each link; a soft link is rounded."""
    i, j = links.pairs.T
    same: NDArray[np.bool_] = (labels[i] == labels[j]) == (links.targets > 0.5)
    return same


def _of_agreement(right: list[NDArray[np.bool_]], what: str) -> Verdict:
    """The verdict on agreement by the graph alone and with the kernel."""
    alone, taught = right
    plain, learned = float(np.mean(alone)), float(np.mean(taught))
    gained, lost = int(np.sum(taught & ~alone)), int(np.sum(alone & ~taught))
    sentence = (
        f"the clusters agree with {percent(learned)} of {alone.size} {what}, "
        f"those of the graph alone with {percent(plain)}"
    )
    if gained == lost:
        sentence = f"No better than the graph alone: {sentence}."
    else:
        clear = chance(gained, lost) <= CHANCE
        sentence = _compared(sentence, gained - lost, clear, "the graph alone")
    return Verdict(sentence, f"agreement with {what}", plain, learned, alone.size)


# --- completions -----------------------------------------------------------------------


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
    sentence = (
        f"{measure} {learned:.4g} on {len(gain):,} held-out ratings, where the means of users and "
        f"items have {of_means:.4g}"
    )
    sentence = _compared(sentence, gain.mean(), beyond_chance(gain), "means")
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
    share = getattr(model, "item_share_", 0.0)  # not in older model files
    again = clone(model).set_params(lam=model.lam_, item_share=share).fit(entries)
    if again.result_.rank == 0 and model.lam == "auto":  # λ is too large for fewer entries
        again = clone(model).fit(entries)
    if again.result_.rank == 0:
        share = percent(1 - 1 / RATINGS_OUT)
        return untested(f"from {share} of the entries nothing is learned with λ = {again.lam_:g}")
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
    sentence = _compared(sentence, gain.mean(), beyond_chance(gain), "the most common items")
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


# --- embeddings ------------------------------------------------------------------------


def verdict_of_embedding(fitted: Any, X: Any) -> Verdict:
    """How well distances are kept, and the share of the variance compared with that of PCA.

    Also the trustworthiness of the picture, and short cuts of the graph, which prevent unfolding.
    """
    given_distances = getattr(fitted, "metric", "") == "precomputed"
    if hasattr(fitted, "torn_"):
        return _verdict_of_picture(fitted, X, given_distances)
    k, errors = fitted.embedding_.shape[1], edge_errors(fitted)
    learned = float(fitted.explained_variance_ratio_[:k].sum())
    words = {1: "One dimension holds", 2: "Two dimensions hold", 3: "Three dimensions hold"}
    sentence = (
        f"Distances between neighbours change by {percent(float(np.median(errors)))} (median) and "
        f"{percent(float(errors.max()))} (largest). {words.get(k, f'{k} dimensions hold')} "
        f"{percent(learned)} of the variance"
    )
    if given_distances:
        return Verdict(f"{sentence}.{_trusted(fitted, X, given_distances)}")
    plain = _linear_share(X, k)
    sentence += f"; as many principal components of the samples hold {percent(plain)}"
    if learned <= plain + 0.01:
        sentence += ": nothing was unfolded; fewer neighbours may help (--neighbors)"
    sentence = f"{sentence}.{_trusted(fitted, X, given_distances)}"
    cut = short_cut(X, fitted.n_neighbors)
    if cut is not None:
        first, loss = cut
        sentence += (
            f" With {first} neighbours the graph takes a short cut (paths along it are "
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


def _verdict_of_picture(fitted: Any, X: Any, given_distances: bool) -> Verdict:
    """How well neighbourhoods are kept, compared with PCA, and the cost of few dimensions."""
    cost = fitted.certificate_.relative_gap
    sentence = f"{percent(fitted.torn_)} of the edges are torn"
    if cost is not None:
        sentence += f", and more dimensions improve the value by at most {percent(cost)}"
    near = fitted.n_neighbors
    if given_distances or X.shape[0] > MOST_COMPARED or near >= X.shape[0] / 2:
        return Verdict(f"{sentence}.{_trusted(fitted, X, given_distances)}")
    flat = TruncatedSVD(fitted.embedding_.shape[1], random_state=0)
    plain = flat.fit_transform(X if sp.issparse(X) else X - np.mean(X, axis=0))
    before, after = (
        float(trustworthiness(X, Z, n_neighbors=near)) for Z in (plain, fitted.embedding_)
    )
    sentence += f". Trustworthiness {after:.3f}, where PCA's picture has {before:.3f}."
    return Verdict(sentence, "trustworthiness", before, after)


def _trusted(fitted: Any, X: Any, given_distances: bool) -> str:
    """The sentence about trustworthiness; empty if it takes too long or is not defined."""
    n, near = X.shape[0], fitted.n_neighbors
    if n > MOST_COMPARED or near >= n / 2 or (given_distances and sp.issparse(X)):
        return ""
    metric = "precomputed" if given_distances else "euclidean"
    share = trustworthiness(X, fitted.embedding_, n_neighbors=near, metric=metric)
    return f" Trustworthiness {share:.3f}: 1 if all neighbours in the picture are neighbours."


def short_cut(X: Any, k: int) -> tuple[int, float] | None:
    """The first number of neighbours, up to k, that shortens the paths along the graph abruptly.

    Paths get shorter by a few percent with each additional neighbour. A decrease by more than
    `SHORTER` means that new edges leave the manifold: from one turn of a roll to the next. Returns
    that number and the relative decrease, None without a short cut.
    """
    if not FEWEST_NEIGHBOURS < k < X.shape[0] or not FEWEST_COMPARED <= X.shape[0] <= MOST_COMPARED:
        return None
    marks = generator(0).permutation(X.shape[0])[:LANDMARKS]
    before = _mean_path(X, FEWEST_NEIGHBOURS, marks)
    for count in range(FEWEST_NEIGHBOURS + 1, k + 1):
        now = _mean_path(X, count, marks)
        if now < (1.0 - SHORTER) * before:
            return count, 1.0 - now / before
        before = now
    return None


def _mean_path(X: Any, k: int, marks: NDArray[Any]) -> float:
    """The mean length of the shortest paths along the neighbourhood graph, from a few samples."""
    graph = neighbor_graph(X, k, connect="mst")
    lengths = np.sqrt(np.maximum(graph.sq_distances, 1e-300))
    paths = sp.coo_array((lengths, tuple(graph.edges.T)), shape=(X.shape[0],) * 2).tocsr()
    return float(np.mean(dijkstra(paths, directed=False, indices=marks)))


def _linear_share(X: Any, k: int) -> float:
    """The share of the variance in the k leading principal components."""
    solver = "covariance_eigh" if X.shape[1] <= LARGEST_COMPARED else "arpack"
    found = PCA(min(k, *X.shape), svd_solver=solver, random_state=0).fit(X)
    return float(np.nan_to_num(found.explained_variance_ratio_).sum())
