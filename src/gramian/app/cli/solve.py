"""`gramian solve` and `gramian eigen`: problems given as matrices in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy.sparse import issparse

import gramian as gm
from gramian.app.cli.options import (
    FILE,
    file_argument,
    format_options,
    json_option,
    limit_options,
    option,
    out_option,
    report_option,
)
from gramian.app.cli.output import bad_input, leave, note, outcome, show
from gramian.app.cli.outputs import CHECKPOINT, TABLE, Writing
from gramian.app.cli.tables import deliver
from gramian.app.files import ReadOptions, read_header, read_matrix
from gramian.app.report import report_eigen, report_results
from gramian.common.storage import replacing
from gramian.io import read_sdpa
from gramian.problems import nearest, quadratic
from gramian.spectral import top_eigen

COUNT = 5
"""Default number of eigenvalues."""

MATRICES = ("entries", "weights", "A", "B", "C")


@click.command(cls=Writing)
@click.argument("file", type=FILE, required=False)
@option("--entries", FILE, "T: known entries; NaN or not stored, unknown.")
@option("--weights", FILE, "W: the weight of each known entry.")
@option("-A --quadratic-a A", FILE, "A of tr((AM)² + BM² + 2CM).")
@option("-B --quadratic-b B", FILE, "B of the same problem.")
@option("-C --linear C", FILE, "C of both problems.")
@option("--trace", float, "Fix tr M (with --entries).")
@option("--solver", str, "Solver.", default="auto")
@option("--rank", int, "The largest rank of M.")
@option("--tol", float, "Certified relative gap.", default=1e-6)
@limit_options
@option("--checkpoint", CHECKPOINT, "Keep the best point so far there, and continue from it.")
@option("--every", float, "Seconds between checkpoints.", default=60.0)
@out_option
@option("--dual", TABLE, "Write the multipliers y of FILE's rows to this file.")
@option("--matrix", TABLE, "Write M = LLᵀ itself to this file.")
@report_option
@json_option
def solve(
    file: Path | None,
    trace: float | None,
    solver: str,
    seed: int,
    progress: bool | None,
    checkpoint: Path | None,
    out: Path | None,
    dual: Path | None,
    matrix: Path | None,
    report: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Minimise a function of a PSD matrix M = LLᵀ that is given by matrices in files.

    With FILE: a semidefinite program in the sparse SDPA format (.dat-s, .dat-s.gz), read as
    min ⟨C, M⟩ with C = −F_0, so the value is minus the one printed in SDP collections. With
    --entries: ½ Σ W_ij (M_ij − T_ij)² + ⟨C, M⟩ over the known entries. Without both:
    tr((AM)² + BM² + 2CM). --out writes the factor L.

    \b
    Example:
      gramian solve --entries correlations.csv --out factor.npy
      gramian solve cut.dat-s --dual y.npy
    """
    with bad_input():
        matrices = {name: given.pop(name) for name in MATRICES}
        some = [path for path in matrices.values() if path is not None]
        _refuse_other_order(some)
        if file is not None and (some or trace is not None):
            raise click.UsageError("FILE is a whole problem: leave out the options with matrices")
        if file is None and dual is not None:
            raise click.UsageError("--dual requires a FILE that has constraints")
        problem = _problem(matrices, trace) if file is None else _program(file)
        if checkpoint is not None and checkpoint.exists():
            note(f"continuing from {checkpoint}")
        result = gm.minimize(problem, solver, random_state=seed, checkpoint=checkpoint, **given)
    if out is not None:
        deliver(out, result.factor, [f"column{k}" for k in range(result.rank)])
    if dual is not None and result.dual is not None:
        deliver(dual, result.dual[:, None], ["y"])
    if matrix is not None:
        deliver(matrix, result.matrix(), [f"x{k}" for k in range(problem.order)])
    if report is not None:
        report_results(result, report, source=None if file is None else str(file))
    facts = {**outcome(result, result.certificate), "out": out, "matrix": matrix, "report": report}
    if result.dimacs is not None:
        errors = ", ".join(f"{error:.1e}" for error in result.dimacs)
        facts |= {"violation": result.certificate.violation, "dual": dual}
        facts["dimacs"] = list(result.dimacs) if as_json else errors
    show("solve", {"problem": str(problem), **facts}, as_json=as_json)
    leave(result.status)


def _program(file: Path) -> Any:
    """The program in a file; an error about a file of another kind names the other options."""
    try:
        return read_sdpa(file)
    except ValueError as refusal:
        if ".dat-s" in file.name.lower() or not file.is_file():
            raise
        raise click.ClickException(
            f"{refusal}: FILE is a program in the sparse SDPA format; a matrix is given with "
            "--entries, -A, -B or -C"
        ) from refusal


def _refuse_other_order(files: list[Path]) -> None:
    """Reject matrices of one problem whose named columns are in different orders."""
    headers = [(file, read_header(file)) for file in files]
    named = [(file, header.names) for file, header in headers if header and header.named]
    for file, names in named[1:]:
        first, order = named[0]
        if names != order and sorted(names) == sorted(order):
            raise click.ClickException(
                f"the columns of {file} are in another order than those of {first}: sort the "
                "rows and the columns of both alike"
            )


def _problem(files: dict[str, Path | None], trace: float | None) -> Any:
    """The problem of the given matrices."""
    given = {name for name, file in files.items() if file is not None}
    if "entries" not in given:
        if "weights" in given or trace is not None:
            raise click.UsageError("--weights and --trace go with --entries")
        if not given & {"A", "B"}:
            raise click.UsageError("give --entries, or A or B (and C) of tr((AM)² + BM² + 2CM)")
    elif given & {"A", "B"}:
        raise click.UsageError("--entries is a problem of its own: leave out A and B")
    read = {name: None if file is None else read_matrix(file) for name, file in files.items()}
    if "entries" not in given:
        return quadratic(read["A"], read["B"], read["C"])
    entries: Any = read["entries"]
    if entries.shape[0] != entries.shape[1]:
        raise click.ClickException(
            f"{files['entries']} has {entries.shape[0]} rows and {entries.shape[1]} columns, where "
            "a square, symmetric matrix belongs"
        )
    return nearest(entries, weights=read["weights"], C=read["C"], trace=trace)


@click.command(cls=Writing)
@file_argument
@option("-k --count", click.IntRange(min=1), "Number of eigenvalues.  [default: 5, or all]")
@option("--tol", float, "Relative residual.", default=1e-10)
@option("--method", ["auto", "lanczos", "lapack", "lro"], "Algorithm.")
@format_options
@out_option
@report_option
@json_option
def eigen(
    file: Path,
    count: int | None,
    tol: float,
    method: Any,
    format: ReadOptions,
    out: Path | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Find the largest eigenvalues of the symmetric matrix in FILE, with their residuals.

    The matrix has an eigenvalue within the residual of each printed value. --out writes a row with
    each eigenvalue, its residual and its vector, by the names of the columns; to .npz, the
    arrays values, vectors, residuals.

    \b
    Example:
      gramian eigen kernel.csv -k 3
    """
    matrix = read_matrix(file, format=format)
    rows, columns = matrix.shape
    if rows != columns:
        raise click.ClickException(
            f"{file} has {rows:,} rows and {columns:,} columns, where a square, symmetric matrix "
            "belongs"
        )
    if np.isnan(matrix.data if issparse(matrix) else matrix).any():
        raise click.ClickException(
            f"{file} has missing cells: fill them in ('gramian solve --entries' estimates them)"
        )
    if count is not None and count > rows:
        raise click.UsageError(f"-k {count}, but a matrix of order {rows} has {rows} eigenvalues")
    with bad_input():
        found = top_eigen(matrix, count or min(COUNT, rows), method=method, tol=tol)
    if out is not None and out.suffix.lower() == ".npz":
        with replacing(out) as target:
            np.savez(target, values=found.values, vectors=found.vectors, residuals=found.residuals)
    elif out is not None:
        pair = {"eigenvalue": found.values, "residual": found.residuals}
        header = read_header(file, format=format)
        named = header.names[-rows:] if header is not None and header.named else None
        names = named or [f"v{k}" for k in range(rows)]
        deliver(out, found.vectors.T, names, first=pair)
    if report is not None:
        report_eigen(found, report, file.name)
    numbers = range(1, found.values.size + 1)
    lines = [list(row) for row in zip(numbers, found.values, found.residuals, strict=True)]
    show(
        "eigen",
        {"file": str(file), "order": rows, "out": out, "report": report},
        as_json=as_json,
        rows=(["number", "eigenvalue", "residual"], lines),
    )
