"""A thousand mutated files of each kind: each is read or refused, and none does anything else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = 1000
GROWTH = 1 << 28
KINDS = ["csv", "tsv", "gz", "parquet", "npz", "npy", "svmlight", "mtx", "pairs", "ratings"]

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="limits the memory of a process as Linux does"
)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What came of each kind; one process, which loads the libraries once, forks for each."""
    folder = str(tmp_path_factory.mktemp("fuzz"))
    done = subprocess.run(
        [sys.executable, "-m", "tests.files.fuzzing", str(COUNT), folder],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_are_read_or_refused(kind, told):
    assert not told[kind]["wrong"], "\n".join(told[kind]["wrong"])
    assert told[kind]["read"] + told[kind]["refused"] == COUNT
    assert told[kind]["read"] > 0 < told[kind]["refused"]
    assert told[kind]["grown"] < GROWTH
