"""The automatic choice between kernel learners: what it takes, reports, keeps and saves."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian import Status
from gramian.common import clock
from gramian.kernel import NPKL, PCP, AutoKernel, RegPCP, _held_out
from gramian.kernel._held_out import FILLED
from gramian.kernel.auto_kernel import joined

X, Y = load_iris(return_X_y=True)
X = X[::3] - X.mean(axis=0)
Y = Y[::3]
K = 3
PAIRS = np.random.default_rng(0).integers(0, len(Y), (60, 2))
PAIRS = PAIRS[PAIRS[:, 0] != PAIRS[:, 1]]
ALIKE = Y[PAIRS[:, 0]] == Y[PAIRS[:, 1]]
LINKS = {"must_link": PAIRS[ALIKE], "cannot_link": PAIRS[~ALIKE]}
FEW = {name: pairs[:2] for name, pairs in LINKS.items()}


def auto(**parameters):
    return AutoKernel(n_clusters=K, random_state=0, **parameters)


@pytest.fixture(scope="module")
def fitted():
    return auto().fit(X, **LINKS)


def taking(monkeypatch, place):
    """Make the choice of a candidate by its place in the table."""
    found = AutoKernel._path
    monkeypatch.setattr(AutoKernel, "_path", lambda *given: replace(found(*given), chosen=place))


def test_table_lists_every_candidate_and_the_choice(fitted):
    path = fitted.path_
    assert path.names == ("RegPCP, β = 0.25", "spectral clustering", "RegPCP", "NPKL", "PCP")
    assert path.held_out == len(fitted.links_.pairs)
    assert path.settings[0] == FILLED and path.settings[1] == 1
    assert np.all(path.seconds[2:] > 0)
    assert len(str(path).splitlines()) == 6
    assert np.all((path.errors >= 0) & (path.errors <= 1))


def test_attributes_are_those_of_the_learner(fitted):
    learner = fitted.learner_
    np.testing.assert_array_equal(fitted.labels_, learner.labels_)
    np.testing.assert_array_equal(fitted.predict(X), learner.predict(X))
    assert fitted.certificate_ is learner.certificate_
    assert fitted.certificate_.relative_gap <= fitted.tol
    assert fitted.shrinkage_ == learner.shrinkage_ == fitted.path_.settings[fitted.path_.chosen]
    assert adjusted_rand_score(Y, fitted.labels_) > 0.8


@pytest.mark.parametrize(("place", "kind"), [(0, RegPCP), (1, RegPCP), (3, NPKL), (4, PCP)])
def test_selected_learner_equals_a_fit_of_its_own(monkeypatch, place, kind):
    taking(monkeypatch, place)
    found = auto().fit(X, **LINKS)
    share = found.path_.settings[place]
    alone = kind(n_clusters=K, random_state=0, shrinkage=share).fit(X, **LINKS)
    assert type(found.learner_) is kind and found.path_.chosen == place
    np.testing.assert_array_equal(found.labels_, alone.labels_)
    assert found.result_.value == pytest.approx(alone.result_.value, rel=1e-3)


def test_few_links_are_not_held_out():
    found = auto().fit(X, **FEW)
    alone = NPKL(n_clusters=K, random_state=0).fit(X, **FEW)
    np.testing.assert_array_equal(found.labels_, alone.labels_)
    assert isinstance(found.learner_, NPKL)
    assert not hasattr(found, "path_")


def test_soft_links_exclude_exact_ones():
    soft = np.where(ALIKE, 1.0, 0.0)
    soft[:3] = 0.5
    found = auto().fit(X, links=PAIRS, targets=soft)
    assert "PCP" not in found.path_.names


def test_given_shrinkage_is_kept():
    found = auto(shrinkage=0.25).fit(X, **LINKS)
    assert found.shrinkage_ == 0.25 and set(found.path_.settings) == {0.25}
    assert "spectral clustering" not in found.path_.names


def test_refit_and_added_links(fitted):
    other = auto().fit(X, **FEW).fit(X, **LINKS)
    np.testing.assert_array_equal(other.labels_, fitted.labels_)
    kind = type(other.learner_)
    other.add_links(must_link=[np.flatnonzero(Y == 2)[:2]])
    assert type(other.learner_) is kind and len(other.links_.pairs) > len(fitted.links_.pairs)
    assert other.learner_.links_ is other.links_


def test_unfinished_learner_is_replaced_by_the_baseline(monkeypatch):
    taking(monkeypatch, 4)
    learn = PCP._learn

    def unfinished(self, start):
        result, factor = learn(self, start)
        return replace(result, status=Status.TIME_LIMIT), factor

    monkeypatch.setattr(PCP, "_learn", unfinished)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = auto().fit(X, **LINKS)
    assert isinstance(found.learner_, RegPCP) and found.path_.chosen == 0


def test_candidates_without_time_are_omitted(monkeypatch):
    def late(self, *given):
        raise clock.TimeUpError

    monkeypatch.setattr(NPKL, "_misses", late)
    assert auto().fit(X, **LINKS).path_.names[2:] == ("RegPCP",)


def test_without_time_for_the_selection_links_are_learned_anyway(monkeypatch):
    prepare = RegPCP._prepare

    def late(self):
        if self.shrinkage == "auto":
            raise clock.TimeUpError
        prepare(self)

    monkeypatch.setattr(RegPCP, "_prepare", late)
    found = auto().fit(X, **LINKS)
    assert isinstance(found.learner_, NPKL) and not hasattr(found, "path_")


def test_soft_links_added_to_exact_ones_are_learned(monkeypatch):
    taking(monkeypatch, 4)
    found = auto().fit(X, **LINKS)
    assert isinstance(found.learner_, PCP)
    monkeypatch.undo()
    free = next(j for j in range(1, len(Y)) if {0, j} not in map(set, found.links_.pairs))
    found.add_links(links=[[0, free]], targets=[0.5])
    assert not isinstance(found.learner_, PCP) and "PCP" not in found.path_.names


def test_saves_the_table_of_candidates(fitted, tmp_path):
    fitted.save(tmp_path / "k.gramian")
    again = gm.load(tmp_path / "k.gramian")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert str(again.path_) == str(fitted.path_)
    assert type(again.learner_) is type(fitted.learner_)


def test_mean_loss_counts_both_kinds_equally():
    losses = joined([np.array([[1.0, 0.0]]), np.array([[0.0] * 6])])
    assert losses.shape == (1, 8) and losses.mean() == pytest.approx(0.25)


def test_every_fold_has_links_of_both_kinds(fitted):
    folds = fitted._folds()
    for target in (0, 1):
        counts = np.bincount(folds[fitted.links_.targets == target], minlength=3)
        assert counts.max() - counts.min() <= 1


def test_a_pipeline_is_saved(tmp_path):
    """scikit-learn gives the last step of a pipeline an object that cannot be stored."""
    known = np.where(np.arange(len(X)) % 3 == 0, Y, -1)
    model = make_pipeline(StandardScaler(), AutoKernel(random_state=0)).fit(X, known)
    assert not hasattr(model[-1].learner_, "_parent_callback_ctx")
    gm.save(model, tmp_path / "m.gramian")
    again = gm.load(tmp_path / "m.gramian")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(("at", "kept"), [(1, None), (16, 3)])
def test_interrupt_between_solves_keeps_the_candidates(at, kept, monkeypatch):
    calls, errors = [], _held_out.misplaced

    def interrupted(*given):
        calls.append(1)
        if len(calls) == at:  # RegPCP has 15 calls
            raise KeyboardInterrupt
        return errors(*given)

    monkeypatch.setattr(_held_out, "misplaced", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted from the keyboard"):
        model = auto().fit(X, **LINKS)
    assert len(calls) == at and model.result_.status is Status.INTERRUPTED
    assert (len(model.path_.names) if hasattr(model, "path_") else None) == kept
