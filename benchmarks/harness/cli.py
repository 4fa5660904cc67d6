"""The command line: ``list`` the benchmarks, ``run`` one of them."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import registry
from benchmarks.harness.context import Context
from benchmarks.harness.data import DataMissingError, data_folder, load_arrays
from benchmarks.harness.report import write_report

RESULTS = Path(__file__).resolve().parents[1] / "results"


def main(argv: Sequence[str] | None = None, package: str = "benchmarks") -> int:
    """Run the command; return its exit status (2 when the request cannot be met)."""
    args = _parser().parse_args(argv)
    try:
        if args.command == "list":
            _list(package)
        else:
            print(_run(args, package))
    except (DataMissingError, LookupError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="name every benchmark")
    run = commands.add_parser("run", help="run one benchmark and write its report")
    run.add_argument("name")
    run.add_argument("--data", metavar="DIR", help="folder of .npz sets (default: GRAMIAN_DATA)")
    run.add_argument("--out", metavar="DIR", type=Path, default=RESULTS, help="folder for reports")
    run.add_argument("--quick", action="store_true", help="a smaller run, to see that it works")
    run.add_argument("--repeat", metavar="N", type=_positive, help="repetitions (3; 1 if quick)")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _list(package: str) -> None:
    for name in registry.names(package):
        module = registry.load(name, package)
        print(f"{name:<24} {module.TITLE} [{module.PAPER}]")


def _run(args: argparse.Namespace, package: str) -> Path:
    module = registry.load(args.name, package)
    folder = data_folder(args.data)
    for needed in getattr(module, "NEEDS_DATA", ()):
        load_arrays(needed, folder)
    ctx = Context(
        name=args.name,
        title=module.TITLE,
        paper=module.PAPER,
        folder=args.out / args.name,
        data_folder=folder,
        quick=args.quick,
        repeat=args.repeat or (1 if args.quick else 3),
    )
    return write_report(module.run(ctx), ctx.folder, _command(ctx))


def _command(ctx: Context) -> str:
    """The command to repeat this run, without the folders of the machine it ran on."""
    quick = " --quick" if ctx.quick else ""
    return f"python -m benchmarks run {ctx.name}{quick} --repeat {ctx.repeat}"
