"""The command line: ``list`` the benchmarks, ``run`` one or ``all``, write a ``summary``."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.harness import registry
from benchmarks.harness.context import Context
from benchmarks.harness.data import DataMissingError, data_folder, load_arrays
from benchmarks.harness.kept import Kept
from benchmarks.harness.report import write_report

RESULTS = Path(__file__).resolve().parents[1] / "results"


def main(argv: Sequence[str] | None = None, package: str = "benchmarks") -> int:
    """Run the command; returns its exit status, 2 for unknown names and missing data."""
    args = _parser().parse_args(argv)
    try:
        if args.command == "list":
            _list(package)
        elif args.command == "all":
            return _run_all(args, package)
        elif args.command == "summary":
            print(import_module(f"{package}._results").write_pages(args.out))
        else:
            print(_run(args, args.name, package))
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
    every = commands.add_parser("all", help="run every benchmark, even if others fail")
    for command in (run, every):
        _add_options(command)
    summary = commands.add_parser("summary", help="write docs/results from the saved reports")
    summary.add_argument("--out", metavar="DIR", type=Path, default=RESULTS, help="the reports")
    return parser


def _add_options(run: argparse.ArgumentParser) -> None:
    run.add_argument("--data", metavar="DIR", help="folder of .npz sets (default: GRAMIAN_DATA)")
    run.add_argument("--out", metavar="DIR", type=Path, default=RESULTS, help="folder for reports")
    run.add_argument("--quick", action="store_true", help="a smaller run, as a test")
    run.add_argument("--repeat", metavar="N", type=_positive, help="repetitions (3; 1 if quick)")
    run.add_argument(
        "--jobs", metavar="N", type=_positive, default=1,
        help="number of single-threaded processes to run in parallel",
    )  # fmt: skip
    run.add_argument(
        "--resume", metavar="DIR", type=Path,
        help="store the result of each process in DIR and reuse those of earlier runs",
    )  # fmt: skip


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _list(package: str) -> None:
    for name in registry.names(package):
        module = registry.load(name, package)
        print(f"{name:<24} {module.TITLE} [{module.PAPER}]")


def _run_all(args: argparse.Namespace, package: str) -> int:
    """Run all benchmarks in turn; returns 1 if any of them failed."""
    failed = []
    for name in registry.names(package):
        try:
            print(_run(args, name, package), flush=True)
        except Exception as error:  # continue with the others
            failed.append(name)
            print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return 1 if failed else 0


def _run(args: argparse.Namespace, name: str, package: str) -> Path:
    module = registry.load(name, package)
    folder = data_folder(args.data)
    for needed in getattr(module, "NEEDS_DATA", ()):
        load_arrays(needed, folder)
    ctx = Context(
        name=name,
        title=module.TITLE,
        paper=module.PAPER,
        folder=args.out / name,
        data_folder=folder,
        quick=args.quick,
        repeat=args.repeat or (1 if args.quick else 3),
        jobs=args.jobs,
        kept=Kept(args.resume) if args.resume else None,
    )
    return write_report(module.run(ctx), ctx.folder, _command(ctx))


def _command(ctx: Context) -> str:
    """The command that repeats this run, without folders."""
    quick = " --quick" if ctx.quick else ""
    jobs = f" --jobs {ctx.jobs}" if ctx.jobs > 1 else ""
    return f"python -m benchmarks run {ctx.name}{quick} --repeat {ctx.repeat}{jobs}"
