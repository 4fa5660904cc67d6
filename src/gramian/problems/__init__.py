"""Constructors of the problems of the papers: formula to `Problem`."""

from gramian.problems.class_collapse import class_collapse
from gramian.problems.completion import (
    implicit_completion,
    mmmf,
    mmmf_eig,
    nuclear_completion,
)
from gramian.problems.graphs import (
    lovasz_theta,
    maxcut,
    sensor_localization,
    sensor_positions,
)
from gramian.problems.inductive import inductive_kernel
from gramian.problems.kernel import npkl, reg_pcp
from gramian.problems.layout import neighbor_layout
from gramian.problems.local_metric import dml_eig, lmnn, lmnn_eig, triplets
from gramian.problems.manifold import mvu, reg_mvu
from gramian.problems.metric import kta, linear_separation
from gramian.problems.nearest import nearest
from gramian.problems.sdp import sdp
from gramian.problems.spectral import quadratic, top_eigen

__all__ = [
    "class_collapse",
    "dml_eig",
    "implicit_completion",
    "inductive_kernel",
    "kta",
    "linear_separation",
    "lmnn",
    "lmnn_eig",
    "lovasz_theta",
    "maxcut",
    "mmmf",
    "mmmf_eig",
    "mvu",
    "nearest",
    "neighbor_layout",
    "npkl",
    "nuclear_completion",
    "quadratic",
    "reg_mvu",
    "reg_pcp",
    "sdp",
    "sensor_localization",
    "sensor_positions",
    "top_eigen",
    "triplets",
]
