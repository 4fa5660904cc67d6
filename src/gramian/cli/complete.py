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
from gramian.cli.outputs import Writing
from gramian.cli.samples import deliver, free, listed, written
from gramian.completion import MMMF, NuclearCompletion
from gramian.completion._frames import ROLES, are_names, by_role
from gramian.files import Header, read_header, read_ratings
from gramian.report.families import rows_section

METHODS: dict[str, Any] = {"nuclear": NuclearCompletion, "mmmf": MMMF}

Pairs = tuple[NDArray[Any], NDArray[Any]]
Columns = tuple[str, ...] | tuple[int, ...] | None
"""Names, or places in a file without a header; None for a matrix."""


@click.command(cls=Writing)
@click.argument("file", type=FILE)
@click.option(
    "--columns",
    metavar="USER,ITEM,RATING",
    help="Which columns, by name, or by number from 0 without a header; found unless told.",
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

    The columns are found by what they are called (user, movie, stars, …); three columns with other
    names, and the first three without a header, are taken in this order with a note; of all else
    --columns has to say which they are. The model keeps their names, or places, by which `gramian
    predict` finds them in other files.

    Save the model (--model) for `gramian predict` and `gramian recommend`; --out writes the
    ratings with what the model says of them.

    \b
    Example:
      gramian complete ratings.csv --model ratings.gramian
    """
    names = _to_fit(file, format, _split(columns, "user,item,rating"))
    asked = None if names is None else [str(name) for name in names]
    rows, cols, values = read_ratings(file, columns=asked, format=format)
    if rows.size > 1 and np.unique(rows).size == rows.size:
        note("every user has one rating only: are these the right columns? --columns names them")
    with bad_input():
        model = METHODS[method](
            lam="auto" if lam is None else lam, duplicates=duplicates, **run.parameters()
        )
        run.fit(model, (rows, cols, values))
        model.columns_ = names
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


@click.command(cls=Writing)
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
    model: Any,
    file: Path,
    pairs: Pairs,
    out: Path | None,
    report: Path | None,
    ids: dict[str, Any],
) -> None:
    """Predict the pairs of a file."""
    rows, cols = pairs
    values, known = model.predict(
        (_as(model.row_ids_, rows), _as(model.col_ids_, cols)), return_known=True
    )
    if not known.any():
        note(f"no pair of {file} has both its user and its item in the model: are these the right "
             "columns? --columns names them")  # fmt: skip
    first = {**ids, free("user", ids): rows, free("item", ids): cols}
    extra = {free("known", first): known.astype(int)}
    deliver(out, values[:, None], ["prediction"], first=first, extra=extra)
    written(out, values.size)
    if report is not None:
        told = [list(row) for row in zip(rows, cols, values, strict=True)]
        section = rows_section("Predicted", ["user", "item", "prediction"], told)
        write_report(model, report, more=[section])


def pairs_of(model: Any, file: Path, format: str | None, columns: str | None) -> Pairs:
    """The users and items of a file: as asked, or where the fit had them, by name or by place."""
    asked = _split(columns, "user,item")
    fitted: Any = getattr(model, "columns_", None)
    by_name = are_names(fitted)
    expected = asked or (fitted[:2] if by_name else ())
    header = read_header(file, format=format, expected=expected)
    if header is None and by_name:
        raise click.ClickException(
            f"{file} is a matrix, and the model was fitted to columns with names: write the pairs "
            f"as CSV with the header {','.join(expected)}"
        )
    if header is None or asked:
        wanted = asked
    elif by_name:
        wanted = _by_name(file, header, list(expected))
    elif header.named:
        wanted = _by_role(file, header)
    else:
        wanted = [str(place) for place in (fitted or (0, 1))[:2]]
    rows, cols, _ = read_ratings(file, columns=wanted, format=format, rated=False)
    if header is None or header.named or not _headed(model, rows, cols):
        return rows, cols
    if by_role([str(cols[0])]).get(0) or by_role([str(rows[0])]).get(1):
        raise click.ClickException(
            f"the first line of {file} names the columns {rows[0]} and {cols[0]}, and the model "
            f"was fitted without names: say which they are with --columns {rows[0]},{cols[0]}, "
            "the user first"
        )
    note(f"the first line of {file}, {rows[0]} and {cols[0]}, is taken for a header")
    return rows[1:], cols[1:]


def _by_name(file: Path, header: Header, wanted: list[str]) -> list[str]:
    """The columns of the fit, if the file has them."""
    missing = [name for name in wanted if name not in header.names]
    if not header.named:
        raise click.ClickException(
            f"{file} has no header with {' and '.join(wanted)}, the columns that the model was "
            "fitted to: give it one, or say which they are, counted from 0, with --columns"
        )
    if missing:
        raise click.ClickException(
            f"{file} lacks what the model was fitted to: {listed(missing)}; it has "
            f"{listed(header.names)}: say which are the user and the item with --columns"
        )
    return wanted


def _by_role(file: Path, header: Header) -> list[str]:
    """Columns whose names say user and item: the model has no names to go by."""
    roles = by_role(header.names)
    if not {0, 1} <= set(roles):
        raise click.ClickException(
            f"{file} has a header and the model was fitted without: say which of "
            f"{listed(header.names)} are the user and the item with --columns"
        )
    return [roles[0], roles[1]]


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


def _to_fit(file: Path, format: str | None, asked: list[str] | None) -> Columns:
    """The columns of user, item and rating: their names, or their places without a header."""
    header = read_header(file, format=format, expected=asked or ())
    if header is None:
        if asked is not None:
            raise click.UsageError(f"{file} is a matrix without names: leave out --columns")
        return None
    names = asked or _found(file, header)
    return tuple(names) if header.named else tuple(header.places(file, names))


def _found(file: Path, header: Header) -> list[str]:
    """User, item and rating by what columns are called, and else in this order, if that is safe."""
    names = header.names
    if not header.named:
        if len(names) > len(ROLES):
            note(f"{file} has no header: the first three of its {len(names)} columns are taken for "
                 "user, item and rating")  # fmt: skip
        return names[: len(ROLES)]
    roles = by_role(names)
    if len(roles) == len(ROLES):
        return list(roles.values())
    in_order = all(names[role : role + 1] == [name] for role, name in roles.items())
    if len(names) == len(ROLES) and in_order:
        note(f"{listed(names)} are taken for user, item and rating: --columns names others")
        return names
    raise click.ClickException(
        f"say which columns of {file} are the user, the item and the rating with --columns: it "
        f"has {listed(names)}"
    )


def _split(columns: str | None, kinds: str) -> list[str] | None:
    """The names in --columns, as many as it takes."""
    if columns is None:
        return None
    names = [name.strip() for name in columns.split(",")]
    if len(names) != len(kinds.split(",")):
        number = {2: "two", 3: "three"}[len(kinds.split(","))]
        raise click.UsageError(f"--columns takes {number} names: {kinds}")
    return names
