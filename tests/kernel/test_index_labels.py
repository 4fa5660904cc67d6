"""Links by the labels of a frame's index, and frames with text."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons

import gramian as gm
from gramian.kernel import NPKL, RegPCP
from gramian.manifold import MVU
from gramian.metric import KTA, DMLEig, TripletMetric

X, MOON = make_moons(80, noise=0.05, random_state=0)
FRAME = pd.DataFrame(X, columns=["x", "y"], index=[f"p{k}" for k in range(80)])
SAME = np.flatnonzero(MOON == 0)[:4].reshape(2, 2)
APART = np.array([[np.flatnonzero(MOON == 0)[0], np.flatnonzero(MOON == 1)[0]]])


def called(pairs):
    return pd.DataFrame(FRAME.index.to_numpy()[pairs], columns=["a", "b"])


def test_labels_of_the_index_are_its_rows(tmp_path):
    by_name = NPKL(n_clusters=2).fit(FRAME, must_link=called(SAME), cannot_link=called(APART))
    by_place = NPKL(n_clusters=2).fit(FRAME, must_link=SAME, cannot_link=APART)
    np.testing.assert_array_equal(by_name.links_.pairs, by_place.links_.pairs)
    by_name.save(tmp_path / "m.gramian")
    again = gm.load(tmp_path / "m.gramian")
    more = called(np.flatnonzero(MOON == 1)[2:4].reshape(1, 2))
    assert len(again.add_links(must_link=more).links_.pairs) == len(by_place.links_.pairs) + 1


def test_rejects_missing_labels():
    with pytest.raises(ValueError, match="must_link has 'q', which is not in the index of X"):
        NPKL(n_clusters=2).fit(FRAME, must_link=[("p0", "q")], cannot_link=APART)
    with pytest.raises(ValueError, match="pass a frame, or the numbers of its rows"):
        NPKL(n_clusters=2).fit(X, cannot_link=[("p0", "p1")])
    twice = FRAME.set_axis(["p"] * 80)
    with pytest.raises(ValueError, match="make it unique"):
        NPKL(n_clusters=2).fit(twice, cannot_link=[("p", "p")])


def test_metrics_take_labels_of_the_index():
    rng = np.random.default_rng(0)
    ends = np.sort(rng.integers(0, 80, (60, 2)), axis=1)
    ends = ends[ends[:, 0] < ends[:, 1]]
    same = MOON[ends[:, 0]] == MOON[ends[:, 1]]
    by_name = DMLEig().fit_pairs(called(ends), same, X=FRAME)
    by_place = DMLEig().fit_pairs(ends, same, X=FRAME)
    np.testing.assert_array_equal(by_name.components_, by_place.components_)
    np.testing.assert_array_equal(
        by_name.predict(called(ends), X=FRAME),
        by_place.predict(ends, X=FRAME.reset_index(drop=True)),
    )
    triplets = np.array([[0, SAME[0, 0], APART[0, 1]]])
    triplets[0, 0] = SAME[0, 1]
    named = TripletMetric().fit_triplets(FRAME.index.to_numpy()[triplets], X=FRAME)
    placed = TripletMetric().fit_triplets(triplets, X=FRAME)
    np.testing.assert_array_equal(named.components_, placed.components_)
    with pytest.raises(ValueError, match="pairs has 'q', which is not in the index of X"):
        DMLEig().fit_pairs([("p0", "q"), ("p0", "p1")], [True, False], X=FRAME)


def test_warns_of_row_numbers_if_the_index_has_other_integers():
    shuffled = pd.DataFrame(X).sample(frac=1, random_state=0)
    first = shuffled.index[0]
    message = f"must_link holds row numbers.* row 0 has the label {first}.*reset_index"
    with pytest.warns(UserWarning, match=message):
        fitted = RegPCP(shrinkage=0.0).fit(shuffled, must_link=SAME)
    np.testing.assert_array_equal(fitted.links_.pairs, SAME)
    with pytest.warns(UserWarning, match="links holds row numbers"):
        fitted.add_links(links=APART, targets=[0.0])
    with pytest.warns(UserWarning, match="pairs holds row numbers"):
        ends = np.vstack([SAME, APART])
        DMLEig().fit_pairs(ends, [True, True, False], X=shuffled)
    for frame in (shuffled.reset_index(drop=True), FRAME):
        RegPCP(shrinkage=0.0).fit(frame, must_link=SAME)  # without a warning
    RegPCP(shrinkage=0.0).fit(shuffled, np.where(np.arange(80) < 9, MOON[shuffled.index], -1))


def test_reports_columns_of_text():
    frame = FRAME.assign(site="Gent", when="soon", number="3")
    for fit in (
        lambda: KTA().fit(frame, MOON),
        lambda: NPKL().fit(frame, MOON),
        lambda: MVU().fit(frame),
    ):
        with pytest.raises(ValueError, match=r"in 'site', 'when': leave columns out"):
            fit()


def test_rejects_continuous_labels():
    with pytest.raises(ValueError, match=r"Unknown label type: continuous\. A metric is learned"):
        KTA().fit(X, X[:, 0])
