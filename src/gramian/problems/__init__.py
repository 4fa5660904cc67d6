"""The problems of the papers, from formula to `Problem`."""

from gramian.problems.completion import (
    implicit_completion,
    mmmf,
    mmmf_eig,
    nuclear_completion,
)
from gramian.problems.inductive import inductive_kernel
from gramian.problems.kernel import npkl, reg_pcp
from gramian.problems.local_metric import dml_eig, lmnn, lmnn_eig, triplets
from gramian.problems.manifold import mvu, reg_mvu
from gramian.problems.metric import kta, linear_separation
from gramian.problems.nearest import nearest
from gramian.problems.spectral import quadratic, top_eigen

__all__ = [
    "dml_eig",
    "implicit_completion",
    "inductive_kernel",
    "kta",
    "linear_separation",
    "lmnn",
    "lmnn_eig",
    "mmmf",
    "mmmf_eig",
    "mvu",
    "nearest",
    "npkl",
    "nuclear_completion",
    "quadratic",
    "reg_mvu",
    "reg_pcp",
    "top_eigen",
    "triplets",
]
