"""Maximum-margin matrix factorisation of MovieLens 100K, and of a small SDP solved by Clarabel too.

Four fifths of each user's ratings train, the rest test. First signs (four stars or more), with
`NuclearCompletion` of ±1 and a logistic factorisation; then the five levels, with
`NuclearCompletion` and Surprise. Last, ±1 matrices small enough for an interior-point solver.
"""

import statistics
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import gramian as gm
from benchmarks._peers import SURPRISE_TUNED
from benchmarks.bis_tables456 import Split, split
from benchmarks.harness.context import Context
from benchmarks.harness.learn import fitted, seconds_of
from benchmarks.harness.process import ChildResult
from benchmarks.harness.report import Report, Table
from gramian.completion import MMMF, NuclearCompletion

TITLE = "MMMF compared with nuclear-norm completion, a logistic factorisation and Clarabel"
PAPER = "DML-eig (Ying and Li 2012), Appendix A, eqs. (27) and (28); it prints no results"
NEEDS_DATA = ("movielens_100k",)

SEEDS, LIMITS, PEER_LIMIT = ((0, 1, 2), (0,)), (40.0, 5.0), 600.0
LIKED, LEVELS = 4.0, (1.0, 5.0)
MODELS = {"MMMF": MMMF, "NuclearCompletion": NuclearCompletion}
LOGISTIC: dict[str, dict[str, Any]] = {
    "LightFM logistic, 10 epochs": {"epochs": 10},
    "LightFM logistic, tuned": {
        "no_components": 10, "item_alpha": 1e-4, "user_alpha": 1e-4, "epochs": 40,
    },
}  # fmt: skip
SURPRISE: dict[str, dict[str, Any]] = {
    "Surprise SVD, defaults": {}, "Surprise SVD, tuned": SURPRISE_TUNED,
}  # fmt: skip
COST = ["seconds", "certified gap", "rank", "peak MB"]

SDP_SIZES = ((30, 0.6), (100, 0.06)), ((20, 0.6),)
"""Rows and columns, and the share of entries known."""
SDP_RANK, SDP_FLIPPED, SDP_LAM = 2, 0.1, 0.6
"""λ in units of √signs known in a row."""
SMOOTHINGS, EIG_SMOOTHING = (1e-1, 1e-2), 1e-5
SDP_TOL, SDP_LIMIT, CLARABEL_LIMIT, AGREE = 1e-6, 40.0, 300.0, 1e-5

NOTES = (
    "MMMF and NuclearCompletion with their defaults (λ from held-out ratings), a time limit of the "
    "last solve and, for signs, without bounds on NuclearCompletion's predictions, which would tie "
    "the largest scores. 'MMMF better by': the mean error of the method less that of MMMF on the "
    "same splits; LOST if it is not positive.",
    "The logistic peer is LightFM with its logistic loss, with identities of users and items only: "
    "biases and factors fitted to the known ±1, the same problem with another loss. Its releases "
    "do not build with current Python, so the fork lightfm-next is used. (implicit's "
    "LogisticMatrixFactorization takes every unknown entry as negative; myFM is a Bayesian probit "
    "model.) Settings are LightFM's, with 10 epochs instead of 1; 'tuned' was chosen by the test "
    "error of another split, which favours it. Surprise's settings are those of bis_tables456.",
    "Levels: 'rounded' are the levels that MMMF predicts; 'as it is' maps its scores to stars, "
    "thresholds midway between two levels and linear in between; its loss is about thresholds "
    "only. MMMF is compared by the MAE if rounded, by the RMSE if not.",
    "The SDP: Clarabel solves the dual, max Σα − μ/2 Σα² over 0 ≤ α ≤ 1 and [λI, A; Aᵀ, λI] ⪰ 0, "
    "A_e = α_e Y_e. At 100 × 100 the cone has order 200, a dense block of order 20,100 (3 GB); "
    "with 6 % of the entries known Clarabel splits the cone along their pattern. So the denser "
    "matrix is smaller.",
    "'F': the objective with hinges smoothed by μ; 'hinges': the point found in the unsmoothed "
    "objective, against Clarabel's optimum with μ = 0. Smoothing costs up to μ/2 per sign. The "
    "eigenvalue form of Theorem 8 is smoothed in another way and has no F.",
)


def run(ctx: Context) -> Report:
    """Signs, levels, and the SDP."""
    ratings = ctx.arrays("movielens_100k")
    splits = [split(ratings, seed) for seed in ctx.pick(*SEEDS)]
    exact = [_exact(ctx, *size) for size in ctx.pick(*SDP_SIZES)]
    return ctx.report([_signs(ctx, splits), _levels(ctx, splits), *exact], NOTES)


# --- ratings --------------------------------------------------------------------------


def fit(name: str, data: Split, limit: float, options: dict[str, Any]) -> dict[str, Any]:
    """Scores and levels of the test pairs, and the certificate: in a child process."""
    model = MODELS[name](random_state=0, time_limit=limit, **options)
    model, seconds = fitted(model, tuple(data.train.T))
    pairs = data.test[:, :2]
    if name == "MMMF":
        scores = model.decision_function(pairs)
        levels = {"levels": model.predict(pairs), "stars": stars(model, scores)}
    else:
        scores, levels = model.predict(pairs), {}
    gap, rank = float(model.certificate_.relative_gap), int(model.col_factors_.shape[1])
    return {**levels, "scores": scores, "fit_seconds": seconds, "gap": gap, "rank": rank}


def stars(model: MMMF, scores: np.ndarray) -> np.ndarray:
    """Scores on the scale of the levels: a threshold is midway between two of them."""
    levels, thresholds = model.classes_, model.thresholds_
    if levels.size == 2:
        return scores
    middles = 0.5 * (levels[1:] + levels[:-1])
    found = np.interp(scores, thresholds, middles)
    found += 0.5 * (np.minimum(scores - thresholds[0], 0) + np.maximum(scores - thresholds[-1], 0))
    return np.clip(found, levels[0], levels[-1])


def _ours(ctx: Context, name: str, data: Split, **options: Any) -> ChildResult:
    return ctx.child(fit, name=name, data=data, limit=ctx.pick(*LIMITS), options=options)


def _peer(ctx: Context, name: str, data: Split, **options: Any) -> ChildResult:
    kwargs = {"train": data.train, "test": data.test, **options}
    return ctx.peer(name, kwargs, PEER_LIMIT, threads=1)


def _results(answers: list[ChildResult]) -> tuple[list[dict[str, Any]], list[Any], str | None]:
    """The values; median seconds, largest gap, median rank and largest peak; the first error."""
    errors = [answer.error for answer in answers if not answer.ok]
    if errors:
        return [], [], str(errors[0])[:120]
    values = [answer.value for answer in answers]
    gaps, ranks = ([v[key] for v in values if key in v] for key in ("gap", "rank"))
    seconds = statistics.median(value["fit_seconds"] for value in values)
    peak = max(float(answer.peak_mb or 0.0) for answer in answers)
    rank = statistics.median(ranks) if ranks else None
    return values, [seconds, max(gaps, default=None), rank, peak], None


def _against(own: list[float], other: list[float]) -> list[Any]:
    """The difference from MMMF's errors on the same splits, and the verdict; none for MMMF."""
    if own is other:
        return [None, None]
    difference = statistics.mean(other) - statistics.mean(own)
    return [difference, "won" if difference > 0 else "LOST"]


def signed(rows: np.ndarray) -> np.ndarray:
    """±1 for stars."""
    return np.column_stack([rows[:, :2], np.where(rows[:, 2] >= LIKED, 1.0, -1.0)])


def _signs(ctx: Context, splits: list[Split]) -> Table:
    data = [Split(signed(part.train), signed(part.test), part.shape) for part in splits]
    lightfm = partial(_peer, ctx, "lightfm_logistic", shape=[int(s) for s in splits[0].shape])
    calls = {
        "MMMF": partial(_ours, ctx, "MMMF"),
        "NuclearCompletion of ±1, sign": partial(_ours, ctx, "NuclearCompletion", bounds=None),
        **{label: partial(lightfm, **options) for label, options in LOGISTIC.items()},
    }
    table = Table(
        f"movielens_100k, {LIKED:g} stars or more against fewer, {len(splits)} split(s)",
        ["method", "error", "deviation", "AUC", *COST, "MMMF better by", "MMMF"],
    )
    own: list[float] = []
    for label, call in calls.items():
        answers, cost, error = _results([call(data=part) for part in data])
        if error:
            table.add(label, *[None] * 8, error)
            continue
        pairs = [(a["scores"], d.test[:, 2]) for a, d in zip(answers, data, strict=True)]
        errors = [float(np.mean(np.where(s > 0, 1.0, -1.0) != y)) for s, y in pairs]
        own = own or errors
        area = statistics.mean(float(roc_auc_score(y > 0, s)) for s, y in pairs)
        mean = statistics.mean(errors)
        table.add(label, mean, np.std(errors), area, *cost, *_against(own, errors))
    signs = [1.0 if np.mean(d.train[:, 2]) > 0 else -1.0 for d in data]
    constant = [float(np.mean(d.test[:, 2] != s)) for d, s in zip(data, signs, strict=True)]
    table.add("the commoner sign", statistics.mean(constant), np.std(constant), 0.5, *[None] * 4,
              *_against(own, constant))  # fmt: skip
    return table


def _levels(ctx: Context, splits: list[Split]) -> Table:
    surprise = partial(_peer, ctx, "surprise_svd")
    calls = {
        **{name: partial(_ours, ctx, name) for name in MODELS},
        **{label: partial(surprise, **options) for label, options in SURPRISE.items()},
    }
    table = Table(
        f"movielens_100k, five levels, {len(splits)} split(s)",
        ["method", "MAE", "RMSE", "deviation", "wrong level", *COST, "MMMF better by", "MMMF"],
    )
    own: dict[str, list[float]] = {}
    for label, call in calls.items():
        answers, cost, error = _results([call(data=part) for part in splits])
        if error:
            table.add(label, *[None] * 9, error)
            continue
        both = [_predicted(answer) for answer in answers]
        for k, name, by in ((1, "rounded", "MAE"), (0, "as it is", "RMSE")):
            off = [pair[k] - d.test[:, 2] for pair, d in zip(both, splits, strict=True)]
            found = {
                "MAE": [float(np.mean(np.abs(e))) for e in off],
                "RMSE": [float(np.sqrt(np.mean(e**2))) for e in off],
            }
            own.setdefault(by, found[by])
            wrong = statistics.mean(float(np.mean(e != 0)) for e in off) if k else None
            means = map(statistics.mean, found.values())
            verdict = _against(own[by], found[by])
            table.add(f"{label}, {name}", *means, np.std(found[by]), wrong, *cost, *verdict)
    return table


def _predicted(answer: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Stars as they are, and the levels: those of MMMF, and rounded stars of others."""
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

    def call(function: Any, **kwargs: Any) -> dict[str, Any]:
        child = ctx.child(function, 2 * CLARABEL_LIMIT, **problem, **kwargs)
        return child.value if child.ok else {"note": child.error}

    exact = call(clarabel_optimum, mu=0.0)
    table.add("the SDP itself", 0.0, None, _digits(exact.get("value")), *[None] * 7,
              exact.get("seconds"), exact["note"])  # fmt: skip
    forms = [("mmmf", mu) for mu in SMOOTHINGS] + [("mmmf_eig", EIG_SMOOTHING)]
    for form, mu in forms:
        peer = call(clarabel_optimum, mu=mu) if form == "mmmf" else {}
        found = call(solve, form=form, mu=mu)
        off = _over(found.get("value"), peer.get("value"))
        table.add(
            form, mu, _digits(found.get("value")), _digits(peer.get("value")), off,
            None if off is None else abs(off) <= AGREE, _digits(found.get("hinges")),
            _over(found.get("hinges"), exact.get("value")), found.get("gap"), found.get("rank"),
            found.get("seconds"), peer.get("seconds"), found["note"],
        )  # fmt: skip
    return table


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


def solve(
    rows: np.ndarray, cols: np.ndarray, signs: np.ndarray, size: int, lam: float, form: str,
    mu: float,
) -> dict[str, Any]:  # fmt: skip
    """One of the library's two forms by `auto`: in a child process."""

    def minimize() -> gm.Result:
        given = (rows, cols, signs, (size, size))
        if form == "mmmf":
            problem = gm.problems.mmmf(*given, lam, mu=mu)
        else:
            problem = gm.problems.mmmf_eig(*given, 0.5 * lam, mu)
        return gm.minimize(problem, tol=SDP_TOL, time_limit=SDP_LIMIT, random_state=0)

    result, seconds = seconds_of(minimize)
    # The eigenvalue form has M up to a scale: its optimum t is 1/F at the point M/t.
    L = result.factor * (1.0 if form == "mmmf" else (-result.value) ** -0.5)
    P, Q = L[:size], L[size : 2 * size]
    margins = 1.0 - signs * np.einsum("er,er->e", P[rows], Q[cols])
    nuclear = np.linalg.svd(P @ Q.T, compute_uv=False).sum()
    return {
        "value": result.value if form == "mmmf" else None,
        "hinges": float(np.maximum(margins, 0.0).sum() + lam * nuclear),
        "gap": result.certificate.relative_gap, "rank": result.rank, "seconds": seconds,
        "note": result.status.name,
    }  # fmt: skip


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
    P = sp.csc_matrix(mu * unit)
    found, seconds = seconds_of(
        lambda: clarabel.DefaultSolver(P, -np.ones(count), A, b, cones, options).solve()
    )
    return {"value": -found.obj_val, "seconds": seconds, "note": str(found.status)}
