"""scikit-learn's own checks over every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian.metric import KTA, LinearSeparation


@parametrize_with_checks([KTA(), LinearSeparation()])
def test_estimator(estimator, check):
    check(estimator)
