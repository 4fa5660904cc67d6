"""Output of commands: a table for people, plain text in a pipe, JSON for scripts."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gramian.app.cli.exits import HEARD, INTERRUPTED, NOT_CONVERGED, as_called, complain, printable

if TYPE_CHECKING:
    from gramian.certificate import Certificate
    from gramian.result import Result, Status

UNNOTED = (
    "did not converge",
    "distinct clusters",
    "number of unique classes is greater",
    "of unknown class",
)
"""Warnings that are not shown: a command itself reports how a solve ended, and many classes."""


def note(sentence: str) -> None:
    """Print a note to standard error."""
    complain(sentence, "note: ", "yellow")


@contextmanager
def noted() -> Iterator[None]:
    """Show warnings for users as notes, each once."""
    shown: set[str] = set()

    def show_as_note(message: Any, category: type, *where: Any, **more: Any) -> None:
        sentence = str(message)
        known = sentence in shown or any(words in sentence for words in UNNOTED)
        if issubclass(category, UserWarning) and not known:
            shown.add(sentence)
            note(sentence)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show_as_note
        yield


SPELLED = {
    'pass duplicates="mean" or "last"': "pass --duplicates mean or --duplicates last",
    'pass duplicates="mean", "sum"': "pass --duplicates mean, sum",
    '(of counts) or "last"': "(of counts) or last",
    "time_limit": "--time-limit",
    "n_neighbors": "--neighbors",
    "n_components": "--components",
    "n_clusters": "--clusters",
    'connect="mst"': "--connect mst",
    'connect="components"': "--connect components",
    "fill them in or leave those rows out": "fill them in, or leave those rows out: --missing drop",
    "leave out ratings that are not known": "--missing drop leaves out such rows",
    "K must be symmetric; pass (K + K.T) / 2": "the matrix must be symmetric: write (K + Kᵀ)/2",
    "than rank=": "than --rank ",
    "raise max_iter or tol": "raise --tol",
}
"""Parameters and phrases of the library, and what they are on the command line."""


@contextmanager
def bad_input() -> Iterator[None]:
    """Report errors of estimators about their input as one sentence, without a traceback."""
    try:
        yield
    except (ValueError, TypeError) as refusal:
        raise click.ClickException(spelled(str(refusal))) from refusal


def spelled(sentence: str) -> str:
    """A message of the library with the options of the command line."""
    for word, option in SPELLED.items():
        sentence = sentence.replace(word, option)
    return re.sub(r"^row (.+) and column (.+) have ", r"user \1 and item \2 have ", sentence)


def show(title: str, facts: Mapping[str, Any], *, as_json: bool, rows: Any = None) -> None:
    """Print facts by name, and a table if `rows` is given as (column names, rows)."""
    if as_json:
        answer = {"command": title, **facts}
        if rows is not None:
            answer["rows"] = [dict(zip(rows[0], row, strict=True)) for row in rows[1]]
        click.echo(json.dumps(_plain(answer), allow_nan=False))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(title, style="bold cyan"))
    width = max((len(_label(name)) for name in facts), default=0)
    for name, value in facts.items():
        if name == "verdict":
            console.print(Text(f"  {printable(as_called(value))}", style="bold"))
        elif value is not None and name != "held_out":  # the verdict contains it
            label = printable(f"  {_label(name):<{width}}  ")
            console.print(Text(label, style="cyan") + _text(value))
    if rows is not None:
        console.print(_table(*rows))


LABELS = {
    "error_held_out": "held-out error of the chosen lambda",
    "ndcg_held_out": "held-out nDCG of the chosen lambda",
    "largest_edge_error": "largest relative error of a squared distance between neighbours",
    "error_of_the_commonest_class": "error if all rows were of the most frequent class",
    "leave_one_out_error_before": "leave-one-out error before",
    "leave_one_out_error_after": "after, on the training rows",
}
"""Labels of facts whose names alone are not clear."""


def _label(name: str) -> str:
    return LABELS.get(name, name.replace("_", " "))


def outcome(
    result: Result, certificate: Certificate, seconds: float | None = None
) -> dict[str, Any]:
    """How a solve ended, its certificate, and the seconds of the solve or of the given fit."""
    return {
        "solver": result.solver,
        "route": list(result.route),
        "status": result.status.name.lower().replace("_", " "),
        "certificate": {
            "value": certificate.value,
            "gap": certificate.gap,
            "relative_gap": certificate.relative_gap,
            "method": certificate.method,
        },
        "rank": result.rank,
        "iterations": result.iterations,
        "seconds": result.seconds if seconds is None else seconds,
    }


def judgement(verdict: Any) -> dict[str, Any]:
    """The verdict, and the numbers in it."""
    figures = {"measure": verdict.measure, "before": verdict.before, "after": verdict.after}
    measured = {**figures, "held_out": verdict.held_out}
    return {"verdict": verdict.sentence, "held_out": measured if verdict.measure else None}


def leave(status: Status) -> None:
    """Exit with the status of the solve."""
    from gramian.result import Status  # not at the top, so that `gramian info` starts quickly

    if status is not Status.CONVERGED:
        note(spelled(status.sentence))
    elif HEARD.is_set():
        note("interrupted from the keyboard; the result so far is kept")
    if status is Status.INTERRUPTED or HEARD.is_set():
        raise click.exceptions.Exit(INTERRUPTED)
    if not status.converged:
        raise click.exceptions.Exit(NOT_CONVERGED)


def _table(names: list[str], rows: list[Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="cyan")
    for name in names:
        table.add_column(_text(name))
    for row in rows:
        table.add_row(*map(_text, row))
    return table


def _text(value: Any) -> Text:
    return Text(printable(_words(value)))


def _words(value: Any) -> str:
    if isinstance(value, Mapping) and "relative_gap" in value:
        return _certificate(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(part)}" for name, part in value.items())
    if isinstance(value, (list, tuple, np.ndarray)):
        return ", ".join(_words(part) for part in value)
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    return as_called(str(value))


def _certificate(certificate: Mapping[str, Any]) -> str:
    if certificate["gap"] is None:
        return f"F = {certificate['value']:.8g}; no bound on the gap is known"
    return (
        f"F = {certificate['value']:.8g}, at most {certificate['gap']:.2e} (relative "
        f"{certificate['relative_gap']:.1e}) above the optimum, by {certificate['method']}"
    )


def _plain(value: Any) -> Any:
    """A value that JSON can represent; NaN and infinity become null."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return as_called(str(value)) if isinstance(value, (Path, str)) else value
