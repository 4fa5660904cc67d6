"""Random programs of order 15 and less, judged by Clarabel: bounds, values and statuses."""

import time
from collections import Counter

import numpy as np

import gramian as gm
from benchmarks._sdp.instances import instance
from benchmarks._sdp.oracle import optimum
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table

TITLE = "Random semidefinite programs: is every bound true, every status right?"
PAPER = "No paper: Clarabel, called on a form of its own, is the judge."

INSTANCES, INSTANCES_QUICK = 1000, 40
TOL, LIMIT = 1e-5, 20.0
TRUE = 1e-6
"""How far a bound may lie above Clarabel's optimum, which has its own error."""


def run(ctx: Context) -> Report:
    """All instances by auto."""
    count = INSTANCES_QUICK if ctx.quick else INSTANCES
    statuses: Counter[tuple[str, str]] = Counter()
    false, wrong, seconds = [], [], []
    for seed in range(count):
        given = instance(seed)
        word, best = optimum(given)
        started = time.perf_counter()
        status = _judged(given, word, best, seed, false, wrong)
        seconds.append(time.perf_counter() - started)
        statuses[word, status] += 1
    table = Table("What Clarabel says, and what gramian says", ("Clarabel", "gramian", "instances"))
    for (word, status), number in sorted(statuses.items()):
        table.add(word, status, number)
    notes = [
        f"{count} instances, tol = {TOL:g}; seconds: median {np.median(seconds):.2g}, "
        f"most {np.max(seconds):.3g}.",
        f"False bounds: {len(false)} {false[:10]}. Wrong values: {len(wrong)} {wrong[:10]}.",
    ]
    return ctx.report([table], notes)


def _judged(given, word, best, seed, false, wrong) -> str:
    below = {"A_ub": list(given.B), "b_ub": given.h} if len(given.h) else {}
    problem = gm.problems.sdp(given.C, list(given.A), given.b, **below)
    try:
        found = gm.minimize(problem, tol=TOL, time_limit=LIMIT)
    except ValueError:
        return "refused: its equations contradict each other"
    if word == "solved":
        size = 1 + abs(best)
        bound = found.certificate.lower_bound
        if bound > best + TRUE * size:
            false.append(seed)
        if found.status is gm.Status.CONVERGED and abs(found.value - best) > 10 * TOL * size:
            wrong.append(seed)
    return found.status.name
