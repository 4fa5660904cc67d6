"""The number of threads depends on the size of the work, and is restored afterwards."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gramian.arrays import threads
from gramian.arrays.threads import (
    FEW_THREAD_ELEMENTS,
    ONE_THREAD_ELEMENTS,
    blas_threads_for,
    blas_threads_for_fit,
    dense_threads,
    in_parts,
)
from tests.slow import slow_except


def blas_threads() -> set[int]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.fixture
def many(monkeypatch):
    """Pretend that the machine has sixteen cores, and that no other program uses them."""
    monkeypatch.setattr(threads, "cores", lambda: 16)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(os, "getloadavg", lambda: (16.0, 0.0, 0.0), raising=False)


def test_dense_threads_depend_on_size(many):
    assert [
        dense_threads(n)
        for n in (
            0,
            ONE_THREAD_ELEMENTS,
            ONE_THREAD_ELEMENTS + 1,
            FEW_THREAD_ELEMENTS,
            FEW_THREAD_ELEMENTS + 1,
        )
    ] == [1, 1, 4, 4, 16]


def test_dense_algebra_uses_one_thread_on_a_busy_machine(many, monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (24.0, 0.0, 0.0))
    assert dense_threads(FEW_THREAD_ELEMENTS + 1) == 1
    monkeypatch.delattr(os, "getloadavg")  # Windows has none
    assert dense_threads(FEW_THREAD_ELEMENTS + 1) == 16


def test_limits_nest_and_are_restored(many):
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with blas_threads_for(ONE_THREAD_ELEMENTS):
            assert blas_threads() == {1}
            with blas_threads_for(FEW_THREAD_ELEMENTS + 1):  # a large proof within a small problem
                assert blas_threads() == before
            assert blas_threads() == {1}
        assert blas_threads() == before
        with blas_threads_for(FEW_THREAD_ELEMENTS + 1):  # never more than was given
            assert blas_threads() == before


def test_limit_is_restored_after_error():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(RuntimeError), blas_threads_for(1):
            raise RuntimeError
        assert blas_threads() == before


def test_overlapping_limits_restore_the_number():
    """Runs overlap: a plain save and restore would leave 1."""
    count = 6
    gate = threading.Barrier(count)

    def run(_: int) -> None:
        with blas_threads_for(3):
            gate.wait(10)
            assert blas_threads() == {1}
            gate.wait(10)

    before = blas_threads()
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(run, range(count)))
    assert blas_threads() == before


def test_every_unit_is_processed_once(many):
    for units, work in ((1, 10**9), (7, 10**9), (1000, 10**9), (1000, 1)):
        done = np.zeros(units, dtype=int)

        def kernel(start, stop, out):
            out[start:stop] += 1

        in_parts(kernel, units, work, done)
        assert np.all(done == 1)


def test_little_work_uses_one_thread(many):
    seen = set()
    in_parts(lambda start, stop: seen.add(threading.get_ident()), 100, threads.WORK)
    assert seen == {threading.get_ident()}


def test_error_in_a_part_propagates(many):
    def kernel(start, stop):
        raise ValueError("part")

    with pytest.raises(ValueError, match="part"):
        in_parts(kernel, 100, 10**9)


LIMITS = ["NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"]


@pytest.mark.parametrize("name", slow_except(LIMITS, "OMP_NUM_THREADS"))
def test_environment_variables_limit_cores(name):
    script = "from gramian.arrays.threads import cores; print(cores())"
    environment = {k: v for k, v in os.environ.items() if not k.endswith("NUM_THREADS")}
    environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    told = subprocess.run(
        [sys.executable, "-c", script],
        env={**environment, name: "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "1"


def test_a_fit_of_few_samples_uses_one_blas_thread():
    def used(*given):
        with blas_threads_for_fit(*given):
            return blas_threads()

    few = used("no table")
    assert used(np.zeros((500, 30)), np.zeros(500)) == {1}
    for large in (np.zeros((5000, 40)), np.zeros((2000, 2))):
        assert used(large) == used(np.zeros((10, 2)), large) == few
