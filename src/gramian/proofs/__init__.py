"""Lower bounds on the smallest eigenvalue of a symmetric matrix that hold in floating point.

`lowest` takes an operator (products, and the structure of the matrix if known) and returns a
`Bottom`: a lower bound, the kind of its proof, and a bound on the probability that it is wrong,
which is 0 for all methods except Lanczos.
"""

from gramian.proofs.base import EXACT_ORDER, PATIENCE, Bottom, Factor, Form, rounded_sum
from gramian.proofs.bipartite import Bipartite
from gramian.proofs.dense import DenseForm, eigen_seconds, lost_by
from gramian.proofs.estimate import LIVE, ComplementSplit, estimated
from gramian.proofs.low_rank import LowRank
from gramian.proofs.pencil import PencilRoot
from gramian.proofs.search import lowest
from gramian.proofs.sparse import SparseForm, gershgorin

__all__ = [
    "EXACT_ORDER",
    "LIVE",
    "PATIENCE",
    "Bipartite",
    "Bottom",
    "ComplementSplit",
    "DenseForm",
    "Factor",
    "Form",
    "LowRank",
    "PencilRoot",
    "SparseForm",
    "eigen_seconds",
    "estimated",
    "gershgorin",
    "lost_by",
    "lowest",
    "rounded_sum",
]
