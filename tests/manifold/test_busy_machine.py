"""The result of a fit does not depend on the speed or load of the machine."""

import time

import numpy as np
import pytest
from sklearn.datasets import make_swiss_roll

from gramian.manifold import MVU
from tests.slow import slow


@pytest.mark.parametrize("pace", [slow(20.0), 0.02])
def test_result_is_independent_of_clock_speed(monkeypatch, pace):
    X = make_swiss_roll(400, random_state=0)[0]
    known = MVU(tol=1e-3).fit(X)
    clock = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: pace * clock())
    found = MVU(tol=1e-3).fit(X)
    np.testing.assert_array_equal(found.embedding_, known.embedding_)
    assert found.certificate_.relative_gap == known.certificate_.relative_gap
