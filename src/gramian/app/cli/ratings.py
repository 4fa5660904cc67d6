"""Which columns of a file are users, items and ratings, at the fit and after it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from numpy.typing import NDArray

from gramian.app.cli.options import write_report
from gramian.app.cli.output import note
from gramian.app.cli.samples import deliver, free, listed, written
from gramian.app.files import (
    Header,
    ReadOptions,
    read_column,
    read_header,
    read_ratings,
    read_table,
)
from gramian.app.report.families import rows_section
from gramian.completion._reading import ROLES, are_names, by_role

CLICKS = ": without ratings (clicks, purchases) there is --method implicit"

WIDE = 8
"""Columns beyond which a file of ratings may have an item in each."""

Pairs = tuple[NDArray[Any], NDArray[Any]]
Triples = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
Columns = tuple[str, ...] | tuple[int, ...] | None
"""Names, or places in a file without a header; None for a matrix."""


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
        (as_ids(model.row_ids_, rows), as_ids(model.col_ids_, cols)), return_known=True
    )
    if not known.any():
        note(f"no pair of {file} has both its user and its item in the model: are these the right "
             "columns? --columns names them")  # fmt: skip
    first = {**ids, free("user", ids): rows, free("item", ids): cols}
    extra = {free("known", first): known.astype(int)}
    deliver(out, values[:, None], ["prediction"], first=first, extra=extra)
    written(out, values.size)
    if report is not None:
        lines = [list(row) for row in zip(rows, cols, values, strict=True)]
        section = rows_section("Predicted", ["user", "item", "prediction"], lines)
        write_report(model, report, more=[section], source=str(file))


def pairs_of(model: Any, file: Path, format: ReadOptions, columns: str | None) -> Pairs:
    """The users and items of a file: as asked, or where the fit had them, by name or by place."""
    rows, cols, _ = ratings_of(model, file, format, columns, rated=False)
    return rows, cols


def ratings_of(
    model: Any, file: Path, format: ReadOptions, columns: str | None, *, rated: bool = True
) -> Triples:
    """The users, items and, where they are rated, ratings of a file, found as by `pairs_of`."""
    asked = split_names(columns, "user,item,rating" if rated else "user,item")
    fitted: Any = getattr(model, "columns_", None)
    by_name, count = are_names(fitted), 2 + rated
    expected = asked or (fitted[:count] if by_name else ())
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
        wanted = _by_role(file, header, count)
    else:
        wanted = [str(place) for place in (fitted or (0, 1, 2))[:count]]
    rows, cols, values = read_ratings(file, columns=wanted, format=format, rated=rated)
    if rated or header is None or header.named or not _headed(model, rows, cols):
        return rows, cols, values
    if by_role([str(cols[0])]).get(0) or by_role([str(rows[0])]).get(1):
        raise click.ClickException(
            f"the first line of {file} names the columns {rows[0]} and {cols[0]}, and the model "
            f"was fitted without names: say which they are with --columns {rows[0]},{cols[0]}, "
            "the user first"
        )
    note(f"the first line of {file}, {rows[0]} and {cols[0]}, is taken for a header")
    return rows[1:], cols[1:], values[1:]


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


def _by_role(file: Path, header: Header, count: int) -> list[str]:
    """Columns whose names say user, item and rating: the model has no names to go by."""
    roles = by_role(header.names)
    if not set(range(count)) <= set(roles):
        kinds = "the user and the item" if count == 2 else "the user, the item and the rating"
        raise click.ClickException(
            f"{file} has a header and the model was fitted without: say which of "
            f"{listed(header.names)} are {kinds} with --columns"
        )
    return [roles[role] for role in range(count)]


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


def as_ids(ids: NDArray[Any], given: NDArray[Any]) -> NDArray[Any]:
    """Ids as strings where the model's are."""
    return given.astype(str) if ids.dtype.kind in "UO" and given.dtype.kind not in "UO" else given


def known_users(model: Any, given: Sequence[str]) -> list[Any]:
    """Ids from the command line, where everything is a string; unknown ones are refused."""
    ids = {str(known): known for known in model.row_ids_.tolist()}
    unknown = next((user for user in given if user not in ids), None)
    if unknown is not None:
        near = [known for known in ids if known.lower() == unknown.lower()]
        near = near or difflib.get_close_matches(unknown, ids, n=3)
        near = near or [known for known in ids if unknown and unknown in known][:3]
        hint = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise click.ClickException(f"user {unknown!r} has no rating in the model{hint}")
    return [ids[user] for user in given]


def columns_to_fit(file: Path, format: ReadOptions, asked: list[str] | None) -> Columns:
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
    if not header.named and len(names) < len(ROLES):
        many = "one column" if len(names) == 1 else f"{len(names)} columns"
        raise click.ClickException(
            f"{file} has {many} and no header, where user, item and rating belong"
            + (": is another sign than , ; | or a tab between them?" if len(names) == 1 else CLICKS)
        )
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
    if len(names) < len(ROLES):
        raise click.ClickException(
            f"{file} has the columns {listed(names)} only, where user, item and rating belong"
            + (CLICKS if len(names) == 2 else "")
        )
    perhaps = len(names) > WIDE and not {1, 2} <= set(roles)
    wide = ", or pass --wide where a line is a user and a column an item" if perhaps else ""
    raise click.ClickException(
        f"say which columns of {file} are the user, the item and the rating with --columns: it "
        f"has {listed(names)}{wide}"
    )


def named(format: ReadOptions, columns: Columns) -> ReadOptions:
    """The options, with a header where columns were found by name and none where by place."""
    return format if columns is None else replace(format, header=are_names(columns))


@contextmanager
def users_and_items() -> Iterator[None]:
    """Call rows and columns of the matrix what they are in a file of ratings."""
    try:
        yield
    except ValueError as refusal:
        said = re.sub(
            r"^row (.+) and column (.+) have ", r"user \1 and item \2 have ", str(refusal)
        )
        raise ValueError(said) from refusal


def titles_of(
    given: str, file: Path, format: ReadOptions, columns: Columns, items: NDArray[Any]
) -> NDArray[np.str_]:
    """The items that have a title, and their titles: two columns of text.

    From a column of the file of ratings, or from a file of items and titles.
    """
    header = read_header(file, format=format, expected=[given])
    if header is not None and given in header.names:
        if columns is None:
            raise click.UsageError("--titles COLUMN goes with a rating a line: name a file")
        pair = [str(columns[1]), given]
        format = replace(format, header=header.named)
    elif Path(given).exists():
        file, format = Path(given), ReadOptions()
        pair = _title_columns(file)
    else:
        known = "" if header is None else f": its columns are {listed(header.names)}"
        raise click.ClickException(
            f"--titles {given} is neither a column of {file} nor a file{known}"
        )
    ids, titles, _ = read_ratings(file, columns=pair, format=format, rated=False, missing="drop")
    there = set(items.astype(str).tolist())
    found = dict(zip(ids.astype(str).tolist(), titles.astype(str).tolist(), strict=True))
    kept = [[item, title] for item, title in found.items() if item in there]
    if not kept:
        raise click.ClickException(f"{file} has no title of any item that is rated")
    return np.array(kept, dtype=np.str_)


def _title_columns(file: Path) -> list[str]:
    """The columns of items and titles by what they are called, and else the first two."""
    header = read_header(file)
    if header is None or len(header.names) < 2:
        raise click.ClickException(f"{file} does not have the two columns item and title")
    if not header.named:
        return ["0", "1"]
    item = by_role(header.names).get(1, header.names[0])
    others = [name for name in header.names if name != item]
    title = next((n for n in others if n.lower() in ("title", "name", "label")), others[0])
    return [item, title]


def clicks_of(
    file: Path, format: ReadOptions, columns: str | None, missing: Literal["error", "drop"]
) -> tuple[Columns, Triples] | None:
    """How often each user and item are together in a file of such pairs; None where there is more.

    Above nothing but text a header is known by its words for users and items.
    """
    asked = None if columns is None else [name.strip() for name in columns.split(",")]
    if asked is not None and len(asked) != 2:
        return None
    header = read_header(file, format=format, expected=asked or ())
    if header is None or (asked is None and len(header.names) != 2):
        return None
    format = replace(format, header=header.named)
    rows, cols, _ = read_ratings(file, columns=asked, format=format, rated=False, missing=missing)
    names: Columns = tuple(asked or header.names) if header.named else (0, 1)
    first = [str(rows[0]), str(cols[0])]
    if not header.named and set(by_role(first)) == {0, 1}:
        rows, cols, names = rows[1:], cols[1:], tuple(first)
        if by_role(first)[0] != first[0]:
            rows, cols, names = cols, rows, tuple(first[::-1])
    elif header.named and asked is None and by_role(header.names).get(0) == header.names[1]:
        rows, cols, names = cols, rows, tuple(header.names[::-1])
    pairs, counts = np.unique(np.column_stack([rows, cols]), axis=0, return_counts=True)
    kinds = rows.dtype, cols.dtype
    who, what = (pairs[:, k].astype(kinds[k]) for k in (0, 1))
    return names, (who, what, counts.astype(float))


def split_names(columns: str | None, kinds: str) -> list[str] | None:
    """The names in --columns, as many as it takes."""
    if columns is None:
        return None
    names = [name.strip() for name in columns.split(",")]
    if len(names) != len(kinds.split(",")):
        number = {2: "two", 3: "three"}[len(kinds.split(","))]
        raise click.UsageError(f"--columns takes {number} names: {kinds}")
    return names


def wide_ratings(file: Path, format: ReadOptions) -> Triples:
    """A user a line and an item a column, the first column naming the users; gaps are unknown."""
    header = read_header(file, format=format)
    if header is None or len(header.names) < 2 or not header.named:
        raise click.ClickException(f"{file} has no header that names the items: give it one")
    users = read_column(file, header.names[0], format)
    table = read_table(file, drop=header.names[:1], format=format)
    rows, places = np.nonzero(~np.isnan(table.X))
    if rows.size == 0:
        raise click.ClickException(f"{file} has no ratings: are all of its cells empty?")
    return users[rows], np.asarray(table.columns)[places], table.X[rows, places]


def users_of(model: Any, file: Path, format: ReadOptions) -> list[Any]:
    """The users of a file: its only column, or the one that the fit had them in."""
    header = read_header(file, format=format)
    if header is None:
        raise click.ClickException(f"{file} is a matrix, where a list of users belongs")
    fitted: Any = getattr(model, "columns_", None)
    name = by_role(header.names).get(0)
    if len(header.names) == 1:
        name = header.names[0]
    elif are_names(fitted) and fitted[0] in header.names:
        name = fitted[0]
    if name is None:
        raise click.ClickException(
            f"which of the columns {listed(header.names)} of {file} are the users? Leave one only"
        )
    users = [str(user) for user in read_column(file, name if header.named else "0", format)]
    known = {str(one) for one in model.row_ids_.tolist()}
    if header.named and name in known:  # a list without a header
        users = [name, *users]
    elif not header.named and users[0] not in known and 0 in by_role(users[:1]):
        users = users[1:]
    return known_users(model, users)
