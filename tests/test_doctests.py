"""The examples in docstrings print what they say."""

import doctest
import importlib
import importlib.util
import pkgutil

import pytest

import gramian
from tests.slow import slow_among

OPTIONAL = {
    "gramian.cvxpy.solver": "cvxpy",
    "gramian.arrays.torch": "torch",
    "gramian.arrays._torch_dense": "torch",
    "gramian.arrays._torch_neighbours": "torch",
    "gramian.arrays._torch_recorded": "torch",
    "gramian.arrays._torch_transfers": "torch",
    "gramian.arrays._triton": "triton",
}

MODULES = [
    info.name
    for info in pkgutil.walk_packages(gramian.__path__, "gramian.")
    if not info.name.endswith("__main__")
    and importlib.util.find_spec(OPTIONAL.get(info.name, "gramian")) is not None
]


LONG = [
    f"gramian.{name}"
    for name in ("completion.nuclear_completion", "kernel.auto_kernel", "kernel.npkl",
                 "manifold.mvu", "manifold.neighbor_layout", "metric.auto_metric",
                 "metric.classifier", "metric.dml_eig", "metric.lmnn")
]  # fmt: skip
"""Modules whose examples take more than half a second; `make docs` runs them, too."""


@pytest.mark.parametrize("name", slow_among(MODULES, *LONG))
def test_examples_of_a_module(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


def test_examples_exist():
    finder = doctest.DocTestFinder()
    found = [
        test
        for name in MODULES
        for test in finder.find(importlib.import_module(name))
        if test.examples
    ]
    assert len(found) >= 5
