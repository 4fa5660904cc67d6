"""The commands together, and how each way to fail is told."""

from __future__ import annotations

import _thread
import difflib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

import click

from gramian import __version__
from gramian.app.cli.exits import BAD_INPUT, HEARD, INTERRUPTED, complain
from gramian.app.cli.progress import ERASED, starting

EXITS = """\b
Exit status:
  0    done
  1    an error of gramian itself
  2    wrong usage or input
  3    done, and the solver did not reach its tolerance
  130  interrupted; the best so far is written"""

COMMANDS = {
    "metric": ("metric", "Learn a metric from labelled samples."),
    "embed": ("embed", "Unfold samples into few dimensions."),
    "cluster": ("cluster", "Cluster samples by what is known of some pairs."),
    "complete": ("complete", "Fill the gaps of a matrix of ratings."),
    "recommend": ("recommend", "Recommend items to users."),
    "evaluate": ("recommend", "Say how good a model of ratings is."),
    "transform": ("use", "Map samples by a saved model."),
    "predict": ("use", "Predict by a saved model."),
    "eigen": ("eigen", "Find the largest eigenvalues of a symmetric matrix."),
    "solve": ("solve", "Solve a problem given as matrices."),
    "report": ("report", "Write a page about a saved model."),
    "info": ("info", "Say what a file holds."),
    "demo": ("demo", "Learn a metric for scikit-learn's digits."),
    "bench": ("bench", "Run the benchmarks of a checkout."),
}
"""The file of each command, imported when it is asked for, and what it does in a line."""

LATER = 0.05
"""Seconds until Ctrl-C asks again whether an import is done."""


class _OnDemand(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        with starting(f"gramian {name}"), _ending_at_once():
            module = import_module(f"gramian.app.cli.{COMMANDS[name][0]}")
        command: click.Command = getattr(module, name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        near = difflib.get_close_matches(args[0], COMMANDS, n=1)
        if args[0] not in COMMANDS and near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(
    cls=_OnDemand,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXITS,
)
@click.version_option(__version__, prog_name="gramian")
def gramian() -> None:
    """Learn positive semidefinite matrices from files: metrics, embeddings, clusters, completions.

    Every answer comes with a certificate: how far from the best it can be.

    \b
    Example:
      gramian demo
      gramian metric --help
    """


def run() -> None:
    """Run the command of `sys.argv` and leave with its exit status."""
    HEARD.clear()
    try:
        with _whole_imports():
            sys.exit(gramian.main(standalone_mode=False))
    except click.UsageError as wrong:
        wrong.show()
        sys.exit(BAD_INPUT)
    except click.ClickException as wrong:
        complain(wrong.format_message())
        sys.exit(BAD_INPUT)
    except (click.Abort, KeyboardInterrupt) as end:
        kept = ", ".join(str(path) for path in getattr(end.__cause__, "kept", []))
        complain(
            f"interrupted: {kept} is written, and nothing after it"
            if kept
            else "interrupted before there was anything to keep: nothing was written"
        )
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read the output has gone
        sys.exit(0)
    except Exception as wrong:
        if not _of_the_input(wrong):
            raise
        complain(_sentence(wrong))
        sys.exit(BAD_INPUT)


@contextmanager
def _on_interrupt(hear: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """What Ctrl-C does meanwhile, unless somebody has turned it off."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _ending_at_once() -> AbstractContextManager[None]:
    """While a command is imported: some packages turn a Ctrl-C into errors of their own."""

    def hear(number: int, frame: FrameType | None) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(ERASED)
        complain("interrupted before it began")
        os._exit(INTERRUPTED)

    return _on_interrupt(hear)


def _whole_imports() -> AbstractContextManager[None]:
    """While it runs, Ctrl-C waits for what is being imported: half of a package breaks the rest."""

    def hear(number: int, frame: FrameType | None) -> None:
        HEARD.set()
        if not _importing(frame):
            raise KeyboardInterrupt
        later = threading.Timer(LATER, _thread.interrupt_main)
        later.daemon = True
        later.start()

    return _on_interrupt(hear)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _sentence(wrong: Exception) -> str:
    """What went wrong; of the system's errors the file and the reason, not the number."""
    if isinstance(wrong, OSError) and wrong.filename and wrong.strerror:
        return f"{wrong.filename}: {wrong.strerror[0].lower()}{wrong.strerror[1:]}"
    from gramian.app.cli.output import spelled

    return spelled(str(wrong))


def _of_the_input(wrong: Exception) -> bool:
    """Whether an error is about files or what is installed; those of ours are its subclasses."""
    from gramian.app.files import FileError
    from gramian.common.storage import StoredFileError

    return isinstance(wrong, (FileError, StoredFileError, OSError, ImportError))
