"""DML_eig of pyDML, the other public implementation of DML-eig.

Its source distribution needs Cython to be built and does not say so, and pip builds where only
what is said is installed. So pyDML is not among the requirements: the first call builds it here,
beside the Cython below, which takes minutes. Give that call time and samples of no interest.
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
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.harness.exchange import serve

PACKAGE = "pyDML==0.1.0"


def build() -> None:
    """Install pyDML where it is missing; the log of a failure stays out of the report."""
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
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(X, y)
    return {"components": learner.transformer(), "fit_seconds": time.perf_counter() - start}


if __name__ == "__main__":
    build()
    serve(fit)
