"""How many small problems end: certified to 1e-6, or with a reason that is verified.

Random instances of every family (order up to 90, features of mixed scales, offsets, duplicates,
data of deficient rank, scales from 1e-6 to 1e6) are minimised by `auto` within a second, and within
four. Beside it Clarabel or SCS on the same instances, where they can take the problem: their points
have the same certificates.

    python -m benchmarks.ends --instances 3400 --workers 8 --limit 1 --out ends_1s.jsonl
    python -m benchmarks.ends --summary ends_1s.jsonl
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._attack import run as runner
from benchmarks._attack.run import Plan
from benchmarks._attack.summary import text
from benchmarks._ends.examine import FAMILIES
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table

TITLE = "How many small problems end"
PAPER = "No table of a paper"

EACH, EACH_QUICK = 200, 3
"""Instances of each family."""
LIMITS = (1.0, 4.0)
TASK = "benchmarks._ends.examine:examine"


def run(ctx: Context) -> Report:
    """Every family within a second, and within four."""
    count = (EACH_QUICK if ctx.quick else EACH) * len(FAMILIES)
    ctx.folder.mkdir(parents=True, exist_ok=True)
    runner.one_thread()
    tables = []
    for limit in LIMITS:
        out = ctx.folder / f"ends_{limit:g}s.jsonl"
        out.unlink(missing_ok=True)
        tables += summary(runner.attack(_plan(count, 0, limit), out, ctx.jobs), limit)
    return ctx.report(tables, [])


def summary(records: Sequence[dict[str, Any]], limit: float) -> list[Table]:
    """Shares by family, and the instances that did not end."""
    table = Table(
        f"Within {limit:g} s",
        ["family", "instances", "auto ended, %", "conic ended, %", "false claims", "median s"],
    )
    open_ones = Table(
        f"Not ended within {limit:g} s", ["family", "instance", "order", "status", "gap", "route"]
    )
    for family in (*FAMILIES, "all"):
        rows = [r for r in records if "auto" in r and family in (r["family"], "all")]
        if not rows:
            continue
        conic = [r["conic"] for r in rows if r["conic"] is not None]
        seconds = sorted(r["auto"]["seconds"] for r in rows)
        table.add(
            family,
            len(rows),
            100 * sum(r["auto"]["ended"] for r in rows) / len(rows),
            100 * sum(c["ended"] for c in conic) / len(conic) if conic else None,
            sum(r["auto"]["false"] for r in rows),
            seconds[len(seconds) // 2],
        )
    for r in records:
        if "auto" not in r or not r["auto"]["ended"]:
            end = r.get("auto", {"status": r.get("refused", r["alarms"])})
            cells = (end.get("gap"), end.get("route"))
            open_ones.add(r["family"], r["index"], r.get("order"), str(end["status"]), *cells)
    return [table, open_ones]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the instances that the file does not hold, and print the tables."""
    args = _parser().parse_args(argv)
    if args.summary is not None:
        records = runner.read(args.summary)
    else:
        runner.one_thread()
        plan = _plan(args.instances, args.seed, args.limit, args.only)
        records = runner.attack(plan, args.out, args.workers)
    print(text(summary(records, args.limit)))
    return 0


def _plan(count: int, seed: int, limit: float, only: str | None = None) -> Plan:
    return Plan(count, seed, 0.0, limit, only, TASK)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ends", description=__doc__)
    parser.add_argument("--instances", type=int, default=EACH * len(FAMILIES), metavar="N")
    parser.add_argument("--workers", type=int, default=1, metavar="W")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds for a run")
    parser.add_argument("--out", type=Path, default=Path("ends.jsonl"), metavar="FILE")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--only", metavar="FAMILY", help="instances of one family")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="sum up a file, run nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
