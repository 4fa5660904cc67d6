"""λ_min from an exact part on a few columns and a bound on their complement."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian import proofs
from gramian.objectives.base import SymmetricOperator
from gramian.proofs import ComplementSplit, estimated
from gramian.proofs.dense import DenseForm
from tests.slow import slow


def operator(G):
    return SymmetricOperator(len(G), lambda V: G @ V, lambda: G)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(4, 12), st.integers(0, 3))
def test_bound_is_valid(seed, order, rank):
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((order, order))
    G = G + G.T
    split = ComplementSplit.along(operator(G), rng.standard_normal((order, rank)), live=0.0)
    rest = np.eye(order) - split.Q @ split.Q.T
    values, vectors = np.linalg.eigh(rest)
    beside = vectors[:, values > 0.5]
    c = np.linalg.eigvalsh(beside.T @ G @ beside)[0]
    lowest = np.linalg.eigvalsh(G)[0]
    assert split.least(c) <= lowest + 1e-9
    assert split.least(c - 1.0) <= split.least(c) + 1e-12
    needed = split.needed(0.1, 100.0)
    assert split.least(needed) >= split.least(100.0) - 0.1 - 1e-9


def gradient_of_low_rank(order, rank, rng, least=0.01):
    """A matrix that is almost 0 on some columns and at least `least` on their complement."""
    Q = np.linalg.qr(rng.standard_normal((order, order)))[0]
    values = np.concatenate([1e-7 * rng.standard_normal(rank), np.linspace(least, 2, order - rank)])
    return (Q * values) @ Q.T, Q[:, :rank], float(values.min())


@pytest.mark.slow
def test_known_columns_speed_up_lanczos():
    """Without them Lanczos has to resolve twelve eigenvalues of 0."""
    rng = np.random.default_rng(0)
    G, Q, lowest = gradient_of_low_rank(1600, 12, rng)
    L = (Q + 1e-7 * rng.standard_normal(Q.shape)) * np.linspace(1, 5, 12)
    alone = estimated(operator(G), 1e-6)
    known = estimated(operator(G), 1e-6, known=L)
    for found in (alone, known):
        assert found.value <= lowest
    assert known.value > -5e-6
    assert known.miss < 1e-3 < alone.miss


@pytest.mark.slow
def test_finds_descent_direction_in_complement():
    rng = np.random.default_rng(1)
    G, Q, _ = gradient_of_low_rank(1600, 5, rng)
    v = rng.standard_normal(1600)
    v -= Q @ (Q.T @ v)
    v /= np.linalg.norm(v)
    G -= 3.0 * np.outer(v, v)
    found = estimated(operator(G), 1e-6, known=Q)
    lowest = np.linalg.eigvalsh(G)[0]
    assert lowest - 0.01 < found.value <= lowest


@pytest.mark.slow
def test_short_columns_are_ignored():
    """A factor with spare columns of noise, on which ∇F is far from 0."""
    rng = np.random.default_rng(2)
    G, Q, lowest = gradient_of_low_rank(1600, 8, rng)
    noise = 1e-3 * rng.standard_normal((1600, 10)) / 40
    found = estimated(operator(G), 1e-6, known=np.hstack([Q * np.linspace(1, 5, 8), noise]))
    assert -5e-6 < found.value <= lowest
    assert found.miss < 1e-3


def test_given_start_does_not_replace_random_starts():
    """The probability bound is that of random starts: a given start must not end the search."""
    G, Q, lowest = gradient_of_low_rank(1600, 5, np.random.default_rng(3), least=0.5)
    start = np.random.default_rng(4).standard_normal(1600)
    found = estimated(operator(G), 1e-6, known=Q, start=start)
    assert found.value <= lowest
    assert found.miss < 1e-3


@pytest.mark.parametrize("seed", [3, slow(4)])
@pytest.mark.parametrize("spare", [0, 3])
def test_proof_with_known_columns_needs_one_factorisation(seed, spare, monkeypatch):
    """After any number of Lanczos products on the complement, also with spare columns of noise."""
    rng = np.random.default_rng(seed)
    G, Q, least = gradient_of_low_rank(400, 12, rng, least=1e-4)
    noise = 1e-3 * rng.standard_normal((400, spare)) / 20
    monkeypatch.setattr("gramian.proofs.search.EXACT_ORDER", 100)
    tried = []
    above = DenseForm.above
    monkeypatch.setattr(DenseForm, "above", lambda self, t: tried.append(t) or above(self, t))
    known = np.hstack([Q, noise])
    found = proofs.lowest(operator(0.5 * (G + G.T)), wanted=1e-6, known=known)
    assert found.proved and len(tried) == 1
    assert -1e-5 < found.value <= least


def test_random_starts_are_insensitive_to_rounding():
    rng = np.random.default_rng(5)
    G, _, _ = gradient_of_low_rank(300, 5, rng)
    G = 0.5 * (G + G.T)
    noise = np.triu(rng.standard_normal(G.shape))
    again = estimated(operator(G * (1 + 1e-15 * (noise + noise.T))), 1e-6)
    assert again.value == pytest.approx(estimated(operator(G), 1e-6).value, abs=1e-10)
