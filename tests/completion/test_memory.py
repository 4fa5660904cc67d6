"""What a fit holds for each rating, beside the ratings that are given."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import gramian.arrays.cpu
import gramian.arrays.entries
import gramian.arrays.places
import gramian.completion._ratings
import gramian.losses.offsets
import gramian.methods.quick
from gramian.completion import NuclearCompletion

MOST = 40
"""Bytes for each rating."""

ROWS, COLS, RANK = 1500, 200, 4


@pytest.fixture
def small_blocks(monkeypatch):
    """Few ratings are worked on as many are: in blocks that are short beside them."""
    for module, name in (
        (gramian.arrays.places, "PART"),
        (gramian.arrays.cpu, "GRAM_BLOCK"),
        (gramian.arrays.cpu, "TAKEN"),
        (gramian.arrays.entries, "BLOCK"),
        (gramian.completion._ratings, "PART"),
        (gramian.losses.offsets, "CHUNK"),
        (gramian.losses.offsets, "FEW"),
    ):
        monkeypatch.setattr(module, name, 2**11)
    monkeypatch.setattr(gramian.methods.quick, "MAX_DUAL_SWEEP_ENTRIES", 0)  # as for many ratings


def _ratings(count):
    """Stars of so many places in no order, int32 and float64."""
    rng = np.random.default_rng(0)
    places = rng.permutation(ROWS * COLS)[:count]
    rows, cols = np.divmod(places, COLS)
    P, Q = rng.normal(size=(ROWS, 2)), rng.normal(size=(COLS, 2))
    values = 3 + np.sum(P[rows] * Q[cols], axis=1) + rng.normal(size=count)
    return rows.astype(np.int32), cols.astype(np.int32), np.clip(np.round(values), 1, 5)


def _most_bytes(model, given):
    """The most that a fit holds at a time, beside what there was."""
    model.fit(given)  # imports and compiles
    tracemalloc.start()
    try:
        model.fit(given)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.exact("it counts bytes, and perturbed ratings are copies")
@pytest.mark.usefixtures("small_blocks")
def test_fit_needs_at_most_forty_bytes_per_rating():
    """By what twice as many ratings take more: factors and the blocks of sums stay as they are."""
    held = []
    for count in (120_000, 240_000):
        given = _ratings(count)
        model = NuclearCompletion(rank=RANK, random_state=0)
        held.append(_most_bytes(model, given))
        assert model.result_.status.name == "SETTLED"
    assert (held[1] - held[0]) / 120_000 <= MOST
