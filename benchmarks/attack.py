"""A standing attack on certificates: random and malicious instances against independent truth.

Every claim of the library (a value, a gap, a status) is set against points found without it, whose
values come from the displayed formula in extended precision. Small instances of every problem
have degenerate data and badly chosen scales; large ones are built so that a better point is known.

    python -m benchmarks.attack --instances 2000 --workers 4 --out attack.jsonl --seed 0
    python -m benchmarks.attack --summary attack.jsonl

A run can be broken off: what the file holds is not done again. The exit status is 1 where anything
is false.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks._attack import run as runner
from benchmarks._attack import summary
from benchmarks._attack.run import Plan
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report

TITLE = "A standing attack on certificates"
PAPER = "No table of a paper"

INSTANCES, INSTANCES_QUICK = 600, 40


def run(ctx: Context) -> Report:
    """A modest number of instances, by one process."""
    plan = Plan(INSTANCES_QUICK if ctx.quick else INSTANCES)
    ctx.folder.mkdir(parents=True, exist_ok=True)
    out = ctx.folder / "attack.jsonl"
    out.unlink(missing_ok=True)
    runner.one_thread()
    records = runner.attack(plan, out)
    note = f"{summary.false(records)} of {len(records)} instances with a false claim."
    return ctx.report(summary.tables(records), [note])


def main(argv: Sequence[str] | None = None) -> int:
    """Attack, or sum up an attack; 1 where anything is false."""
    args = _parser().parse_args(argv)
    if args.summary is not None:
        records = runner.read(args.summary)
    else:
        plan = Plan(args.instances, args.seed, args.large_share, args.limit, args.only)
        runner.one_thread()
        records = runner.attack(plan, args.out, args.workers)
    print(summary.text(summary.tables(records)))
    return 1 if summary.false(records) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attack", description=__doc__)
    parser.add_argument("--instances", type=int, default=INSTANCES, metavar="N")
    parser.add_argument("--workers", type=int, default=1, metavar="W")
    parser.add_argument("--out", type=Path, default=Path("attack.jsonl"), metavar="FILE")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--large-share", type=float, default=0.1, help="of the instances")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for an instance")
    parser.add_argument("--only", metavar="FAMILY", help="instances of one family")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="sum up a file, run nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
