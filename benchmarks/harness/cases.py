"""`python -m benchmarks.NAME --only CASE`: a table with one row for each case, row by row."""

import argparse
from collections.abc import Callable, Collection, Sequence
from typing import Any

from benchmarks.harness.data import data_folder
from benchmarks.harness.report import cell_text


def main(
    name: str,
    doc: str | None,
    columns: Sequence[str] | Callable[..., Sequence[str]],
    cases: Collection[str],
    row: Callable[..., Sequence[Any]],
    **options: Any,
) -> int:
    """Print `row(case, folder, **options)` for each case asked for; `options` are the defaults.

    Columns that depend on the options are a function of them.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=doc)
    parser.add_argument("--data", help="the folder of data sets (default: GRAMIAN_DATA)")
    parser.add_argument("--only", nargs="+", metavar="CASE", choices=list(cases))
    for option, default in options.items():
        many = {"nargs": "+", "type": int} if isinstance(default, tuple) else {}
        parser.add_argument(f"--{option}", default=default, **many)
    args = vars(parser.parse_args())
    folder, only = data_folder(args.pop("data")), args.pop("only")
    print(*(columns(**args) if callable(columns) else columns), sep="  ")
    for case in only or cases:
        print(*(cell_text(cell) for cell in row(case, folder, **args)), sep="  ", flush=True)
    return 0
