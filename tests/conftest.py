"""Options of the whole suite, and what every test starts with."""

import copy

import numpy as np
import pytest

_FIRST_STATES: dict[tuple[str, str], dict] = {}


def pytest_addoption(parser):
    parser.addoption(
        "--device",
        default="torch-cpu",
        help="where tests/devices computes: torch-cpu (tensors of the processor), cuda, cuda:1",
    )


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
