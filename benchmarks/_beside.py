"""This working tree beside another checkout: seconds to a certified gap, in turns.

    git worktree add ../before COMMIT
    python -m benchmarks._beside ../before --data DIR [--only completion_100k mvu_1000] [--rounds 2]

Every case runs in processes of its own, one tree after the other and round after round, so that a
machine that slows down slows both. Nothing else should run meanwhile.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1]
TOL = 1e-4
LIMIT = 240.0
"""Seconds of a fit, at which it stops with what it has."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases asked for in both trees and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks._beside", description=__doc__)
    parser.add_argument("before", type=Path, nargs="?", help="another checkout of this repository")
    parser.add_argument("--data", help="the folder of data sets; GRAMIAN_DATA otherwise")
    parser.add_argument("--only", nargs="+", metavar="CASE", help="these cases alone")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.data:
        os.environ["GRAMIAN_DATA"] = options.data
    if options.one:
        print(json.dumps(_measured(options.one)))
        return 0
    if options.before is None:
        parser.error("name the other checkout")
    print(f"{'case':28s} {'before':>10s} {'now':>10s} {'ratio':>6s}  gaps")
    for case in options.only or _cases():
        _compare(case, options.before.resolve(), options.rounds)
    return 0


def _compare(case: str, before: Path, rounds: int) -> None:
    found = [(_in_tree(before, case), _in_tree(HERE, case)) for _ in range(rounds)]
    old, new = (min(pair[k]["seconds"] for pair in found) for k in (0, 1))
    gaps = "  ".join(f"{run['status']} {run['gap']}" for run in found[-1])
    print(f"{case:28s} {old:10.3f} {new:10.3f} {new / old:6.2f}  {gaps}", flush=True)


def _in_tree(tree: Path, case: str) -> dict[str, Any]:
    paths = os.pathsep.join([str(tree / "src"), str(HERE)])
    command = [sys.executable, "-m", "benchmarks._beside", "--one", case]
    done = subprocess.run(
        command, cwd=HERE, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{case} in {tree.name}: {done.stderr.strip().splitlines()[-1]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


# --- what is measured ----------------------------------------------------------------


def _cases() -> list[str]:
    from benchmarks import auto_table

    return [*FITS, *auto_table.PROBLEMS]


def _measured(case: str) -> dict[str, Any]:
    import gramian as gm
    from benchmarks import auto_table

    if case not in FITS:
        problem = auto_table.PROBLEMS[case]()
        auto_table.solve(problem, "auto", LIMIT)
        results = auto_table.calls(problem, "auto", LIMIT, 3)
        seconds = min(result.seconds for result in results)
        return _told(seconds, results[-1])
    gm.minimize(gm.problems.top_eigen(np.eye(3)))  # imports are no part of a fit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = os.times().elapsed
        result = FITS[case]()
        return _told(os.times().elapsed - started, result)


def _told(seconds: float, result: Any) -> dict[str, Any]:
    gap = result.certificate.relative_gap
    return {
        "seconds": seconds,
        "status": result.status.name,
        "gap": None if gap is None else f"{gap:.1e}",
    }


def _completion() -> Any:
    from gramian.completion import NuclearCompletion

    data = _arrays("movielens_100k")
    ratings = (data["user"], data["item"], data["rating"].astype(float))
    return NuclearCompletion(tol=TOL, time_limit=LIMIT, random_state=0).fit(ratings).result_


def _unfolding(n: int) -> Any:
    from gramian.manifold import MVU

    X = _arrays("mnist")["X"][:n].astype(float)
    return MVU(n_neighbors=6, tol=TOL, time_limit=LIMIT, random_state=0).fit(X).result_


def _metric() -> Any:
    from gramian.metric import LMNN

    data = _arrays("waveform")
    return LMNN(tol=TOL, time_limit=LIMIT, random_state=0).fit(data["X"], data["y"]).result_


def _arrays(name: str) -> dict[str, np.ndarray]:
    from benchmarks.harness.data import data_folder, load_arrays

    return load_arrays(name, data_folder(None))


FITS: dict[str, Callable[[], Any]] = {
    "completion_100k": _completion,
    "mvu_1000": lambda: _unfolding(1000),
    "mvu_3000": lambda: _unfolding(3000),
    "lmnn_waveform": _metric,
}
"""Whole fits to a certified gap of 1e-4, from data sets."""


if __name__ == "__main__":
    sys.exit(main())
