"""`gramian complete --scheduler`: unsupported options are rejected before connecting."""

import pytest


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--out", "filled.csv"), "--out is for a file that is read here"),
        (("--columns", "a,b,c"), "--columns is for a file that is read here"),
        (("--method", "implicit"), "does not run on a cluster"),
    ],
)
def test_rejects_options_that_a_cluster_does_not_support(folder, run, more, message):
    status, _, wrong = run("complete", "ratings.csv", "--scheduler", "tcp://nowhere:1", *more)
    assert status == 2
    assert message in wrong
