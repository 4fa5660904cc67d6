"""The on-disk cache of compiled kernels, also if the package folder is not writable."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gramian

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


def solve(site, home):
    """Run a kernel in a new process; returns the number of cache hits."""
    env = {name: text for name, text in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env |= {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(home)}
    env |= {"XDG_CACHE_HOME": str(home / "cache")}
    run = subprocess.run(
        [sys.executable, "-c", SOLVE], env=env, capture_output=True, text=True, check=True
    )
    return int(run.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache folder is named otherwise")
def test_read_only_package_uses_user_cache(installed, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    assert solve(installed, home) == 0
    assert list((home / "cache").rglob("*.nbi"))
    assert solve(installed, home) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the user's cache folder is named otherwise")
def test_kernels_run_without_any_cache(installed, tmp_path):
    home = tmp_path / "home"
    home.write_text("in the way")
    assert solve(installed, home) == 0
