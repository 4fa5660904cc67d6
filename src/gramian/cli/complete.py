"""`gramian complete` and `recommend`: a matrix of ratings from some of its entries."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import gramian as gm
from gramian.cli.options import (
    FILE,
    FORMATS,
    Run,
    json_option,
    out_option,
    report_option,
    run_options,
    write_report,
)
from gramian.cli.output import bad_input, leave, note, outcome, show
from gramian.cli.samples import deliver, written
from gramian.completion import MMMF, NuclearCompletion
from gramian.files import FileError, describe, read_ratings
from gramian.report.families import rows_section

METHODS: dict[str, Any] = {"nuclear": NuclearCompletion, "mmmf": MMMF}


@click.command()
@click.argument("file", type=FILE)
@click.option(
    "--columns",
    metavar="USER,ITEM,RATING",
    help="Which columns; found by their names, else the first three.",
)
@click.option("--format", "format", type=click.Choice(FORMATS), help="Of the input file.")
@click.option(
    "--method", type=click.Choice(list(METHODS)), default="nuclear", show_default=True,
    help="nuclear: ratings are numbers; mmmf: they are ±1 or ordered grades.",
)  # fmt: skip
@click.option("--lam", type=float, help="Weight of the nuclear norm; found unless told.")
@click.option(
    "--duplicates", type=click.Choice(["error", "mean", "last"]), default="error",
    show_default=True, help="What to do with a pair rated twice.",
)  # fmt: skip
@out_option
@run_options
def complete(
    run: Run,
    file: Path,
    columns: str | None,
    format: str | None,
    method: str,
    lam: float | None,
    duplicates: str,
    out: Path | None,
) -> None:
    """Learn to fill the gaps of a matrix from the ratings of FILE: user, item, rating a line.

    Save the model (--model) for `gramian predict` and `gramian recommend`; --out writes the
    ratings with what the model says of them.

    \b
    Example:
      gramian complete ratings.csv --model ratings.gramian
    """
    names = _names(columns) or _by_their_names(file, format)
    rows, cols, values = read_ratings(file, columns=names, format=format)
    if rows.size > 1 and np.unique(rows).size == rows.size:
        note("every user has one rating only: are these the right columns? --columns names them")
    with bad_input():
        model = METHODS[method](
            lam="auto" if lam is None else lam, duplicates=duplicates, **run.parameters()
        )
        run.fit(model, (rows, cols, values))
    fitted = model.predict((rows, cols))
    if out is not None:
        both = np.column_stack([values, fitted])
        deliver(out, both, ["rating", "fitted"], first={"user": rows, "item": cols})
    path = getattr(model, "path_", None)
    show(
        "complete",
        {
            "file": str(file),
            "ratings": values.size,
            "users": len(model.row_ids_),
            "items": len(model.col_ids_),
            "method": method,
            "columns": names,
            "lambda": model.lam_,
            **outcome(model.result_, model.certificate_, run.seconds),
            "error_held_out": None if path is None else float(path.rmse.min()),
            "rmse_of_the_ratings": float(np.sqrt(np.mean((fitted - values) ** 2))),
            **run.keep(model),
            "out": out,
        },
        as_json=run.as_json,
    )
    leave(model.result_.status)


@click.command()
@click.argument("users", nargs=-1)
@click.option("--model", type=FILE, required=True, help="A model of `gramian complete`.")
@click.option("-n", "--top", type=int, default=10, show_default=True, help="Items for each user.")
@click.option("--all", "everyone", is_flag=True, help="For every user.")
@click.option("--seen", is_flag=True, help="Items the user has rated too.")
@out_option
@report_option
@json_option
def recommend(
    users: tuple[str, ...],
    model: Path,
    top: int,
    everyone: bool,
    seen: bool,
    out: Path | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Recommend items to USERS by a model of `gramian complete`.

    \b
    Example:
      gramian recommend alice bob --model ratings.gramian
    """
    estimator = gm.load(model)
    if not isinstance(estimator, NuclearCompletion | MMMF):
        name = type(estimator).__name__
        raise click.ClickException(f"{model} is a model of {name}, not of ratings")
    if not users and not everyone:
        raise click.UsageError("name users, or pass --all")
    rows: list[list[Any]] = []
    with bad_input():
        for user in estimator.row_ids_ if everyone else [_id(estimator, u) for u in users]:
            items = estimator.recommend(user, top, exclude_seen=not seen)[0]
            values = estimator.predict((np.full(len(items), user, dtype=object), items))
            rows += [[user, item, value] for item, value in zip(items, values, strict=True)]
    if out is not None:
        columns = [np.array([row[place] for row in rows]) for place in range(3)]
        first = {"user": columns[0], "item": columns[1]}
        deliver(out, columns[2].reshape(-1, 1).astype(float), ["prediction"], first=first)
    head = ["user", "item", "prediction"]
    if report is not None:
        write_report(estimator, report, more=[rows_section("Recommended", head, rows)])
    if out is None or as_json:
        table = (head, rows)
        show("recommend", {"model": str(model)}, as_json=as_json, rows=table)


def predicted(
    model: Any, file: Path, format: str | None, out: Path | None, report: Path | None
) -> None:
    """Predict the pairs of a file."""
    rows, cols = _pairs(file, format)
    pairs = (_as(model.row_ids_, rows), _as(model.col_ids_, cols))
    values, known = model.predict(pairs, return_known=True)
    if _headed(model, *pairs):
        note(f"the first line of {file}, {rows[0]} and {cols[0]}, is taken for a header")
        rows, cols, values, known = rows[1:], cols[1:], values[1:], known[1:]
    first = {"user": rows, "item": cols}
    deliver(out, values[:, None], ["prediction"], first=first, extra={"known": known.astype(int)})
    written(out, values.size)
    if report is not None:
        told = [list(row) for row in zip(rows, cols, values, strict=True)]
        section = rows_section("Predicted", ["user", "item", "prediction"], told)
        write_report(model, report, more=[section])


def _pairs(file: Path, format: str | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """The first two columns of a file."""
    try:
        rows, cols, _ = read_ratings(file, format=format)
    except FileError:
        rows, cols, _ = read_ratings(file, format=format, rated=False)
    return rows, cols


def _headed(model: Any, rows: NDArray[Any], cols: NDArray[Any]) -> bool:
    """Whether the first of several pairs of strings names the columns: no id of the model does."""
    strings = rows.dtype.kind == cols.dtype.kind == "U"
    return bool(
        strings
        and rows.size > 1
        and rows[0] not in model.row_ids_
        and cols[0] not in model.col_ids_
        and rows[0] not in rows[1:]
        and cols[0] not in cols[1:]
    )


def _as(ids: NDArray[Any], given: NDArray[Any]) -> NDArray[Any]:
    """Ids as strings where the model's are."""
    return given.astype(str) if ids.dtype.kind in "UO" and given.dtype.kind not in "UO" else given


def _id(model: Any, given: str) -> Any:
    """An id from the command line, where everything is a string; unknown ones are refused."""
    ids = {str(known): known for known in model.row_ids_.tolist()}
    if given not in ids:
        near = difflib.get_close_matches(given, ids, n=3)
        hint = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise click.ClickException(f"user {given!r} has no rating in the model{hint}")
    return ids[given]


ROLES = (
    ("user", "customer", "reader", "person", "reviewer"),
    ("item", "movie", "film", "product", "book", "song", "artist", "business"),
    ("rating", "stars", "score", "grade"),
)
"""What the columns of a file of ratings are called."""


def _by_their_names(file: Path, format: str | None) -> list[str] | None:
    """The columns whose names say user, item and rating, each one only; None where not all do."""
    fields = [field["name"] for field in describe(file, format=format).get("fields", [])]
    found = [[name for name in fields if any(w in name.lower() for w in words)] for words in ROLES]
    names = [some[0] for some in found if len(some) == 1]
    return names if len(set(names)) == len(ROLES) else None


def _names(columns: str | None) -> list[str] | None:
    if columns is None:
        return None
    names = [name.strip() for name in columns.split(",")]
    if len(names) != 3:
        raise click.UsageError("--columns takes three names: user,item,rating")
    return names
