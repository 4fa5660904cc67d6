"""Squares with offsets: blocks of entries give the same results as whole arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import gramian.arrays.cpu as cpu
import gramian.losses.offsets as offsets
from gramian.losses import SquaredWithOffsets
from gramian.objectives.halves import halves_of
from gramian.problems import nuclear_completion


@pytest.fixture
def entries():
    rng = np.random.default_rng(0)
    rows, cols = (each.astype(np.int32) for each in np.nonzero(rng.random((40, 23)) < 0.3))
    sides = rng.uniform(0.5, 2, 40), rng.uniform(0.5, 2, 23)
    return rows, cols, 3 + rng.normal(size=rows.size), sides, rng.uniform(0.5, 2, rows.size)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_scales_of_rows_and_columns_are_those_of_entries(entries, weighted, turned, monkeypatch):
    rows, cols, values, sides, weight = entries
    shape = (40, 23)
    if turned:
        order = np.argsort(cols, kind="stable")
        rows, cols, sides, shape = cols[order], rows[order], sides[::-1], (23, 40)
        values, weight = values[order], weight[order]
    options = {"ridge": 2.0, "weight": weight if weighted else None}
    scale = sides[0][rows] * sides[1][cols]
    whole = SquaredWithOffsets(values - 3.0, rows, cols, shape, scale=scale, **options)
    z, w = np.random.default_rng(1).normal(size=(2, rows.size))
    wanted = whole.value(z), whole.gradient(z), whole.conjugate(w), whole.error(z)
    monkeypatch.setattr(offsets, "CHUNK", 16)
    monkeypatch.setattr(offsets, "FEW", 0)
    lean = SquaredWithOffsets(values, rows, cols, shape, scale=sides, centre=3.0, **options)
    assert lean.one_by_one is None
    np.testing.assert_allclose(lean.value(z), wanted[0], rtol=1e-12)
    np.testing.assert_allclose(lean.gradient(z), wanted[1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(lean.conjugate(w), wanted[2], rtol=1e-12)
    assert lean.error(z) < 1e-20 and wanted[3] < 1e-20
    np.testing.assert_allclose(lean.conjugate_along(w)(0.3), whole.conjugate(0.3 * w), rtol=1e-12)
    D = np.random.default_rng(2).normal(size=(rows.size, 3))
    np.testing.assert_allclose(lean.curvature(z, D), whole.curvature(z, D), rtol=1e-10)
    np.testing.assert_allclose(lean.smoothness, whole.smoothness)


def test_held_out_entries_are_ignored(entries):
    rows, cols, values, sides, weight = entries
    held = np.random.default_rng(3).random(rows.size) < 0.3
    options = {"row_scale": sides[0], "col_scale": sides[1], "ridge": 2.0}
    whole, part = (
        nuclear_completion(
            rows[kept], cols[kept], values[kept], (40, 23), 1.5, weights=weight[kept], **options
        ).objective
        for kept in (slice(None), ~held)
    )
    turned = held[whole.entries.by_column()[2]]
    swept = [halves_of(whole, np.float32).without(held, turned), halves_of(part, np.float32)]
    start = np.random.default_rng(4).normal(size=(63, 5)).astype(np.float32)
    states = [start.copy(), start.copy()]
    for halves, state in zip(swept, states, strict=True):
        halves.refit_upper(state, 3)
        halves.refit_lower(state, 3)
    np.testing.assert_allclose(*states, rtol=2e-4, atol=2e-4)


def test_gram_by_blocks_of_rows(monkeypatch):
    monkeypatch.setattr(cpu, "GRAM_BLOCK", 10)
    B = sp.random_array((300, 6), density=0.5, format="csr", rng=np.random.default_rng(0))
    np.testing.assert_allclose(cpu.gram(B), (B.T @ B).toarray(), rtol=1e-12)


def test_offsets_are_fitted_once_for_each_image(entries, monkeypatch):
    """In any order of evaluations, and no longer stored than the image exists."""
    rows, cols, values, sides, _ = entries
    loss = SquaredWithOffsets(values, rows, cols, (40, 23), ridge=2.0, scale=sides)
    fitted, find = [], SquaredWithOffsets._fitted
    monkeypatch.setattr(
        SquaredWithOffsets, "_fitted", lambda self, z: fitted.append(1) or find(self, z)
    )
    z, zero = np.ones(rows.size), np.zeros(rows.size)
    for image in (z, zero, z, zero):
        loss.value(image)
        loss.gradient(image)
    assert len(fitted) == 2
    assert len(loss._stored._found) == 2
    del z, zero, image
    assert not loss._stored._found


@pytest.mark.parametrize("seed", range(4))
def test_passes_over_blocks_of_rows_sum_to_those_over_the_whole(entries, seed):
    """Also if a block has no entries, as on a cluster."""
    rows, cols, values, sides, weight = entries
    options = {"ridge": 2.0, "centre": 3.0}
    whole = SquaredWithOffsets(
        values, rows, cols, (40, 23), scale=sides, weight=weight if seed % 2 else None, **options
    )
    rng = np.random.default_rng(seed)
    z, cut = rng.normal(size=rows.size), int(rng.integers(5, 35))
    b, c = whole.offsets(z)
    w, squares, slopes, sums, divided = whole.gradient(z), 0.0, [], [], []
    for first, last in ((0, 0), (0, cut), (cut, 40)):
        some = (rows >= first) & (rows < last)
        part = SquaredWithOffsets(
            values[some], rows[some] - first, cols[some], (last - first, 23),
            scale=(sides[0][first:last], sides[1]), weight=weight[some] if seed % 2 else None,
            **options,
        )  # fmt: skip
        fitted = b[first:last], c
        squares += part.squares(z[some], fitted)
        slopes.append(part.slopes(z[some], fitted))
        sums.append(part.sums_left(z[some], fitted))
        divided.append(part.divided(w[some]))
    assert squares == pytest.approx(whole.squares(z, (b, c)))
    np.testing.assert_allclose(np.concatenate(slopes), w, atol=1e-10)
    np.testing.assert_allclose(np.concatenate([some for some, _ in sums]), 2.0 * b, atol=1e-10)
    np.testing.assert_allclose(sum(each for _, each in sums), 2.0 * c, atol=1e-10)
    square, linear, (by_row, by_col) = whole.divided(w)
    assert sum(each[0] for each in divided) == pytest.approx(square)
    assert sum(each[1] for each in divided) == pytest.approx(linear)
    np.testing.assert_allclose(np.concatenate([each[2][0] for each in divided]), by_row)
    np.testing.assert_allclose(sum(each[2][1] for each in divided), by_col, atol=1e-12)
