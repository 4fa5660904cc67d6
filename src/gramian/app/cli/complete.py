"""`gramian complete`: a matrix of ratings from some of its entries."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np

from gramian.app.cli.options import FILE, FORMATS, Run, out_option, run_options
from gramian.app.cli.output import bad_input, judgement, leave, note, outcome, show
from gramian.app.cli.outputs import Writing
from gramian.app.cli.ratings import clicks_of, columns_to_fit, split_names, wide_ratings
from gramian.app.cli.samples import deliver
from gramian.app.files import read_ratings
from gramian.app.verdict import verdict_of_completion
from gramian.common import clock
from gramian.completion import MMMF, ImplicitCompletion, NuclearCompletion

METHODS: dict[str, Any] = {
    "nuclear": NuclearCompletion,
    "mmmf": MMMF,
    "implicit": ImplicitCompletion,
}

THERE = {"nuclear": "NuclearCompletion", "mmmf": "MMMF"}
"""The methods that run on a cluster, by the names of their estimators there."""

CONNECT = "10 s"
"""How long a scheduler may take to answer."""


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
    help="nuclear: ratings are numbers; mmmf: they are ±1 or ordered grades; implicit: they are "
    "counts of what users did.",
)  # fmt: skip
@click.option("--lam", type=float, help="Weight of the nuclear norm; found unless told.")
@click.option(
    "--wide",
    is_flag=True,
    help="FILE has a row for each user, named by its first column, and a column for each item.",
)
@click.option(
    "--duplicates", type=click.Choice(["error", "mean", "sum", "last"]), default="error",
    show_default=True, help="What to do with a pair rated twice.",
)  # fmt: skip
@click.option(
    "--scheduler", metavar="ADDRESS",
    help="Work on the Dask cluster of this scheduler, tcp://…:8786; FILE is then a folder, a "
    "pattern or a file of Parquet or NPZ that its workers can read.",
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
    wide: bool,
    duplicates: str,
    scheduler: str | None,
    out: Path | None,
) -> None:
    """Learn to fill the gaps of a matrix from the ratings of FILE: user, item, rating a line.

    The columns are found by what they are called (user, movie, stars, …); three columns with other
    names, and the first three without a header, are taken in this order with a note; of all else
    --columns has to say which they are. With --method implicit a file of users and items alone
    counts how often each pair is there. The model keeps their names, or places, by which `gramian
    predict` finds them in other files.

    Without --tol the fit ends when the error of a tenth of the ratings, held out, has stopped
    moving, and the certificate is what it is then; --tol 1e-4 goes on to the proved optimum.

    Save the model (--model) for `gramian predict` and `gramian recommend`; --out writes the
    ratings with what the model says of them.

    \b
    Examples:
      gramian complete ratings.csv --model ratings.gramian
      gramian complete 'ratings/*.parquet' --scheduler tcp://head:8786 --model ratings.gramian
    """
    if scheduler is not None:
        _complete_there(run, str(file), scheduler, (columns, format, out), method, lam, duplicates)
        return
    if wide and columns is not None:
        raise click.UsageError("--columns goes with a rating a line, and --wide is a user a line")
    clock.phase(f"reading {file}")
    if wide:
        names, (rows, cols, values) = None, wide_ratings(file, format)
    elif method == "implicit" and (clicks := clicks_of(file, format, columns)) is not None:
        names, (rows, cols, values) = clicks
    else:
        names = columns_to_fit(file, format, split_names(columns, "user,item,rating"))
        asked = None if names is None else [str(name) for name in names]
        rows, cols, values = read_ratings(file, columns=asked, format=format)
    if np.ptp(values) == 0 and method != "implicit":
        note(f"every rating is {values[0]:g}, which any constant predicts: what users did (clicks, "
             "purchases) is learned by --method implicit")  # fmt: skip
    if rows.size > 1 and np.unique(rows).size == rows.size:
        note("every user has one rating only: are these the right columns? --columns names them")
    with bad_input():
        model = METHODS[method](
            lam="auto" if lam is None else lam, duplicates=duplicates, **run.parameters()
        )
        run.fit(model, (rows, cols, values))
        model.columns_ = names
        verdict = run.judged(
            model.result_.status, lambda: verdict_of_completion(model, rows, cols, values)
        )
    fitted = model.predict((rows, cols))
    if out is not None:
        both = np.column_stack([values, fitted])
        deliver(out, both, ["rating", "fitted"], first={"user": rows, "item": cols})
    path = getattr(model, "path_", None)
    show(
        "complete",
        {
            **judgement(verdict),
            "file": str(file),
            "ratings": values.size,
            "users": len(model.row_ids_),
            "items": len(model.col_ids_),
            "method": method,
            "columns": names,
            "lambda": model.lam_,
            **outcome(model.result_, model.certificate_, run.seconds),
            **_errors(method, path, fitted - values),
            **run.keep(model, verdict=verdict, source=file),
            "out": out,
        },
        as_json=run.as_json,
    )
    leave(model.result_.status)


def _complete_there(
    run: Run,
    files: str,
    scheduler: str,
    refused: tuple[Any, ...],
    method: str,
    lam: float | None,
    duplicates: str,
) -> None:
    """The same on a cluster: the ratings never come here."""
    with bad_input():
        for given, name in zip(refused, ("--columns", "--format", "--out"), strict=True):
            if given is not None:
                raise ValueError(f"{name} is for a file that is read here, without --scheduler")
        if method not in THERE:
            raise ValueError(f"--method {method} is not done on a cluster: leave --scheduler out")
        there, client = _connected(scheduler)
        with client:
            model = getattr(there, THERE[method])(
                lam="auto" if lam is None else lam, duplicates=duplicates, **run.parameters()
            )
            try:
                run.fit(model, files)
            except there.ClusterError as lost:
                raise ValueError(str(lost)) from lost
    model = model.at_home()
    path = getattr(model, "path_", None)
    show(
        "complete",
        {
            "file": files,
            "scheduler": scheduler,
            "ratings": model._known.nnz,
            "users": len(model.row_ids_),
            "items": len(model.col_ids_),
            "method": method,
            "columns": model.columns_,
            "lambda": model.lam_,
            **outcome(model.result_, model.certificate_, run.seconds),
            "error_held_out": None if path is None else float(path.errors.min()),
            **run.keep(model),
        },
        as_json=run.as_json,
    )
    leave(model.result_.status)


def _connected(scheduler: str) -> tuple[Any, Any]:
    """`gramian.dask` and a client of the scheduler, or a sentence on what is missing."""
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


def _errors(method: str, path: Any, residuals: Any) -> dict[str, float | None]:
    """What the path found of what was held out, and how near the ratings are."""
    held = None if path is None else float(path.errors.min())
    if method == "implicit":
        return {"ndcg_held_out": None if held is None else 1.0 - held}
    return {
        "error_held_out": held,
        "rmse_of_the_ratings": float(np.sqrt(np.mean(residuals**2))),
    }
