"""Sparse matrices given by users are not changed, whatever their order and type of indices."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import gramian as gm
from gramian.graph import neighbor_graph, smoothest
from tests.slow import slow

X, Y = load_iris(return_X_y=True)
KNOWN = np.where(np.arange(len(Y)) % 5 == 0, Y, -1)
GRAPH = neighbor_graph(np.vstack([X, X + 0.01]), 8, connect="mst")
WEIGHTS = sp.csr_array(GRAPH.adjacency(GRAPH.weights("auto")))
LAPLACIAN = sp.csr_array(GRAPH.laplacian(GRAPH.weights("auto"), normalized=True))
TWICE = np.concatenate([KNOWN, KNOWN])


def unsorted(A, kind=sp.csr_array):
    """The same matrix with 64-bit indices in random order."""
    rng, A = np.random.default_rng(0), sp.csr_array(A, copy=True)
    for first, last in zip(A.indptr[:-1], A.indptr[1:], strict=True):
        order = first + rng.permutation(last - first)
        A.indices[first:last], A.data[first:last] = A.indices[order], A.data[order]
    arrays = (A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64))
    found = kind(arrays, shape=A.shape)
    found.indices, found.indptr = arrays[1:]
    return found


USES = {
    "NPKL, Laplacian": (
        LAPLACIAN,
        lambda A: gm.kernel.NPKL(n_clusters=3, affinity="precomputed_laplacian").fit(A, TWICE),
    ),
    "NPKL, affinities": (
        WEIGHTS,
        lambda A: gm.kernel.NPKL(n_clusters=3, affinity="precomputed").fit(A, TWICE),
    ),
    "RegPCP, affinities": (
        WEIGHTS,
        lambda A: gm.kernel.RegPCP(n_clusters=3, affinity="precomputed").fit(A, TWICE),
    ),
    "smoothest": (LAPLACIAN, lambda A: smoothest(A, 3)),
    "npkl": (
        LAPLACIAN,
        lambda A: gm.minimize(gm.problems.npkl(A, [[0, 1]], [[0, 120]], 1.0), time_limit=2),
    ),
    "quadratic": (
        LAPLACIAN[:20, :20],
        lambda A: gm.minimize(gm.problems.quadratic(1.0, 0.0, A), time_limit=2),
    ),
    "KTA": (sp.csr_array(X), lambda A: gm.metric.KTA().fit(A, Y)),
    "LMNN": (sp.csr_array(X), lambda A: gm.metric.LMNN(shrinkage=0).fit(A, Y)),
    "NuclearCompletion": (
        sp.csr_array(X),
        lambda A: gm.completion.NuclearCompletion(lam=1.0).fit(A),
    ),
    "top_eigen": (LAPLACIAN, lambda A: gm.spectral.top_eigen(A, 3)),
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("kind", [sp.csr_array, slow(sp.csr_matrix)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_input_is_not_changed(name, kind):
    matrix, use = USES[name]
    given = unsorted(matrix, kind)
    assert given.indices.dtype == np.int64
    before = given.toarray()
    use(given)
    np.testing.assert_array_equal(given.toarray(), before)
