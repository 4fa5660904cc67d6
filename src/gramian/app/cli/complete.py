"""`gramian complete`: learn a matrix of ratings from some of its entries."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from gramian.app.cli.names import counted, free
from gramian.app.cli.options import file_argument, format_options, option, out_option
from gramian.app.cli.output import bad_input, note
from gramian.app.cli.outputs import Writing
from gramian.app.cli.ratings import names_of, ratings_to_fit, titles_of
from gramian.app.cli.run import Run, run_options
from gramian.app.cli.tables import deliver, refuse_one_array
from gramian.app.files import ReadOptions
from gramian.app.verdict import verdict_of_completion
from gramian.common import clock
from gramian.completion import MMMF, ImplicitCompletion, NuclearCompletion

METHODS: dict[str, Any] = {
    "nuclear": NuclearCompletion,
    "mmmf": MMMF,
    "implicit": ImplicitCompletion,
}

THERE = {"nuclear": "NuclearCompletion", "mmmf": "MMMF"}
"""The methods that run on a cluster, and their estimators in `gramian.dask`."""

WIDE = 100
"""The largest count in units of the median above which counts are said to dominate."""

LEVELS = 5
"""Number of different ratings from which on one that is far from the others is named."""

CONNECT = "10 s"
"""Time limit for the connection to a scheduler."""


@click.command(cls=Writing)
@file_argument
@option("--columns", "USER,ITEM,RATING", "Names, or numbers from 0; default: found by name.")
@format_options
@option("--method", list(METHODS), "nuclear: numbers; mmmf: ±1 or grades; implicit: counts.")
@option("--lam", float, "Weight of the nuclear norm; default: chosen on held-out ratings.")
@option("--wide", bool, "FILE has a row per user (the first column) and a column per item.")
@option("--duplicates", ["error", "mean", "sum", "last"], "How to handle pairs rated twice.")
@option("--missing", ["error", "drop"], "How to handle lines with missing cells.")
@option("--titles", "COLUMN|FILE", "Titles of items: a column, or a file of items and titles.")
@option(
    "--scheduler",
    "ADDRESS",
    "Work on the Dask cluster of this scheduler, tcp://…:8786; FILE is then a folder, a "
    "pattern or a file of Parquet or NPZ that its workers can read.",
)
@out_option
@run_options
def complete(
    run: Run,
    file: Path,
    columns: str | None,
    format: ReadOptions,
    method: str,
    lam: float | None,
    wide: bool,
    duplicates: str,
    missing: Literal["error", "drop"],
    titles: str | None,
    scheduler: str | None,
    out: Path | None,
) -> None:
    """Complete a matrix from the ratings of FILE, with a user, item and rating per line.

    The columns are found by their names (user, movie, stars, …); three columns with other names,
    and the first three without a header, are used in this order with a note; otherwise --columns
    must name them. With --method implicit the lines of a file of users and items are counted. The
    model stores the names or positions of the columns, by which `gramian predict` finds them in
    other files.

    Without --tol a fit of 20,000 ratings or more stops when the error on a held-out tenth of them
    no longer decreases; --tol 1e-4 continues to the certified optimum. Fewer ratings are always
    fitted to it.

    --model saves the model for `gramian predict` and `gramian recommend`; --out writes the ratings
    with the fitted values.

    \b
    Examples:
      gramian complete ratings.csv --model ratings.gramian
      gramian complete 'ratings/*.parquet' --scheduler tcp://head:8786 --model ratings.gramian
    """
    options = {"lam": "auto" if lam is None else lam, "duplicates": duplicates, **run.parameters()}
    if scheduler is not None:
        refused = {
            "--columns": columns,
            "--format": format.format,
            "--header": format.header,
            "--sheet": format.sheet,
            "--titles": titles,
            "--out": out,
        }
        _complete_there(run, str(file), scheduler, refused, method, options)
        return
    refuse_one_array(out, ["user", "item"])
    if wide and columns is not None:
        raise click.UsageError("--columns requires one rating per line, not one user (--wide)")
    clock.phase(f"reading {file}")
    names, (rows, cols, values) = ratings_to_fit(
        file, format, columns, missing, wide=wide, implicit=method == "implicit"
    )
    if method == "implicit" and (values == 0).any():
        done = values != 0
        rows, cols, values = rows[done], cols[done], values[done]
        note(f"{counted(int((~done).sum()), 'line')} with a count of 0 left out")
    called = None if titles is None else titles_of(titles, file, format, names, cols)
    if np.ptp(values) == 0 and method != "implicit":
        note(
            f"every rating is {values[0]:g}, which any constant predicts: for clicks or purchases "
            "use --method implicit"
        )
    if method != "implicit":
        _note_far(values)
    if method == "nuclear" and np.unique(values).size == 2:
        note(
            f"the ratings have two values, {values.min():g} and {values.max():g}: --method mmmf "
            "predicts one of the two, with the share of errors"
        )
    if method == "implicit" and values.max() > WIDE * np.median(values) > 0:
        note(
            f"the largest count is {values.max() / np.median(values):.0f} times the median, and "
            "the largest dominate: their logarithms may be better"
        )
    if rows.size > 1 and np.unique(rows).size == rows.size:
        note("every user has one rating only: are these the right columns? --columns names them")
    with bad_input():
        model = METHODS[method](**options)
        run.fit(model, (rows, cols, values))
        model.columns_, model.titles_ = names, called
        verdict = run.judged(
            model.result_.status, lambda: verdict_of_completion(model, rows, cols, values)
        )
    fitted = model.predict((rows, cols))
    if out is not None:
        both = np.column_stack([values, fitted])
        user, item, rating = names_of(names)
        given = [rating, free("fitted", [user, item, rating])]
        deliver(out, both, given, first={user: rows, item: cols})
    error = _held_out(model)
    if method == "implicit":
        errors = {"ndcg_held_out": None if error is None else 1.0 - error}
    else:
        rmse = float(np.sqrt(np.mean((fitted - values) ** 2)))
        errors = {"error_held_out": error, "rmse_of_the_ratings": rmse}
    facts = {"file": str(file), "ratings": values.size, **_facts(model, method)}
    facts["titles"] = None if called is None else len(called)
    files = run.keep(model, verdict=verdict, source=file)
    run.finish("complete", model, verdict, facts, {**errors, **files, "out": out})


def _note_far(values: Any) -> None:
    """Name a rating that may stand for no rating: most are 0, or it is far from all others."""
    zeros = int((values == 0).sum())
    if 2 * zeros > values.size > zeros:
        note(
            f"{zeros:,} of {values.size:,} ratings are 0: if 0 stands for no rating, leave such "
            "lines out or such cells empty"
        )
    levels = np.unique(values)
    if len(levels) < LEVELS:
        return
    for far, others in ((levels[0], levels[1:]), (levels[-1], levels[:-1])):
        if np.abs(others - far).min() > np.ptp(others):
            note(
                f"the rating {far:g} is far from all others, which are from {others[0]:g} to "
                f"{others[-1]:g}: if it stands for no rating, leave such lines out"
            )


def _facts(model: Any, method: str) -> dict[str, Any]:
    """What is printed about a model."""
    return {
        "users": len(model.row_ids_),
        "items": len(model.col_ids_),
        "method": method,
        "columns": model.columns_,
        "lambda": model.lam_,
    }


def _held_out(model: Any) -> float | None:
    """The held-out error of the chosen λ; None if λ was given."""
    path = getattr(model, "path_", None)
    return None if path is None else float(path.errors.min())


def _complete_there(
    run: Run,
    files: str,
    scheduler: str,
    refused: Mapping[str, Any],
    method: str,
    options: Mapping[str, Any],
) -> None:
    """Fit on a cluster, without reading the ratings here."""
    with bad_input():
        for name, given in refused.items():
            if given is not None:
                raise ValueError(f"{name} is for a file that is read here, without --scheduler")
        if method not in THERE:
            raise ValueError(f"--method {method} does not run on a cluster: leave --scheduler out")
        there, client = _connected(scheduler)
        with client:
            model = getattr(there, THERE[method])(**options)
            try:
                run.fit(model, files)
            except there.ClusterError as lost:
                raise ValueError(str(lost)) from lost
    model = model.at_home()
    facts = {"file": files, "scheduler": scheduler, "ratings": model._known.nnz}
    after = {"error_held_out": _held_out(model), **run.keep(model)}
    run.finish("complete", model, None, {**facts, **_facts(model, method)}, after)


def _connected(scheduler: str) -> tuple[Any, Any]:
    """`gramian.dask` and a client of the scheduler; an error says what is missing."""
    try:
        from distributed import Client

        there = import_module("gramian.dask")
        return there, Client(scheduler, timeout=CONNECT, set_as_default=True)
    except ModuleNotFoundError as missing:
        raise ValueError("--scheduler needs Dask: pip install 'gramian[dask]'") from missing
    except (OSError, ValueError) as unreachable:
        raise ValueError(
            f"no Dask scheduler answers at {scheduler!r}: start one with `dask scheduler`, and "
            "workers with `dask worker ADDRESS`"
        ) from unreachable
