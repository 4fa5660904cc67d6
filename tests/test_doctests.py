"""The examples in docstrings print what they say."""

import doctest
import importlib
import importlib.util
import pkgutil

import pytest

import gramian

OPTIONAL = {
    "gramian.cvxpy.solver": "cvxpy",
    "gramian.arrays.torch": "torch",
    "gramian.arrays._torch_neighbours": "torch",
    "gramian.arrays._triton": "triton",
}

MODULES = [
    info.name
    for info in pkgutil.walk_packages(gramian.__path__, "gramian.")
    if not info.name.endswith("__main__")
    and importlib.util.find_spec(OPTIONAL.get(info.name, "gramian")) is not None
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    found = [
        test
        for name in MODULES
        for test in finder.find(importlib.import_module(name))
        if test.examples
    ]
    assert len(found) >= 5
