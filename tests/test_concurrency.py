"""Many fits at once, in threads and in processes, give the answers of one."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import load_digits

from gramian.completion import NuclearCompletion
from gramian.kernel import NPKL
from gramian.manifold import RegMVU
from gramian.metric import KTA, LMNN

X, y = (part[:150] for part in load_digits(return_X_y=True))
ROWS, COLS = np.nonzero(np.random.default_rng(0).random((40, 30)) < 0.4)
VALUES = 1.0 + np.random.default_rng(1).integers(0, 5, ROWS.size)
FITS = 24


def answer(number: int) -> np.ndarray:
    """What the fit of that number finds: there are five kinds of them."""
    return (
        lambda: KTA().fit(X, y).components_,
        lambda: NPKL().fit(X, y).kernel_factor_,
        lambda: NuclearCompletion().fit((ROWS, COLS, VALUES)).predict((ROWS, COLS)),
        lambda: LMNN().fit(X, y).components_,
        lambda: RegMVU().fit(X).embedding_,
    )[number % 5]()


@pytest.fixture(scope="module")
def single():
    return [answer(number) for number in range(5)]


@pytest.mark.slow
def test_in_threads(single):
    with ThreadPoolExecutor(FITS) as pool:
        found = list(pool.map(answer, range(FITS)))
    for number, one in enumerate(found):
        np.testing.assert_allclose(one, single[number % 5], rtol=1e-6, atol=1e-8)


PROCESSES = """
import sys
from multiprocessing import get_context
import numpy as np
from tests.test_concurrency import FITS, answer

if __name__ == "__main__":
    answer(0), answer(1)  # BLAS and the kernels have been used before the fork
    with get_context("fork").Pool(FITS) as pool:
        found = pool.map(answer, range(FITS), chunksize=1)
    np.savez(sys.argv[1], *found)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_in_processes(single, tmp_path):
    """Forked, which is where thread pools break."""
    subprocess.run(
        [sys.executable, "-c", PROCESSES, str(tmp_path / "found.npz")],
        check=True, timeout=300, cwd=os.path.dirname(os.path.dirname(__file__)),
    )  # fmt: skip
    with np.load(tmp_path / "found.npz") as found:
        assert len(found.files) == FITS
        for number, name in enumerate(found.files):
            np.testing.assert_allclose(found[name], single[number % 5], rtol=1e-6, atol=1e-8)
