"""Sections of every page: the problem, the certificate in words, curves, eigenvalues."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from gramian.app.report import figures
from gramian.app.report.page import Section, facts, figure, side_by_side, table
from gramian.app.verdict import Verdict
from gramian.certificate import Certificate
from gramian.result import Result
from gramian.spectral import TopEigen

SHOWN = 60
"""Largest number of eigenvalues in a figure."""

WORDS = r"\b(?:tr|ln|exp|max|min|diag|rank|of|the|leading|block|subject to)\b"
"""Upright words and functions in a formula."""

RAISED = {
    "sub": re.compile(r"_(?:\{([^}]*)\}|([^\W\d_]+|.))"),
    "sup": re.compile(r"\^(?:\{([^}]*)\}|(.))"),
}

EIGENVALUES = ("number", "eigenvalue")
"""Titles of axes."""


def judgement(verdict: Verdict) -> Section:
    """The verdict, which is the first section."""
    helped = verdict.sentence.startswith("It helped")
    kind = "verdict" if helped else "verdict open"
    return Section("Did it help?", f'<p class="{kind}">{escape(verdict.sentence)}</p>')


def displayed(line: str) -> str:
    """A problem such as "min ‖U‖_*  subject to U ⪰ 0" as HTML, in two lines on a narrow page."""
    text = re.sub(WORDS, r"<b>\g<0></b>", escape(line))
    for tag, pattern in RAISED.items():
        text = pattern.sub(rf"<{tag}>\1\2</{tag}>", text)
    parts = [f"<span>{part}</span>" for part in re.split(r"\s{2,}(?=<b>subject)", text) if part]
    return f'<div class="formula">{" ".join(parts)}</div>' if parts else ""


def opening(result: Result, certificate: Certificate | None = None) -> Section:
    """The problem, the solution and its certificate."""
    proof = certificate or result.certificate
    values = {
        "solver": result.solver,
        "methods that ran": " → ".join(result.route),
        "how it ended": result.status.sentence,
        "value F(M)": proof.value,
        "certified gap": proof.gap,
        "rank of M": result.rank,
        "order of M": result.factor.shape[0],
        "iterations": result.iterations,
        "seconds": result.seconds,
    }
    kind = "verdict" if proof.gap is not None and result.status.converged else "verdict open"
    formula = displayed(result.formula)
    verdict = f'<p class="{kind}">{escape(in_words(proof))}</p>'
    return Section(f"{result.problem} by {result.solver}", formula + verdict + facts(values))


def comparison(runs: Sequence[Result]) -> Section:
    """Several runs of a problem, a row for each."""
    columns = ["solver", "value F(M)", "relative gap", "rank", "iterations", "seconds", "it ended"]
    rows = [
        [
            run.solver, run.value, run.certificate.relative_gap, run.rank, run.iterations,
            run.seconds, run.status.name.lower().replace("_", " "),
        ]
        for run in runs
    ]  # fmt: skip
    best = min(runs, key=lambda run: run.value)
    formula = displayed(best.formula)
    verdict = f'<p class="verdict">{escape(in_words(best.certificate))}</p>'
    return Section(f"{best.problem}: {len(runs)} runs", formula + verdict + table(columns, rows))


def in_words(certificate: Certificate) -> str:
    """The certificate as a sentence."""
    if certificate.gap is None:
        return (
            f"The value is {certificate.value:.6g}. No lower bound is known for this problem, so "
            "nothing is proved about its distance to the optimum."
        )
    share = certificate.relative_gap or 0.0
    return (
        f"The value is {certificate.value:.6g}. No feasible matrix has a value below "
        f"{certificate.lower_bound:.6g}, so this is at most {percent(share)} above the optimum. "
        f"{_how_sure(certificate)}"
    )


def _how_sure(certificate: Certificate) -> str:
    if certificate.proof != "Lanczos":
        return f"The bound is proved, by {certificate.method}."
    return (
        f"The bound holds by {certificate.method} unless the estimate of the smallest eigenvalue "
        f"failed, which has a probability of at most {certificate.miss:.1g}."
    )


def percent(share: float) -> str:
    """A share in percent, at least 0.0001 %."""
    return f"{100 * max(share, 1e-6):.2g} %"


def convergence(runs: Sequence[Result]) -> Section:
    """Curves of the value, the gap and the rank over time, if they have enough points."""
    drawn = []
    lowest = max(run.certificate.lower_bound for run in runs)
    value = "F above the best bound" if np.isfinite(lowest) else "F"
    for column, title in (("value", value), ("gap", "certified gap"), ("rank", "rank")):
        curves = [_curve(run, column, lowest) for run in runs]
        curves = [curve for curve in curves if curve[2].size]
        enough = [v for _, _, v in curves if v.size >= figures.LEAST_ON_CURVES and np.ptp(v) > 0]
        if enough:
            log = column != "rank" and all(np.all(v > 0) for _, _, v in curves)
            drawn.append(figure(figures.lines(curves, "seconds", title, log_y=log)))
    steps = max(len(run.history) for run in runs)
    many = "one step" if steps <= 1 else f"{steps} steps"
    none = f"<p>The answer was found after {many}: there is no curve to draw.</p>"
    return Section("Convergence", side_by_side(*drawn) if drawn else none)


def _curve(run: Result, column: str, lowest: float) -> tuple[str, Any, Any]:
    if not {"time", column} <= set(run.history.columns):
        return run.solver, np.zeros(0), np.zeros(0)
    times, values = run.history["time"], run.history[column]
    if column == "value" and np.isfinite(lowest):
        values = values - lowest
    known = np.isfinite(values) & ((values > 0) | (column == "rank"))
    return run.solver, times[known], values[known]


def spectrum(runs: Sequence[Result]) -> Section:
    """The eigenvalues of M, largest first: bars of one run, curves of several."""
    found = [np.linalg.eigvalsh(run.factor.T @ run.factor)[::-1][:SHOWN] for run in runs]
    if len(runs) == 1:
        return Section("Eigenvalues of M", figure(figures.bars(found[0], *EIGENVALUES)))
    curves = [
        (run.solver, np.arange(1.0, values.size + 1), values)
        for run, values in zip(runs, found, strict=True)
    ]
    return Section("Eigenvalues of M", figure(figures.lines(curves, *EIGENVALUES)))


def eigenpairs(found: TopEigen, name: str) -> Section:
    """Eigenvalues with their residuals, which bound their errors."""
    worst = float(found.residuals.max())
    verdict = (
        f"Within {worst:.2g} of every value below lies an eigenvalue of {name}: the residuals "
        "‖Kv − λv‖ prove it."
    )
    rows = list(zip(range(1, SHOWN + 1), found.values, found.residuals, strict=False))
    body = (
        f'<p class="verdict">{escape(verdict)}</p>'
        + figure(figures.bars(found.values, *EIGENVALUES))
        + table([*EIGENVALUES, "residual"], rows)
    )
    return Section(f"The {found.values.size} largest eigenvalues of {name}", body)


def settings(estimator: Any) -> Section:
    """The parameters as they were set, and the values that the fit chose."""
    given = estimator.get_params(deep=False).items()
    rows = [[name, repr(value), _chosen(estimator, name, value)] for name, value in given]
    body = table(["parameter", "set", "chosen by the fit"], rows)
    return Section(f"Settings of {type(estimator).__name__}", body)


def _chosen(estimator: Any, name: str, value: Any) -> Any:
    """The value that a fit chose for a parameter such as "auto"."""
    chosen = getattr(estimator, f"{name}_", None)
    if isinstance(chosen, np.generic):
        chosen = chosen.item()
    known = isinstance(chosen, (int, float, str)) and repr(chosen) != repr(value)
    return chosen if known else ""
