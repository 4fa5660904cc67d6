"""The group of commands, and the report of errors."""

from __future__ import annotations

import _thread
import difflib
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import click

from gramian import __version__
from gramian.app.cli.exits import BAD_INPUT, HEARD, INTERRUPTED, complain
from gramian.app.cli.progress import starting

EXITS = """\b
Exit status:
  0    done
  1    an error of gramian itself
  2    wrong usage or input
  3    done, and the solver did not reach its tolerance
  130  interrupted; the best result so far is written"""

COMMANDS = {
    "metric": ("metric", "Learn a metric from labelled samples."),
    "embed": ("embed", "Unfold samples into few dimensions."),
    "cluster": ("cluster", "Cluster samples, with links between some pairs."),
    "complete": ("complete", "Fill the gaps of a matrix of ratings."),
    "recommend": ("recommend", "Recommend items to users."),
    "evaluate": ("recommend", "Measure the errors of a model of ratings."),
    "transform": ("use", "Map samples by a saved model."),
    "predict": ("use", "Predict by a saved model."),
    "eigen": ("solve", "Find the largest eigenvalues of a symmetric matrix."),
    "solve": ("solve", "Solve a problem given as matrices."),
    "report": ("report", "Write a page about a saved model."),
    "info": ("info", "Describe a file."),
    "demo": ("demo", "Learn a metric for scikit-learn's wines."),
}
"""The module of each command, imported when it is called, and its description."""


class _OnDemand(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        with starting(f"gramian {name}"):
            module = import_module(f"gramian.app.cli.{COMMANDS[name][0]}")
        return getattr(module, name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(_unknown(*args))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _unknown(name: str, *others: str) -> str:
    """What to write instead of an unknown command."""
    if name in ("help", "version"):
        known = [other for other in others[:1] if name == "help" and other in COMMANDS]
        return (
            f"No such command {name!r}. Did you mean 'gramian {' '.join([*known, f'--{name}'])}'?"
        )
    if near := difflib.get_close_matches(name, COMMANDS, n=1):
        return f"No such command {name!r}. Did you mean {near[0]}?"
    if Path(name).exists() or Path(name).suffix:
        return (
            f"{name!r} is no command. Write one before the file: 'gramian info {name}' describes it"
        )
    return f"No such command {name!r}. The commands are {', '.join(COMMANDS)}"


@click.group(
    cls=_OnDemand,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXITS,
)
@click.version_option(__version__, prog_name="gramian")
def gramian() -> None:
    """Learn positive semidefinite matrices from files: metrics, embeddings, clusters, completions.

    Every result has a certificate: an upper bound on the distance of its value from the optimum.

    \b
    Example:
      gramian demo
      gramian metric --help
    """


def run() -> None:
    """Run the command of `sys.argv` and exit with its status."""
    HEARD.clear()
    try:
        with _whole_imports():
            sys.exit(gramian.main(standalone_mode=False))
    except click.ClickException as wrong:
        complain(_with_help(wrong))
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
        sys.stderr.close()  # the reader of the output has ended
        sys.exit(0)
    except Exception as wrong:
        if HEARD.is_set():  # an interrupt while Numba loads a kernel leaves it in an invalid state
            complain("interrupted: the result was lost, and nothing more was written")
            sys.exit(INTERRUPTED)
        if not _of_the_input(wrong):
            raise
        complain(_sentence(wrong))
        sys.exit(BAD_INPUT)


@contextmanager
def _whole_imports() -> Iterator[None]:
    """Postpone Ctrl-C until imports are complete: a partly imported package breaks others."""

    def hear(number: int, frame: FrameType | None) -> None:
        HEARD.set()
        if not _importing(frame):
            raise KeyboardInterrupt
        later = threading.Timer(0.05, _thread.interrupt_main)
        later.daemon = True
        later.start()

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # SIGINT cannot be handled here, or is ignored
        return
    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _with_help(wrong: click.ClickException) -> str:
    """The message, and for wrong usage a reference to --help."""
    said = wrong.format_message()
    bare = isinstance(wrong, click.exceptions.NoArgsIsHelpError)
    if bare or not isinstance(wrong, click.UsageError):
        return said
    command = "gramian" if wrong.ctx is None else wrong.ctx.command_path
    return f"{said.rstrip('.')} ('{command} --help' describes the options)"


def _sentence(wrong: Exception) -> str:
    """The message of an error; of system errors the file and the reason, without the number."""
    if isinstance(wrong, OSError) and wrong.filename and wrong.strerror:
        from gramian.app.files._errors import reason_of

        return f"{wrong.filename} cannot be opened: {reason_of(wrong)}"
    from gramian.app.cli.output import spelled

    return spelled(str(wrong))


def _of_the_input(wrong: Exception) -> bool:
    """Whether an error is about files or missing packages."""
    from gramian.app.files import FileError
    from gramian.common.storage import StoredFileError

    return isinstance(wrong, (FileError, StoredFileError, OSError, ImportError))
