"""`gm.explore`: the pages from Python."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from typing import Any

from gramian._samples import checked_samples, naming_text
from gramian.backends.errstate import under_own_errstate
from gramian.completion._base import Completion
from gramian.explorer.naming import MetricSession
from gramian.explorer.rating import RatingSession
from gramian.explorer.server import Page
from gramian.explorer.session import Session
from gramian.metric._base import MetricLearner


@under_own_errstate
def explore(
    X: Any,
    y: Any = None,
    *,
    n_clusters: int = 2,
    model: Any = None,
    names: Sequence[Any] | None = None,
    title: str | None = None,
    port: int = 0,
    open_browser: bool = True,
) -> Page:
    """Work with the mouse: serve a page of this machine, and open it.

    Samples are clustered by lines drawn between points that belong together, or apart; with
    `model=KTA()`, or another metric, a few of them are given classes and the map follows; and of a
    fitted completion in the place of X items are rated, and the list of recommendations follows.
    Every change goes on from the last one. `page.session` has what was made, and `page.stop()` ends
    it.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or a fitted completion
    y : labels of shape (n_samples,), "" or None where unknown, optional
        Classes that are known before, for a metric.
    n_clusters : int
    model : NPKL or the like, or a metric learner, optional
        Not fitted; its parameters are used.
    names : sequence, optional
        What the samples are called; the index of a frame unless given.
    title : str, optional
    port : int
        0 takes one that is free.
    open_browser : bool

    Returns
    -------
    Page
    """
    session = _session(X, y, n_clusters, model, names)
    called = title or ("ratings" if isinstance(session, RatingSession) else "samples")
    page = Page(session, title=called, port=port).start()
    if open_browser:
        webbrowser.open(page.url)
    return page


def _session(X: Any, y: Any, n_clusters: int, model: Any, names: Sequence[Any] | None) -> Any:
    if isinstance(X, Completion):
        return RatingSession(X)
    if names is None and hasattr(X, "index") and hasattr(X, "columns"):
        names = list(X.index)
    called = None if names is None else [str(name) for name in names]
    if isinstance(model, MetricLearner):
        with naming_text(X):
            samples = checked_samples(X, ensure_min_samples=2)
        session = MetricSession(samples, model, called)
        session.mark_all(known_classes(y, samples.shape[0]))
        return session
    if y is not None:
        raise ValueError("y goes with model=, a metric learner such as gm.metric.KTA()")
    return Session(X, n_clusters, model, called)


def known_classes(y: Any, size: int) -> list[tuple[int, str]]:
    """The samples whose class is known, and what it is."""
    if y is None:
        return []
    labels = list(y)
    if len(labels) != size:
        raise ValueError(f"y has {len(labels)} labels for {size} samples")
    return [(k, str(label)) for k, label in enumerate(labels) if not _empty(label)]


def _empty(label: Any) -> bool:
    missing = label is None or label != label
    return bool(missing or str(label).strip() in ("", "-1"))
