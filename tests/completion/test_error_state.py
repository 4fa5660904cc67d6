"""The floating-point error state of the caller changes no answer."""

import numpy as np
import pytest

from gramian.completion import MMMF, ImplicitCompletion, NuclearCompletion
from tests.slow import slow_except

LEARNERS = [NuclearCompletion, ImplicitCompletion, MMMF]
SHAPES = [(60, 40), (400, 150)]


def ratings(shape):
    """Stars, one user and one item with a single rating, one user with none in most columns."""
    rng = np.random.default_rng(0)
    seen = rng.random(shape) < 0.4
    seen[0], seen[:, 0] = False, False
    seen[0, 1] = seen[1, 0] = True
    rows, cols = np.nonzero(seen)
    scores = np.sum(rng.normal(size=(shape[0], 3))[rows] * rng.normal(size=(shape[1], 3))[cols], 1)
    return rows, cols, np.clip(np.round(3 + scores), 1, 5)


def answers(learner, given):
    """What every public method says."""
    rows, cols, values = given
    model = learner(random_state=0).fit(given)
    unknown = np.array([-1, 0, 10**6]), np.array([0, -1, 10**6])
    found = [
        [model.lam_],
        model.predict((rows, cols)),
        model.predict(unknown),
        model.recommend(0, 5)[1],
        model.recommend([0, 1, 2], 10**3)[1],
        model.similar_items(1, 3)[1],
        model.similar_users(1, 3)[1],
        list(model.evaluate((rows[::7], cols[::7], values[::7])).values()),
    ]
    if learner is MMMF:
        return [*found, model.decision_function((rows, cols))]
    new = np.array([0, 0, 1]), np.array([1, 2, 3]), np.array([5.0, 1.0, 3.0])
    found += [model.transform(new), model.complete(new), model.recommend_new(new, 4)[2]]
    model.update((np.array([0, 10**6]), np.array([2, 10**6]), np.array([5.0, 2.0])))
    return [*found, model.predict((rows, cols)), model.predict(unknown)]


@pytest.mark.parametrize("shape", slow_except(SHAPES, SHAPES[1]))
@pytest.mark.parametrize("learner", slow_except(LEARNERS, ImplicitCompletion))
def test_fit_is_independent_of_the_callers_errstate(learner, shape):
    given = ratings(shape)
    expected = answers(learner, given)
    with np.errstate(all="raise"):
        found = answers(learner, given)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_features_and_weights_are_independent_of_the_callers_errstate():
    rows, cols, values = ratings(SHAPES[0])
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(SHAPES[0][0], 3)), rng.uniform(0.0, 2.0, rows.size)
    X[:, 1] = 4.0  # does not vary

    def answer():
        model = NuclearCompletion(random_state=0)
        model.fit((rows, cols, values), sample_weight=weights, row_features=X)
        return model.predict((rows, cols)), model.complete_features(X[:3])

    expected = answer()
    with np.errstate(all="raise"):
        found = answer()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
