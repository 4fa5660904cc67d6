"""Checks of the files that a command will write, before it begins."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import click

from gramian.app.cli.exits import Interrupted
from gramian.app.cli.output import noted
from gramian.app.cli.progress import shown
from gramian.app.files._write import WRITTEN
from gramian.common import storage

ESCAPE = "gramian.escape"
"""The key in the context of a command for whether formulas are escaped in tables of text."""


class Output(click.Path):
    """A file to write: the possible endings of its name ("" for none).

    `needs` is the package that writes files with some of the endings.
    """

    def __init__(self, *endings: str, needs: Mapping[str, str] | None = None) -> None:
        super().__init__(path_type=Path, readable=False)
        self.endings, self.needs = endings, needs or {}

    def ending(self, path: Path) -> str | None:
        """The ending of a name; None for one that is not possible."""
        found = [end for end in self.endings if end and path.name.lower().endswith(end)]
        bare = not path.suffix and "" in self.endings
        return max(found, key=len) if found else "" if bare else None

    def listed(self) -> str:
        """The possible endings, for messages."""
        *first, last = [ending for ending in self.endings if ending]
        text = f"{', '.join(first)} or {last}" if first else last
        return f"{text}, or nothing" if "" in self.endings else text


class Folder(click.Path):
    """A folder to write into, created if it is missing."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)
        self.name = "folder"


PLOTTED = (".png", ".pdf", ".svg")

TABLE = Output(*WRITTEN, needs=dict.fromkeys((".parquet", ".pq"), "pyarrow"))
MODEL = Output(".gramian", "")
CHECKPOINT = Output(".gramian", "")
PAGE = Output(".html", ".htm")
PICTURE = Output(*PLOTTED, needs=dict.fromkeys(PLOTTED, "matplotlib"))
MOVING = Output(".gif", ".png", needs=dict.fromkeys((".gif", ".png"), "matplotlib"))


class Writing(click.Command):
    """A command that checks every file it will write before it does anything."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        kinds = [param.type for param in self.params]
        flags = {
            "--force": "Overwrite existing files, but never inputs.",
            "--no-escape": "No apostrophe before text in CSV and TSV that begins like a formula.",
        }
        if TABLE not in kinds:
            del flags["--no-escape"]
        if any(isinstance(kind, Output) for kind in kinds):
            self.params += [click.Option([f], is_flag=True, help=t) for f, t in flags.items()]

    def invoke(self, ctx: click.Context) -> Any:
        """Check, then run."""
        forced = ctx.params.pop("force", False)
        force = storage.overwriting() if forced else nullcontext()
        ctx.meta[ESCAPE] = not ctx.params.pop("no_escape", False)
        files = {
            _called(param): (param.type, ctx.params[param.name])
            for param in self.params
            if isinstance(param.type, click.Path) and ctx.params.get(param.name or "") is not None
        }
        outputs = [path for kind, path in files.values() if isinstance(kind, Output)]
        before = list(map(_stamp, outputs))
        with force, _watched(ctx), noted():
            check(files, force=forced)
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                stamped = zip(outputs, before, strict=True)
                raise Interrupted([path for path, old in stamped if _stamp(path) != old]) from None


def _called(param: click.Parameter) -> str:
    """An option as it is written on the command line."""
    named = isinstance(param, click.Option)
    return max(param.opts, key=len) if named else str(param.human_readable_name)


def _stamp(path: Path) -> tuple[int, int] | None:
    """A value that changes when a file is written; None without the file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def _watched(ctx: click.Context) -> AbstractContextManager[None]:
    """The progress of a command that has such an option."""
    if "progress" not in ctx.params:
        return nullcontext()
    return shown(ctx.params["progress"], ctx.params.get("time_limit"))


def check(files: Mapping[str, tuple[Any, Path]], *, force: bool) -> None:
    """Reject output options whose files cannot be written or exist already."""
    outputs = {o: path for o, (kind, path) in files.items() if isinstance(kind, (Output, Folder))}
    inputs = [path for option, (_, path) in files.items() if option not in outputs]
    for (option, path), (another, there) in combinations(outputs.items(), 2):
        if _same(path, there):
            raise click.ClickException(
                f"{option} {path} and {another} {there} are one file: name two"
            )
    for option, path in outputs.items():
        for other in inputs:
            if _same(path, other):
                raise click.ClickException(
                    f"{option} {path} would overwrite the input {other}: name another file"
                )
        kind = files[option][0]
        if isinstance(kind, Folder):
            _check_folder(path)
        else:
            _check_file(option, path, kind, force)


def _check_file(option: str, path: Path, kind: Output, force: bool) -> None:
    """Reject a file with a wrong extension or folder, or that exists.

    An empty file has nothing to lose, and a checkpoint is continued.
    """
    ending = kind.ending(path)
    if ending is None:
        raise click.ClickException(f"{option} {path}: the name must end with {kind.listed()}")
    wrong = _obstacle(path)
    if wrong is not None:
        raise click.ClickException(f"cannot write {path}: {wrong}")
    there = None if force else storage.kind_of(path)
    if there is not None and (kind is not CHECKPOINT or there != storage.CHECKPOINT):
        raise click.ClickException(
            f"{option} {path} exists already and holds {there}: name another file, or pass --force "
            "to overwrite it"
        )
    module = kind.needs.get(ending)
    if module is not None and find_spec(module) is None:
        raise click.ClickException(
            f"{option} {path} needs {module}, which is not installed: pip install 'gramian[cli]'"
        )


def _obstacle(path: Path) -> str | None:
    """Why a file cannot be written; None if it can."""
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        return "it is a folder"
    if path.exists() and not path.is_file():
        return "it is not an ordinary file"
    if not folder.is_dir():
        return f"there is no folder {path.parent}"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"it is not permitted in the folder {path.parent}"
    if path.exists() and not os.access(path, os.W_OK):
        return "it is there already and protected"
    return None


def _check_folder(path: Path) -> None:
    """Reject a folder that does not exist and cannot be created."""
    whole = Path(os.path.realpath(path))
    there = next(place for place in (whole, *whole.parents) if place.exists())
    if not there.is_dir():
        raise click.ClickException(f"cannot keep checkpoints in {path}: it is a file, not a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise click.ClickException(f"cannot keep checkpoints in {path}: it is not permitted there")


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file."""
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)
