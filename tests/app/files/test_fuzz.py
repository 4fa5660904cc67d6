"""Mutated files of each kind: each is read or refused, and none does anything else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slow import slow

GROWTH = 1 << 28
KINDS = ["csv", "tsv", "gz", "parquet", "npz", "npy", "svmlight", "mtx", "ratings"]

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="limits the memory of a process as Linux does"
)


@pytest.fixture(scope="module", params=[30, slow(1000)])
def told(tmp_path_factory, request):
    """What came of each kind; one process, which loads the libraries once, forks for each."""
    folder = str(tmp_path_factory.mktemp("fuzz"))
    done = subprocess.run(
        [sys.executable, "-m", "tests.app.files.fuzzing", str(request.param), folder],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return request.param, json.loads(done.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_are_read_or_refused(kind, told):
    count, of_kinds = told
    found = of_kinds[kind]
    assert not found["wrong"], "\n".join(found["wrong"])
    assert found["read"] + found["refused"] == count
    assert found["read"] > 0 < found["refused"]
    assert found["grown"] < GROWTH
