"""Seconds to a certified gap in this working tree and in another checkout, alternately.

    git worktree add ../before COMMIT
    python -m benchmarks._beside ../before --data DIR [--only completion_100k mvu_1000] [--rounds 2]

Every case has processes of its own, and the trees alternate, so that a machine that slows down
slows both. Nothing else should run meanwhile.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gramian as gm
from benchmarks import _fits, auto_table
from benchmarks.harness.data import data_folder

HERE = Path(__file__).resolve().parents[1]
TOL, LIMIT = 1e-4, 240.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases asked for in both trees and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks._beside", description=__doc__)
    parser.add_argument("before", type=Path, nargs="?", help="another checkout of this repository")
    parser.add_argument("--data", help="the folder of data sets; GRAMIAN_DATA otherwise")
    parser.add_argument("--only", nargs="+", metavar="CASE", help="these cases alone")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--default", action="store_true", help="fits at their own tolerance")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.data:
        os.environ["GRAMIAN_DATA"] = options.data
    if options.one:
        print(json.dumps(_measured(options.one, {} if options.default else {"tol": TOL})))
        return 0
    if options.before is None:
        parser.error("name the other checkout")
    if not (options.before / "src" / "gramian").is_dir():
        parser.error(f"{options.before} has no src/gramian")
    print(f"{'case':28s} {'before':>10s} {'now':>10s} {'ratio':>6s}  gaps")
    for case in options.only or (*FITS, *auto_table.PROBLEMS):
        more = ["--default"] if options.default else []
        _compare([case, *more], options.before.resolve(), options.rounds)
    return 0


def _compare(call: Sequence[str], before: Path, rounds: int) -> None:
    found = [(_in_tree(before, call), _in_tree(HERE, call)) for _ in range(rounds)]
    old, new = (min(pair[k]["seconds"] for pair in found) for k in (0, 1))
    gaps = "  ".join(f"{run['status']} {run['gap']}" for run in found[-1])
    print(f"{call[0]:28s} {old:10.3f} {new:10.3f} {new / old:6.2f}  {gaps}", flush=True)


def _in_tree(tree: Path, call: Sequence[str]) -> dict[str, Any]:
    paths = os.pathsep.join([str(tree / "src"), str(HERE)])
    command = [sys.executable, "-m", "benchmarks._beside", "--one", *call]
    done = subprocess.run(
        command, cwd=HERE, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{call[0]} in {tree.name}: {done.stderr.strip().splitlines()[-1]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _measured(case: str, options: dict[str, Any]) -> dict[str, Any]:
    if case not in FITS:
        problem = auto_table.PROBLEMS[case]()
        auto_table.solve(problem, "auto", LIMIT)
        results = auto_table.calls(problem, "auto", LIMIT, 3)
        return _told(min(result.seconds for result in results), results[-1])
    gm.minimize(gm.problems.top_eigen(np.eye(3)))  # imports are not part of a fit
    fit = FITS[case](data_folder(None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        result = fit(**options).result_
        return _told(time.perf_counter() - started, result)


def _told(seconds: float, result: Any) -> dict[str, Any]:
    gap = result.certificate.relative_gap
    return {
        "seconds": seconds,
        "status": result.status.name,
        "gap": None if gap is None else f"{gap:.1e}",
    }


FITS = {
    "completion_100k": _fits.completion("movielens_100k"),
    "mvu_1000": _fits.unfolding(1000, 6),
    "mvu_3000": _fits.unfolding(3000, 6),
    "lmnn_waveform": _fits.metric("LMNN", "waveform"),
    "completion_1m": _fits.completion("movielens_1m"),
    "dml_eig_usps": _fits.metric("DMLEig", "usps"),
    "kta_mnist": _fits.metric("KTA", "mnist"),
    "npkl_a9a": _fits.kernel("a9a"),
}
"""Whole fits of data sets to a certified gap of 1e-4, or with ``--default`` to their own."""


if __name__ == "__main__":
    sys.exit(main())
