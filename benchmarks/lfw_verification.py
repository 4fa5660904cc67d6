"""DML-eig, Section 5.2: are two photographs of the same person? Labeled Faces in the Wild.

The restricted protocol: ten folds of 600 pairs, no person in two of them; a metric and a threshold
are learned from nine folds and tested on the tenth. Descriptors of the images are reduced by PCA,
their distances taken alone (Table 6, Figure 2) or weighted by a linear SVM (Table 7, Figure 3).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks._lfw import (
    CELLS,
    METRICS,
    MODEL,
    OURS,
    PARTS,
    PLAIN,
    WHITENED,
    Outcome,
    Outcomes,
    Pairs,
    Scored,
    Scores,
    best_cut,
    describe,
    euclidean_scores,
    faces,
    outcome,
    reduced,
)
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table, Versus

TITLE = "DML-eig on Labeled Faces in the Wild: verification from pairs"
PAPER = "DML-eig (Ying, Li 2012), Section 5.2, Tables 6 and 7, Figures 2 and 3"
NEEDS_DATA = ("lfw",)

DIMENSIONS, LARGEST = (35, 40, 55, 100), 150
"""Those of Table 6, and one more of Figure 2."""
QUICK_DIMENSIONS, QUICK_FOLDS, QUICK_OF = (35, 55), 2, 4
ITML = "metric-learn ITML"
ITML_SECONDS, ITML_SECONDS_QUICK, ITML_LIMIT, ITML_SWEEPS = 100.0, 1.0, 120.0, 20
INSTALL = 1200.0

Variant = tuple[str, bool]
"""A descriptor, and whether its square root is taken."""
MAIN = "LBP"
"""Stands where the paper's Table 6 has SIFT."""

PAPER_TABLE_6 = {
    (method, dimension): row
    for method, rows in {
        ITML: (("0.7537 ± 0.0158", "0.7627 ± 0.0161"), ("0.7618 ± 0.0125", "0.7643 ± 0.0121"),
               ("0.7530 ± 0.0185", "0.7557 ± 0.0187"), ("0.7340 ± 0.0250", "0.7403 ± 0.0216")),
        MODEL: (("0.7742 ± 0.0213", "0.7793 ± 0.0214"), ("0.7752 ± 0.0198", "0.7838 ± 0.0195"),
                ("0.7900 ± 0.0189", "0.7938 ± 0.0163"), ("0.8055 ± 0.0171", "0.8127 ± 0.0230")),
    }.items()
    for dimension, row in zip(DIMENSIONS, rows, strict=True)
}  # fmt: skip
PAPER_FUSED, PAPER_LDML = "0.8565 ± 0.0056", "0.7927 ± 0.0060"
"""Table 7: DML-eig with four descriptors; LDML with its own."""


def run(ctx: Context) -> Report:
    images, pairs = faces(ctx.arrays("lfw"), QUICK_OF if ctx.quick else 10)
    folds = QUICK_FOLDS if ctx.quick else 10
    dimensions = QUICK_DIMENSIONS if ctx.quick else DIMENSIONS
    fused_at = dimensions[-1]
    described = {variant: _described(variant, images) for variant in _variants(ctx.quick)}
    calls = [
        partial(_fold, ctx, variant, X, pairs, fold, dimensions)
        for variant, X in described.items()
        for fold in range(folds)
    ]
    main = {variant: X for variant, X in described.items() if variant[0] == MAIN}
    by_itml = partial(_by_itml, ctx, main, pairs, folds, dimensions)
    (itml, itml_note), *answers = ctx.at_once([by_itml, *calls])
    outcomes: dict[Variant, Outcomes] = {}
    scored: dict[Variant, Scored] = {}
    for k, variant in enumerate(described):
        own = answers[k * folds : (k + 1) * folds]
        outcomes[variant] = _by_key([found for found, _ in own]) | itml.get(variant, {})
        if variant[1]:
            scored[variant] = _by_key([scores for _, scores in own])
    fused, curves = _fusions(scored, pairs, folds, fused_at)
    tables = [
        _table_6(outcomes, dimensions), _same_folds(outcomes, dimensions),
        _single(scored, outcomes, pairs, fused_at), fused, _costs(outcomes),
    ]  # fmt: skip
    _figures(ctx, outcomes[MAIN, True], curves)
    fewer = (f"Quick: the first {QUICK_OF} folds are all there is.",) if ctx.quick else ()
    return ctx.report(tables, (*_notes(fused_at), itml_note, *fewer))


def _notes(fused_at: int) -> tuple[str, ...]:
    return (
        "Images and descriptors are not the paper's: 62 × 47 crops of the deep-funneled images, "
        f"and no SIFT, in whose place Table 6 has {MAIN}. Compare within this run.",
        f"{MAIN}: uniform patterns of 8 points at radius 2, counted in {CELLS[0]} × {CELLS[1]} "
        "cells. HOG: 9 orientations, cells of 8 × 8 pixels, blocks of 2 × 2 cells. PCA is that of "
        "the images of the training folds.",
        "The threshold is the best one for the training pairs; ± is the standard error of the "
        "mean over the folds. DMLEig has its defaults, with floor=0 the paper's model.",
        f"'Held out' and the fused rows at {fused_at} dimensions: the training folds in {PARTS} "
        "parts, the pairs of each scored by PCA and a metric of the others, so that the threshold "
        "or the SVM learns from scores of pairs not seen before, as test pairs are. Distances are "
        "in units of the root mean square distance of the training images.",
    )


def _variants(quick: bool) -> list[Variant]:
    if quick:
        return [(MAIN, True), ("HOG", True)]
    return [(name, root) for name in (MAIN, "HOG", "pixels") for root in (False, True)]


def _plan(name: str, root: bool, dimensions: Sequence[int], quick: bool) -> dict[int, Any]:
    """The metrics to learn in each dimension: all for the main descriptor, one for the others."""
    if name != MAIN:
        return {dimensions[-1]: (PLAIN, WHITENED, OURS)}
    more = (LARGEST,) if root and not quick else ()
    return dict.fromkeys((*dimensions, *more), METRICS)


def _described(variant: Variant, images: np.ndarray) -> np.ndarray:
    X = describe(variant[0], images)
    return np.sqrt(X) if variant[1] else X


def _fold(
    ctx: Context, variant: Variant, X: np.ndarray, pairs: Pairs, fold: int,
    dimensions: Sequence[int],
) -> Any:  # fmt: skip
    """What `_lfw.measure` finds in a process of its own."""
    plan = _plan(*variant, dimensions, ctx.quick)
    kwargs = {"X": X, "pairs": pairs, "fold": fold, "plan": plan,
              "fused_at": dimensions[-1] if variant[1] else None}  # fmt: skip
    answer = ctx.in_child("benchmarks._lfw:measure", kwargs, threads=1)
    if not answer.ok:
        raise RuntimeError(f"{_label(variant)}, fold {fold}: {answer.error}")
    return answer.value


def _by_key(folds: Sequence[Mapping[Any, Any]]) -> dict[Any, list[Any]]:
    """The folds' values of each key."""
    return {key: [found[key] for found in folds] for key in folds[0]}


def _by_itml(
    ctx: Context, described: Mapping[Variant, np.ndarray], pairs: Pairs, folds: int,
    dimensions: Sequence[int],
) -> tuple[dict[Variant, Outcomes], str]:  # fmt: skip
    """ITML's outcomes on as many folds as its seconds allow, and on how many that was."""
    toy = np.random.default_rng(0).normal(size=(20, 2, 3))
    marks = np.where(np.arange(20) % 2, 1, -1)
    ready = ctx.peer("metric_learn_itml_pairs", {"pairs": toy, "same": marks}, INSTALL, threads=1)
    if not ready.ok:
        return {}, f"{ITML} is skipped: {ready.error}."
    budget = ITML_SECONDS_QUICK if ctx.quick else ITML_SECONDS
    found: dict[Variant, Outcomes] = {v: {(ITML, d): [] for d in dimensions} for v in described}
    spent, fold = 0.0, 0
    while fold < folds and spent < budget:
        for variant, X in described.items():
            Z = reduced(X, pairs, pairs.fold != fold, max(dimensions))
            for d in dimensions:
                done = found[variant][ITML, d]
                if len(done) == fold:  # not after a failure
                    outcomes, seconds = _itml(ctx, Z[:, :d], pairs, pairs.fold != fold)
                    done += outcomes
                    spent += seconds
        fold += 1
    return found, (
        f"{ITML} is ended after {ITML_SWEEPS} sweeps over the pairs (its default is up to 1000) "
        f"and was run on the first {fold} of {folds} folds, those that start within "
        f"{budget:.0f} s of its own."
    )


def _itml(
    ctx: Context, Z: np.ndarray, pairs: Pairs, train: np.ndarray
) -> tuple[list[Outcome], float]:
    """Its outcome, none where it fails, and the seconds of the call."""
    marks = np.where(pairs.same[train], 1, -1)
    kwargs = {"pairs": Z[pairs.images[train]], "same": marks, "max_iter": ITML_SWEEPS}
    answer = ctx.peer("metric_learn_itml_pairs", kwargs, ITML_LIMIT, threads=1)
    if not answer.ok:
        return [], answer.seconds or 0.0
    scores = euclidean_scores(Z @ answer.value["components"].T, pairs.images)
    fitted = outcome(scores, pairs.same, train, answer.value["fit_seconds"], None)
    return [fitted], answer.seconds or 0.0


def spread(values: Iterable[float]) -> str:
    """Mean ± standard error."""
    found = np.asarray(list(values))
    if found.size < 2:
        return f"{found.mean():.4f}"
    return f"{found.mean():.4f} ± {found.std(ddof=1) / np.sqrt(found.size):.4f}"


def _rates(found: Outcomes, metric: str, dimension: int, most: int | None = None) -> str | None:
    chosen = found.get((metric, dimension))
    return spread(one.rate for one in chosen[:most]) if chosen else None


def _table_6(outcomes: Mapping[Variant, Outcomes], dimensions: Sequence[int]) -> Table:
    caption = f"Table 6: verification rate, {MAIN} here and SIFT in the paper"
    table = Table(caption, ("method", "PCA dim.", "original", "square root"))
    for d in (*dimensions, LARGEST):
        for metric in (PLAIN, WHITENED, ITML, OURS, MODEL):
            ours = [_rates(outcomes.get((MAIN, root), {}), metric, d) for root in (False, True)]
            if metric == ITML:
                count = len(outcomes[MAIN, True].get((ITML, d), ()))
                ours = [cell and f"{cell} [{count} fold(s)]" for cell in ours]
            paper = PAPER_TABLE_6.get((metric, d), (None, None))
            if any(ours):
                table.add(metric, d, *(Versus(*pair) for pair in zip(ours, paper, strict=True)))
    return table


def _same_folds(outcomes: Mapping[Variant, Outcomes], dimensions: Sequence[int]) -> Table:
    found = outcomes[MAIN, True]
    counts = [len(found.get((ITML, d), ())) for d in dimensions]
    metrics = (PLAIN, WHITENED, ITML, OURS, MODEL)
    caption = f"On the folds that ITML was run on: verification rate, {MAIN}, square root"
    table = Table(caption, ("PCA dim.", "folds", *metrics))
    for d, count in zip(dimensions, counts, strict=True):
        if count:
            table.add(d, count, *(_rates(found, metric, d, count) for metric in metrics))
    return table


def _label(variant: Variant) -> str:
    return f"√{variant[0]}" if variant[1] else variant[0]


def _single(
    scored: Mapping[Variant, Scored], outcomes: Mapping[Variant, Outcomes], pairs: Pairs, at: int
) -> Table:
    columns = ("descriptor", PLAIN, WHITENED, OURS, "its training pairs", "threshold held out",
               "area under ROC")  # fmt: skip
    table = Table(f"Single descriptors at {at} dimensions: verification rate", columns)
    for variant, found in outcomes.items():
        ours = found[OURS, at]
        folds = enumerate(scored[variant][OURS] if variant in scored else ())
        honest = [_held_out_rate(scores, pairs, fold) for fold, scores in folds]
        table.add(
            _label(variant), *(_rates(found, metric, at) for metric in (PLAIN, WHITENED, OURS)),
            spread(o.train_rate for o in ours), spread(honest) if honest else None,
            spread(o.area for o in ours),
        )  # fmt: skip
    return table


def _held_out_rate(scores: Scores, pairs: Pairs, fold: int) -> float:
    train = pairs.fold != fold
    cut = best_cut(scores.held_out, pairs.same[train])
    return float(np.mean((scores.test >= cut) == pairs.same[~train]))


Curves = dict[str, list[tuple[np.ndarray, np.ndarray]]]
"""By label, the marks and the scores of the test pairs of each fold."""


def _fusions(
    scored: Mapping[Variant, Scored], pairs: Pairs, folds: int, at: int
) -> tuple[Table, Curves]:
    """Table 7, and what its ROC curves are drawn of."""
    table = Table(f"Table 7: descriptors fused by a linear SVM, {at} dimensions each",
                  ("method", "verification rate", "area under ROC"))  # fmt: skip
    fusions = {
        f"{OURS}, fused (held-out scores)": (OURS, "held_out"),
        f"{OURS}, fused (scores of its own training pairs)": (OURS, "train"),
        f"{WHITENED}, fused": (WHITENED, "held_out"),
    }
    marks = [pairs.same[pairs.fold == fold] for fold in range(folds)]
    curves: Curves = {}
    for label, (metric, learned_from) in fusions.items():
        found = [_fuse(scored, metric, learned_from, pairs, fold) for fold in range(folds)]
        rates = [np.mean((s >= 0) == same) for same, s in zip(marks, found, strict=True)]
        areas = [float(roc_auc_score(same, s)) for same, s in zip(marks, found, strict=True)]
        paper = None if curves else PAPER_FUSED
        table.add(f"{label}, {len(scored)} scores", Versus(spread(rates), paper), spread(areas))
        curves[label] = list(zip(marks, found, strict=True))
    table.add("LDML, its own descriptors (not run)", Versus(None, PAPER_LDML), None)
    curves.pop(f"{OURS}, fused (scores of its own training pairs)")
    for variant, by_metric in scored.items():
        tests = [scores.test for scores in by_metric[OURS]]
        curves[f"{OURS}, {_label(variant)}"] = list(zip(marks, tests, strict=True))
    return table, curves


def _fuse(
    scored: Mapping[Variant, Scored], metric: str, learned_from: str, pairs: Pairs, fold: int
) -> np.ndarray:
    """The SVM's values of a fold's test pairs, positive for "the same"."""
    chosen = [by_metric[metric][fold] for by_metric in scored.values()]
    S = np.column_stack([getattr(scores, learned_from) for scores in chosen])
    svm = make_pipeline(StandardScaler(), LinearSVC(random_state=0))
    svm.fit(S, pairs.same[pairs.fold != fold])
    return svm.decision_function(np.column_stack([scores.test for scores in chosen]))


def _costs(outcomes: Mapping[Variant, Outcomes]) -> Table:
    columns = ("metric", "PCA dim.", "fits", "seconds, median", "largest certified gap")
    table = Table("Fits: seconds, and the largest certified relative gap", columns)
    keys = {key for found in outcomes.values() for key in found}
    for metric in (ITML, OURS, MODEL):
        for d in sorted(d for name, d in keys if name == metric):
            fits = [o for found in outcomes.values() for o in found.get((metric, d), ())]
            if not fits:
                continue
            gaps = [o.gap for o in fits if o.gap is not None]
            seconds = float(np.median([o.seconds for o in fits]))
            table.add(metric, d, len(fits), seconds, max(gaps, default=None))
    return table


def _figures(ctx: Context, found: Outcomes, curves: Curves) -> None:
    caption = f"Figure 2: verification rate by the number of principal components, √{MAIN}."
    with ctx.figure("dimensions", caption) as (_, ax):
        for metric in (PLAIN, WHITENED, ITML, OURS, MODEL):
            rates = {d: np.mean([o.rate for o in found[name, d]]) for name, d in found
                     if name == metric and found[name, d]}  # fmt: skip
            if rates:
                count = len(found[metric, next(iter(rates))])
                label = f"{metric}, {count} fold(s)"
                ax.plot(list(rates), list(rates.values()), marker="o", ms=3, label=label)
        ax.set(xlabel="principal components", ylabel="verification rate")
        ax.grid(alpha=0.3)
        ax.legend()
    grid = np.linspace(0, 1, 201)
    caption = "Figure 3: ROC curves, the mean over the folds; fused ones are drawn thicker."
    with ctx.figure("roc", caption, figsize=(6.4, 5.6)) as (_, ax):
        for label, parts in curves.items():
            drawn = [np.interp(grid, *roc_curve(same, s)[:2]) for same, s in parts]
            fused = "fused" in label
            ax.plot(grid, np.mean(drawn, axis=0), lw=2.4 if fused else 1.1, label=label)
        ax.plot([0, 1], [0, 1], color="0.7", lw=0.8, ls=":")
        ax.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1))
        ax.grid(alpha=0.3)
        ax.legend(loc="lower right", fontsize="small")
