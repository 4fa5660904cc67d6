"""Graphs of the benchmarks: files in rudy's format, Hamming graphs, random ones, sensors."""

import gzip
from pathlib import Path

import numpy as np
import scipy.sparse as sp


def read_rudy(path: Path) -> sp.csr_array:
    """Lines `nodes edges`, then `i j weight` with indices from 1; gzipped or not."""
    raw = path.read_bytes()
    words = (gzip.decompress(raw) if path.suffix == ".gz" else raw).split()
    n, edges = int(words[0]), np.array(words[2:], dtype=float).reshape(-1, 3)
    i, j = edges[:, 0].astype(int) - 1, edges[:, 1].astype(int) - 1
    half = sp.coo_array((edges[:, 2], (i, j)), shape=(n, n))
    return sp.csr_array(half + half.T)


def hamming(bits: int) -> sp.csr_array:
    """Words of `bits` bits, joined if they differ in two of them."""
    words = np.arange(2**bits)
    masks = [1 << a | 1 << b for a in range(bits) for b in range(a)]
    i, j = np.tile(words, len(masks)), np.concatenate([words ^ mask for mask in masks])
    return sp.csr_array((np.ones(i.size), (i, j)), shape=(words.size, words.size))


def random_graph(n: int, degree: float = 10.0) -> sp.csr_array:
    """n nodes, each pair joined with the same probability."""
    rng = np.random.default_rng(n)
    upper = sp.random_array((n, n), density=degree / n, rng=rng)
    upper = sp.triu(upper, 1)
    upper.data[:] = 1.0
    return sp.csr_array(upper + upper.T)


def sensors(n: int, degree: int = 8, noise: float = 0.0):
    """Sensors and anchors in the unit square, and the distances to their nearest neighbours.

    With noise every distance is multiplied by |1 + noise·ξ|, ξ normal.
    """
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(n)
    places, anchors = rng.random((n, 2)), rng.random((max(4, n // 50), 2))
    points = np.vstack([places, anchors])
    near = cKDTree(points).query(points[:n], degree + 1)[1][:, 1:]
    pairs = np.column_stack([np.repeat(np.arange(n), degree), near.ravel()])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    distances = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    distances = distances * np.abs(1 + noise * rng.standard_normal(distances.size))
    return pairs, distances, anchors, places
