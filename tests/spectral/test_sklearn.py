"""scikit-learn's own checks over the estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian.spectral import LowRankKernel


@parametrize_with_checks([LowRankKernel(), LowRankKernel(kernel="linear", n_components=5)])
def test_estimator(estimator, check):
    check(estimator)
