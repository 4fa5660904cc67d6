"""`gramian eigen`: the largest eigenvalues of a symmetric matrix."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from gramian.app.cli.options import (
    FILE,
    FORMATS,
    json_option,
    report_option,
    warnings_as_notes,
)
from gramian.app.cli.output import bad_input, show
from gramian.app.cli.outputs import ARRAYS, Writing
from gramian.app.files import read_matrix
from gramian.app.report import report_eigen
from gramian.common.storage import replacing
from gramian.spectral import top_eigen


@click.command(cls=Writing)
@click.argument("file", type=FILE)
@click.option("-k", "--count", type=int, default=5, show_default=True, help="How many.")
@click.option("--tol", type=float, default=1e-10, show_default=True, help="Relative residual.")
@click.option(
    "--method", type=click.Choice(["auto", "lanczos", "lapack", "lro"]), default="auto",
    show_default=True, help="How to find them.",
)  # fmt: skip
@click.option("--format", "format", type=click.Choice(FORMATS), help="Of the input file.")
@click.option("--out", type=ARRAYS, help="Write values, vectors and residuals to this .npz file.")
@report_option
@json_option
def eigen(
    file: Path,
    count: int,
    tol: float,
    method: str,
    format: str | None,
    out: Path | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Find the largest eigenvalues of the symmetric matrix in FILE, with their residuals.

    A residual is a certificate: the matrix has an eigenvalue that close.

    \b
    Example:
      gramian eigen kernel.csv -k 3
    """
    matrix = read_matrix(file, format=format)
    with bad_input(), warnings_as_notes():
        found = top_eigen(matrix, count, method=method, tol=tol)  # type: ignore[arg-type]
    if out is not None:
        with replacing(out) as target:
            np.savez(target, values=found.values, vectors=found.vectors, residuals=found.residuals)
    if report is not None:
        report_eigen(found, report, file.name)
    pairs = zip(found.values, found.residuals, strict=True)
    rows = [[k + 1, *pair] for k, pair in enumerate(pairs)]
    show(
        "eigen",
        {"file": str(file), "order": matrix.shape[0], "out": out, "report": report},
        as_json=as_json,
        rows=(["number", "eigenvalue", "residual"], rows),
    )
