"""`gm.explore`: the page from Python."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from typing import Any

from gramian.explorer.server import Page
from gramian.explorer.session import Session


def explore(
    X: Any,
    *,
    n_clusters: int = 2,
    model: Any = None,
    names: Sequence[Any] | None = None,
    title: str = "samples",
    port: int = 0,
    open_browser: bool = True,
) -> Page:
    """Cluster samples with the mouse: serve a page of this machine, and open it.

    Draw a line between two points that belong together, or apart, or name some; every change
    refits the kernel from where the last one ended. `page.session` has the links and the clusters,
    and `page.stop()` ends it.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features)
    n_clusters : int
    model : NPKL or the like, optional
        Its parameters are used.
    names : sequence, optional
        What the samples are called; the index of a frame unless given.
    title : str
    port : int
        0 takes one that is free.
    open_browser : bool

    Returns
    -------
    Page
    """
    if names is None and hasattr(X, "index") and hasattr(X, "columns"):
        names = list(X.index)
    called = None if names is None else [str(name) for name in names]
    page = Page(Session(X, n_clusters, model, called), title=title, port=port).start()
    if open_browser:
        webbrowser.open(page.url)
    return page
