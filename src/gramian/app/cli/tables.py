"""Files for saved models: read the columns of the fit, and write the answers as tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from gramian.app.cli.exits import printable
from gramian.app.cli.names import free, listed
from gramian.app.cli.output import bad_input, note
from gramian.app.cli.outputs import ESCAPE
from gramian.app.cli.samples import encodes, filled_categories, whole_rows, with_texts
from gramian.app.files import ReadOptions, TextColumnsError, read_header, read_table, write_table
from gramian.app.files._write import as_frame


def for_model(
    model: Any, file: Path, format: ReadOptions, *, used: Sequence[str | None] = ()
) -> tuple[Any, NDArray[np.bool_]]:
    """The columns of a file that a model was fitted to, and which rows of the file they are.

    Columns are found by their names. Others are left out, with a note about those not in `used`.
    Rows with missing cells that the model does not fill are left out.
    """
    names = getattr(model, "feature_names_in_", None)
    header = read_header(file, format=format, expected=() if names is None else list(names))
    if names is None:
        if header is not None and header.named:
            note(f"the model has no names of columns: those of {file} are matched by their order")
        X = read_table(file, format=format).X
        return X, np.ones(X.shape[0], dtype=bool)
    if header is None:
        raise click.ClickException(
            f"{file} has no names of columns, and the model was fitted to {listed(names)}: "
            "write it as CSV with a header"
        )
    format = replace(format, header=header.named)
    drop = left_out(file, header.names, names, headed=header.named, used=used)
    categories = _categories(model)
    try:
        table = read_table(file, drop=drop, text=list(categories), format=format)
    except TextColumnsError as refusal:
        column = refusal.columns[0]
        raise click.ClickException(
            f"{file}: {column.name!r} has {column.cell!r} in {column.place}, and numbers in the fit"
        ) from refusal
    X = with_texts(table, header.names)[list(names)]
    X = filled_categories(X, [name for name, known in categories.items() if "" in known])
    imputes = isinstance(model, Pipeline) and any(isinstance(s, SimpleImputer) for s in model[:2])
    whole = np.ones(len(X), dtype=bool) if imputes else whole_rows(X)
    if not whole.any():
        raise click.ClickException(
            f"every row of {file} has a missing cell, and the model does not fill them: fit it "
            "with --missing median"
        )
    for name, known in categories.items():
        new = sorted({*X.loc[whole, name].dropna()} - {*known}) if known else []
        if new:
            note(
                f"column {name!r} has categories that were not in the fit: {listed(new)}; their "
                "rows have none of its known categories"
            )
    return filled_categories(X[whole], list(categories)), whole


def _categories(model: Any) -> dict[str, list[str]]:
    """The columns of text that a pipeline encodes, and their categories; none for dates."""
    if not encodes(model):
        return {}
    return {
        str(column): list(map(str, step.categories_[place])) if name == "categories" else []
        for name, step, chosen in model[0].transformers_
        if name in ("categories", "dates")
        for place, column in enumerate(chosen)
    }


def left_out(
    file: Path,
    there: Sequence[str],
    names: Sequence[str],
    *,
    headed: bool = True,
    used: Sequence[str | None] = (),
) -> list[str]:
    """The columns that a model was not fitted to; a missing column of the fit is refused."""
    missing = [name for name in names if name not in set(there)]
    if missing:
        raise click.ClickException(
            f"{file} lacks what the model was fitted to: {listed(missing)}"
            + (f"; it has {listed(there)}" if headed else "; it has no header to find them by")
        )
    others = [name for name in there if name not in set(names)]
    unused = [name for name in others if name not in used]
    if unused:
        note(f"{file}: columns that the model was not fitted to are left out: {listed(unused)}")
    return others


def refuse_one_array(out: Path | None, others: Collection[str]) -> None:
    """Reject --out with .npy before the fit if the output also has columns of text."""
    if out is not None and out.suffix.lower() == ".npy" and others:
        raise click.ClickException(
            f"--out {out}: .npy is one array of numbers, without {listed(list(others))}: name it "
            ".npz or .csv"
        )


def deliver(
    out: Path | None,
    X: Any,
    columns: Sequence[str],
    *,
    first: Mapping[str, NDArray[Any]] | None = None,
    extra: Mapping[str, NDArray[Any]] | None = None,
    count: bool = False,
) -> None:
    """Write a table to a file, or as CSV to standard output; `count` prints the number of rows."""
    first, extra = first or {}, extra or {}
    columns = [free(name, {*first, *extra}) for name in columns]
    escape = click.get_current_context().meta.get(ESCAPE, True)
    if out is not None:
        with bad_input():
            write_table(out, X, columns=columns, first=first, extra=extra, escape=escape)
        if count:
            click.echo(f"{len(X)} rows written to {out}")
        return
    more = {name: np.asarray(values) for name, values in {**first, **extra}.items()}
    frame = as_frame(X, columns, more, len(first), escape=escape)
    click.echo(printable(frame.to_csv(index=False, lineterminator="\n")), nl=False)
