"""Reports that the page on reports shows: written into the built pages, a fit for each family."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_wine, make_moons, make_s_curve
from sklearn.preprocessing import StandardScaler
from sphinx.application import Sphinx

FOLDER = "reports"


def _metric(path: Path) -> None:
    from gramian.metric import LMNN

    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    LMNN().fit(X, y).report(path, X, load_wine().target_names[y])


def _manifold(path: Path) -> None:
    from gramian.manifold import MVU

    X, along = make_s_curve(400, random_state=0)
    MVU(n_neighbors=8).fit(X).report(path, y=along)


def _kernel(path: Path) -> None:
    from gramian.kernel import NPKL

    X, y = make_moons(200, noise=0.08, random_state=0)
    NPKL().fit(X, np.where(np.arange(200) < 12, y, -1)).report(path)


def _completion(path: Path) -> None:
    from gramian.completion import NuclearCompletion

    rng = np.random.default_rng(0)
    truth = 3 + rng.standard_normal((120, 2)) @ rng.standard_normal((2, 60))
    i, j = np.nonzero(rng.random(truth.shape) < 0.3)
    users, films = np.array([f"user {k}" for k in i]), np.array([f"film {k}" for k in j])
    stars = np.clip(np.round(truth[i, j]), 1, 5)
    NuclearCompletion().fit((users, films, stars)).report(path)


def _solvers(path: Path) -> None:
    import gramian as gm
    from gramian.app.report import report_results

    X, y = load_digits(return_X_y=True)
    problem = gm.problems.kta(StandardScaler().fit_transform(X), y, lam=1e-3)
    runs = [gm.minimize(problem, name, time_limit=5) for name in ("auto", "bilgo", "lbfgs", "lro")]
    report_results(runs, path)


def _eigen(path: Path) -> None:
    from gramian.app.report import report_eigen
    from gramian.spectral import top_eigen

    X = load_digits().data
    squared = np.sum(X * X, axis=1)
    kernel = np.exp(-(squared[:, None] + squared - 2 * X @ X.T) / 2000)
    report_eigen(top_eigen(kernel, 20), path, "the kernel of the digits")


PAGES: dict[str, Callable[[Path], None]] = {
    "metric": _metric,
    "manifold": _manifold,
    "kernel": _kernel,
    "completion": _completion,
    "solvers": _solvers,
    "eigenvalues": _eigen,
}


def write_reports(app: Sphinx, failed: Exception | None) -> None:
    """Write those that are not there yet."""
    if failed is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(exist_ok=True)
    for name, write in PAGES.items():
        path = folder / f"{name}.html"
        if not path.exists():
            write(path)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", write_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
