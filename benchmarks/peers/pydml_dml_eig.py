"""DML_eig of pyDML, the other public implementation of DML-eig.

Its source distribution requires Cython without declaring it, so pip cannot build it in isolation.
The first call therefore builds it in this environment, with the Cython below, in minutes.
"""
# /// script
# dependencies = [
#     "cython<3", "setuptools<70", "wheel", "numpy<1.24", "scipy<1.11", "scikit-learn<1.3",
#     "pandas", "matplotlib", "seaborn", "six",
# ]
# ///

import importlib.util
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.harness.exchange import serve, timed

PACKAGE = "pyDML==0.1.0"


def build() -> None:
    """Install pyDML if it is missing; the log of a failure is not part of the report."""
    if importlib.util.find_spec("dml") is not None:
        return
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps"]
    done = subprocess.run([*pip, PACKAGE], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout, done.stderr)
        sys.exit(f"{PACKAGE} could not be built on this machine")


def fit(X: np.ndarray, y: np.ndarray, **options: Any) -> dict[str, Any]:
    """Fit ``DML_eig(**options)``; return its transformer (rows as in scikit-learn) and seconds."""
    from dml import DML_eig

    learner = DML_eig(**options)
    seconds = timed(lambda: learner.fit(X, y))
    return {"components": learner.transformer(), "fit_seconds": seconds}


if __name__ == "__main__":
    build()
    serve(fit)
