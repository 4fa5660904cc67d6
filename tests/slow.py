"""The mark of the tests that `make test` leaves out and `make test-all` runs."""

import pytest


def slow(*values):
    """A row of a parametrisation that only `make test-all` runs."""
    return pytest.param(*values, marks=pytest.mark.slow)


def slow_among(values, *marked):
    """The rows of a parametrisation, where those in `marked` are slow."""
    return [slow(value) if value in marked else value for value in values]


def slow_except(values, *quick):
    """The rows of a parametrisation, where all but those in `quick` are slow."""
    return [value if value in quick else slow(value) for value in values]
