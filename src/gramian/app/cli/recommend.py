"""`gramian recommend` and `evaluate`: recommendations of a model of ratings, and its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

import gramian as gm
from gramian.app.cli.options import (
    FILE,
    format_options,
    json_option,
    out_option,
    report_option,
    write_report,
)
from gramian.app.cli.output import bad_input, note, show
from gramian.app.cli.outputs import Writing
from gramian.app.cli.pages import open_option, serve
from gramian.app.cli.ratings import as_ids, known_users, ratings_of, titles_of, users_of
from gramian.app.cli.samples import deliver, refuse_one_array
from gramian.app.explorer import RatingSession
from gramian.app.files import ReadOptions
from gramian.app.report.families import rows_section
from gramian.completion import MMMF
from gramian.completion._base import Completion

HEAD = ["user", "item", "prediction"]

model_option = click.option(
    "--model", type=FILE, required=True, help="A model of `gramian complete`."
)
columns_option = click.option(
    "--columns",
    metavar="USER,ITEM,RATING",
    help="Which columns of the ratings; default: as in the fit.",
)


@click.command(cls=Writing)
@click.argument("users", nargs=-1)
@model_option
@click.option("-n", "--top", type=int, default=10, show_default=True, help="Items for each user.")
@click.option("--users", "listed", type=FILE, help="A file of users, one a line.")
@click.option("--ratings", type=FILE, help="Ratings of users that the model does not know.")
@columns_option
@format_options
@click.option("--all", "everyone", is_flag=True, help="For every user.")
@click.option(
    "--titles", type=FILE, help="A file of items and titles; default: those kept in the model."
)
@click.option("--seen", is_flag=True, help="Recommend items that the user has rated, too.")
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

    Users may also be named by a file (--users), or be new ones, who are folded in by a file of
    their ratings (--ratings). With --open, rate a few items on a page and watch the list.

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
        with bad_input():
            session = RatingSession(estimator, top)
            serve(session, str(model))
        if out is not None:
            best = session.state()["best"]
            names = np.array([session.items[one["item"]] for one in best], dtype=str)
            values = np.array([[one["predicted"]] for one in best])
            deliver(out, values, ["prediction"], first={"item": names})
        show("recommend", {"verdict": session.verdict(), "out": out}, as_json=as_json)
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
            rows += _lines(estimator, *_to_known(estimator, asked, top, not seen))
        if ratings is not None:
            rows += _lines(estimator, *_to_new(estimator, ratings, format, columns, top, not seen))
    head, rows = _titled(rows, called)
    if out is not None:
        columns_out = [np.array([row[place] for row in rows]) for place in range(len(head))]
        first = dict(zip(head[:-1], columns_out[:-1], strict=True))
        deliver(out, columns_out[-1].reshape(-1, 1).astype(float), head[-1:], first=first)
    if report is not None:
        section = rows_section("Recommended", head, rows)
        write_report(estimator, report, more=[section], source=str(model))
    if out is None or as_json:
        show("recommend", {"model": str(model)}, as_json=as_json, rows=(head, rows))


def _titled(rows: list[list[Any]], titles: Any) -> tuple[list[str], list[list[Any]]]:
    """The names of the columns and the recommendations, with titles where they are known."""
    if titles is None:
        return HEAD, rows
    names = dict(titles.tolist())
    lines = [[user, item, names.get(str(item), ""), value] for user, item, value in rows]
    return [*HEAD[:2], "title", HEAD[2]], lines


@click.command()
@click.argument("file", type=FILE)
@model_option
@click.option("-k", "--top", type=int, default=10, show_default=True, help="Items of each list.")
@click.option("--relevant", type=float, help="The lowest rating of a relevant item.")
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
    """Say how well a model of `gramian complete` predicts the ratings of FILE.

    The errors are those of its ratings, which should not have been in the fit; precision, recall
    and nDCG those of lists of items that the users had not rated then.

    \b
    Example:
      gramian evaluate ratings.csv --model ratings.gramian
    """
    estimator = _of_ratings(model)
    with bad_input():
        rows, cols, values = ratings_of(estimator, file, format, columns)
        given = as_ids(estimator.row_ids_, rows), as_ids(estimator.col_ids_, cols), values
        scores = estimator.evaluate(given, k=top, relevant=relevant)
        _note_seen(estimator, file, *given[:2])
    facts = {"file": str(file), "model": str(model), "ratings": values.size, "top": top}
    scores["users"] = scores.pop("rows")
    known = {name: value if np.isfinite(value) else None for name, value in scores.items()}
    show("evaluate", {**facts, **known}, as_json=as_json)


def _note_seen(model: Any, file: Path, rows: Any, cols: Any) -> None:
    """Say it where errors are those of ratings that the model was fitted to."""
    users = {row: place for place, row in enumerate(model.row_ids_.tolist())}
    items = {col: place for place, col in enumerate(model.col_ids_.tolist())}
    pairs = zip(rows.tolist(), cols.tolist(), strict=True)
    places = [(users[u], items[i]) for u, i in pairs if u in users and i in items]
    if not places:
        return
    known = model._known.copy()
    known.data = np.ones(known.nnz)  # a rating of 0 is one
    seen = int(np.asarray(known[tuple(np.array(places).T)]).sum())
    if seen:
        note(
            f"{seen} of the {len(rows)} ratings of {file} were in the fit: errors are too small by "
            "that, and no list holds what its user has rated then"
        )


def _of_ratings(path: Path) -> Any:
    estimator = gm.load(path)
    if not isinstance(estimator, Completion):
        raise click.ClickException(
            f"{path} is a model of samples, not of ratings: name one of 'gramian complete --model'"
        )
    return estimator


def _to_known(model: Any, asked: list[Any], top: int, unseen: bool) -> tuple[Any, Any, Any]:
    users = np.empty(len(asked), dtype=object)
    users[:] = asked
    items, values = model.recommend(users, top, exclude_seen=unseen)
    return users, items, values


def _to_new(
    model: Any, file: Path, format: ReadOptions, columns: str | None, top: int, unseen: bool
) -> tuple[Any, Any, Any]:
    if isinstance(model, MMMF):
        raise click.ClickException("models of --method mmmf do not fold in new users")
    rows, cols, values = ratings_of(model, file, format, columns)
    given = rows, as_ids(model.col_ids_, cols), values
    found: tuple[Any, Any, Any] = model.recommend_new(given, top, exclude_seen=unseen)
    return found


def _lines(model: Any, users: Any, items: Any, values: Any) -> list[list[Any]]:
    """A line for each recommendation; grades where the model has such."""
    left = ~np.isnan(values)
    who = np.repeat(np.asarray(users, dtype=object)[:, None], items.shape[1], axis=1)[left]
    ratings = model._levels(values[left]) if isinstance(model, MMMF) else values[left]
    return [
        list(line)
        for line in zip(who.tolist(), items[left].tolist(), ratings.tolist(), strict=True)
    ]
