"""The parameters of estimators on a cluster are those of the estimators at home."""

import inspect

import pytest

pytest.importorskip("dask", reason="gramian[dask] is not installed")
pytest.importorskip("distributed", reason="gramian[dask] is not installed")

import gramian.dask as gd
from gramian import completion, kernel, manifold, metric

HOMES = {
    name: getattr(room, name)
    for room in (completion, kernel, manifold, metric)
    for name in dir(room)
}
NAMES = [name for name in gd.__all__ if name in HOMES]


def test_every_estimator_has_a_local_counterpart():
    assert set(gd.__all__) - set(NAMES) == {"ClusterError"}


@pytest.mark.parametrize("name", NAMES)
def test_defaults_equal_those_of_local_estimators(name):
    there, home = (inspect.signature(cls).parameters for cls in (getattr(gd, name), HOMES[name]))
    assert list(there) == list(home)
    for parameter in there:
        assert there[parameter].default == home[parameter].default, parameter
