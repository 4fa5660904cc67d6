"""BLAS threads are held while small problems run, and given back."""

from concurrent.futures import ThreadPoolExecutor

from threadpoolctl import threadpool_info, threadpool_limits

from gramian.backends.threads import SMALL_ORDER, blas_threads_for


def blas_threads() -> set[int]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_small_orders_take_one_thread_and_give_the_rest_back():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with blas_threads_for(SMALL_ORDER):
            assert blas_threads() == {1}
        assert blas_threads() == before
        with blas_threads_for(SMALL_ORDER + 1):
            assert blas_threads() == before


def test_many_runs_in_threads_leave_the_number_as_they_found_it():
    def run(_: int) -> None:
        with blas_threads_for(3):
            blas_threads()

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(run, range(40)))
        assert blas_threads() == before
