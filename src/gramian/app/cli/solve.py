"""`gramian solve`: a problem given as matrices, or a semidefinite program in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import gramian as gm
from gramian.app.cli.options import (
    FILE,
    device_option,
    json_option,
    out_option,
    progress_option,
    report_option,
)
from gramian.app.cli.output import bad_input, leave, note, outcome, show
from gramian.app.cli.outputs import CHECKPOINT, TABLE, Writing
from gramian.app.cli.samples import deliver
from gramian.app.files import read_header, read_matrix
from gramian.app.report import report_results
from gramian.io import read_sdpa
from gramian.problems import nearest, quadratic


@click.command(cls=Writing)
@click.argument("file", type=FILE, required=False)
@click.option("--entries", type=FILE, help="T: known entries; NaN or not stored, unknown.")
@click.option("--weights", type=FILE, help="W: how much each known entry counts.")
@click.option("-A", "--quadratic-a", "A", type=FILE, help="A of tr((AM)² + BM² + 2CM).")
@click.option("-B", "--quadratic-b", "B", type=FILE, help="B of it.")
@click.option("-C", "--linear", "C", type=FILE, help="C of either problem.")
@click.option("--trace", type=float, help="Fix tr M (with --entries).")
@click.option("--solver", default="auto", show_default=True, help="Solver.")
@click.option("--rank", type=int, help="The largest rank of M.")
@click.option("--tol", type=float, default=1e-6, show_default=True, help="Certified relative gap.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Stop after this.")
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@device_option
@progress_option
@click.option(
    "--checkpoint", type=CHECKPOINT, help="Keep the best point so far there, and continue from it."
)
@click.option("--every", type=float, default=60.0, show_default=True, help="Seconds between.")
@out_option
@click.option("--dual", type=TABLE, help="Write the multipliers y of FILE's rows to this file.")
@click.option("--matrix", type=TABLE, help="Write M = LLᵀ itself to this file.")
@report_option
@json_option
def solve(
    file: Path | None,
    entries: Path | None,
    weights: Path | None,
    A: Path | None,
    B: Path | None,
    C: Path | None,
    trace: float | None,
    solver: str,
    rank: int | None,
    tol: float,
    time_limit: float | None,
    seed: int,
    device: str | None,
    progress: bool | None,
    checkpoint: Path | None,
    every: float,
    out: Path | None,
    dual: Path | None,
    matrix: Path | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Minimise a function of a PSD matrix M = LLᵀ that is given by matrices in files.

    With FILE: a semidefinite program in the sparse SDPA format (.dat-s, .dat-s.gz), read as
    min ⟨C, M⟩ with C = −F_0: minus the optimum that collections print. With --entries:
    ½ Σ W_ij (M_ij − T_ij)² + ⟨C, M⟩ over the known entries. Without:
    tr((AM)² + BM² + 2CM). --out writes the factor L.

    \b
    Example:
      gramian solve --entries correlations.csv --out factor.npy
      gramian solve cut.dat-s --dual y.npy
    """
    with bad_input():
        given = [matrix for matrix in (entries, weights, A, B, C) if matrix is not None]
        _refuse_other_order(given)
        if file is not None and (given or trace is not None):
            raise click.UsageError("FILE is a whole problem: leave out the options with matrices")
        if file is None and dual is not None:
            raise click.UsageError("--dual goes with a FILE that has constraints")
        problem = _problem(entries, weights, A, B, C, trace) if file is None else read_sdpa(file)
        if checkpoint is not None and checkpoint.exists():
            note(f"continuing from {checkpoint}")
        result = gm.minimize(
            problem,
            solver,
            rank=rank,
            tol=tol,
            time_limit=time_limit,
            random_state=seed,
            checkpoint=checkpoint,
            every=every,
            device=device,
        )
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
        facts |= {"violation": result.certificate.violation, "dual": dual}
        facts["dimacs"] = list(result.dimacs) if as_json else _errors(result.dimacs)
    show("solve", {"problem": str(problem), **facts}, as_json=as_json)
    leave(result.status)


def _errors(dimacs: tuple[float, ...]) -> str:
    return ", ".join(f"{error:.1e}" for error in dimacs)


def _refuse_other_order(files: list[Path]) -> None:
    """Matrices of one problem have their columns in one order, where they say what it is."""
    first: tuple[Path, list[str]] | None = None
    for file in files:
        header = read_header(file)
        if header is None or not header.named:
            continue
        if first is None:
            first = file, header.names
        elif first[1] != header.names and sorted(first[1]) == sorted(header.names):
            raise click.ClickException(
                f"the columns of {file} are in another order than those of {first[0]}: sort the "
                "rows and the columns of both alike"
            )


def _problem(
    entries: Path | None,
    weights: Path | None,
    A: Path | None,
    B: Path | None,
    C: Path | None,
    trace: float | None,
) -> Any:
    if entries is None:
        if weights is not None or trace is not None:
            raise click.UsageError("--weights and --trace go with --entries")
        if A is None and B is None:
            raise click.UsageError("give --entries, or A or B (and C) of tr((AM)² + BM² + 2CM)")
        return quadratic(*(None if file is None else read_matrix(file) for file in (A, B, C)))
    if A is not None or B is not None:
        raise click.UsageError("--entries is a problem of its own: leave out A and B")
    return nearest(
        read_matrix(entries),
        weights=None if weights is None else read_matrix(weights),
        C=None if C is None else read_matrix(C),
        trace=trace,
    )
