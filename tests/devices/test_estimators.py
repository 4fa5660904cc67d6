"""Estimators on a device end where they end on the host."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

from gramian.completion import MMMF, ImplicitCompletion, NuclearCompletion
from gramian.kernel import NPKL, PCP, RegPCP
from gramian.manifold import MVU, NeighborLayout, RegMVU
from gramian.metric import KTA, LMNN, DMLEig, LinearSeparation, LMNNEig, TripletMetric

X, Y = load_iris(return_X_y=True)


def same(host, there):
    """Both values lie above both lower bounds."""
    for one, other in ((host, there), (there, host)):
        a, b = one.result_, other.result_
        assert a.value >= b.certificate.lower_bound - 1e-9 * (1 + abs(b.value))
        assert isinstance(b.factor, np.ndarray)


@pytest.mark.parametrize(
    "learner", [KTA, LinearSeparation, LMNN, DMLEig, LMNNEig], ids=lambda learner: learner.__name__
)
def test_metrics(learner, device):
    same(learner().fit(X, Y), learner(device=device).fit(X, Y))


def test_tensors_are_samples_ratings_and_labels(device):
    import torch

    samples, labels = torch.tensor(X, requires_grad=True), torch.tensor(Y)
    there = KTA(lam=1e-3).fit(samples, labels)
    host = KTA(lam=1e-3).fit(X, Y)
    np.testing.assert_array_equal(there.components_, host.components_)
    np.testing.assert_array_equal(there.transform(samples), host.transform(X))
    i, j = np.nonzero(~np.isnan(RATINGS))
    triples = (i, j, RATINGS[i, j])
    one, other = (
        NuclearCompletion(lam=3.0).fit(given)
        for given in (triples, tuple(torch.tensor(part) for part in triples))
    )
    np.testing.assert_array_equal(one.row_factors_, other.row_factors_)


def test_triplets(device):
    triplets = np.array([[0, 1, 60], [2, 3, 70], [55, 56, 5], [101, 102, 60], [110, 111, 3]])
    same(
        TripletMetric().fit_triplets(triplets, X=X),
        TripletMetric(device=device).fit_triplets(triplets, X=X),
    )


@pytest.mark.parametrize("unfolding", [MVU, RegMVU], ids=lambda model: model.__name__)
def test_unfoldings(unfolding, device):
    points = X[::3] + 1e-3 * np.random.default_rng(0).standard_normal(X[::3].shape)
    same(unfolding(tol=1e-3).fit(points), unfolding(tol=1e-3, device=device).fit(points))


@pytest.mark.parametrize("kernel", [NPKL, RegPCP], ids=lambda model: model.__name__)
def test_kernels_from_links(kernel, device):
    points, labels = make_moons(60, noise=0.05, random_state=0)
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 60, (2, 40))
    a, b = a[a != b], b[a != b]
    alike = labels[a] == labels[b]
    links = {
        "must_link": np.column_stack([a, b])[alike],
        "cannot_link": np.column_stack([a, b])[~alike],
    }
    found = [kernel(n_clusters=2, device=where).fit(points, **links) for where in (None, device)]
    same(*found)


def test_constraints_are_met_on_the_processor(device):
    points, _ = make_moons(20, random_state=0)
    with pytest.raises(ValueError, match="linear constraints, which are met on the processor"):
        PCP(n_clusters=2, device=device).fit(points, must_link=[[0, 1]], cannot_link=[[0, 2]])


RATINGS = np.random.default_rng(1).integers(1, 6, (40, 25)).astype(float)
RATINGS[np.random.default_rng(2).random(RATINGS.shape) < 0.5] = np.nan


@pytest.mark.parametrize("lam", ["auto", 3.0])
@pytest.mark.parametrize("model", [NuclearCompletion, MMMF], ids=lambda model: model.__name__)
def test_completions(model, lam, device):
    values = RATINGS if model is NuclearCompletion else np.where(RATINGS > 3, 1.0, RATINGS * 0 - 1)
    host, there = (model(lam=lam, device=where).fit(values) for where in (None, device))
    if lam != "auto":
        same(host, there)
    assert there.row_factors_.shape[0] == 40
    cells = np.argwhere(np.isnan(RATINGS))
    assert np.all(np.isfinite(there.predict(cells)))


@pytest.mark.parametrize("lam", ["auto", 3.0])
def test_levels(lam, device):
    levels = np.clip(np.round(RATINGS), 1, 5)
    host, there = (MMMF(lam=lam, device=where).fit(levels) for where in (None, device))
    assert isinstance(there.thresholds_, np.ndarray)
    if lam != "auto":
        same(host, there)
        np.testing.assert_allclose(there.thresholds_, host.thresholds_, atol=0.2)


def test_rejects_implicit_feedback_on_a_device(device):
    with pytest.raises(ValueError, match="on the processor"):
        ImplicitCompletion(device=device).fit(np.nan_to_num(RATINGS))


def test_data_on_a_gpu_are_processed_there(device, monkeypatch):
    """With no device named; one that is named wins, and the parameter stays as it was."""
    import torch

    from gramian.estimators import fitting

    asked, minimize = [], fitting.minimize

    def spied(*given, **named):
        asked.append(named["device"])
        return minimize(*given, **named)

    monkeypatch.setattr(fitting, "minimize", spied)
    samples = torch.tensor(X, device=device)
    learner = KTA(lam=1.0).fit(samples, Y)
    assert learner.device is None
    assert str(asked[-1]) == (str(samples.device) if samples.is_cuda else "None")
    KTA(lam=1.0, device="cpu").fit(samples, Y)
    assert asked[-1] == "cpu"


def test_arrays_of_other_libraries_are_lent(device):
    """What lives on a device and speaks DLPack is read through it."""
    import torch

    class Elsewhere:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **options):
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self):
            kind, number = self.tensor.__dlpack_device__()
            return (kind, number) if self.tensor.is_cuda else (2, 0)

    held = Elsewhere(torch.tensor(X, device=device))
    if not held.tensor.is_cuda:
        pytest.skip("only a device has memory of its own")
    expected = KTA(lam=1.0).fit(X, Y)
    found = KTA(lam=1.0).fit(held, Y)
    np.testing.assert_allclose(found.components_, expected.components_)


def test_dual_vectors_of_unfoldings_are_repaired_on_a_device(device, monkeypatch):
    """Lowest eigenvectors by a dense pencil: as sharp as those of a sparse factor on the host."""
    from gramian.methods.pencil import DensePencil

    looked, tried = [], DensePencil.tried

    def spied(self, t):
        looked.append(t)
        return tried(self, t)

    monkeypatch.setattr(DensePencil, "tried", spied)
    angle = np.random.default_rng(0).uniform(0, 9, 240)
    roll = np.column_stack([angle * np.cos(angle), angle * np.sin(angle), 3 * angle % 7])
    host = MVU(n_neighbors=5, connect="mst", tol=1e-4).fit(roll)
    assert not looked
    there = MVU(n_neighbors=5, connect="mst", tol=1e-4, device=device).fit(roll)
    same(host, there)
    assert looked and there.certificate_.relative_gap <= 1e-4
    assert there.certificate_.proved


def test_a_layout(device):
    samples = np.random.default_rng(0).normal(size=(150, 4))  # without ties between neighbours
    host, there = (NeighborLayout(rounds=1, device=where).fit(samples) for where in (None, device))
    same(host, there)
    assert there.result_.value == pytest.approx(host.result_.value, rel=1e-2)
