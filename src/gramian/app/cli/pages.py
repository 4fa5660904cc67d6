"""Interactive pages, served from the command line until Ctrl-C or SIGTERM."""

from __future__ import annotations

import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.pipeline import Pipeline

from gramian.app.cli.options import option
from gramian.app.cli.output import show
from gramian.app.cli.run import Run
from gramian.app.cli.tables import deliver
from gramian.app.explorer import Page

open_option = option(
    "--open opened", bool, "Work on a page served locally. Ctrl-C ends it and writes the files."
)


def serve(session: Any, title: str, before: Any = None) -> None:
    """Serve a page until Ctrl-C or SIGTERM."""
    page = Page(session, title=title, before=before)

    def ready() -> None:
        click.echo(f"{page.url}\nWork on this page; Ctrl-C here ends it.")
        webbrowser.open(page.url)

    page.wait(ready)


def prepared_samples(model: Any, X: Any) -> tuple[Any, Any]:
    """The fitted steps before the last one of a pipeline (or None), and X transformed by them."""
    if not isinstance(model, Pipeline):
        return None, X.to_numpy() if hasattr(X, "to_numpy") else X
    steps = model[:-1].fit(X)
    return steps, steps.transform(X)


def keep_page(
    command: str,
    session: Any,
    steps: Any,
    run: Run,
    out: Path | None,
    names: Sequence[str] | None,
    answers: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> None:
    """Write the files about a page that has ended, and print what was done there."""
    if out is not None:
        called = [str(k) for k in range(session.size)] if names is None else names
        first = {"sample": np.array(called), **{name: np.array(a) for name, a in answers.items()}}
        deliver(out, np.empty((session.size, 0)), [], first=first)
    model = run.model if session.fitted is not None else None
    if model is not None:
        session.save(model, steps)
    show(
        command,
        {
            "verdict": session.verdict(),
            **facts,
            "certificate": session.state()["certificate"],
            "model": model,
            "out": out,
        },
        as_json=run.as_json,
    )
