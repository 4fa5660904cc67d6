"""Matrix-free linear algebra: eigenpairs, conjugate gradients, L-BFGS, small exact searches.

`leading_eigenpair` finds the largest (algebraic) eigenvalue of anything with ``shape`` and
``@``; `block_lanczos` finds several, including multiple ones. For the smallest, negate
the operator.
"""

from gramian.linalg._lanczos import EigenPair, Operator, ritz_pairs
from gramian.linalg.bilateral import bilateral, box_quadratic
from gramian.linalg.block_lanczos import block_lanczos
from gramian.linalg.cone_quadratic import Slice, cone_quadratic
from gramian.linalg.conjugate_gradient import conjugate_gradient
from gramian.linalg.krylov import METHODS, Method, leading_eigenpair
from gramian.linalg.polynomial import minimise_quartic
from gramian.linalg.quartic import quartic
from gramian.linalg.quasi_newton import Point, quasi_newton

__all__ = [
    "METHODS",
    "EigenPair",
    "Method",
    "Operator",
    "Point",
    "Slice",
    "bilateral",
    "block_lanczos",
    "box_quadratic",
    "cone_quadratic",
    "conjugate_gradient",
    "leading_eigenpair",
    "minimise_quartic",
    "quartic",
    "quasi_newton",
    "ritz_pairs",
]
