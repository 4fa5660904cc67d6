"""Arrays in blocks: functions row by row and sums over rows equal those of whole arrays."""

import operator

import numpy as np
import pytest

from gramian.arrays.blocks import NONE, Blocks, mapped, row_by_row, whole

RNG = np.random.default_rng(0)
LENGTH = 23
X, W = RNG.normal(size=(LENGTH, 4)), RNG.normal(size=LENGTH)
SMALL = RNG.normal(size=(4, 3))
XP = row_by_row(np)


class Counted:
    """A source of blocks that records which of them are read."""

    def __init__(self, array, step):
        self.array, self.step, self.read = array, step, []

    def __call__(self, k):
        if k is None:
            return self.array[:0]
        self.read.append(k)
        return self.array[k * self.step : (k + 1) * self.step]


def in_blocks(array, step=5):
    return Blocks(len(array), step, Counted(array, step), np)


STEPS = pytest.mark.parametrize("step", [1, 5, 23, 100])

ROW_BY_ROW = {
    "minus": lambda x, w: -x,
    "absolute value": lambda x, w: abs(x),
    "sum": lambda x, w: x + 2.0,
    "reflected difference": lambda x, w: 1.0 - x,
    "product of two": lambda x, w: w * w,
    "quotient": lambda x, w: 1.0 / (1.0 + w * w),
    "power": lambda x, w: x**2,
    "comparison": lambda x, w: (w > 0) & (w < 1) | (w == 0.5),
    "negation": lambda x, w: ~(w >= 0),
    "new axis": lambda x, w: w[:, None] * x,
    "vector of a product": lambda x, w: x @ SMALL[:, 0],
}


@STEPS
@pytest.mark.parametrize("name", [*ROW_BY_ROW])
def test_functions_row_by_row_equal_those_of_the_array(name, step):
    function = ROW_BY_ROW[name]
    found, known = function(in_blocks(X, step), in_blocks(W, step)), function(X, W)
    assert isinstance(found, Blocks) and found.shape == known.shape
    np.testing.assert_allclose(whole(found), known, rtol=1e-12)


@STEPS
@pytest.mark.parametrize("name", ["sum", "max"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_equal_those_of_the_array(name, axis, step):
    found = getattr(XP, name)(in_blocks(X, step), axis=axis)
    known = getattr(np, name)(X, axis=axis)
    np.testing.assert_allclose(whole(found), known, rtol=1e-12)


@STEPS
def test_any_and_all_read_every_row(step):
    positive = in_blocks(W, step) > 0
    assert bool(XP.any(positive)) and not bool(XP.all(positive))
    assert bool(XP.all(in_blocks(W, step) > W.min() - 1))


@STEPS
def test_products_equal_those_of_the_array(step):
    x, w = in_blocks(X, step), in_blocks(W, step)
    np.testing.assert_allclose(x @ SMALL, X @ SMALL, rtol=1e-12)
    np.testing.assert_allclose(x.T @ W, X.T @ W, rtol=1e-12)
    np.testing.assert_allclose(x.T @ x, X.T @ X, rtol=1e-12)
    assert w @ W == pytest.approx(W @ W)
    assert W @ w == pytest.approx(W @ W)


@STEPS
def test_joined_and_reshaped_rows_equal_those_of_the_array(step):
    x, w = in_blocks(X, step), in_blocks(W, step)
    np.testing.assert_array_equal(whole(XP.stack([w, 2 * w], axis=1)), np.stack([W, 2 * W], axis=1))
    both = np.concat([X, X], axis=1)
    np.testing.assert_array_equal(whole(XP.concat([x, x], axis=1)), both)
    np.testing.assert_array_equal(whole(XP.reshape(x, (-1, 2))), X.reshape(-1, 2))
    np.testing.assert_array_equal(
        whole(XP.broadcast_to(w[:, None], (LENGTH, 3))), np.broadcast_to(W[:, None], (LENGTH, 3))
    )
    for name in ("stack", "concat"):
        joined = getattr(XP, name)([X, X], axis=0)
        np.testing.assert_array_equal(joined, getattr(np, name)([X, X], axis=0))


def test_nothing_is_read_before_a_block_is_requested():
    source = Counted(W, 5)
    z = mapped(np.exp, 2.0 * Blocks(LENGTH, 5, source, np))
    assert (z.shape, z.dtype, z.ndim) == ((LENGTH,), W.dtype, 1) and source.read == []
    np.testing.assert_array_equal(z[z.parts[1]], np.exp(2.0 * W[5:10]))
    assert source.read == [1] and z[NONE].size == 0
    XP.sum(z)
    assert source.read == [1, 0, 1, 2, 3, 4]  # one pass, in order


def test_whole_arrays_are_unchanged():
    assert whole(W) is W
    np.testing.assert_array_equal(XP.sum(X, axis=0), X.sum(axis=0))
    np.testing.assert_array_equal(XP.reshape(X, (-1, 2)), X.reshape(-1, 2))
    np.testing.assert_array_equal(XP.broadcast_to(W, (2, LENGTH)), np.broadcast_to(W, (2, LENGTH)))


def test_rows_of_whole_arrays_are_split_like_blocks():
    """An array with as many rows is cut like the blocks; others are taken as they are."""
    found = mapped(operator.add, in_blocks(W), W)
    np.testing.assert_array_equal(whole(found), 2 * W)
    found = mapped(lambda rows, table: rows @ table, in_blocks(X), SMALL)
    np.testing.assert_array_equal(whole(found), X @ SMALL)


@STEPS
def test_sums_are_reproducible(step):
    """The order of additions depends on the length of blocks only."""
    sums = {float(XP.sum(in_blocks(1e8 * X + W[:, None], step))) for _ in range(3)}
    assert len(sums) == 1
