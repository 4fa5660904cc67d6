"""Pages to work on, from the command line: served until Ctrl-C or SIGTERM."""

from __future__ import annotations

import webbrowser
from typing import Any

import click
from sklearn.pipeline import Pipeline

from gramian.app.explorer import Page

open_option = click.option(
    "--open",
    "opened",
    is_flag=True,
    help="Work on a page served locally. Ctrl-C ends it and writes the files.",
)


def serve(session: Any, title: str, before: Any = None) -> None:
    """Serve a page until Ctrl-C or SIGTERM."""
    page = Page(session, title=title, before=before)

    def ready() -> None:
        click.echo(f"{page.url}\nWork on this page; Ctrl-C here ends it.")
        webbrowser.open(page.url)

    page.wait(ready)


def prepared_samples(model: Any, X: Any) -> tuple[Any, Any]:
    """The fitted steps before the last one of a pipeline, None without, and what they make of X."""
    if not isinstance(model, Pipeline):
        return None, X.to_numpy() if hasattr(X, "to_numpy") else X
    steps = model[:-1].fit(X)
    return steps, steps.transform(X)
