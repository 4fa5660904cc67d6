"""What notebooks show."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_wine

import gramian as gm
from gramian.metric import KTA

X, y = load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def fitted():
    return KTA().fit(X, y)


def test_each_has_a_table_of_its_own(fitted):
    problem = gm.problems.maxcut(np.ones((3, 3)))
    shown = {
        "result": fitted.result_, "certificate": fitted.certificate_, "problem": problem,
        "solvers": gm.solvers.available(), "sets": gm.datasets.available(),
    }  # fmt: skip
    pages = {name: thing._repr_html_() for name, thing in shown.items()}
    assert all(text.startswith("<table>") and "&lt;" not in text[:40] for text in pages.values())
    assert "above the optimum" in pages["result"] and "proved" in pages["certificate"]
    assert (
        "bilgo" in pages["solvers"] and "usps" in pages["sets"] and "order of M" in pages["problem"]
    )


def test_a_figure_is_shown_once(fitted, monkeypatch):
    monkeypatch.setattr(mpl, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    before = plt.get_fignums()
    model = gm.kernel.NPKL(random_state=0).fit(X[::4], y[::4])
    assert model.plot() is not None and plt.get_fignums() == before
