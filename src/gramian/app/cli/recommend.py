"""`gramian recommend` and `evaluate`: recommendations of a model of ratings, and its errors."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click
import numpy as np

import gramian as gm
from gramian.app.cli.names import listed as _listed
from gramian.app.cli.options import (
    FILE,
    file_argument,
    format_options,
    json_option,
    option,
    out_option,
    report_option,
)
from gramian.app.cli.output import bad_input, note, show
from gramian.app.cli.outputs import Writing
from gramian.app.cli.pages import open_option, serve
from gramian.app.cli.ratings import as_ids, known_users, ratings_of, titles_of, users_of
from gramian.app.cli.run import write_report
from gramian.app.cli.tables import deliver, refuse_one_array
from gramian.app.explorer import RatingSession
from gramian.app.files import ReadOptions
from gramian.app.report.families import rows_section
from gramian.completion import MMMF
from gramian.completion._base import Completion

model_option = option("--model", FILE, "A model of `gramian complete`.", required=True)
columns_option = option(
    "--columns", "USER,ITEM,RATING", "Which columns of the ratings; default: as in the fit."
)


@click.command(cls=Writing)
@click.argument("users", nargs=-1)
@model_option
@option("-n --top", click.IntRange(min=1), "Items for each user.", default=10)
@option("--users listed", FILE, "A file of users, one per line.")
@option("--ratings", FILE, "Ratings of users that the model does not know.")
@columns_option
@format_options
@option("--all everyone", bool, "For every user.")
@option("--titles", FILE, "A file of items and titles; default: those kept in the model.")
@option("--seen", bool, "Recommend items that the user has rated, too.")
@open_option
@out_option
@report_option
@json_option
def recommend(
    users: tuple[str, ...],
    model: Path,
    top: int,
    listed: Path | None,
    ratings: Path | None,
    columns: str | None,
    format: ReadOptions,
    everyone: bool,
    titles: Path | None,
    seen: bool,
    opened: bool,
    out: Path | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Recommend items to USERS by a model of `gramian complete`.

    Users can also be listed in a file (--users). For new users, a file of their ratings is needed
    (--ratings); the model is not changed. With --open you rate items on a page, which updates the
    recommendations.

    \b
    Example:
      gramian recommend alice bob --model ratings.gramian
    """
    estimator = _of_ratings(model)
    refuse_one_array(out, ["user", "item"])
    called = getattr(estimator, "titles_", None)
    if titles is not None:
        called = titles_of(str(titles), titles, ReadOptions(), None, estimator.col_ids_)
    if opened:
        _rate_on_page(estimator, model, top, out, as_json)
        return
    if not (users or everyone or listed or ratings):
        raise click.UsageError("name users, or pass --users, --ratings or --all")
    rows: list[list[Any]] = []
    with bad_input():
        asked = known_users(estimator, users)
        if listed is not None:
            asked += users_of(estimator, listed, format)
        if everyone:
            asked = estimator.row_ids_.tolist()
        if asked:
            known = np.empty(len(asked), dtype=object)
            known[:] = asked
            found = estimator.recommend(known, top, exclude_seen=not seen)
            rows += _lines(estimator, known, *found)
        if ratings is not None:
            if isinstance(estimator, MMMF):
                raise click.ClickException("models of --method mmmf cannot recommend to new users")
            new, cols, values = ratings_of(estimator, ratings, format, columns)
            given = new, as_ids(estimator.col_ids_, cols), values
            _note_unknown(estimator, ratings, given[1])
            rows += _lines(estimator, *estimator.recommend_new(given, top, exclude_seen=not seen))
    counts = Counter({str(user): 0 for user in asked})
    counts.update(str(line[0]) for line in rows)
    short = [user for user, count in counts.items() if count < top]
    if short and not seen:
        note(
            f"there are fewer than {top} items to recommend to {_listed(short)}: the others are in "
            "the ratings (--seen recommends these, too)"
        )
    head = ["user", "item", "prediction"]
    if called is not None:
        head.insert(2, "title")
        names = dict(called.tolist())
        rows = [[user, item, names.get(str(item), ""), value] for user, item, value in rows]
    if out is not None:
        *first, last = [np.array([row[place] for row in rows]) for place in range(len(head))]
        named = dict(zip(head[:-1], first, strict=True))
        deliver(out, last.reshape(-1, 1).astype(float), head[-1:], first=named, count=not as_json)
    section = rows_section("Recommended", head, rows)
    write_report(estimator, report, more=[section], source=str(model))
    if out is None or as_json:
        show("recommend", {"model": str(model)}, as_json=as_json, rows=(head, rows))


def _note_unknown(model: Any, file: Path, items: Any) -> None:
    """Name the rated items that are not in the model, whose ratings have no effect."""
    unknown = items[~np.isin(items, model.col_ids_)]
    if unknown.size:
        names = list(dict.fromkeys(map(repr, unknown.tolist())))
        note(
            f"{unknown.size} of the {items.size} ratings of {file} are of items that are not in "
            f"the model, and have no effect: {_listed(names)}"
        )


def _rate_on_page(model: Any, path: Path, top: int, out: Path | None, as_json: bool) -> None:
    """Serve a page for rating items until Ctrl-C, then write its recommendations."""
    with bad_input():
        session = RatingSession(model, top)
        serve(session, str(path))
    if out is not None:
        best = session.state()["best"]
        names = np.array([session.items[one["item"]] for one in best], dtype=str)
        values = np.array([[one["predicted"]] for one in best])
        deliver(out, values, ["prediction"], first={"item": names})
    show("recommend", {"verdict": session.verdict(), "out": out}, as_json=as_json)


def _lines(model: Any, users: Any, items: Any, values: Any) -> list[list[Any]]:
    """A line for each recommendation, with a grade for models of ordered grades."""
    left = ~np.isnan(values)
    who = np.repeat(np.asarray(users, dtype=object)[:, None], items.shape[1], axis=1)[left]
    ratings = model._levels(values[left]) if isinstance(model, MMMF) else values[left]
    columns = who.tolist(), items[left].tolist(), ratings.tolist()
    return [list(line) for line in zip(*columns, strict=True)]


def _of_ratings(path: Path) -> Any:
    estimator = gm.load(path)
    if not isinstance(estimator, Completion):
        raise click.ClickException(
            f"{path} is a model of samples, not of ratings: name one of 'gramian complete --model'"
        )
    return estimator


@click.command()
@file_argument
@model_option
@option("-k --top", click.IntRange(min=1), "Items of each list.", default=10)
@option("--relevant", float, "The lowest rating of a relevant item.")
@columns_option
@format_options
@json_option
def evaluate(
    file: Path,
    model: Path,
    top: int,
    relevant: float | None,
    columns: str | None,
    format: ReadOptions,
    as_json: bool,
) -> None:
    """Measure how well a model of `gramian complete` predicts the ratings of FILE.

    The ratings should not have been in the fit. Precision, recall and nDCG are those of lists of
    items that the users had not rated in the fit.

    \b
    Example:
      gramian evaluate ratings.csv --model ratings.gramian
    """
    estimator = _of_ratings(model)
    with bad_input():
        rows, cols, values = ratings_of(estimator, file, format, columns)
        rows, cols = as_ids(estimator.row_ids_, rows), as_ids(estimator.col_ids_, cols)
        scores = estimator.evaluate((rows, cols, values), k=top, relevant=relevant)
        _note_pairs(estimator, file, rows, cols)
    facts = {"file": str(file), "model": str(model), "ratings": values.size, "top": top}
    scores["users"] = scores.pop("rows")
    known = {name: value if np.isfinite(value) else None for name, value in scores.items()}
    show("evaluate", {**facts, **known}, as_json=as_json)


def _note_pairs(model: Any, file: Path, rows: Any, cols: Any) -> None:
    """Note ratings that were in the fit, so that their errors are too small, and unknown ones."""
    users = {row: place for place, row in enumerate(model.row_ids_.tolist())}
    items = {col: place for place, col in enumerate(model.col_ids_.tolist())}
    pairs = zip(rows.tolist(), cols.tolist(), strict=True)
    places = [(users[u], items[i]) for u, i in pairs if u in users and i in items]
    new = len(rows) - len(places)
    if new:
        note(
            f"{new} of the {len(rows)} ratings of {file} have a user or an item that is not in the "
            "model, and are predicted by the means of what is known"
        )
    if not places:
        return
    known = model._known.copy()
    known.data = np.ones(known.nnz)  # a rating may be 0
    seen = int(np.asarray(known[tuple(np.array(places).T)]).sum())
    if seen:
        note(
            f"{seen} of the {len(rows)} ratings of {file} were in the fit: the errors are too "
            "small, and the lists do not contain these items"
        )
