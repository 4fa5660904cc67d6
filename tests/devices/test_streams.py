"""Data that a device has no room for stay on the host and come in blocks: the same fits."""

import gc
import weakref
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

import gramian as gm
from gramian.arrays import places as arrays
from gramian.arrays.blocks import Blocks, mapped, whole
from gramian.completion import MMMF, NuclearCompletion
from gramian.methods import room
from gramian.methods.lbfgs import is_short
from gramian.metric import LMNN, DMLEig, LMNNEig, TripletMetric
from gramian.neighbours import nearest
from gramian.problems.completion import mmmf

RNG = np.random.default_rng(0)
SHAPE = 70, 40
CELLS = np.sort(RNG.choice(SHAPE[0] * SHAPE[1], 900, replace=False))
ROWS, COLS = np.divmod(CELLS, SHAPE[1])
TRUTH = RNG.standard_normal((SHAPE[0], 2)) @ RNG.standard_normal((2, SHAPE[1]))
VALUES = TRUTH[ROWS, COLS] + 0.3 * RNG.standard_normal(CELLS.size)
WEIGHTS = RNG.random(CELLS.size) + 0.5
SIGNS = np.where(VALUES > 0, 1.0, -1.0)
X, Y = (part[:240] for part in load_digits(return_X_y=True))


def completion(**options):
    return gm.problems.nuclear_completion(ROWS, COLS, VALUES, SHAPE, 3.0, **options)


def levels(**options):
    """Every rating at two thresholds."""
    twice = np.column_stack([SIGNS, np.where(VALUES > 1, 1.0, -1.0)]).ravel()
    groups = np.tile([0, 1], CELLS.size)
    return mmmf(ROWS, COLS, twice, SHAPE, 3.0, mu=0.1, repeat=2, groups=groups, **options)


PROBLEMS = {
    "squares": completion,
    "weighted squares": lambda: completion(weights=WEIGHTS),
    "offsets": lambda: completion(ridge=2.0),
    "weighted offsets": lambda: completion(ridge=2.0, weights=WEIGHTS),
    "scaled offsets": lambda: completion(ridge=2.0, row_scale=RNG.random(SHAPE[0]) + 0.5),
    "margins": lambda: mmmf(ROWS, COLS, SIGNS, SHAPE, 3.0, mu=0.1),
    "levels": levels,
    "pairs": lambda: gm.problems.dml_eig(X, [[0, 10], [1, 11]], [[0, 1], [3, 9]], 0.1, ridge=1.0),
    "triplets": lambda: gm.problems.triplets(X, [[0, 10, 1], [3, 13, 200]], 1.0, 0.1),
}


@pytest.fixture
def place(device):
    return arrays.place(device)


def streamed(problem, place, step):
    """The problem with its rows on the host, so many of them at a time on the device."""
    shapes = problem.objective.facts.streams
    assert shapes
    apart = {shape: step * together for shape, together in shapes.items()}
    return arrays.moved(problem, replace(place, apart=apart)).objective


def limit(monkeypatch, device, room):
    """So many bytes of the device, beside what tests before this one have left there."""
    torch = pytest.importorskip("torch")
    gc.collect()  # else these tensors may be freed later, and leave more room than was meant
    held = torch.cuda.memory_allocated(device) if str(device).startswith("cuda") else 0
    monkeypatch.setenv("GRAMIAN_DEVICE_MEMORY", str(room + held))


def close(found, expected):
    np.testing.assert_allclose(
        arrays.host(found), arrays.host(expected), rtol=1e-11, atol=1e-10, equal_nan=False
    )


@pytest.mark.parametrize("step", [97, 5000])
@pytest.mark.parametrize("name", list(PROBLEMS))
def test_objective_in_blocks_has_the_same_values(name, step, place):
    problem = PROBLEMS[name]()
    plain, there = arrays.moved(problem, place).objective, streamed(problem, place, step)
    L, D = (place.put(0.3 * RNG.standard_normal((problem.order, 4))) for _ in range(2))
    image, other = plain.image(L), there.image(L)
    assert is_short(plain, L) and not is_short(there, L)  # transfers cannot be recorded
    close(there.value(other), plain.value(image))
    close(there.gradient_factor(other), plain.gradient_factor(image))
    slope, its = plain.gradient(image), there.gradient(other)
    close(its @ D, slope @ D)
    close(its @ D[:, 0], slope @ D[:, 0])
    close(its.dense(), slope.dense())
    close(its.slack(), slope.slack())
    close(there.hessian_factor(other)(D), plain.hessian_factor(image)(D))
    close(there.dual(other), plain.dual(image))
    close(there.rounding(other), plain.rounding(image))
    close(there.recession(other)[0], plain.recession(image)[0])
    close(there.support(other).value, plain.support(image).value)
    line, its = plain.line(image, D), there.line(other, D)
    for told in ("value", "gradient", "hessian"):
        theta = np.array([1.0, 0.4, 0.04])
        close(getattr(its.restriction, told)(theta), getattr(line.restriction, told)(theta))
    close(there.value(its.take(0.2)), plain.value(line.take(0.2)))
    small, its = plain.subspace(D), there.subspace(D)
    for told in ("value", "gradient", "hessian"):
        theta = np.linspace(0.1, 0.3, 10)
        close(getattr(its, told)(theta), getattr(small, told)(theta))
    home = arrays.at_home(there)
    assert home.place.is_host
    close(home.value(home.image(arrays.host(L))), plain.value(image))


class Bus:
    """What goes to the device in blocks, and what of it is there at once."""

    def __init__(self, monkeypatch):
        from gramian.arrays import _torch_transfers as library

        self.sent, self.here, self.most, plain = 0, weakref.WeakValueDictionary(), 0, library.sent

        def counted(rows, device):
            found = plain(rows, device)
            self.sent += found.numel() * found.element_size()
            self.here[id(found)] = found
            held = list(self.here.values())
            self.most = max(self.most, sum(part.numel() * part.element_size() for part in held))
            return found

        monkeypatch.setattr(library, "sent", counted)


def test_at_most_two_blocks_of_ratings_are_on_the_device(place, monkeypatch):
    """An evaluation passes over the ratings a few times, whatever they are made of."""
    bus, step = Bus(monkeypatch), 50
    there = streamed(completion(ridge=2.0, weights=WEIGHTS), place, step)
    L = place.put(RNG.standard_normal((sum(SHAPE), 4)))
    there.gradient_factor(there.image(L))
    bus.sent = bus.most = 0
    image = there.image(L + 1.0)
    there.value(image)
    there.gradient_factor(image)
    once = CELLS.size * (4 + 4 + 4 + 8 + 8)  # rows, columns, their order, values and weights
    assert 2 * once <= bus.sent <= 5 * once
    at_once = 2 if place.device.type == "cpu" else 3  # a GPU is sent the next one meanwhile
    assert bus.most <= at_once * step * (4 + 4 + 4 + 8 + 8)


def test_cached_data_of_a_pattern_are_freed_with_it(place):
    """Every block has a pattern of its own; a fit in blocks once held all of them for ever."""
    if place.device.type != "cuda":
        pytest.skip("what is known of patterns is for kernels of a GPU")
    library = arrays.backend(place.zeros((1,)))
    indptr = library.starts(place.put(np.array([0, 0, 2])), 3)
    library.csr_product(indptr, place.put(np.arange(3)), place.put(np.ones(3)), place.zeros((3, 2)))
    gone = weakref.ref(indptr)
    del indptr
    assert gone() is None


def limited(monkeypatch, share=0.98):
    """Less memory for every problem than what it needs, by an environment variable."""
    asked, plain = [], room.place_for

    def of(problem, device, rank=None):
        with monkeypatch.context() as patch:
            if problem.objective.facts.streams and problem.objective.place.is_host:
                need = share * room.needed(problem, rank)
                limit(patch, device, need)
            asked.append(plain(problem, device, rank))
        return asked[-1]

    monkeypatch.setattr(room, "MIN_BLOCK_ROWS", 60)
    users = (
        "run",
        *(f"completion.{name}" for name in ("_base", "_selection", "nuclear_completion")),
    )
    for name in users:
        monkeypatch.setattr(import_module(f"gramian.{name}"), "place_for", of)
    return asked


RATED = np.full((120, 60), np.nan)
RATED.ravel()[RNG.choice(7200, 3000, replace=False)] = 3.0
RATED += np.clip(np.round(RNG.standard_normal((120, 2)) @ RNG.standard_normal((2, 60))), -2, 2)


@pytest.mark.parametrize("lam", ["auto", 4.0])
@pytest.mark.parametrize("model", [NuclearCompletion, MMMF], ids=lambda model: model.__name__)
def test_completions(model, lam, device, monkeypatch):
    given = RATED if model is NuclearCompletion else np.where(RATED > 3, 1.0, 0 * RATED - 1)
    options = {"lam": lam, "tol": 1e-3, "device": device}
    expected = model(**options).fit(given)
    places = limited(monkeypatch)
    found = model(**options).fit(given)
    assert places and all(place.apart for place in places)
    assert found.result_.route[0] == "data in blocks"
    assert found.lam_ == pytest.approx(expected.lam_)
    one, other = found.result_, expected.result_
    assert one.status is gm.Status.CONVERGED
    assert one.value >= other.certificate.lower_bound - 1e-9 * abs(other.value)
    assert other.value >= one.certificate.lower_bound - 1e-9 * abs(one.value)
    cells = np.argwhere(np.isnan(RATED))
    np.testing.assert_allclose(found.predict(cells), expected.predict(cells), atol=0.15)


def test_the_same_bits_again(device, monkeypatch):
    limited(monkeypatch)
    problem = completion(ridge=2.0)
    first, again = (gm.minimize(problem, tol=1e-4, device=device) for _ in range(2))
    assert first.route[0] == "data in blocks"
    np.testing.assert_array_equal(first.factor, again.factor)


@pytest.mark.parametrize("name", ["weighted offsets", "margins", "triplets"])
def test_steps_in_float32(name, device, monkeypatch):
    problem = PROBLEMS[name]()
    expected = gm.minimize(problem, tol=1e-3, device=device, dtype="float32")
    limited(monkeypatch)
    monkeypatch.setattr(room, "MIN_BLOCK_ROWS", 5)
    found = gm.minimize(problem, tol=1e-3, device=device, dtype="float32")
    assert found.route[0] == "data in blocks"
    assert found.value >= expected.certificate.lower_bound
    assert expected.value >= found.certificate.lower_bound


@pytest.mark.parametrize("learner", [DMLEig, LMNNEig], ids=lambda learner: learner.__name__)
def test_samples(learner, device, monkeypatch):
    expected = learner(device=device).fit(X, Y)
    places = limited(monkeypatch, share=0.9)
    found = learner(device=device).fit(X, Y)
    assert any(place.apart for place in places)
    np.testing.assert_allclose(found.get_metric()(X[0], X[1]), expected.get_metric()(X[0], X[1]))


def test_samples_of_triplets(device, monkeypatch):
    triplets = RNG.integers(0, 240, (400, 3))
    triplets = triplets[[len(set(row)) == 3 for row in triplets.tolist()]]
    expected = TripletMetric(device=device).fit_triplets(triplets, X=X)
    places = limited(monkeypatch, share=0.9)
    found = TripletMetric(device=device).fit_triplets(triplets, X=X)
    assert any(place.apart for place in places)
    apart = abs(found.result_.value - expected.result_.value)
    assert apart <= max(found.certificate_.gap, expected.certificate_.gap)


def test_samples_of_active_triplets(device, monkeypatch):
    expected = LMNN(device=device).fit(X, Y)
    varying = int(np.sum(np.ptp(X, axis=0) > 0))  # constant features are left out
    free = 8.0 * len(X) * varying * (room.PRODUCT_COPIES + 0.8)
    monkeypatch.setattr(room, "MIN_BLOCK_ROWS", 20)
    monkeypatch.setattr(arrays.Place, "free_memory", lambda self: free)
    found = LMNN(device=device).fit(X, Y)
    assert found.result_.route[0] == "data in blocks"
    assert found.result_.value == pytest.approx(expected.result_.value, rel=1e-3)


@pytest.mark.parametrize("asked", ["alone", "apart", "queries"])
def test_neighbours_among_blocks_of_samples(asked, device, monkeypatch):
    points = np.round(2 * RNG.standard_normal((3000, 3)))  # with ties
    labels = RNG.integers(0, 3, 3000)
    options = {"alone": {}, "apart": {"apart": labels}, "queries": {"queries": points[:40] + 0.25}}
    expected = nearest(points, 6, device=device, **options[asked])
    limit(monkeypatch, device, 1100 * 8 * 8 * 4)
    for given in (points, sp.csr_array(points)):
        found = nearest(given, 6, device=device, **options[asked])
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.sq_distances, expected.sq_distances)
    monkeypatch.setenv("GRAMIAN_DEVICE_MEMORY", "1000")
    with pytest.raises(ValueError, match=r"searched as dense arrays .* which here need"):
        nearest(points, 6, device=device, **options[asked])


def test_rejects_problem_too_large_even_in_blocks(device, monkeypatch):
    monkeypatch.setenv("GRAMIAN_DEVICE_MEMORY", "1000")
    with pytest.raises(ValueError, match=r"GB of data and 110 rows, which here need .* the device"):
        gm.minimize(completion(), device=device)


def test_a_limit_of_the_rank_needs_less(device, monkeypatch):
    problem = completion()
    assert room.needed(problem, 3) < room.needed(problem) / 2
    limit(monkeypatch, device, 1.01 * room.needed(problem, 3))
    found = gm.minimize(problem, rank=3, max_iter=5, device=device)
    assert found.route[0] != "data in blocks"
    with pytest.raises(ValueError, match="which here need"):
        gm.minimize(problem, device=device)


@pytest.mark.parametrize("told", ["much", "-1", "nan"])
def test_rejects_invalid_limit(told, device, monkeypatch):
    monkeypatch.setenv("GRAMIAN_DEVICE_MEMORY", told)
    with pytest.raises(ValueError, match="GRAMIAN_DEVICE_MEMORY must be a number of bytes"):
        gm.minimize(completion(), device=device)


def test_sums_over_groups_sort_once(place, monkeypatch):
    """Every evaluation asks for them; what is sorted stays so as long as its tensor."""
    import torch

    there = arrays.moved(completion(ridge=2.0), place).objective
    L = place.put(RNG.standard_normal((sum(SHAPE), 3)))
    there.value(there.image(L))
    sorts, plain = [], torch.argsort
    monkeypatch.setattr(torch, "argsort", lambda *a, **k: sorts.append(1) or plain(*a, **k))
    there.value(there.image(L + 1.0))
    assert not sorts


def test_blocks_are_arrays(place):
    """Row by row with numbers, other blocks and arrays as long, from either side."""
    from gramian.arrays import torch as library

    values = RNG.standard_normal((10, 3))
    long = library.Stored.of(values, 4, place.device)
    xp, beside = arrays.namespace(long), place.put(RNG.standard_normal((10, 3)))
    assert isinstance(long, Blocks) and long.shape == (10, 3) and len(long.parts) == 3
    close(whole(2.0 * long - beside), 2.0 * values - arrays.host(beside))
    close(whole(beside / long), arrays.host(beside) / values)
    close(xp.sum(long), values.sum())
    close(xp.sum(long, axis=0), values.sum(axis=0))
    close(whole(xp.sum(long, axis=1)), values.sum(axis=1))
    close(xp.max(xp.abs(long)), np.abs(values).max())
    assert bool(xp.any(long > 0)) and not bool(xp.all(long > 0))
    close(long.T @ beside, values.T @ arrays.host(beside))
    close(long @ beside[:3], values @ arrays.host(beside)[:3])
    close(long[:, 0] @ beside[:, 1], values[:, 0] @ arrays.host(beside)[:, 1])
    close(beside[:, 1] @ long[:, 0], values[:, 0] @ arrays.host(beside)[:, 1])
    close(xp.reshape(xp.reshape(long, (-1,)), (10, 3)), values)
    close(whole(mapped(lambda rows: rows[:, :1], long)), values[:, :1])
    assert arrays.stored(long) is long
    short = library.Stored.of(np.round(values), 4, place.device)
    assert short.held.element_size() == 4 and short.dtype == long.dtype
    assert all(block.dtype == long.dtype for block in short)
    np.testing.assert_array_equal(arrays.host(short), np.round(values))
