"""The fraction of small problems that end certified to 1e-6, or with a verified status.

Random instances of every family of `benchmarks.attack`, and semidefinite programs (order up to 90,
features of mixed scales, offsets, duplicates, deficient ranks, scales from 1e-6 to 1e6), minimised
by `auto` within a second and within four, and by Clarabel or SCS where these accept the problem:
their points get the same certificates.

    python -m benchmarks.ends --instances 3400 --workers 8 --limit 1 --out ends_1s.jsonl
    python -m benchmarks.ends --summary ends_1s.jsonl
"""

import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import gramian as gm
from benchmarks._attack import programs
from benchmarks._attack import run as runner
from benchmarks._attack.examine import REFUSALS, SMALL
from benchmarks._attack.instances import Dice
from benchmarks._attack.run import Plan, Record
from benchmarks._attack.summary import text
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table

TITLE = "Final status of many small problems"
PAPER = "Not from a paper"

FAMILIES = (*SMALL, "sdp")
EACH = 200, 1
"""Instances of each family."""
LIMITS = (1.0, 4.0)
TOLERANCE = 1e-6
REASONS = {"UNBOUNDED": "unbounded", "INFEASIBLE": "infeasible", "UNATTAINED": "unattained"}
"""What each status without an optimum claims."""
ORDERS = (15, 40, 91)
"""The limit of the order is drawn from these; the order is log-uniform below it."""


def run(ctx: Context) -> Report:
    """Every family within a second, and within four."""
    count, tables = ctx.pick(*EACH) * len(FAMILIES), []
    for limit in ctx.pick(LIMITS, LIMITS[:1]):
        out = ctx.folder / f"ends_{limit:g}s.jsonl"
        tables += summary(runner.afresh(_plan(count, limit), out, ctx.jobs), limit)
    return ctx.report(tables)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the instances that the file does not contain, and print the tables."""
    plan, records = runner.command(argv, "ends", __doc__, _plan(EACH[0] * len(FAMILIES), 1.0))
    print(text(summary(records, plan.limit)))
    return 0


def _plan(count: int, limit: float) -> Plan:
    return Plan(count, large_share=0.0, limit=limit, task="benchmarks.ends:examine")


def summary(records: Sequence[Record], limit: float) -> list[Table]:
    """Fractions by family, and the instances that did not end."""
    table = Table(
        f"Within {limit:g} s",
        ["family", "instances", "auto ended, %", "conic ended, %", "false claims", "median s"],
    )
    for family in (*FAMILIES, "all"):
        rows = [r for r in records if "auto" in r and family in (r["family"], "all")]
        if rows:
            ours, conic = ([r[key] for r in rows if r[key]] for key in ("auto", "conic"))
            ended = [
                100 * statistics.fmean(r["ended"] for r in runs) if runs else None
                for runs in (ours, conic)
            ]
            false, seconds = sum(r["false"] for r in ours), [r["seconds"] for r in ours]
            table.add(family, len(rows), *ended, false, statistics.median_high(seconds))
    missed = Table(
        f"Not ended within {limit:g} s", ["family", "instance", "order", "status", "gap", "route"]
    )
    for r in records:
        if "auto" not in r or not r["auto"]["ended"]:
            end = r.get("auto", {"status": r.get("refused", r["alarms"])})
            cells = str(end["status"]), end.get("gap"), end.get("route")
            missed.add(r["family"], r["index"], r.get("order"), *cells)
    return [table, missed]


# --- one instance --------------------------------------------------------------------


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
    """Minimise one instance by `auto` and by Clarabel or SCS."""
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
        for key, solver in (
            ("auto", "auto"),
            ("conic", "clarabel" if problem.constraints else "conic"),
        ):
            record[key] = _ended(problem, solver, limit, end, infimum)
    return record


def _drawn(family: str, seed: int, index: int) -> tuple[gm.Problem, str, float | None]:
    """The problem, how it must end, and its infimum if that is known."""
    rng = np.random.default_rng([seed, index])
    if family == "sdp":
        facts = programs.KINDS[index // len(FAMILIES) % len(programs.KINDS)](rng)
        return facts.problem(), facts.end, facts.optimum
    instance = SMALL[family](WideDice(rng))
    ends = {True: "optimal", False: "unbounded", None: "optimal or unbounded"}
    return instance.problem, ends[instance.bounded], None


def _ended(
    problem: gm.Problem, solver: str, limit: float, end: str, infimum: float | None
) -> Record | None:
    """How a run ends; None if the solver does not accept the problem."""
    started = time.perf_counter()
    try:
        result = gm.minimize(problem, solver, tol=TOLERANCE, time_limit=limit)
    except ValueError as error:
        if "cannot solve" in str(error) or "linear constraints" in str(error):
            return None
        raise
    certificate = result.certificate
    gap, status = certificate.relative_gap, result.status.name
    fine = gap is not None and gap <= TOLERANCE and certificate.proved
    verified = REASONS.get(status, "-") in end and result.ray is not None
    known = infimum is not None and gap is not None and np.isfinite(infimum)
    below = known and certificate.lower_bound > infimum + 1e-6 * max(1.0, abs(infimum))
    return {
        "status": status,
        "gap": gap,
        "ended": bool((status == "CONVERGED" and fine) or verified),
        "false": bool(below or (status in REASONS and REASONS[status] not in end)),
        "seconds": round(time.perf_counter() - started, 4),
        "route": "/".join(result.route),
        "value": result.value,
    }


def warm_up() -> None:
    """Import and compile before the first instance is timed."""
    for family in ("mvu", "nuclear_completion", "npkl", "lmnn"):
        _ended(_drawn(family, 0, 0)[0], "auto", 5.0, "optimal", None)


if __name__ == "__main__":
    sys.exit(main())
