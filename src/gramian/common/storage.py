"""The file format of models and checkpoints: arrays and JSON.

A file is a zip archive without compression: `content.json` describes the content, and its arrays
are `.npy` members that `numpy.load` can read. Reading creates numbers, strings and instances of the
classes registered here. Nothing is unpickled. Reading a file of n bytes takes at most 64 MB + 64 n
bytes of memory, and time in proportion: each member is read once and its array is shared by all
references, the members together are not larger than the file, and copies made by objects are
limited by `Reading`.
"""

from __future__ import annotations

import errno
import glob
import io
import json
import math
import os
import secrets
import stat
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from numpy.typing import NDArray

from gramian.common.context import setting

FORMAT_VERSION = 1
CONTENT = "content.json"
KINDS = "biufU"
"""NumPy kinds of arrays: booleans, integers, floats and strings."""

PACKAGES = ("gramian", "sklearn")
"""Packages whose classes are named by their subpackage."""

COPIES_ALLOWED = 1 << 26
"""Bytes that the objects of a file may copy, in addition to `COPIES_PER_BYTE`."""

COPIES_PER_BYTE = 16
"""Bytes that the objects of a file may copy per byte of the file."""

STRING_BYTES = 80
"""Memory of a short Python string, besides its characters."""

KEYS = (str, int, float, bool, type(None))
"""Types of the keys of a dictionary."""

LARGEST_KEY = 2**63
"""Integers beyond 64 bits are rejected: they can be chosen to have equal hashes."""

Class = TypeVar("Class", bound=type)
State = dict[str, Any]


@dataclass(frozen=True)
class Foreign:
    """How objects of another package are stored and restored."""

    to_store: Callable[[Any], State]
    from_store: Callable[..., Any]
    cost: Callable[[State], int]
    """Upper bound on the bytes that `from_store` copies."""


_BY_NAME: dict[str, type] = {}

FORMER_NAMES = {
    "gramian.encoders.DateEncoder": "gramian.app.DateEncoder",
    "gramian.outer.EvidencePath": "gramian.estimators.EvidencePath",
}
"""Names of classes in files that earlier versions wrote, and those that they have now."""
_FOREIGN: dict[type, Foreign] = {}


class FileError(ValueError):
    """A file that cannot be read or written, and why."""


class StoredFileError(ValueError):
    """A file with invalid content, or an object that cannot be stored."""


def storable(cls: Class) -> Class:
    """Register a dataclass, an enumeration, or a class with `_to_store` and `_from_store`."""
    _BY_NAME[_name(cls)] = cls
    return cls


def array_bytes(value: Any) -> int:
    """Bytes of the arrays in a value, as 64-bit numbers or Python strings."""
    if isinstance(value, np.ndarray):
        return value.nbytes + value.size * (STRING_BYTES if value.dtype.kind == "U" else 8)
    if sp.issparse(value):
        return array_bytes([value.data, value.indices, value.indptr])
    if isinstance(value, dict):
        return array_bytes(list(value.values()))
    return sum(map(array_bytes, value)) if isinstance(value, (list, tuple)) else 0


def storable_as(
    cls: type,
    to_store: Callable[[Any], State],
    from_store: Callable[..., Any],
    cost: Callable[[State], int] = array_bytes,
) -> None:
    """Register a class of another package with functions that take it apart and restore it.

    `from_store` must take time in proportion to `cost` and to the length of the lists given.
    """
    storable(cls)
    _FOREIGN[cls] = Foreign(to_store, from_store, cost)


def _name(cls: type) -> str:
    """The public name of a class: modules inside a package may be moved."""
    place = cls.__module__.split(".")
    return ".".join([*(place[:2] if place[0] in PACKAGES else place), cls.__name__])


# --- files -----------------------------------------------------------------------------


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that replaces another one only when it is complete and on the disk.

    It only replaces a file of its own kind (a model never replaces a table), except inside
    `overwriting`. The permissions of a replaced file are kept, and a symbolic link is followed.
    Partial files of killed writers of the same path are removed first; those of running writers
    are not.
    """
    target = Path(os.path.realpath(path))
    partial: Path | None = None
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder: name a file in it", str(path))
    try:
        remove_abandoned(path)
        partial, file = _new_partial(target)
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            refuse_other_kind(path, kind_of(partial))
            if target.is_file():
                os.chmod(partial, stat.S_IMODE(target.stat().st_mode))
            if not LOCKS:  # Windows cannot rename an open file
                file.close()
            os.replace(partial, target)
    except BaseException as reason:
        if partial is not None:
            partial.unlink(missing_ok=True)
        if isinstance(reason, OSError) and str(reason.filename).startswith(str(target)):
            raise OSError(reason.errno, reason.strerror, str(path)) from reason
        raise


LOCKS: Any = import_module("fcntl") if os.name == "posix" else None
"""Whether file locks distinguish a file being written from an abandoned one."""


def _new_partial(target: Path) -> tuple[Path, IO[bytes]]:
    """A new file in the folder of the target, locked while open; private if the target is."""
    mode = 0o600 if target.exists() else 0o666
    while True:
        partial = target.with_name(f"{target.name}.{secrets.token_hex(6)}.partial")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(partial, flags, mode), "w+b")
        with suppress(OSError):  # some file systems do not support locks
            _lock(file)
        if partial.exists():  # otherwise it was removed before it was locked
            return partial, file
        file.close()


def _lock(file: IO[bytes]) -> None:
    if LOCKS:
        LOCKS.flock(file.fileno(), LOCKS.LOCK_EX | LOCKS.LOCK_NB)


def remove_abandoned(path: Path) -> None:
    """Remove partial files of killed writers."""
    target = Path(os.path.realpath(path))
    for left in target.parent.glob(f"{glob.escape(target.name)}.*.partial"):
        with suppress(OSError), open(left, "r+b") as file:
            _lock(file)
            if not LOCKS:  # Windows cannot remove an open file, such as that of a running writer
                file.close()
            left.unlink(missing_ok=True)


# --- existing files --------------------------------------------------------------------

MODEL, CHECKPOINT = "a gramian model", "a gramian checkpoint"
PAGE, PICTURE = "a page of gramian", "a picture of Matplotlib"
TEXT, GZIPPED, ARRAY = "text", "gzipped data", "an array of numpy"
ARRAYS, PARQUET = "arrays of numpy", "a Parquet table"
"""The kinds of files written by gramian, as named in messages."""

OTHERS = (
    (b"\x93NUMPY", ARRAY),
    (b"PAR1", PARQUET),
    (b"\x1f\x8b", GZIPPED),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture"),
    (b"GIF8", "a picture"),
)
"""Leading bytes of files that are not text."""

HEAD = 1 << 16
"""Number of bytes that determine the kind of a file."""

_OVERWRITING: ContextVar[bool] = ContextVar("overwriting", default=False)


def overwriting() -> AbstractContextManager[None]:
    """Allow overwriting files of any kind inside the block."""
    return setting(_OVERWRITING, True)


def refuse_other_kind(path: Path, kind: str | None) -> None:
    """Raise an error if a nonempty file of another kind would be overwritten."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise StoredFileError(f"{path} is not an ordinary file: choose another path")
    there = None if _OVERWRITING.get() else kind_of(path)
    if there is not None and there != kind:
        raise StoredFileError(
            f"{path} is there already and holds {there}, not {kind}: remove it or name another file"
        )


def kind_of(path: Path) -> str | None:
    """The kind of a file by its content; None if it does not exist or is empty."""
    if not path.is_file() or path.stat().st_size == 0:
        return None
    with open(path, "rb") as file:
        head = file.read(HEAD)
    if head.startswith(b"PK"):
        return _kind_of_archive(path)
    page = b"<!doctype html" in head[:200].lower() or b"<html" in head[:200].lower()
    if page:
        return PAGE if b"<title>gramian" in head else "an HTML page of another program"
    found = next((kind for magic, kind in OTHERS if head.startswith(magic)), None)
    drawn = found in ("a picture", "a PDF document") or b"<svg" in head[:2000]
    if drawn:
        return PICTURE if b"atplotlib" in path.read_bytes() else found or "a picture"
    return found or ("other data" if b"\0" in head else TEXT)


def _kind_of_archive(path: Path) -> str:
    ours = is_stored(path)
    if ours is not None:
        return f"a gramian {ours}"
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = any(name.endswith(".npy") for name in archive.namelist())
    except Exception:  # a damaged file can raise anything
        arrays = False
    return ARRAYS if arrays else "a zip archive"


def write(path: Path, kind: str, content: Any) -> None:
    """Write a file of a kind, completely or not at all."""
    arrays: _Arrays = {}
    head = {"format": f"gramian {kind}", "format_version": FORMAT_VERSION}
    text = json.dumps(
        {**head, "content": _encoded(content, kind, arrays)}, allow_nan=False, indent=1
    )
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(CONTENT, text)
        for name, array in arrays.values():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def read(path: Path, kind: str) -> Any:
    """The content of a file of a kind.

    Raises
    ------
    StoredFileError
        If the file has other content.
    OSError
        If it cannot be read.
    """
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _content(archive, path, kind, os.fstat(file.fileno()).st_size)
        except StoredFileError:
            raise
        except zipfile.BadZipFile as reason:
            there = kind_of(path) or "nothing"
            raise StoredFileError(
                f"{path} holds {there}, not a complete gramian {kind}: name another file, or save "
                "or copy it again"
            ) from reason
        except Exception as reason:  # a hostile file can raise anything
            raise StoredFileError(
                f"{path} is not a complete gramian {kind} ({reason}): save or copy it again"
            ) from reason


def is_stored(path: Path) -> str | None:
    """The kind of a gramian file, None for other files."""
    try:
        with zipfile.ZipFile(path) as archive:
            head = json.loads(_member(archive, CONTENT))
            name = str(head["format"])
    except Exception:
        return None
    return name.removeprefix("gramian ") if name.startswith("gramian ") else None


def _content(archive: zipfile.ZipFile, path: Path, kind: str, size: int) -> Any:
    head = json.loads(_member(archive, CONTENT))
    if head["format"] != f"gramian {kind}":
        raise StoredFileError(f"{path} is a {head['format']}, where a gramian {kind} is expected")
    if head["format_version"] > FORMAT_VERSION:
        raise StoredFileError(
            f"{path} was written by a newer gramian (format {head['format_version']}, this one "
            f"reads up to {FORMAT_VERSION}): upgrade gramian to read it"
        )
    return Reading(archive, size).decoded(head["content"])


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise StoredFileError(f"member {name} is compressed, which gramian never writes")
    return archive.read(info)


def _array(data: bytes) -> NDArray[Any]:
    """An array of an allowed kind whose header agrees with the number of bytes."""
    file = io.BytesIO(data)
    version = npy.read_magic(file)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = header(file)
    if dtype.kind not in KINDS or dtype.hasobject or dtype.itemsize == 0:
        raise StoredFileError(f"an array of {dtype} is not read")
    rest = memoryview(data)[file.tell() :]
    if math.prod(shape) * dtype.itemsize != len(rest) or any(size < 0 for size in shape):
        raise StoredFileError(f"an array claims the shape {shape}, and has {len(rest)} bytes")
    if dtype.kind == "U" and not len(rest):
        dtype = np.dtype("U1")  # the header does not determine the string length
    flat = np.frombuffer(rest, dtype).astype(dtype.newbyteorder("="))
    if dtype.kind == "U" and np.any(flat.view(np.uint32) > sys.maxunicode):
        raise StoredFileError("a string has characters that do not exist")
    return flat.reshape(shape, order="F" if fortran else "C")


# --- values ----------------------------------------------------------------------------


_Arrays = dict[int, tuple[str, NDArray[Any]]]
"""The name and the array of each member of a file, by the identity of the array."""


def _member_of(array: NDArray[Any], arrays: _Arrays) -> str:
    """The name of the member with an array, which is stored once."""
    return arrays.setdefault(id(array), (f"array{len(arrays)}", array))[0]


def _encoded(value: Any, place: str, arrays: _Arrays) -> Any:
    """A JSON tree; other values are objects with one key that names their type."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, (bool, int, str)) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray):
        return _encoded_array(value, place, arrays)
    if sp.issparse(value):
        return _encoded_sparse(value, place, arrays)

    def inner(part: Any, name: Any) -> Any:
        return _encoded(part, f"{place}.{name}", arrays)

    if isinstance(value, list):
        return [inner(part, k) for k, part in enumerate(value)]
    if isinstance(value, tuple) and type(value) is tuple:
        return {"tuple": [inner(part, k) for k, part in enumerate(value)]}
    if isinstance(value, dict):
        return {"dict": [[inner(_key(k), k), inner(part, k)] for k, part in value.items()]}
    if _BY_NAME.get(_name(type(value))) is type(value):
        state = {name: inner(part, name) for name, part in _state(value).items()}
        return {"class": _name(type(value)), "state": state}
    held = "numbers and strings"
    if hasattr(value, "fit"):
        steps = sorted(cls.__name__ for cls in _FOREIGN)
        held = f"gramian's estimators, scikit-learn's {', '.join(steps)}"
    raise StoredFileError(
        f"{place} is of type {type(value).__name__}, which a file of arrays and JSON cannot hold: "
        f"use {held}, or pickle"
    )


def _encoded_array(value: NDArray[Any], place: str, arrays: _Arrays) -> Any:
    if value.dtype.kind in KINDS:
        array = value if value.dtype.itemsize else value.astype("U1")
        return {"array": _member_of(array, arrays)}
    if value.dtype.kind == "O":
        parts = [_encoded(part, f"{place} (an entry)", arrays) for part in value.ravel().tolist()]
        return {"objects": parts, "shape": list(value.shape)}
    raise StoredFileError(f"{place} is an array of {value.dtype}, which a model file cannot hold")


def _encoded_sparse(value: Any, place: str, arrays: _Arrays) -> Any:
    if value.format != "csr":
        raise StoredFileError(f"{place} is a sparse matrix in {value.format} format, not csr")
    parts = [_member_of(part, arrays) for part in (value.data, value.indices, value.indptr)]
    is_array = isinstance(value, sp.csr_array)
    return {"csr": "array" if is_array else "matrix", "parts": parts, "shape": list(value.shape)}


def _state(value: Any) -> Mapping[str, Any]:
    if type(value) in _FOREIGN:
        return _FOREIGN[type(value)].to_store(value)
    if isinstance(value, Enum):
        return {"name": value.name}
    if is_dataclass(value) and not hasattr(value, "_to_store"):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return value._to_store()


class Reading:
    """Restores the values of a file of `size` bytes from its JSON tree.

    Raises
    ------
    StoredFileError
        If members overlap, or objects copy more than the limit for a file of this size.
    """

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self.archive = archive
        self.unread = size
        self.copies_left = COPIES_ALLOWED + COPIES_PER_BYTE * size
        self._arrays: dict[str, NDArray[Any]] = {}

    def array(self, name: str) -> NDArray[Any]:
        """The array of a member, the same object each time."""
        if name not in self._arrays:
            member = f"{name}.npy"
            self.unread -= self.archive.getinfo(member).file_size
            if self.unread < 0:
                raise StoredFileError("the arrays of the file are larger than the file")
            self._arrays[name] = _array(_member(self.archive, member))
        return self._arrays[name]

    def charge(self, copied: int) -> None:
        """Count bytes that an object is about to copy."""
        self.copies_left -= copied
        if self.copies_left < 0:
            raise StoredFileError("the file would take far more memory than its size")

    def decoded(self, tree: Any) -> Any:
        """The value of a tree; lists are filled in place."""
        if isinstance(tree, list):
            for k, part in enumerate(tree):
                tree[k] = self.decoded(part)
            return tree
        if not isinstance(tree, dict):
            return tree
        if "float" in tree:
            return float(tree["float"])
        if "array" in tree:
            return self.array(tree["array"])
        if "tuple" in tree:
            return tuple(self.decoded(tree["tuple"]))
        if "dict" in tree:
            return {_key(self.decoded(key)): self.decoded(part) for key, part in tree["dict"]}
        if "objects" in tree:
            return _objects(self.decoded(tree["objects"]), tree["shape"])
        if "csr" in tree:
            return self._csr(tree)
        state = {name: self.decoded(part) for name, part in tree["state"].items()}
        return self._made(_class(tree["class"]), state)

    def _csr(self, tree: Any) -> Any:
        parts = [self.array(name) for name in tree["parts"]]
        self.charge(array_bytes(parts))
        return checked_csr(parts, tree["shape"], tree["csr"])

    def _made(self, cls: Any, state: State) -> Any:
        if cls in _FOREIGN:
            self.charge(_FOREIGN[cls].cost(state))
            return _FOREIGN[cls].from_store(**state)
        if issubclass(cls, Enum):
            return cls[state["name"]]
        return cls._from_store(state) if hasattr(cls, "_from_store") else cls(**state)


def _key(key: Any) -> Any:
    """The key of a dictionary; ValueError if its hash can be chosen."""
    key = key.item() if isinstance(key, np.generic) else key
    if type(key) not in KEYS or (type(key) is int and abs(key) > LARGEST_KEY):
        raise StoredFileError(
            f"a {type(key).__name__} cannot be the key of a dictionary in a file: use strings or "
            "numbers of 64 bits"
        )
    return key


def _objects(parts: list[Any], shape: list[int]) -> NDArray[Any]:
    objects = np.empty(len(parts), dtype=object)
    for k, part in enumerate(parts):
        objects[k] = part
    return objects.reshape(shape)


def checked_csr(parts: Sequence[NDArray[Any]], shape: Sequence[int], kind: str = "matrix") -> Any:
    """The CSR matrix of data, indices and indptr; raises StoredFileError if they disagree."""
    data, indices, indptr = parts
    rows, columns = shape
    whole = (
        indptr.size == rows + 1
        and {data.ndim, indices.ndim, indptr.ndim} == {1}
        and {indices.dtype.kind, indptr.dtype.kind} <= {"i"}
        and indptr[0] == 0
        and indptr[-1] == data.size == indices.size
        and bool(np.all(np.diff(indptr) >= 0))
        and bool(np.all((indices >= 0) & (indices < columns)))
    )
    if not whole:  # scipy's check accepts some matrices that crash it later
        raise StoredFileError("the parts of a sparse matrix are inconsistent")
    made = sp.csr_array if kind == "array" else sp.csr_matrix
    return made((data, indices, indptr), shape=(rows, columns))


def _class(name: str) -> type:
    name = FORMER_NAMES.get(name, name)
    if name not in _BY_NAME:
        raise StoredFileError(f"unknown class {name!r} in this version of gramian")
    return _BY_NAME[name]
