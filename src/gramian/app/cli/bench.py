"""`gramian bench`: the benchmarks of a checkout."""

from __future__ import annotations

import sys
from importlib import import_module

import click


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """List and run the benchmarks: every table and figure of the papers (from a checkout).

    \b
    Example:
      gramian bench list
    """
    sys.path.insert(0, "")
    try:
        harness = import_module("benchmarks.harness.cli")
    except ModuleNotFoundError as missing:
        raise click.ClickException(
            "the benchmarks are not part of the installed package: run this in a checkout of "
            f"gramian, with gramian[bench] installed (missing: {missing.name})"
        ) from missing
    raise click.exceptions.Exit(harness.main(list(arguments)))
