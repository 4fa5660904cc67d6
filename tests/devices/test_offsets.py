"""Offsets of ratings on a device: the same as on the host, in blocks of entries and in tiles."""

import gc

import numpy as np
import pytest

import gramian.losses.offsets as offsets
from gramian.arrays.places import host, moved, place
from gramian.completion import NuclearCompletion
from gramian.losses import SquaredWithOffsets


@pytest.mark.parametrize("shape", [(40, 23), (23, 40)])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_and_tiles_give_the_offsets_of_the_host(shape, weighted, device, monkeypatch):
    library = pytest.importorskip("gramian.arrays.torch")
    rng = np.random.default_rng(0)
    rows, cols = np.divmod(np.sort(rng.permutation(40 * 23)[:300]).astype(np.int32), shape[1])
    sides = tuple(rng.random(side) + 0.5 for side in shape)
    weight = rng.random(300) + 0.5 if weighted else None
    given = {"ridge": 2.0, "scale": sides, "weight": weight, "centre": 0.5}
    monkeypatch.setattr(offsets, "FEW", 0)
    loss = SquaredWithOffsets(rng.standard_normal(300), rows, cols, shape, **given)
    monkeypatch.setattr(offsets, "DEVICE_CHUNK", 64)
    monkeypatch.setattr(library, "TILE", 5)
    there = moved(loss, place(device))
    z = rng.standard_normal(300)
    far = there.place.put(z)
    for one, other in zip(there.offsets(far), loss.offsets(z), strict=True):
        np.testing.assert_allclose(host(one), other, rtol=1e-9, atol=1e-12)
    assert there.value(far) == pytest.approx(loss.value(z), rel=1e-12)
    np.testing.assert_allclose(host(there.gradient(far)), loss.gradient(z), rtol=1e-9, atol=1e-12)
    step = there.place.put(z[::-1].copy())
    np.testing.assert_allclose(
        host(there.hessian(far)(step)), loss.hessian(z)(z[::-1].copy()), rtol=1e-9, atol=1e-12
    )


def test_a_fit_frees_the_device_without_garbage_collection(device):
    """A cycle of references would keep the ratings there until garbage is collected."""
    import torch

    def held():
        return sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects())

    rng = np.random.default_rng(0)
    i, j = np.divmod(np.unique(rng.integers(0, 60 * 40, 900)), 40)
    model = NuclearCompletion(lam=3.0, tol=1e-3, device=device)
    given = i, j, rng.standard_normal(i.size)
    gc.collect()
    before = held()
    gc.disable()
    try:
        model.fit(given)
        assert held() == before
    finally:
        gc.enable()
