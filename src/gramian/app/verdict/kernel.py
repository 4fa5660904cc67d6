"""The verdict on clusters: agreement with held-out labels or links."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import normalize

from gramian.app.verdict.base import (
    CHANCE,
    Verdict,
    chance,
    compared,
    percent,
    untested,
)
from gramian.common import clock
from gramian.common.random_state import generator
from gramian.graph import smoothest

FEWEST_LINKS = 15
"""Number of links from which on some are held out."""

LINKS_OUT, LABELS_OUT = 5, 3
"""One in this many links and labels is held out."""


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
    return model._k_means().fit(normalize(waves)).labels_


def agreeing(labels: NDArray[Any], links: Any) -> NDArray[np.bool_]:
    """Whether clusters agree with each link; a soft link is rounded."""
    i, j = links.pairs.T
    return (labels[i] == labels[j]) == (links.targets > 0.5)


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
        sentence = compared(sentence, gained - lost, clear, "the graph alone")
    return Verdict(sentence, f"agreement with {what}", plain, learned, alone.size)
