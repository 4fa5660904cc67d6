"""Solvers × problems × known optimum, computed on a device."""

from importlib import import_module

import numpy as np
import pytest

import gramian as gm
from gramian.arrays import places as arrays
from gramian.methods.base import Settings
from gramian.solvers.registry import SOLVERS
from tests.cases import BY_NAME, CASES

NEED_NOT_CONVERGE = ("random-conic-pursuit", "journee")

LOOSE = {"projected-gradient": 300, "gd": 300, "agd": 300, "admm": 200, "bis": 200}
"""Steps of those that reach the optimum slowly, and are held to a few per cent here."""


def accepts(name, problem):
    settings = Settings(rank=None, tol=1e-6, rng=np.random.default_rng(0))
    return SOLVERS[name].refusal(problem, settings) is None


TABLE = [
    pytest.param(name, case, id=f"{name}-{case}")
    for case in CASES
    for name in gm.solvers.available()
    if name not in NEED_NOT_CONVERGE and not SOLVERS[name].on_host and accepts(name, case.problem)
]


@pytest.mark.parametrize("name", [solver.name for solver in SOLVERS.values() if solver.on_host])
def test_solvers_of_the_host_say_so(name, device):
    problem = BY_NAME["squared-entries"].problem
    with pytest.raises(ValueError, match=f"{name!r} cannot solve .* it computes on the host"):
        gm.minimize(problem, name, device=device)


@pytest.mark.parametrize(("name", "case"), TABLE)
def test_every_solver_reaches_the_optimum(name, case, device):
    limit = LOOSE.get(name)
    result = gm.minimize(case.problem, name, tol=1e-6, max_iter=limit, device=device, time_limit=30)
    digits = 2e-6 if limit is None else 6e-2
    assert result.value == pytest.approx(case.optimum, rel=digits, abs=digits)
    assert isinstance(result.factor, np.ndarray)
    assert case.problem.value(result.factor) == pytest.approx(result.value, rel=1e-9, abs=1e-9)
    certificate = result.certificate
    if certificate.gap is not None and certificate.proved:
        assert certificate.lower_bound <= case.optimum + 1e-9 * (1 + abs(case.optimum))


@pytest.mark.parametrize("name", ["lbfgs", "staircase"])
def test_the_same_seed_gives_the_same_bits(name, device):
    problem = BY_NAME["squared-entries"].problem
    first, again = (
        gm.minimize(problem, name, tol=1e-6, random_state=3, device=device) for _ in range(2)
    )
    np.testing.assert_array_equal(first.factor, again.factor)


def completion(m=330, n=200, p=6000):
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(0, m * n, p))
    i, j = np.divmod(cells, n)
    truth = rng.standard_normal((m, 3)) @ rng.standard_normal((3, n))
    noisy = truth[i, j] + 0.3 * rng.standard_normal(i.size)
    return gm.problems.nuclear_completion(i, j, noisy, (m, n), 6.0, ridge=2.0)


def test_solve_transfers_no_array_as_long_as_factor_or_data(device, monkeypatch):
    """Only numbers and small matrices come to the host, or go from it."""
    from gramian.arrays import torch as library

    m, n = 1200, 500
    problem = arrays.moved(completion(m, n, 20_000), arrays.place(device))
    long = {m, n, m + n, problem.objective.map.size}
    crossed = []
    home, there = library.host, arrays.beside

    def counted_home(tensor):
        crossed.append(tuple(tensor.shape))
        return home(tensor)

    def counted_there(array, values):
        crossed.append(np.shape(values))
        return there(array, values)

    settings = Settings(rank=None, tol=1e-4, rng=np.random.default_rng(0))
    factor = problem.objective.place.zeros((problem.order, 0))
    monkeypatch.setattr(library, "host", counted_home)
    for name in ("linalg.quasi_newton", "methods.columns", "methods.staircase", "linalg._lanczos"):
        monkeypatch.setattr(import_module(f"gramian.{name}"), "beside", counted_there)
    run = SOLVERS["auto"].run(problem, factor, settings)
    for _ in range(3):
        next(run)
    assert len(crossed) > 100
    assert not any(long & set(shape) for shape in crossed)


def test_the_certificate_of_a_device_is_that_of_the_host(device):
    problem = completion()
    result = gm.minimize(problem, tol=1e-4, device=device)
    assert result.status is gm.Status.CONVERGED
    again = gm.certify(problem, result.factor)
    assert again.value == pytest.approx(result.value, rel=1e-10)
    best = gm.minimize(problem, tol=1e-7)
    assert result.certificate.lower_bound <= best.value + 1e-9 * abs(best.value)
    assert result.value >= best.certificate.lower_bound
    assert "growing" in result.route


def test_a_start_a_limit_and_a_checkpoint(device, tmp_path):
    problem, kept = completion(), tmp_path / "kept.npz"
    first = gm.minimize(problem, tol=1e-2, device=device, checkpoint=kept)
    again = gm.minimize(problem, tol=1e-4, device=device, checkpoint=kept, init=first)
    assert again.value <= first.value + 1e-9 * abs(first.value)
    limited = gm.minimize(problem, rank=2, tol=1e-4, device=device, max_iter=20)
    assert limited.factor.shape[1] <= 2
    stopped = gm.minimize(problem, tol=1e-9, device=device, callback=lambda state: True)
    assert stopped.status is gm.Status.STOPPED


def test_rejects_constraints_and_names_them(device):
    graph = np.ones((4, 4)) - np.eye(4)
    with pytest.raises(ValueError, match="linear constraints, which are met on the processor"):
        gm.minimize(gm.problems.maxcut(graph), device=device)
