"""Find the users, items and ratings in a file, for a fit and for a saved model."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from numpy.typing import NDArray

from gramian.app.cli.names import listed
from gramian.app.cli.output import note
from gramian.app.files import (
    Header,
    ReadOptions,
    read_column,
    read_header,
    read_ratings,
    read_table,
)
from gramian.common.storage import FileError
from gramian.completion._reading import ROLES, are_names, by_role

CLICKS = ": for clicks or purchases without ratings use --method implicit"

WIDE = 8
"""Number of columns above which a file of ratings may have one column per item."""

Triples = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
Columns = tuple[str, ...] | tuple[int, ...] | None
"""Names, or positions in a file without a header; None for a matrix."""


def ratings_of(
    model: Any, file: Path, format: ReadOptions, columns: str | None, *, rated: bool = True
) -> Triples:
    """The users, items and (if `rated`) ratings of a file for a saved model.

    The columns are those in --columns, or those of the fit, by name or by position.
    """
    asked = split_names(columns, "user,item,rating" if rated else "user,item")
    fitted: Any = getattr(model, "columns_", None)
    by_name, count = are_names(fitted), 2 + rated
    if rated and asked is None and fitted is not None and len(fitted) == 2:
        clicks = _clicks(file, format, list(map(str, fitted)), "error")
        if clicks is not None:
            return clicks[1]
    expected = asked or (fitted[:count] if by_name else ())
    header = header_of(file, format, expected)
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
    try:
        return read_ratings(file, columns=wanted, format=format, rated=rated)
    except ValueError as refusal:  # in its own words: commands with a model have no --missing
        raise click.ClickException(str(refusal)) from refusal


def names_of(columns: Any) -> list[str]:
    """The names of the columns of user, item and rating in the fit, or these words without."""
    names = list(columns) if are_names(columns) else []
    return names + ["user", "item", "rating"][len(names) :]


def header_of(
    file: Path, format: ReadOptions, expected: Sequence[str] = (), roles: Sequence[int] = (0, 1)
) -> Header | None:
    """The columns of a file; a first row with words for `roles` and without digits is a header."""
    if format.header is None:
        with suppress(FileError):
            named = read_header(file, format=replace(format, header=True))
            names = [] if named is None else named.names
            if set(roles) <= set(by_role(names)) and not any(map(str.isdigit, "".join(names))):
                return named
    return read_header(file, format=format, expected=expected)


def _by_name(file: Path, header: Header, wanted: list[str]) -> list[str]:
    """The columns of the fit; a file without them is refused."""
    missing = [name for name in wanted if name not in header.names]
    if not header.named:
        raise click.ClickException(
            f"{file} has no header with {' and '.join(wanted)}, the columns that the model was "
            "fitted to: give it one, or say which they are, counted from 0, with --columns"
        )
    roles = by_role(header.names) if missing else {}
    if missing and set(range(len(wanted))) <= set(roles):
        found = [roles[role] for role in range(len(wanted))]
        note(f"{listed(found)} of {file} are treated as {listed(wanted)}: --columns names others")
        return found
    if missing:
        raise click.ClickException(
            f"{file} lacks what the model was fitted to: {listed(missing)}; it has "
            f"{listed(header.names)}: say which are the user and the item with --columns"
        )
    return wanted


def _by_role(file: Path, header: Header, count: int) -> list[str]:
    """Columns whose names mean user, item and rating, for a model without names."""
    roles = by_role(header.names)
    if not set(range(count)) <= set(roles):
        kinds = "the user and the item" if count == 2 else "the user, the item and the rating"
        raise click.ClickException(
            f"{file} has a header and the model was fitted without: say which of "
            f"{listed(header.names)} are {kinds} with --columns"
        )
    return [roles[role] for role in range(count)]


def as_ids(ids: NDArray[Any], given: NDArray[Any]) -> NDArray[Any]:
    """Ids as strings if those of the model are strings."""
    return given.astype(str) if ids.dtype.kind in "UO" and given.dtype.kind not in "UO" else given


def known_users(model: Any, given: Sequence[str]) -> list[Any]:
    """The ids of the model for ids in text; unknown ones are refused."""
    ids = {str(known): known for known in model.row_ids_.tolist()}
    unknown = next((user for user in given if user not in ids), None)
    if unknown is not None:
        if "," in unknown and set(unknown.split(",")) <= set(ids):
            raise click.ClickException(f"separate users by blanks: {unknown.replace(',', ' ')}")
        near = [known for known in ids if known.lower() == unknown.lower()]
        near = near or difflib.get_close_matches(unknown, ids, n=3)
        near = near or [known for known in ids if unknown and unknown in known][:3]
        hint = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
        if not near and Path(unknown).is_file():
            hint = ": a file of users is given with --users, and one of ratings with --ratings"
        raise click.ClickException(f"user {unknown!r} has no rating in the model{hint}")
    return [ids[user] for user in given]


def ratings_to_fit(
    file: Path,
    format: ReadOptions,
    columns: str | None,
    missing: Literal["error", "drop"],
    *,
    wide: bool,
    implicit: bool,
) -> tuple[Columns, Triples]:
    """The columns of user, item and rating in a file, and their contents."""
    if wide:
        return None, _wide_ratings(file, format)
    pair = None if columns is None else [name.strip() for name in columns.split(",")]
    if implicit and (clicks := _clicks(file, format, pair, missing)) is not None:
        return clicks
    asked = split_names(columns, "user,item,rating")
    header = header_of(file, format, asked or ())
    if header is None and asked is not None:
        raise click.UsageError(f"{file} is a matrix without names: leave out --columns")
    if header is None:
        return None, read_ratings(file, format=format, missing=missing)
    named = asked or _found(file, header)
    names: tuple[Any, ...] = tuple(named if header.named else header.places(file, named))
    format = replace(format, header=header.named)
    return names, read_ratings(
        file, columns=[str(name) for name in names], format=format, missing=missing
    )


def _found(file: Path, header: Header) -> list[str]:
    """Columns of user, item and rating by their names, or by their order if that is unambiguous."""
    names = header.names
    if not header.named and len(names) < len(ROLES):
        one = len(names) == 1
        hint = ": are they separated by something else than , ; | or a tab?" if one else CLICKS
        many = "one column" if one else f"{len(names)} columns"
        raise click.ClickException(
            f"{file} has {many} and no header, where user, item and rating belong{hint}"
        )
    if not header.named:
        if len(names) > len(ROLES):
            note(f"{file} has no header: the first three of its {len(names)} columns are used as "
                 "user, item and rating")  # fmt: skip
        return names[: len(ROLES)]
    roles = by_role(names)
    if len(roles) == len(ROLES):
        return list(roles.values())
    in_order = all(names[role : role + 1] == [name] for role, name in roles.items())
    if len(names) == len(ROLES) and in_order:
        note(f"{listed(names)} are used as user, item and rating: select others by --columns")
        return names
    if len(names) < len(ROLES):
        raise click.ClickException(
            f"{file} has the columns {listed(names)} only, where user, item and rating belong"
            + (CLICKS if len(names) == 2 else "")
        )
    perhaps = len(names) > WIDE and not {1, 2} <= set(roles)
    wide = ", or pass --wide if each line is a user and each column an item" if perhaps else ""
    raise click.ClickException(
        f"say which columns of {file} are the user, the item and the rating with --columns: it "
        f"has {listed(names)}{wide}"
    )


def titles_of(
    given: str, file: Path, format: ReadOptions, columns: Columns, items: NDArray[Any]
) -> NDArray[np.str_]:
    """Items and their titles, from a column of the ratings or from a file of both."""
    header = read_header(file, format=format, expected=[given])
    if header is not None and given in header.names:
        if columns is None:
            raise click.UsageError("--titles COLUMN requires one rating per line: name a file")
        pair = [str(columns[1]), given]
        if pair[0] == given:
            raise click.UsageError(f"--titles {given} is the column of items: name another")
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
    """The columns of items and titles by their names, or the first two."""
    header = read_header(file)
    if header is None or len(header.names) < 2:
        raise click.ClickException(f"{file} does not have the two columns item and title")
    if not header.named:
        return ["0", "1"]
    item = by_role(header.names).get(1, header.names[0])
    others = [name for name in header.names if name != item]
    title = next((n for n in others if n.lower() in ("title", "name", "label")), others[0])
    return [item, title]


def _clicks(
    file: Path, format: ReadOptions, asked: list[str] | None, missing: Literal["error", "drop"]
) -> tuple[Columns, Triples] | None:
    """The number of lines with each user and item in a file of pairs; None for another file."""
    if asked is not None and len(asked) != 2:
        return None
    header = header_of(file, format, asked or ())
    if header is None or (asked is None and len(header.names) != 2):
        return None
    chosen = asked or header.names
    if asked is None and by_role(chosen).get(0) == chosen[1]:
        chosen = chosen[::-1]
    names: Columns = tuple(chosen) if header.named else tuple(header.places(file, chosen))
    format = replace(format, header=header.named)
    rows, cols, _ = read_ratings(file, columns=chosen, format=format, rated=False, missing=missing)
    pairs, counts = np.unique(np.column_stack([rows, cols]), axis=0, return_counts=True)
    who, what = (pairs[:, k].astype(side.dtype) for k, side in enumerate((rows, cols)))
    return names, (who, what, counts.astype(float))


def split_names(columns: str | None, kinds: str) -> list[str] | None:
    """The names in --columns; another number of them than expected is refused."""
    if columns is None:
        return None
    names = [name.strip() for name in columns.split(",")]
    if len(names) != len(kinds.split(",")):
        number = {2: "two", 3: "three"}[len(kinds.split(","))]
        raise click.UsageError(f"--columns takes {number} names: {kinds}")
    return names


def _wide_ratings(file: Path, format: ReadOptions) -> Triples:
    """Ratings of a table with a row for each user (first column) and a column for each item."""
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
    """The users of a file: its only column, or the column of the fit."""
    fitted: Any = getattr(model, "columns_", None)
    header = header_of(file, format, fitted if are_names(fitted) else (), roles=(0,))
    if header is None:
        raise click.ClickException(f"{file} is a matrix, where a list of users belongs")
    name = by_role(header.names).get(0)
    if len(header.names) == 1:
        name = header.names[0]
    elif are_names(fitted) and fitted[0] in header.names:
        name = fitted[0]
    if name is None:
        raise click.ClickException(
            f"which of the columns {listed(header.names)} of {file} are the users? Leave one only"
        )
    cells = read_column(file, name if header.named else "0", format)
    users = list(dict.fromkeys(map(str, cells.tolist())))
    known = {str(one) for one in model.row_ids_.tolist()}
    if header.named and name in known:  # a list without a header
        users = [name, *users]
    return known_users(model, users)
