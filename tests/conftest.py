"""Options of the whole suite, and what every test starts with."""

import copy
import itertools
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from gramian.common import clock
from tests.perturbation import perturb_everything

_FIRST_STATES: dict[tuple[str, str], dict] = {}


def pytest_addoption(parser):
    parser.addoption(
        "--device",
        default="torch-cpu",
        help="where tests/devices computes: torch-cpu (tensors of the processor), cuda, cuda:1",
    )
    parser.addoption(
        "--perturb",
        type=int,
        metavar="SEED",
        help="change the inputs of estimators and problems in their last bits",
    )


def pytest_configure(config):
    if config.getoption("--perturb") is not None:
        perturb_everything(config.getoption("--perturb"))


REPEATED_CHECKS = (
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_transformer_data_not_an_array",
    "readonly_memmap=True",
)
"""Checks of scikit-learn that repeat another one with other containers of the same numbers."""


SLOW = Path(__file__).with_name("slow.txt")
"""Tests of more than 1.3 s (two ARM cores) beside others of the same part, for `make test-all`."""


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config, items):
    listed = set(SLOW.read_text("utf-8").splitlines())
    for item in items:
        repeated = any(name in item.name for name in REPEATED_CHECKS)
        if repeated or item.nodeid in listed:
            item.add_marker(pytest.mark.slow)
    if config.getoption("--perturb") is None:
        return
    for item in items:
        if (mark := item.get_closest_marker("exact")) is not None:
            item.add_marker(pytest.mark.skip(reason=f"exact: {mark.args[0]}"))


@pytest.fixture(autouse=True)
def _hears_ctrl_c():
    """SIGINT interrupts a test and its child processes, also where it is ignored (`nohup`)."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def ticking(monkeypatch):
    """A function that replaces the clock: each reading is `step` seconds later than the last."""

    def start(step):
        readings = itertools.count()
        monkeypatch.setattr(clock, "now", lambda: step * next(readings))

    return start


@pytest.fixture(autouse=True)
def _own_random_numbers(request):
    """The random numbers of a module begin every test anew, whichever tests ran before."""
    module = getattr(request, "module", None)
    for name in ("RNG", "rng"):
        rng = getattr(module, name, None)
        if isinstance(rng, np.random.Generator):
            first = _FIRST_STATES.setdefault(
                (module.__name__, name), copy.deepcopy(rng.bit_generator.state)
            )
            rng.bit_generator.state = copy.deepcopy(first)
