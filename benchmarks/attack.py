"""Random, degenerate and adversarial instances against every claim of the library.

Every claim (a value, a gap, a status) is compared with points found without the library, whose
values are computed from the displayed formula in extended precision. Small instances of every
problem have degenerate data and badly chosen scales; large ones have a known better point.

    python -m benchmarks.attack --instances 2000 --workers 4 --out attack.jsonl --seed 0
    python -m benchmarks.attack --summary attack.jsonl

A run that was interrupted continues from its file. The exit status is 1 if any claim is false.
"""

import sys
from collections.abc import Sequence

from benchmarks._attack import run as runner
from benchmarks._attack import summary
from benchmarks._attack.run import Plan
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report

TITLE = "Random and adversarial instances against certificates and statuses"
PAPER = "Not from a paper"

INSTANCES = 600, 40


def run(ctx: Context) -> Report:
    """A modest number of instances."""
    plan = Plan(ctx.pick(*INSTANCES))
    records = runner.afresh(plan, ctx.folder / "attack.jsonl", ctx.jobs)
    note = f"{summary.false(records)} of {len(records)} instances with a false claim."
    return ctx.report(summary.tables(records), [note])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the instances asked for and print the tables; 1 if any claim is false."""
    _, records = runner.command(argv, "attack", __doc__, Plan(INSTANCES[0]))
    print(summary.text(summary.tables(records)))
    return 1 if summary.false(records) else 0


if __name__ == "__main__":
    sys.exit(main())
