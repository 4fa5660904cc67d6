"""Maximum-margin matrix factorisation of MovieLens 100K, and of a small SDP beside Clarabel.

Four fifths of each user's ratings train, the rest test. First signs (four stars or more), beside
`NuclearCompletion` of ±1 and a logistic factorisation; then the five levels, beside
`NuclearCompletion` and Surprise. Last, ±1 matrices small enough for an interior-point solver.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

import gramian as gm
from benchmarks.bis_tables456 import Split, split
from benchmarks.harness.context import Context
from benchmarks.harness.process import ChildResult
from benchmarks.harness.report import Report, Table
from gramian.completion import MMMF, NuclearCompletion

TITLE = "Margins: MMMF beside nuclear-norm completion, a logistic factorisation, and Clarabel"
PAPER = "DML-eig (Ying and Li 2012), Appendix A, eqs. (27) and (28); it prints no results"
NEEDS_DATA = ("movielens_100k",)

SEEDS, SEEDS_QUICK = (0, 1, 2), (0,)
LIMIT, LIMIT_QUICK = 40.0, 10.0
PEER_LIMIT = 600.0
LIKED = 4.0
LEVELS = (1.0, 5.0)
MODELS = {"MMMF": MMMF, "NuclearCompletion": NuclearCompletion}

LOGISTIC: dict[str, dict[str, Any]] = {
    "LightFM logistic, 10 epochs": {"epochs": 10},
    "LightFM logistic, tuned": {
        "no_components": 10, "item_alpha": 1e-4, "user_alpha": 1e-4, "epochs": 40,
    },
}  # fmt: skip
SURPRISE: dict[str, dict[str, Any]] = {
    "Surprise SVD, defaults": {},
    "Surprise SVD, tuned": {"n_factors": 50, "n_epochs": 30, "lr_all": 0.008, "reg_all": 0.06},
}

SDP_SIZES, SDP_SIZES_QUICK = ((30, 0.6), (100, 0.06)), ((20, 0.6),)
"""Rows and columns, and the share of entries known."""
SDP_RANK, SDP_FLIPPED, SDP_LAM = 2, 0.1, 0.6
"""λ in units of √signs known in a row."""
SMOOTHINGS, EIG_SMOOTHING = (1e-1, 1e-2), 1e-5
SDP_TOL, SDP_LIMIT = 1e-6, 40.0
CLARABEL_LIMIT = 300.0
AGREE = 1e-5

NOTES = (
    "MMMF and NuclearCompletion with their defaults (λ from held-out ratings), a limit on the "
    "seconds of the last solve and, for signs, no bounds on NuclearCompletion's predictions, "
    "which would tie the largest scores. 'MMMF better by' is the mean error of the method less "
    "that of MMMF on the same splits; LOST where it is not above 0.",
    "The logistic peer is LightFM with its logistic loss, on identities of users and items alone: "
    "biases and factors fitted to the ±1 that are known, which is the same problem with another "
    "loss. Its releases do not build with today's Python, so lightfm-next stands in, the same code "
    "kept up by others. (implicit's LogisticMatrixFactorization takes every unknown entry as a "
    "negative, and myFM is a Bayesian probit model.) Settings are LightFM's, with 10 epochs in "
    "place of 1; 'tuned' was chosen by the test error of another split, which favours it.",
    "Levels: 'rounded' are the levels that MMMF predicts; 'as it is' puts its scores on the scale "
    "of stars, thresholds midway between two levels and linear beside them, but its loss asks for "
    "sides of thresholds only. MMMF is compared by the MAE where rounded, by the RMSE where not. "
    "Surprise's settings are those of bis_tables456.",
    "The SDP: Clarabel solves the dual, max Σα − μ/2 Σα² over 0 ≤ α ≤ 1 and [λI, A; Aᵀ, λI] ⪰ 0, "
    "A_e = α_e Y_e; the library's conic bridge takes quadratic losses only. At 100 × 100 the cone "
    "has order 200, which would be a dense block of order 20,100 for Clarabel (3 GB, not tried); "
    "with 6 % of the entries known it splits the cone along their pattern. So the denser matrix is "
    "smaller.",
    "'F' is the objective with hinges smoothed by μ, the same in both columns beside it; 'hinges' "
    "puts the point found into the hinges themselves (numpy alone), beside Clarabel's optimum with "
    "μ = 0. Smoothing costs up to μ/2 for each sign there, by design. The eigenvalue form of "
    "Theorem 8 is smoothed in another way, so it has no F beside Clarabel's.",
)


def run(ctx: Context) -> Report:
    """Signs, levels, and the SDP."""
    ratings = ctx.arrays("movielens_100k")
    splits = [split(ratings, seed) for seed in (SEEDS_QUICK if ctx.quick else SEEDS)]
    exact = [_exact(ctx, *size) for size in (SDP_SIZES_QUICK if ctx.quick else SDP_SIZES)]
    return ctx.report([_signs(ctx, splits), _levels(ctx, splits), *exact], NOTES)


# --- what both tables of ratings share ------------------------------------------------


def fit(name: str, data: Split, limit: float, options: dict[str, Any]) -> dict[str, Any]:
    """Scores and levels of the test pairs, and what the fit says of itself: what a child does."""
    model = MODELS[name](random_state=0, time_limit=limit, **options)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is reported
        model.fit(tuple(data.train.T))
    seconds = time.perf_counter() - start
    pairs = data.test[:, :2]
    if name == "MMMF":
        scores = model.decision_function(pairs)
        told = {"levels": model.predict(pairs), "stars": stars(model, scores)}
    else:
        scores, told = model.predict(pairs), {}
    return {
        **told,
        "scores": scores,
        "fit_seconds": seconds,
        "gap": float(model.certificate_.relative_gap),
        "rank": int(model.col_factors_.shape[1]),
    }


def stars(model: MMMF, scores: np.ndarray) -> np.ndarray:
    """Scores on the scale of the levels: a threshold is midway between two of them."""
    levels, thresholds = model.classes_, model.thresholds_
    if levels.size == 2:
        return scores
    middles = 0.5 * (levels[1:] + levels[:-1])
    found = np.interp(scores, thresholds, middles)
    found += 0.5 * (np.minimum(scores - thresholds[0], 0) + np.maximum(scores - thresholds[-1], 0))
    return np.clip(found, levels[0], levels[-1])


def _ours(ctx: Context, name: str, **options: Any) -> Callable[[Split], ChildResult]:
    limit = LIMIT_QUICK if ctx.quick else LIMIT

    def call(data: Split) -> ChildResult:
        kwargs = {"name": name, "data": data, "limit": limit, "options": options}
        return ctx.in_child("benchmarks.mmmf_tables:fit", kwargs, threads=1)

    return call


def _peer(ctx: Context, name: str, **options: Any) -> Callable[[Split], ChildResult]:
    def call(data: Split) -> ChildResult:
        kwargs = {"train": data.train, "test": data.test, **options}
        return ctx.peer(name, kwargs, PEER_LIMIT, threads=1)

    return call


class _Summary:
    """The runs of one method: errors by name for every split, and what they cost."""

    def __init__(self, splits: list[Split], call: Callable[[Split], ChildResult]) -> None:
        self.answers: list[dict[str, Any]] = []
        self.peaks: list[float] = []
        self.error: str | None = None
        for data in splits:
            child = call(data)
            if not child.ok:
                self.error = str(child.error)[:120]
                return
            self.answers.append(child.value)
            self.peaks.append(float(child.peak_mb or 0.0))

    def cost(self) -> list[Any]:
        """Median seconds, largest gap, median rank, largest peak."""
        gaps = [answer["gap"] for answer in self.answers if "gap" in answer]
        ranks = [answer["rank"] for answer in self.answers if "rank" in answer]
        return [
            statistics.median(answer["fit_seconds"] for answer in self.answers),
            max(gaps, default=None), statistics.median(ranks) if ranks else None, max(self.peaks),
        ]  # fmt: skip


COST = ["seconds", "certified gap", "rank", "peak MB"]


def _against(own: list[float], other: list[float]) -> list[Any]:
    """By how much MMMF's errors are less on the same splits, and the verdict."""
    difference = statistics.mean(other) - statistics.mean(own)
    return [difference, "won" if difference > 0 else "LOST"]


# --- signs ----------------------------------------------------------------------------


def signed(data: Split) -> Split:
    """±1 in place of stars."""
    return Split(*(_with_signs(part) for part in (data.train, data.test)), data.shape)


def _with_signs(rows: np.ndarray) -> np.ndarray:
    return np.column_stack([rows[:, :2], np.where(rows[:, 2] >= LIKED, 1.0, -1.0)])


def _signs(ctx: Context, splits: list[Split]) -> Table:
    data = [signed(part) for part in splits]
    shape = [int(size) for size in splits[0].shape]
    calls = {
        "MMMF": _ours(ctx, "MMMF"),
        "NuclearCompletion of ±1, sign": _ours(ctx, "NuclearCompletion", bounds=None),
        **{
            label: _peer(ctx, "lightfm_logistic", shape=shape, **options)
            for label, options in LOGISTIC.items()
        },
    }
    table = Table(
        f"movielens_100k, {LIKED:g} stars or more against fewer, {len(splits)} split(s)",
        ["method", "error", "deviation", "AUC", *COST, "MMMF better by", "MMMF"],
    )
    own: list[float] = []
    for label, call in calls.items():
        summary = _Summary(data, call)
        if summary.error:
            table.add(label, *[None] * 8, summary.error)
            continue
        pairs = [(a["scores"], d.test[:, 2]) for a, d in zip(summary.answers, data, strict=True)]
        errors = [float(np.mean(np.where(s > 0, 1.0, -1.0) != y)) for s, y in pairs]
        own = own or errors
        area = statistics.mean(float(roc_auc_score(y > 0, s)) for s, y in pairs)
        verdict = _against(own, errors) if label != "MMMF" else [None, None]
        table.add(
            label, statistics.mean(errors), np.std(errors), area, *summary.cost(), *verdict
        )  # fmt: skip
    constant = [float(np.mean(d.test[:, 2] != _majority(d.train))) for d in data]
    table.add(
        "the commoner sign", statistics.mean(constant), np.std(constant), 0.5, *[None] * 4,
        *_against(own, constant),
    )  # fmt: skip
    return table


def _majority(train: np.ndarray) -> float:
    return 1.0 if np.mean(train[:, 2]) > 0 else -1.0


# --- levels ---------------------------------------------------------------------------


def _levels(ctx: Context, splits: list[Split]) -> Table:
    calls = {
        "MMMF": _ours(ctx, "MMMF"),
        "NuclearCompletion": _ours(ctx, "NuclearCompletion"),
        **{label: _peer(ctx, "surprise_svd", **options) for label, options in SURPRISE.items()},
    }
    table = Table(
        f"movielens_100k, five levels, {len(splits)} split(s)",
        ["method", "MAE", "RMSE", "deviation", "wrong level", *COST, "MMMF better by", "MMMF"],
    )
    own: dict[str, list[float]] = {}
    for label, call in calls.items():
        summary = _Summary(splits, call)
        if summary.error:
            table.add(label, *[None] * 9, summary.error)
            continue
        both = [_predicted(answer) for answer in summary.answers]
        errors = [s - data.test[:, 2] for (s, _), data in zip(both, splits, strict=True)]
        steps = [level - data.test[:, 2] for (_, level), data in zip(both, splits, strict=True)]
        table.add(f"{label}, rounded", *_level_cells(steps, summary, own, "MAE"))
        table.add(f"{label}, as it is", *_level_cells(errors, summary, own, "RMSE"))
    return table


def _level_cells(
    errors: list[np.ndarray], summary: _Summary, own: dict[str, list[float]], by: str
) -> list[Any]:
    """MAE, RMSE and the rest of a row; `own` keeps the first, MMMF's, for the others."""
    found = {
        "MAE": [float(np.mean(np.abs(e))) for e in errors],
        "RMSE": [float(np.sqrt(np.mean(e**2))) for e in errors],
    }
    first = by not in own
    own.setdefault(by, found[by])
    wrong = statistics.mean(float(np.mean(e != 0)) for e in errors) if by == "MAE" else None
    return [
        statistics.mean(found["MAE"]), statistics.mean(found["RMSE"]), np.std(found[by]), wrong,
        *summary.cost(), *([None, None] if first else _against(own[by], found[by])),
    ]  # fmt: skip


def _predicted(answer: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Stars as they are, and the levels: those that MMMF says, and rounded stars of others."""
    if "levels" in answer:
        return answer["stars"], answer["levels"]
    found = np.clip(answer["scores"] if "scores" in answer else answer["values"], *LEVELS)
    return found, np.round(found)


# --- the SDP --------------------------------------------------------------------------


def _exact(ctx: Context, size: int, density: float) -> Table:
    rows, cols, signs = sign_matrix(size, density)
    lam = SDP_LAM * float(np.sqrt(rows.size / size))
    problem = {"rows": rows, "cols": cols, "signs": signs, "size": size, "lam": lam}
    table = Table(
        f"{size} × {size}, {rows.size} signs known ({density:.0%}), {SDP_FLIPPED:.0%} flipped, "
        f"λ = {lam:.3g}",
        ["form", "μ", "F", "Clarabel's F", "relative difference", f"within {AGREE:g}", "hinges",
         "over Clarabel's", "certified gap", "rank", "seconds", "Clarabel's seconds", "note"],
    )  # fmt: skip
    exact = _clarabel(ctx, problem, 0.0)
    table.add(
        "the SDP itself", 0.0, None, _digits(exact.get("value")), *[None] * 7,
        exact.get("seconds"), exact["note"],
    )  # fmt: skip
    for mu in SMOOTHINGS:
        peer = _clarabel(ctx, problem, mu)
        table.add("mmmf", mu, *_compared(_solved(ctx, problem, "mmmf", mu), peer, exact))
    found = _solved(ctx, problem, "mmmf_eig", EIG_SMOOTHING)
    table.add("mmmf_eig", EIG_SMOOTHING, *_compared(found, {}, exact))
    return table


def _clarabel(ctx: Context, problem: dict[str, Any], mu: float) -> dict[str, Any]:
    path = "benchmarks.mmmf_tables:clarabel_optimum"
    child = ctx.in_child(path, {**problem, "mu": mu}, 2 * CLARABEL_LIMIT, threads=1)
    return child.value if child.ok else {"note": child.error}


def _solved(ctx: Context, problem: dict[str, Any], form: str, mu: float) -> dict[str, Any]:
    kwargs = {**problem, "form": form, "mu": mu}
    child = ctx.in_child("benchmarks.mmmf_tables:solve", kwargs, threads=1)
    return child.value if child.ok else {"note": child.error}


def _compared(found: dict[str, Any], peer: dict[str, Any], exact: dict[str, Any]) -> list[Any]:
    """Our F beside Clarabel's, then our point in the hinges themselves beside theirs."""
    off = _over(found.get("value"), peer.get("value"))
    return [
        _digits(found.get("value")), _digits(peer.get("value")), off,
        None if off is None else abs(off) <= AGREE, _digits(found.get("hinges")),
        _over(found.get("hinges"), exact.get("value")), found.get("gap"), found.get("rank"),
        found.get("seconds"), peer.get("seconds"), found["note"],
    ]  # fmt: skip


def _over(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else ours / theirs - 1


def _digits(value: float | None) -> str | None:
    return None if value is None else f"{value:.8g}"


def sign_matrix(size: int, density: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Known signs of a matrix of low rank, sorted by row, some of them flipped."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((2, size, SDP_RANK))
    rows, cols = np.nonzero(rng.random((size, size)) < density)
    signs = np.sign(np.einsum("er,er->e", factors[0][rows], factors[1][cols]))
    return rows, cols, np.where(rng.random(rows.size) < SDP_FLIPPED, -signs, signs)


def hinge_objective(
    L: np.ndarray, rows: np.ndarray, cols: np.ndarray, signs: np.ndarray, size: int, lam: float
) -> float:
    """Σ max(0, 1 − Y_e X_e) + λ‖X‖_* of X = PQᵀ, by numpy alone."""
    P, Q = L[:size], L[size : 2 * size]
    margins = 1.0 - signs * np.einsum("er,er->e", P[rows], Q[cols])
    singular = np.linalg.svd(P @ Q.T, compute_uv=False)
    return float(np.maximum(margins, 0.0).sum() + lam * singular.sum())


def solve(
    rows: np.ndarray, cols: np.ndarray, signs: np.ndarray, size: int, lam: float, form: str,
    mu: float,
) -> dict[str, Any]:  # fmt: skip
    """One of the library's two forms by `auto`, its point put into the hinges themselves."""
    shape = (size, size)
    start = time.perf_counter()
    if form == "mmmf":
        problem = gm.problems.mmmf(rows, cols, signs, shape, lam, mu=mu)
    else:
        problem = gm.problems.mmmf_eig(rows, cols, signs, shape, 0.5 * lam, mu)
    result = gm.minimize(problem, tol=SDP_TOL, time_limit=SDP_LIMIT, random_state=0)
    seconds = time.perf_counter() - start
    # The eigenvalue form holds M up to a scale: its optimum t is 1/F at the point M/t.
    scale = 1.0 if form == "mmmf" else (-result.value) ** -0.5
    return {
        "value": result.value if form == "mmmf" else None,
        "hinges": hinge_objective(scale * result.factor, rows, cols, signs, size, lam),
        "gap": result.certificate.relative_gap,
        "rank": result.rank,
        "seconds": seconds,
        "note": result.status.name,
    }


def clarabel_optimum(
    rows: np.ndarray, cols: np.ndarray, signs: np.ndarray, size: int, lam: float, mu: float
) -> dict[str, Any]:
    """The dual by Clarabel: max Σα − μ/2 Σα² over 0 ≤ α ≤ 1, [λI, A; Aᵀ, λI] ⪰ 0, A_e = α_e Y_e.

    The matrix has the pattern of the known signs, which Clarabel can split into smaller cones.
    """
    import clarabel

    count, order = rows.size, 2 * size
    length = order * (order + 1) // 2
    j = size + cols
    places = j * (j + 1) // 2 + rows
    diagonal = np.arange(order) * (np.arange(order) + 3) // 2
    block = sp.csc_array((-np.sqrt(2.0) * signs, (places, np.arange(count))), (length, count))
    right = np.zeros(length)
    right[diagonal] = lam
    unit = sp.eye_array(count)
    A = sp.csc_matrix(sp.vstack([unit, -unit, block]))
    b = np.concatenate([np.ones(count), np.zeros(count), right])
    cones = [clarabel.NonnegativeConeT(2 * count), clarabel.PSDTriangleConeT(order)]
    options = clarabel.DefaultSettings()
    options.verbose, options.time_limit = False, CLARABEL_LIMIT
    start = time.perf_counter()
    found = clarabel.DefaultSolver(
        sp.csc_matrix(mu * unit), -np.ones(count), A, b, cones, options
    ).solve()
    seconds = time.perf_counter() - start
    return {"value": -found.obj_val, "seconds": seconds, "note": str(found.status)}
