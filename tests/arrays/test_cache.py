"""The on-disk cache of compiled kernels: where it is, and several processes at once."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import gramian
from gramian.arrays import _cache, _kernels

SOLVE = """
import numpy as np, scipy.sparse as sp
from gramian.arrays.cpu import triangular_solve
from gramian.arrays import _kernels
C = sp.csr_array(np.array([[2.0, 0.0], [1.0, 4.0]]))
np.testing.assert_allclose(triangular_solve(C, np.ones((2, 1))), [[0.5], [0.125]])
print(sum(_kernels.solve_triangular.stats.cache_hits.values()))
"""


@pytest.fixture
def installed(tmp_path):
    """A copy of the package in which no cache can be written, not even by root."""
    site = tmp_path / "site"
    source = Path(gramian.__file__).parent
    shutil.copytree(source, site / "gramian", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "gramian" / "arrays" / "__pycache__").write_text("in the way")
    return site


def solving(site, home):
    """A new process that runs a kernel and prints the number of cache hits."""
    env = {name: text for name, text in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env |= {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(home)}
    env |= {"XDG_CACHE_HOME": str(home / "cache")}
    return subprocess.Popen([sys.executable, "-c", SOLVE], env=env, stdout=subprocess.PIPE)


def hits(process):
    text, _ = process.communicate()
    assert process.returncode == 0
    return int(text)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache folder is named otherwise")
def test_processes_compile_once_for_all_copies_of_the_package(installed, tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    shutil.copytree(installed, other)
    together = [solving(installed, home), solving(other, home)]
    assert sorted(map(hits, together)) == [0, 1]
    assert not list(tmp_path.rglob("site/**/*.nbi"))


@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache folder is named otherwise")
def test_kernels_run_without_any_cache(installed, tmp_path):
    home = tmp_path / "home"
    home.write_text("in the way")
    assert hits(solving(installed, home)) == 0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for the kernels of this test."""
    monkeypatch.setattr(_cache, "_folder", lambda: tmp_path)
    return tmp_path


def test_is_compiled(folder):
    @_kernels.compiled
    def unused(x):
        return x + 1

    assert not _cache.is_compiled(unused)
    assert unused(1.0) == 2.0
    assert list(folder.glob("*.nbi")) and not list(folder.glob("*.tmp*"))
    again = _kernels.compiled(unused.py_func)
    assert _cache.is_compiled(again) and again(1.0) == 2.0
    assert sum(again.stats.cache_hits.values()) == 1


def test_kernels_compile_if_no_folder_is_writable(monkeypatch):
    monkeypatch.setattr(_cache._Implementation, "_locator_classes", [])
    kernel = _kernels.compiled(lambda x: 2 * x)
    assert kernel(3.0) == 6.0 and kernel.stats.cache_path is None


def entered(path):
    """Start a thread that enters `exclusive`; returns the thread and the event that it has."""
    inside = threading.Event()

    def enter():
        with _cache.exclusive(path):
            inside.set()

    thread = threading.Thread(target=enter)
    thread.start()
    return thread, inside


@pytest.mark.skipif(_cache.fcntl is None, reason="no locks of files")
def test_a_lock_excludes_others_until_it_is_released(tmp_path):
    with _cache.exclusive(tmp_path / "lock"):
        thread, inside = entered(tmp_path / "lock")
        assert not inside.wait(3 * _cache.POLL_SECONDS)
    thread.join()
    assert inside.is_set()


def test_a_lock_is_ignored_after_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(_cache, "MAX_WAIT_SECONDS", 0.0)
    with _cache.exclusive(tmp_path / "lock"):
        entered(tmp_path / "lock")[0].join()


def test_a_lock_is_released_after_an_error(tmp_path):
    with pytest.raises(KeyboardInterrupt), _cache.exclusive(tmp_path / "lock"):
        raise KeyboardInterrupt
    entered(tmp_path / "lock")[0].join()


def test_no_lock_in_a_missing_folder(tmp_path):
    with _cache.exclusive(tmp_path / "missing" / "lock"):
        assert not any(tmp_path.iterdir())
