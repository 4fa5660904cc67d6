"""One instance from its seed to its record: draw, minimise within a second or four, judge."""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import gramian as gm
from benchmarks._attack import small
from benchmarks._attack.examine import REFUSALS
from benchmarks._attack.instances import Dice
from benchmarks._ends import sdp

Record = dict[str, Any]

TOLERANCE = 1e-6
FAMILIES = (*small.FAMILIES, "sdp")
REASONS = {"UNBOUNDED": "unbounded", "INFEASIBLE": "infeasible", "UNATTAINED": "unattained"}
"""What each status without an optimum claims."""

ORDERS = (15, 40, 91)
"""The limit of the order is drawn from these, the order itself evenly on a logarithmic scale."""


@dataclass
class WideDice(Dice):
    """Orders up to 90, and half of the data at scales from 1e-6 to 1e6."""

    features: int = 60
    most: int | None = 60

    def order(self, least: int = 1) -> int:
        limit = float(self.rng.choice(ORDERS))
        return max(least, int(np.exp(self.rng.uniform(0.0, np.log(limit)))))

    def scale(self) -> float:
        return self.power(-6, 6) if self.twist("scaled", 0.5) else 1.0


def examine(
    seed: int, index: int, large_share: float, only: str | None = None, limit: float = 1.0
) -> Record:
    """Minimise one instance by `auto` and, where it can be written so, by Clarabel or SCS."""
    family = only or FAMILIES[index % len(FAMILIES)]
    record: Record = {"seed": seed, "index": index, "family": family, "alarms": []}
    try:
        problem, end, infimum = _drawn(family, seed, index)
    except ValueError as error:
        if any(words in str(error) for words in REFUSALS):
            return {**record, "refused": str(error)[:200]}
        raise
    record.update(order=problem.order, limit=limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record["auto"] = _ended(problem, "auto", limit, end, infimum)
        peer = "clarabel" if problem.constraints else "conic"
        record["conic"] = _ended(problem, peer, limit, end, infimum)
    return record


def _drawn(family: str, seed: int, index: int) -> tuple[gm.Problem, str, float | None]:
    """The problem, how it must end, and its infimum where that is known."""
    if family == "sdp":
        kind = sdp.KINDS[index // len(FAMILIES) % len(sdp.KINDS)]
        facts = kind(np.random.default_rng([seed, index]))
        return facts.problem(), facts.end, facts.optimum
    instance = small.FAMILIES[family](WideDice(np.random.default_rng([seed, index])))
    ends = {True: "optimal", False: "unbounded", None: "optimal or unbounded"}
    return instance.problem, ends[instance.bounded], None


def _ended(
    problem: gm.Problem, solver: str, limit: float, end: str, infimum: float | None
) -> Record | None:
    """How a run ends; None where the solver cannot take the problem."""
    started = time.perf_counter()
    try:
        result = gm.minimize(problem, solver, tol=TOLERANCE, time_limit=limit)
    except ValueError as error:
        if "cannot take" in str(error) or "linear constraints" in str(error):
            return None
        raise
    certificate = result.certificate
    gap, status = certificate.relative_gap, result.status.name
    fine = gap is not None and gap <= TOLERANCE and certificate.proved
    ended = (status == "CONVERGED" and fine) or _verified(status, result, end)
    known = infimum is not None and gap is not None and np.isfinite(infimum)
    below = known and certificate.lower_bound > infimum + 1e-6 * max(1.0, abs(infimum))
    return {
        "status": status,
        "gap": gap,
        "ended": bool(ended),
        "false": bool(below or (status in REASONS and REASONS[status] not in end)),
        "seconds": round(time.perf_counter() - started, 4),
        "route": "/".join(result.route),
        "value": result.value,
    }


def _verified(status: str, result: gm.Result, end: str) -> bool:
    """Whether the reason why there is no optimum is the true one, with its ray."""
    return REASONS.get(status, "-") in end and result.ray is not None


def warm_up() -> None:
    """Import and compile, which is not the time of an instance."""
    for family in ("mvu", "nuclear_completion", "npkl", "lmnn"):
        _ended(_drawn(family, 0, 0)[0], "auto", 5.0, "optimal", None)
