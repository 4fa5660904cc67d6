"""Reports: one HTML page about a result or a fitted estimator, which needs no network.

The module can be called: ``gramian.report(thing, path)``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from gramian.app.report.families import family_sections
from gramian.app.report.page import Section, page_path, write_page
from gramian.app.report.parts import (
    comparison,
    convergence,
    eigenpairs,
    judgement,
    opening,
    settings,
    spectrum,
)
from gramian.app.verdict import (
    LARGEST_COMPARED,
    Verdict,
    verdict_of_completion,
    verdict_of_embedding,
    verdict_of_kernel,
    verdict_of_metric,
)
from gramian.arrays.errstate import under_own_errstate
from gramian.completion._base import Completion
from gramian.kernel._base import LinkedKernel
from gramian.manifold._base import Unfolding
from gramian.metric import MetricClassifier
from gramian.metric._base import MetricLearner
from gramian.result import Result
from gramian.spectral import TopEigen

FEW_RATINGS = 20_000
"""Number of ratings up to which a report fits again for a verdict."""

__all__ = ["report", "report_eigen", "report_estimator", "report_results"]


@under_own_errstate
def report(thing: Any, path: str | Path, X: Any = None, y: Any = None) -> Path:
    """Write a page about a result or an estimator, which needs no network; returns its path.

    Parameters
    ----------
    thing : Result, several Results of one problem, TopEigen, or a fitted estimator or pipeline
        The methods `report` of results and estimators call this function.
    path : str or Path
        The page, `.html`; an existing file is replaced only if it is a page of gramian.
    X, y : samples and labels, optional
        A metric, also that of a `MetricClassifier` or `MetricRegressor`, shows how it maps them; an
        embedding is coloured by y, and shows X under the pointer if it contains images, of shape
        (n_samples, height, width).
    """
    if isinstance(thing, TopEigen):
        return report_eigen(thing, path)
    if isinstance(thing, (Result, list, tuple)):
        return report_results(thing, path)
    return report_estimator(thing, path, X, y)


class CalledModule(ModuleType):
    """A module that can be called like its function `report`."""

    def __call__(self, thing: Any, path: str | Path, X: Any = None, y: Any = None) -> Path:
        return report(thing, path, X, y)


sys.modules[__name__].__class__ = CalledModule


def report_results(
    results: Result | Sequence[Result], path: str | Path, *, source: str | None = None
) -> Path:
    """Write the page of one result, or of several of one problem to compare solvers."""
    path = page_path(path)
    runs = [results] if isinstance(results, Result) else list(results)
    if not runs or not all(isinstance(run, Result) for run in runs):
        raise ValueError("a report needs one Result, or several of the same problem")
    if len({run.problem for run in runs}) > 1:
        raise ValueError("results of different problems cannot be compared: report each")
    first = opening(runs[0]) if len(runs) == 1 else comparison(runs)
    sections = [first, convergence(runs), spectrum(runs)]
    return write_page(path, f"gramian: {runs[0].problem}", sections, source=source)


def report_estimator(
    estimator: Any,
    path: str | Path,
    X: Any = None,
    y: Any = None,
    more: Sequence[Section] = (),
    *,
    verdict: Verdict | None = None,
    source: str | None = None,
) -> Path:
    """Write the page of a fitted estimator, with more sections and the name of its data.

    Without a verdict one is computed, by further fits to few samples or ratings.
    """
    check_is_fitted(estimator)
    check_consistent_length(X, y)
    path = page_path(path)
    if isinstance(estimator, Pipeline):
        X = X if X is None else estimator[:-1].transform(X)
        estimator = estimator[-1]
    learner = estimator.metric_ if isinstance(estimator, MetricClassifier) else estimator
    verdict = verdict or _found(learner, X, y)
    sections = [] if verdict is None else [judgement(verdict)]
    results = [estimator.result_] if hasattr(estimator, "result_") else []
    sections += [opening(result, estimator.certificate_) for result in results]
    sections += [*more, *family_sections(learner, X, y)]
    sections += [convergence(results), spectrum(results)] if results else []
    sections.append(settings(estimator))
    title = f"gramian: {type(estimator).__name__}"
    return write_page(path, title, sections, source=source)


def _found(estimator: Any, X: Any, y: Any) -> Verdict | None:
    """The verdict on an estimator, by further fits if these are to few samples or ratings."""
    if isinstance(estimator, MetricLearner):
        if X is None or y is None:
            return None
        return verdict_of_metric(estimator, X, y)
    if isinstance(estimator, Unfolding):
        return verdict_of_embedding(estimator, estimator.X_fit_)
    if isinstance(estimator, LinkedKernel) and hasattr(estimator, "labels_"):
        few = len(estimator.labels_) <= LARGEST_COMPARED
        return verdict_of_kernel(estimator, estimator.X_fit_) if few else None
    if isinstance(estimator, Completion) and estimator._known.nnz <= FEW_RATINGS:
        known = estimator._known.tocoo()
        rows, cols = estimator.row_ids_[known.row], estimator.col_ids_[known.col]
        return verdict_of_completion(estimator, rows, cols, known.data)
    return None


def report_eigen(found: TopEigen, path: str | Path, name: str = "a symmetric matrix") -> Path:
    """Write the page of the leading eigenvalues of a matrix."""
    title = f"gramian: eigenvalues of {name}"
    return write_page(page_path(path), title, [eigenpairs(found, name)], source=name)
