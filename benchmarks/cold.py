"""Seconds to the first result in a new process: without and with a cache of compiled kernels.

    python -m benchmarks.cold --data DIR [--only lmnn_wine completion_1000]

Each case runs in new processes with one new folder for compiled kernels, which is empty for the
first one and filled for the second one. Times are CPU seconds of one thread: of the imports and the
first fit, and of a second fit in the same process. NumPy is imported before, and the data are read;
all modules have their bytecode.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import cases
from benchmarks.harness.context import Context
from benchmarks.harness.data import load_arrays
from benchmarks.harness.process import child_env
from benchmarks.harness.report import Report, Table

TITLE = "Seconds to the first result"
PAPER = "Not from a paper"

COLUMNS = ["case", "empty cache", "filled cache", "second fit", "empty / filled", "compiled"]
QUICK = ("minimize", "kta_wine")

CHILD = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
with np.load(sys.argv[1]) as file:
    names = dict(file)
statement, seconds = compile(sys.argv[2], "case", "exec"), []
for _ in range(2):
    started = time.process_time()
    exec(statement, names)
    seconds.append(time.process_time() - started)
kernels = {
    id(kernel): kernel
    for name, module in list(sys.modules.items()) if name.startswith("gramian.arrays._")
    for kernel in vars(module).values()
    if hasattr(kernel, "stats") and not isinstance(kernel, type)
}
misses = [sum(kernel.stats.cache_misses.values()) for kernel in kernels.values()]
print(json.dumps([*seconds, sum(misses)]))
"""
"""Program that measures a statement whose variables are in a file."""

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A statement, and the function that makes its variables."""

    statement: str
    variables: Callable[[Path | None], Arrays] = lambda folder: {}


def run(ctx: Context) -> Report:
    """All cases."""
    table = Table("CPU seconds, one thread", COLUMNS)
    for name in ctx.pick(CASES, QUICK):
        table.add(*row(name, ctx.data_folder))
    return ctx.report([table], ["compiled: versions of kernels that the first fit compiled."])


def row(name: str, data: Path | None) -> list[Any]:
    """A row of the table."""
    case = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "variables.npz")
        np.savez(file, **case.variables(data))
        _seconds(file, "import gramian.metric, gramian.kernel, numba", Path(folder, "first"))
        empty, filled = (_seconds(file, case.statement, Path(folder, "cache")) for _ in range(2))
    return [name, empty[0], filled[0], filled[1], empty[0] / filled[0], empty[2]]


def _seconds(file: Path, statement: str, cache: Path) -> list[float]:
    """Those of the first and the second time in a new process, and the number of compilations."""
    env = child_env([entry or os.getcwd() for entry in sys.path], threads=1)
    env["NUMBA_CACHE_DIR"] = str(cache)
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", CHILD, str(file), statement]
    ended = subprocess.run(command, env=env, capture_output=True, text=True)
    if ended.returncode:
        raise RuntimeError(f"{statement}: {ended.stderr.strip().splitlines()[-1]}")
    found: list[float] = json.loads(ended.stdout.splitlines()[-1])
    return found


# --- cases -----------------------------------------------------------------------------


def _wine(folder: Path | None) -> Arrays:
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)
    return {"X": X, "y": y}


def _digits(folder: Path | None) -> Arrays:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return {"X": X, "y": y}


def _classes(folder: Path | None) -> Arrays:
    """2,000 normal samples of four classes in 20 dimensions."""
    rng, y = np.random.default_rng(0), np.arange(2000) % 4
    X = rng.standard_normal((y.size, 20))
    X[:, :4] += 1.5 * np.eye(4)[y]
    return {"X": X, "y": y}


def _links(folder: Path | None) -> Arrays:
    """300 points of two moons, 20 of them labelled."""
    from sklearn.datasets import make_moons

    X, y = make_moons(300, noise=0.05, random_state=0)
    known = np.full(y.size, -1)
    shown = np.random.default_rng(0).choice(y.size, 20, replace=False)
    known[shown] = y[shown]
    return {"X": X, "y": known}


def _roll(folder: Path | None) -> Arrays:
    from sklearn.datasets import make_swiss_roll

    return {"X": make_swiss_roll(300, random_state=0)[0]}


def _ratings(folder: Path | None) -> Arrays:
    """1,000 of 100 × 60 values of rank 3 with noise."""
    rng = np.random.default_rng(0)
    P, Q = rng.standard_normal((100, 3)), rng.standard_normal((60, 3))
    i, j = np.divmod(rng.choice(6000, 1000, replace=False), 60)
    values = np.sum(P[i] * Q[j], axis=1) + 0.1 * rng.standard_normal(i.size)
    return {"i": i, "j": j, "values": values}


def _movielens(folder: Path | None) -> Arrays:
    data = load_arrays("movielens_100k", folder)
    return {"i": data["user"], "j": data["item"], "values": data["rating"].astype(float)}


def _program(folder: Path | None) -> Arrays:
    """Ten dense rows of order 20, one of which fixes the trace."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((10, 20, 20))
    A, G, C = (A + A.transpose(0, 2, 1)) / 2, rng.standard_normal((20, 4)), np.diag(np.arange(20.0))
    A[0] = np.eye(20)
    return {"C": C, "A": A, "b": np.einsum("kij,ij->k", A, G @ G.T)}


CASES = {
    "import": Case("import gramian"),
    "import_classifier": Case("import gramian; gramian.metric.MetricClassifier"),
    "help": Case(
        "import sys; sys.argv = ['gramian', '--help']\n"
        "from gramian.app.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass"
    ),
    "minimize": Case("import gramian as gm; gm.minimize(gm.problems.sdp(C, list(A), b))", _program),
    "metric_classifier_wine": Case(
        "from gramian.metric import MetricClassifier; MetricClassifier().fit(X, y)", _wine
    ),
    "kta_wine": Case("from gramian.metric import KTA; KTA().fit(X, y)", _wine),
    "lmnn_wine": Case("from gramian.metric import LMNN; LMNN(random_state=0).fit(X, y)", _wine),
    "lmnn_2000": Case("from gramian.metric import LMNN; LMNN(random_state=0).fit(X, y)", _classes),
    "dml_eig_wine": Case(
        "from gramian.metric import DMLEig; DMLEig(random_state=0).fit(X, y)", _wine
    ),
    "npkl_300": Case(
        "from gramian.kernel import NPKL; NPKL(n_clusters=2, random_state=0).fit(X, y)", _links
    ),
    "mvu_300": Case(
        "from gramian.manifold import MVU; MVU(n_neighbors=6, random_state=0).fit(X)", _roll
    ),
    "completion_1000": Case(
        "from gramian.completion import NuclearCompletion as N\n"
        "N(random_state=0).fit((i, j, values))",
        _ratings,
    ),
    "completion_100k": Case(
        "from gramian.completion import NuclearCompletion as N\n"
        "N(random_state=0).fit((i, j, values))",
        _movielens,
    ),
    "layout_digits": Case(
        "from gramian.manifold import NeighborLayout; NeighborLayout(random_state=0).fit(X)",
        _digits,
    ),
}


if __name__ == "__main__":
    raise SystemExit(cases.main("cold", __doc__, COLUMNS, CASES, row))
