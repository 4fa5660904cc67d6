"""Selection by held-out errors: how much a candidate must gain over the baseline."""

import numpy as np
import pytest

from gramian.estimators.path import EvidencePath, chosen_by, difference, earned, least, misplaced

NAMES = {"parameter": "lam", "measure": "error", "nothing": "nothing at all"}


def flips(*counts, n=100):
    """Losses of n held-out samples: 50 of the first candidate, `counts` fewer of each."""
    rows = [np.repeat([1.0, 0.0], [50 - count, n - 50 + count]) for count in counts]
    return [np.array(rows)]


def test_gain_within_its_standard_error_does_not_count():
    assert earned(flips(0, 2), needed=1.5) == 0  # 2 of 100, with a standard error of √2
    assert earned(flips(0, 3), needed=1.5) == 1
    assert earned(flips(0, 0)) == 0
    assert earned(flips(0, -5, -9)) == 0


def test_prefers_the_simplest_candidate_near_the_best():
    assert earned(flips(0, 15, 16, 10)) == 1
    assert earned(flips(0, 15, 30, 10)) == 2
    assert earned(flips(0, 2, 1), needed=0.0, close=0.0) == 1


def test_never_selects_a_candidate_worse_than_the_baseline():
    """Within a standard error of the best, but worse than the baseline."""
    worse = np.zeros((3, 40))
    worse[0, :20], worse[1, 19:], worse[2, :14] = 1.0, 1.0, 1.0
    behind, error = difference([worse], 1, 2)
    assert behind <= 2 * error
    assert earned([worse], close=2.0) == 0
    assert earned([worse], close=0.5) == 2


def test_selects_the_mixture_of_least_error_and_the_model_among_equals():
    assert least(flips(0, 1, 5, 4)) == 2
    assert least(flips(0, 5, 2, 5)) == 3
    assert least(flips(0, -1, -2)) == 0


def test_path_describes_the_selection():
    taken = chosen_by(flips(0, 20), [0.0, 3.0], **NAMES)
    assert taken.gained and taken.value == 3.0 and taken.held_out == 100
    assert str(taken) == ("lam = 3 was chosen: error 0.3 on 100 held out (nothing at all: 0.5)")
    kept = chosen_by(flips(0, 0), [0.0, 3.0], **NAMES)
    assert isinstance(kept, EvidencePath) and not kept.gained and kept.value == 0.0
    assert str(kept).startswith("nothing is gained by learning: nothing at all is kept")


def test_kinds_of_data_have_equal_weight():
    losses = [np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[0.5] * 8, [0.25] * 8])]
    mean, error = difference(losses, 0, 1)
    assert mean == pytest.approx(0.5 * (1.0 + 0.25))
    assert error == pytest.approx(np.sqrt(2 / 4 + 8 * 0.0625 / 64))


def test_misplaced_pairs_average_to_the_area_above_the_curve():
    near, far = misplaced(np.array([1.0, 2.0, 4.0]), np.array([2.0, 3.0]))
    np.testing.assert_allclose(near, [0.0, 0.25, 1.0])
    assert near.mean() == pytest.approx(far.mean())


def path_of_lam(measure):
    return EvidencePath("lam", np.array([4.0, 2.0, 1.0]), np.array([0.9, 0.5, 0.7]), 1, measure, 10)


@pytest.mark.parametrize(
    ("old", "new"), [("lams", "values"), ("rmse", "errors"), ("best", "value")]
)
def test_deprecated_names_warn(old, new):
    path = path_of_lam("1 − nDCG of entries")
    with pytest.warns(FutureWarning, match=f"read path_.{new} .*lam and 1 − nDCG of entries"):
        assert getattr(path, old) is getattr(path, new) or getattr(path, old) == path.value


def test_a_path_without_a_baseline_has_the_same_attributes():
    path = path_of_lam("RMSE of ratings")
    assert path.value == 2.0 and path.gained and path.nothing is None
    assert str(path) == "lam = 2 was chosen: RMSE of ratings 0.5 on 10 held out"


@pytest.mark.parametrize("values", [[0.0, 0.1, 100.0], [4.0, 2.0, 1.0]])
def test_every_path_can_be_drawn(values):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    path = EvidencePath("nu", np.array(values), np.array([3.0, 2.0, 1.0]), 2, "error", 10, "zero")
    axes = path.plot().axes[0]
    assert axes.get_xlabel() == "nu" and axes.get_ylabel() == "error, held out"
    matplotlib.pyplot.close(axes.figure)
