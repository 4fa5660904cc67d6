"""`gm.explore`: the pages from Python."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from typing import Any

import numpy as np

from gramian.app.explorer.naming import MetricSession
from gramian.app.explorer.rating import RatingSession
from gramian.app.explorer.server import Page
from gramian.app.explorer.session import Session
from gramian.app.explorer.tables import START
from gramian.app.report.thumbnails import are_images
from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import checked_samples, naming_text
from gramian.completion._base import Completion
from gramian.metric._base import MetricLearner


@under_own_errstate
def explore(
    X: Any,
    y: Any = None,
    *,
    n_clusters: int = 2,
    model: Any = None,
    names: Sequence[Any] | None = None,
    unknown: Any = None,
    time_limit: float = START,
    title: str | None = None,
    port: int = 0,
    open_browser: bool = True,
) -> Page:
    """Serve an interactive page locally, and open it in a browser.

    By default, samples are clustered by links that are drawn between points. With `model=KTA()`, or
    another metric learner, samples are given classes and the map follows. With a fitted completion
    as X, items are rated and the recommendations follow. Every change refits from the last
    solution. `page.session` holds the results, and `page.stop()` ends the page.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or a fitted completion
        Images of shape (n_samples, height, width) are shown under the pointer.
    y : labels of shape (n_samples,), optional
        Known classes, for a metric: "", None or NaN if unknown. −1 is an ordinary class unless it
        is passed as `unknown`.
    n_clusters : int
    model : NPKL, PCP or RegPCP, or a metric learner, optional
        Not fitted; its parameters are used.
    names : sequence, optional
        Names of the samples, one for each; default the index of a frame.
    unknown : optional
        Another label in y that stands for an unknown class, such as −1.
    time_limit : float
        Time limit of the start in seconds: the graph and its clusters, or the metric of the classes
        in y. Later changes have a second each.
    title : str, optional
    port : int
        0 selects a free port.
    open_browser : bool

    Returns
    -------
    Page

    Raises
    ------
    TimeoutError
        If there is no result after `time_limit` seconds.
    """
    session = _session(X, y, n_clusters, model, names, unknown, time_limit)
    called = title or ("ratings" if isinstance(session, RatingSession) else "samples")
    page = Page(session, title=called, port=port).start()
    if open_browser:
        webbrowser.open(page.url)
    return page


def _session(
    X: Any,
    y: Any,
    n_clusters: int,
    model: Any,
    names: Sequence[Any] | None,
    unknown: Any,
    time_limit: float,
) -> Any:
    if isinstance(X, Completion):
        return RatingSession(X)
    if names is None and hasattr(X, "index") and hasattr(X, "columns"):
        names = list(X.index)
    called = None if names is None else list(names)
    frame = X
    if are_images(X):
        X = np.asarray(X).reshape(len(X), -1)
    if isinstance(model, MetricLearner):
        with naming_text(X):
            samples = checked_samples(X, ensure_min_samples=2)
        session = MetricSession(samples, model, called, frame=frame)
        session.mark_all(known_classes(y, samples.shape[0], unknown), time_limit)
        return session
    if y is not None:
        raise ValueError("y requires model=, a metric learner such as gm.metric.KTA()")
    return Session(X, n_clusters, model, called, time_limit=time_limit, frame=frame)


def known_classes(y: Any, size: int, unknown: Any = None) -> list[tuple[int, str]]:
    """The samples with known classes, and their classes."""
    if y is None:
        return []
    labels = list(y)
    if len(labels) != size:
        raise ValueError(f"y has {len(labels)} labels for {size} samples")
    return [(k, str(label)) for k, label in enumerate(labels) if not _empty(label, unknown)]


def _empty(label: Any, unknown: Any) -> bool:
    missing = label is None or label != label or str(label).strip() == ""
    return bool(missing or (unknown is not None and label == unknown))
