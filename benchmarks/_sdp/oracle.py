"""Clarabel called directly, on a form of its own: an optimum that gramian had no part in."""

import clarabel
import numpy as np
import scipy.sparse as sp

from benchmarks._sdp.instances import Instance


def optimum(given: Instance) -> tuple[str, float]:
    """("solved", ⟨C, M⟩), ("infeasible", inf), ("unbounded", −inf), or ("unsure", NaN)."""
    n = len(given.C)
    j, i = np.tril_indices(n)
    scale = np.where(i == j, 1.0, np.sqrt(2.0))

    def svec(M):
        return scale * M[..., i, j]

    size = scale.size
    rows = [svec(given.A).reshape(-1, size), svec(given.B).reshape(-1, size), -np.eye(size)]
    cones = [clarabel.ZeroConeT(len(given.b)), clarabel.PSDTriangleConeT(n)]
    if len(given.h):
        cones.insert(1, clarabel.NonnegativeConeT(len(given.h)))
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
    found = clarabel.DefaultSolver(
        sp.csc_matrix((size, size)),
        svec(given.C),
        sp.csc_matrix(np.vstack(rows)),
        np.concatenate([given.b, given.h, np.zeros(size)]),
        cones,
        options,
    ).solve()
    status = str(found.status)
    if status in ("Solved", "AlmostSolved"):
        return "solved", float(found.obj_val)
    words = {"PrimalInfeasible": ("infeasible", np.inf), "DualInfeasible": ("unbounded", -np.inf)}
    return words.get(status.removeprefix("Almost"), ("unsure", np.nan))
