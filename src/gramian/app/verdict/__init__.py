"""The verdict: the error on held-out data with and without the learned model, in one sentence.

A certificate bounds the distance to the optimum; the verdict measures whether the model helps.
"""

from gramian.app.verdict.base import LARGEST_COMPARED, Verdict, beyond_chance, percent, untested
from gramian.app.verdict.completion import verdict_of_completion
from gramian.app.verdict.embedding import edge_errors, short_cut, verdict_of_embedding
from gramian.app.verdict.kernel import agreeing, majority, of_graph, verdict_of_kernel
from gramian.app.verdict.metric import (
    EUCLID_KEPT,
    keeps_euclid,
    of_errors,
    shuffled,
    verdict_of_metric,
    voted,
    with_choice,
    with_selection,
    wrong_rows,
)

__all__ = [
    "EUCLID_KEPT",
    "LARGEST_COMPARED",
    "Verdict",
    "agreeing",
    "beyond_chance",
    "edge_errors",
    "keeps_euclid",
    "majority",
    "of_errors",
    "of_graph",
    "percent",
    "short_cut",
    "shuffled",
    "untested",
    "verdict_of_completion",
    "verdict_of_embedding",
    "verdict_of_kernel",
    "verdict_of_metric",
    "voted",
    "with_choice",
    "with_selection",
    "wrong_rows",
]
