"""The on-disk cache of compiled kernels, shared by all processes and environments of a user.

It is the folder `kernels` of the user's cache folder for gramian, or ``NUMBA_CACHE_DIR``. A version
of Numba and of the sources has its own folder in it, so that several environments do not replace
each other's kernels. Numba distinguishes signatures, processors and versions of Python.

A process that compiles a kernel holds a lock of a file. Another one that needs the kernel waits for
it and reads the result. Without a lock both would compile it, and two that compile a kernel for
different types could exchange their results: Numba reads an index, chooses a file name that is not
in it, and writes both.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numba
from numba.core import caching, config
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.misc.appdirs import AppDirs

try:
    import fcntl
except ImportError:  # Windows: processes may compile the same kernel at once
    fcntl = None  # type: ignore[assignment]

MAX_WAIT_SECONDS, POLL_SECONDS = 60.0, 0.01
"""How long to wait for a process that compiles, which may have been suspended, and how often to
look."""


def cached(kernel: Any) -> Any:
    """Cache a kernel on disk if a folder is writable; returns the kernel."""
    if isinstance(kernel, Dispatcher):  # not with NUMBA_DISABLE_JIT
        with suppress(RuntimeError):  # numba found no writable folder
            kernel._cache = _Cache(kernel.py_func)  # type: ignore[attr-defined]
            kernel.compile = partial(_compile, kernel)  # type: ignore[method-assign]
    return kernel


def is_compiled(kernel: Any) -> bool:
    """Whether a kernel is in memory or, in its current version, in the on-disk cache."""
    if kernel.signatures:
        return True
    try:
        return bool(kernel._cache._cache_file._load_index())
    except (AttributeError, OSError):  # there is no readable cache
        return False


def _compile(kernel: Any, signature: Any) -> Any:
    """Read the kernel from the cache or compile it, while no other process does."""
    path = Path(kernel._cache._cache_file._index_path).with_suffix(".lock")
    with global_compiler_lock, exclusive(path):  # in this order: threads take the first one anyway
        return type(kernel).compile(kernel, signature)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock of a file, if the system has locks; the end of a process releases it."""
    with ExitStack() as opened:
        try:
            file = opened.enter_context(open(path, "ab"))
        except OSError:
            held = False
        else:
            held = fcntl is not None and _locked(file)
        try:
            yield
        finally:
            if held:  # closing is not enough if a forked process has a copy of the file
                fcntl.flock(file, fcntl.LOCK_UN)


def _locked(file: Any) -> bool:
    """Wait for the lock of a file; False if it was not obtained."""
    until = time.monotonic() + MAX_WAIT_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(POLL_SECONDS)
        except OSError:  # the file system has no locks
            return False


class _UserFolder(caching._CacheLocator):
    """The user's folder of this version of the kernels."""

    def __init__(self, function: Any) -> None:
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(_folder())

    def get_source_stamp(self) -> str:
        return _version()

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _UserFolder | None:
        found = cls(function)
        try:
            found.ensure_cache_path()
        except OSError:  # not writable, or sources that are not files
            return None
        return found


class _Implementation(caching.CompileResultCacheImpl):
    _locator_classes: ClassVar[Any] = [  # type: ignore[misc]
        _UserFolder,
        *caching.CompileResultCacheImpl._locator_classes,
    ]


class _Cache(caching.FunctionCache):
    _impl_class = _Implementation


@cache
def _folder() -> Path:
    given = getattr(config, "CACHE_DIR", "")  # set when numba is imported
    base = Path(given, "gramian") if given else Path(AppDirs("gramian", False).user_cache_dir)
    return base / "kernels" / _version()


@cache
def _version() -> str:
    """Numba's version and a digest of the modules of kernels."""
    folder, digest = Path(__file__).parent, sha256()
    for path in (folder / "_cache.py", *sorted(folder.glob("*_kernels.py"))):
        digest.update(path.read_bytes())
    return f"{numba.__version__}-{digest.hexdigest()[:16]}"
