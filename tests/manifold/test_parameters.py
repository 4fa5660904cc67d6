"""Values of constructor parameters that are of a wrong type or size."""

import numpy as np
import pytest

from gramian.manifold import MVU, ColoredMVU, NeighborLayout, RegMVU
from tests.wrong_parameters import NEED_TORCH, check_error_names

Y = np.arange(30) % 2
X = np.random.default_rng(0).normal(size=(30, 3))

NO_NUMBERS = ("abc", "3", [1], {}, np.array([1.0, 2.0]), np.nan, True)
NO_WEIGHTS = (*NO_NUMBERS, 0, -1, np.inf)
NO_COUNTS = (*NO_NUMBERS, 0, -1, 2.5, np.inf, 1e30)
NO_FLAGS = ("abc", 0, 1, None, np.nan, [True], np.array([True, False]))
NO_WORDS = ("abc", None, 1, np.nan, True, [1], np.array(["euclidean"]))

SHARED = {
    "n_components": (*NO_COUNTS, 1000),
    "n_neighbors": NO_COUNTS,
    "metric": NO_WORDS,
    "approximate": NO_FLAGS,
    "tol": (*NO_NUMBERS, -1, 1, np.inf),
    "time_limit": ("abc", -1, 0, np.nan, [1]),
    "max_iter": ("abc", -1),
    "progress": NO_FLAGS,
    "solver": ("abc", None),
    "random_state": ("abc", -1, 2.5, np.nan),
}
UNFOLDING = {**SHARED, "lam": NO_WEIGHTS, "connect": NO_WORDS, "rank": (*NO_COUNTS, 1000)}
WRONG = {
    MVU: {**UNFOLDING, "max_edge_error": NO_WEIGHTS},
    ColoredMVU: {**UNFOLDING, "max_edge_error": NO_WEIGHTS},
    RegMVU: {**UNFOLDING, "n_basis": NO_COUNTS},
    NeighborLayout: {
        **SHARED, "repulsion": NO_WEIGHTS, "rounds": NO_COUNTS,
        "target_weight": (*NO_NUMBERS, -1, 2),
    },
}  # fmt: skip
ROWS = [(kind, name) for kind, wrong in WRONG.items() for name in wrong]


@pytest.mark.parametrize(("kind", "name"), ROWS, ids=lambda one: getattr(one, "__name__", one))
def test_names_a_wrong_parameter(kind, name):
    check_error_names(kind, name, WRONG[kind][name], X, Y)


@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.__name__)
def test_table_lists_every_parameter(kind):
    assert set(kind().get_params(deep=False)) - NEED_TORCH == set(WRONG[kind])


def test_neighbours_are_at_most_all_others():
    many, others = (RegMVU(n_neighbors=k).fit(X) for k in (1000, 29))
    np.testing.assert_array_equal(many.embedding_, others.embedding_)
