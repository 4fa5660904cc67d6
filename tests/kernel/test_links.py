"""What is known of pairs: gathered from every form, refused where it contradicts itself."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.arrays.samples import known_labels
from gramian.kernel._links import LABELLED, gather
from gramian.problems.kernel import npkl_to


def as_set(links):
    return {
        (int(i), int(j), float(t), float(w))
        for (i, j), t, w in zip(links.pairs, links.targets, links.weights, strict=True)
    }


def test_every_form_says_the_same():
    expected = {(0, 1, 1.0, 1.0), (2, 3, 1.0, 1.0), (1, 3, 0.0, 1.0)}
    must, cannot = [[1, 0], [2, 3], [0, 1]], [[3, 1]]
    assert as_set(gather(5, must_link=must, cannot_link=cannot)) == expected
    matrix = sp.coo_array(([1.0, 1.0, -1.0, -1.0], ([0, 2, 1, 3], [1, 3, 3, 1])), shape=(5, 5))
    assert as_set(gather(5, links=matrix)) == expected
    pairs = [[0, 1], [3, 2], [1, 3]]
    assert as_set(gather(5, links=pairs, targets=[1, 1, 0])) == expected
    labelled = gather(5, y=[0, 0, 1, 1, -1])
    assert as_set(labelled) == {(0, 1, 1, 1), (2, 3, 1, 1), (0, 2, 0, 1), (0, 3, 0, 1),
                                (1, 2, 0, 1), (1, 3, 0, 1)}  # fmt: skip


def test_weights_and_soft_targets_are_kept():
    soft = gather(4, links=[[0, 1], [1, 2]], targets=[0.3, 0.9], weights=[2.0, 0.5])
    assert as_set(soft) == {(0, 1, 0.3, 2.0), (1, 2, 0.9, 0.5)}
    matrix = sp.csr_array(([3.0, -0.5], ([0, 1], [2, 3])), shape=(4, 4))
    assert as_set(gather(4, links=matrix)) == {(0, 2, 1.0, 3.0), (1, 3, 0.0, 0.5)}


@pytest.mark.parametrize(
    "pairs",
    [[["0", "3"], ["1", "2"]], np.array([[0, 3], [1.0, "2"]], dtype=object), [[0.0, 3.0], [1, 2]]],
    ids=["digits", "objects", "floats"],
)
def test_pairs_may_be_whole_numbers_of_other_types(pairs):
    assert gather(4, must_link=pairs).must.tolist() == [[0, 3], [1, 2]]
    assert gather(4, links=pairs, targets=[0, 0]).cannot.tolist() == [[0, 3], [1, 2]]


def test_finds_samples_that_are_all_apart():
    star = [[6, k] for k in range(4)]
    clique = [[a, b] for b in (3, 4, 5) for a in range(3, b)] + [[1, 3], [1, 4], [0, 5]]
    links = gather(8, must_link=[[0, 1]], cannot_link=star + clique)
    assert links.apart(9).tolist() == [0, 3, 4, 5]  # 0 and 1 are one
    assert links.apart(3).size == 3
    assert gather(3, must_link=[[0, 1]]).apart(2).size <= 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing is known of any pair"),
        ({"y": [-1] * 6}, "nothing is known of any pair"),
        ({"must_link": [[0, 6]]}, r"must_link\[0\] = \[0, 6\] has an index outside 0..5"),
        (
            {"cannot_link": [[1, 2], [3, 3]]},
            r"cannot_link\[1\] = \[3, 3\] links a sample to its",
        ),
        ({"must_link": [[0.0, 1.5]]}, r"must_link must be integers, got 1\.5"),
        ({"must_link": [[0, None]]}, "must be integers, got None"),
        ({"must_link": [[0.0, np.nan]]}, "must be integers, got nan"),
        ({"must_link": [[True, False]]}, "must be integers, got True"),
        ({"must_link": [["0", "7"]]}, r"must_link\[0\] = \[0, 7\] has an index outside"),
        ({"must_link": [["0", "b"]]}, "has labels like '0', and X is no frame"),
        ({"must_link": [0, 1]}, r"shape \(p, 2\)"),
        (
            {"must_link": [[0, 1]], "cannot_link": [[1, 0]]},
            "0 and 1 are linked in two ways",
        ),
        (
            {"must_link": [[0, 1], [1, 2], [2, 3]], "cannot_link": [[3, 0]]},
            r"0 and 3 must not be linked, but must-links join them \(0 ~ 1 ~ 2 ~ 3\)",
        ),
        ({"y": [0, 0, 1, -1, -1, -1], "must_link": [[1, 3], [3, 2]]}, r"\(0 ~ 1 ~ 3 ~ 2\)"),
        ({"links": [[0, 1]]}, "need targets"),
        ({"links": [[0, 1]], "targets": [1.5]}, r"targets\[0\] = 1.5 is outside"),
        ({"links": [[0, 1]], "targets": [1.0, 0.0]}, "one number for each of 1 pairs"),
        (
            {"links": [[0, 1]], "targets": [1.0], "weights": [0.0]},
            r"weights\[0\] = 0.0 is not",
        ),
        ({"links": [[0, 1]], "targets": [np.nan]}, "not finite"),
        ({"targets": [1.0], "must_link": [[0, 1]]}, "pass those too"),
        ({"links": sp.eye_array(6)}, "links a sample to itself"),
        ({"links": sp.csr_array((5, 5))}, "must be 6 × 6"),
        ({"links": sp.csr_array((6, 6)), "targets": [1.0]}, "signs for targets"),
        ({"y": [0, 1]}, "for each of 6 samples"),
        ({"y": [0.5, 1, 0, 0, 1, 1]}, "Unknown label type"),
    ],
)
def test_what_is_wrong_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        gather(6, **given)


def test_labels_may_be_of_any_kind():
    np.testing.assert_array_equal(known_labels(["b", "-1", "a", "b"], 4), [1, -1, 0, 1])
    np.testing.assert_array_equal(known_labels([7.0, -1.0, 3.0, 7.0], 4), [1, -1, 0, 1])


def test_many_labels_give_some_links_of_each_kind_to_each():
    y = np.arange(4 * LABELLED) % 3
    y[::5] = -1
    links = gather(y.size, y=y)
    known = np.flatnonzero(y >= 0)
    for pairs in (links.must, links.cannot):
        assert set(pairs.ravel()) == set(known)
    i, j = links.must.T
    assert np.all(y[i] == y[j]) and np.all(i < j)
    i, j = links.cannot.T
    assert np.all(y[i] != y[j])
    assert len(links.pairs) < 45 * known.size


@settings(max_examples=30)
@given(seed=st.integers(0, 2**16))
def test_merging_is_the_problem_with_must_links_exact(seed):
    rng = np.random.default_rng(seed)
    n = 12
    y = rng.integers(0, 3, n)
    pairs = np.unique(np.sort(rng.integers(0, n, (15, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    targets = (y[pairs[:, 0]] == y[pairs[:, 1]]).astype(float)
    links = gather(n, links=pairs, targets=targets, weights=rng.uniform(0.5, 2, len(pairs)))
    W = rng.uniform(0, 1, (n, n))
    L = np.diag((W + W.T).sum(axis=1)) - W - W.T
    S = links.merge.membership.toarray()
    factor = rng.standard_normal((S.shape[1], 3))
    whole = npkl_to(L, *links.with_diagonal(merged=False))
    merged = npkl_to(S.T @ L @ S, *links.with_diagonal(merged=True))
    assert merged.value(factor) == pytest.approx(whole.value(S @ factor))
