"""What a command will write, checked before it begins: no input is lost, and no hour of work."""

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
from gramian.common import storage
from gramian.common.storage import StoredFileError

NEEDED = {storage.PARQUET: "pyarrow", storage.PICTURE: "matplotlib"}
"""What has to be installed to write a kind of file."""


class Output(click.Path):
    """A file to write: what its name may end with ("" for no ending), and what it then holds."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        super().__init__(path_type=Path, readable=False)
        self.kinds = dict(kinds)

    def kind(self, path: Path) -> str | None:
        """What a file of this name holds; None where the ending is not among ours."""
        name = path.name.lower()
        ours = [ending for ending in self.kinds if ending and name.endswith(ending)]
        if not ours:
            return None if path.suffix else self.kinds.get("")
        return self.kinds[max(ours, key=len)]

    def endings(self) -> str:
        """The endings, for people."""
        *first, last = [ending for ending in self.kinds if ending]
        listed = f"{', '.join(first)} or {last}" if first else last
        return f"{listed}, or nothing" if "" in self.kinds else listed


class Folder(click.Path):
    """A folder to write into, made where it is missing."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)


TABLE = Output(
    {
        ".csv": storage.TEXT,
        ".tsv": storage.TEXT,
        ".csv.gz": storage.GZIPPED,
        ".tsv.gz": storage.GZIPPED,
        ".npz": storage.ARRAYS,
        ".parquet": storage.PARQUET,
        ".pq": storage.PARQUET,
    }
)
NUMBERS = Output({**TABLE.kinds, ".npy": storage.ARRAY})
ARRAYS = Output({".npz": storage.ARRAYS})
ESCAPE = "gramian.escape"
"""Where the context of a command has whether formulas are escaped in tables of text."""

MODEL = Output({".gramian": storage.MODEL, "": storage.MODEL})
CHECKPOINT = Output({".gramian": storage.CHECKPOINT, "": storage.CHECKPOINT})
PAGE = Output({".html": storage.PAGE, ".htm": storage.PAGE})
PICTURE = Output(dict.fromkeys((".png", ".pdf", ".svg"), storage.PICTURE))
MOVING = Output(dict.fromkeys((".gif", ".png"), storage.PICTURE))


class Writing(click.Command):
    """A command that looks at every file it is to write before it does anything."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        if any(isinstance(param.type, Output) for param in self.params):
            self.params.append(
                click.Option(
                    ["--force"], is_flag=True, help="Overwrite files of another kind; inputs never."
                )
            )

        if any(param.type in (TABLE, NUMBERS) for param in self.params):
            self.params.append(
                click.Option(
                    ["--no-escape"],
                    is_flag=True,
                    help="No apostrophe before text in CSV and TSV that begins like a formula.",
                )
            )

    def invoke(self, ctx: click.Context) -> Any:
        """Check, then run."""
        force = ctx.params.pop("force", False)
        ctx.meta[ESCAPE] = not ctx.params.pop("no_escape", False)
        files = {
            _called(param): (param.type, ctx.params[param.name])
            for param in self.params
            if isinstance(param.type, click.Path) and ctx.params.get(param.name or "") is not None
        }
        force_ = storage.overwriting() if force else nullcontext()
        outputs = [path for kind, path in files.values() if isinstance(kind, Output)]
        before = list(map(_stamp, outputs))
        with force_, _watched(self, ctx), noted():
            check(files)
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                stamped = zip(outputs, before, strict=True)
                raise Interrupted([path for path, old in stamped if _stamp(path) != old]) from None


def _stamp(path: Path) -> tuple[int, int] | None:
    """What changes when a file is written."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def _watched(command: click.Command, ctx: click.Context) -> AbstractContextManager[None]:
    """The progress of a command that has such an option."""
    if not any(param.name == "progress" for param in command.params):
        return nullcontext()
    return shown(ctx.params["progress"], ctx.params.get("time_limit"))


def check(files: Mapping[str, tuple[Any, Path]]) -> None:
    """Refuse outputs that cannot be written or that would cost another file, by their options."""
    inputs = [path for kind, path in files.values() if not isinstance(kind, (Output, Folder))]
    outputs = {
        option: path for option, (kind, path) in files.items() if isinstance(kind, (Output, Folder))
    }
    for option, path in outputs.items():
        for other in inputs:
            if _same(path, other):
                raise click.ClickException(
                    f"{option} {path} would overwrite the input {other}: name another file"
                )
        _check_one(option, path, files[option][0])
    for (option, path), (another, there) in combinations(outputs.items(), 2):
        if _same(path, there):
            raise click.ClickException(
                f"{option} {path} and {another} {there} are one file: name two"
            )


def _check_one(option: str, path: Path, kind: Output | Folder) -> None:
    if isinstance(kind, Folder):
        _check_folder(path)
        return
    holds = kind.kind(path)
    if holds is None:
        raise click.ClickException(f"{option} {path}: the name must end with {kind.endings()}")
    _check_place(path)
    try:
        storage.refuse_other_kind(path, holds)
    except StoredFileError as refusal:
        raise click.ClickException(f"{option}: {refusal}, or pass --force") from refusal
    module = NEEDED.get(holds)
    if module is not None and find_spec(module) is None:
        raise click.ClickException(
            f"{option} {path} needs {module}, which is not installed: pip install 'gramian[cli]'"
        )


def _check_place(path: Path) -> None:
    """A file that can be written: its folder is there, and it is none itself."""
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise click.ClickException(f"cannot write {path}: it is a folder")
    if path.exists() and not path.is_file():
        raise click.ClickException(f"cannot write {path}: it is not an ordinary file")
    if not folder.is_dir():
        raise click.ClickException(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise click.ClickException(
            f"cannot write {path}: it is not permitted in the folder {path.parent}"
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise click.ClickException(f"cannot write {path}: it is there already and protected")


def _check_folder(path: Path) -> None:
    """A folder that is there, or can be made."""
    whole = Path(os.path.realpath(path))
    there = next(place for place in (whole, *whole.parents) if place.exists())
    if not there.is_dir():
        raise click.ClickException(f"cannot keep checkpoints in {path}: it is a file, not a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise click.ClickException(f"cannot keep checkpoints in {path}: it is not permitted there")


def _same(one: Path, other: Path) -> bool:
    """Whether two names are of one file, by whatever way they go."""
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def _called(param: click.Parameter) -> str:
    """An option as it is written on the command line."""
    named = isinstance(param, click.Option)
    return max(param.opts, key=len) if named else str(param.human_readable_name)
