"""BLAS threads are held while small problems run, and given back, whoever ends last."""

from collections.abc import Iterator
from threading import Barrier, Thread

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gramian.backends.threads import SMALL_ORDER, blas_threads_for


def blas_threads() -> set[int]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    # Not as a context: within one, threadpoolctl lets no other thread change the number.
    limit = threadpool_limits(2, user_api="blas")
    yield
    limit.restore_original_limits()


def test_small_orders_take_one_thread_and_give_the_rest_back():
    with blas_threads_for(SMALL_ORDER):
        assert blas_threads() == {1}
    assert blas_threads() == {2}
    with blas_threads_for(SMALL_ORDER + 1):
        assert blas_threads() == {2}


def test_runs_in_threads_leave_the_number_as_they_found_it():
    together, seen = Barrier(4), []

    def run() -> None:
        with blas_threads_for(3):
            together.wait(timeout=10)
            seen.append(blas_threads())

    runs = [Thread(target=run) for _ in range(4)]
    for thread in runs:
        thread.start()
    for thread in runs:
        thread.join()
    assert seen == [{1}] * 4
    assert blas_threads() == {2}
