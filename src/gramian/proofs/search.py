"""The largest shift that a factorisation proves: first an estimate, then a proof below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gramian.arrays.places import host
from gramian.common import clock
from gramian.common.types import Array
from gramian.proofs.base import EXACT_ORDER, PATIENCE, Bottom, Form, place_of_matrix, typical_size
from gramian.proofs.bipartite import Bipartite
from gramian.proofs.dense import DenseForm, all_eigenvalues, definite_in, dense_seconds
from gramian.proofs.estimate import MAX_PRODUCTS, NEGATIVE_RTOL, estimated
from gramian.proofs.low_rank import LowRank
from gramian.proofs.sparse import MAX_DENSE_ORDER, SparseForm

MAX_FACTORISATIONS = 6
"""Largest number of factorisations of one proof; usually three."""

HOST_PRODUCTS = 120
"""Lanczos products of the initial estimate on the host. A device uses `MAX_PRODUCTS`: there,
products are cheap relative to a factorisation, and a good estimate saves one."""

STEP_GROWTH = 16.0
"""Factor of the distance below the estimate after a failed factorisation."""

ROUNDING_RTOL = 1e-6
"""Negative eigenvalues up to this fraction of the matrix size may be due to rounding or scaling."""

MAX_IN_WANTED = 4.0
"""A bound within this multiple of the wanted accuracy is not improved further."""


def lowest(
    matrix: Any,
    *,
    wanted: float | None = None,
    seconds: float = PATIENCE,
    start: Array | None = None,
    prove: bool = True,
    known: Array | None = None,
    rescale: bool = False,
) -> Bottom:
    """A lower bound on λ_min, proved if time and memory allow it.

    Parameters
    ----------
    matrix : see `gramian.proofs.base.SymmetricMatrix`.
    wanted : the useful accuracy; by default 1e-9 times the size of the matrix.
    seconds : time limit of the proof; 0 gives an estimate at once.
    start : approximate eigenvector.
    prove : if False, the bound is an estimate beyond order 1500.
    known : columns on whose span the matrix is near 0, as ∇F is on L; an estimate deflates them.
    rescale : whether to attempt a proof of 0 in other coordinates if rounding prevents one.
    """
    seconds = min(seconds, clock.left())
    deadline = clock.now() + seconds
    form = matrix.form()
    if matrix.order <= EXACT_ORDER and not (isinstance(form, LowRank) and form.U.shape[1] == 0):
        found = all_eigenvalues(matrix)
        return _rescaled(matrix, found) if rescale else found
    if isinstance(form, Bipartite):
        return _of_blocks(matrix, form, wanted, seconds, start, prove)
    if isinstance(form, LowRank):
        found, lost = form.lowest()
        fine = wanted is None or lost <= max(wanted, NEGATIVE_RTOL * max(0.0, -found.value))
        if fine or (prove and not _dense_fits(matrix, seconds)):
            return found
        form, start = None, found.vector  # columns of very different size: use the entries
    if prove and _dense_fits(matrix, seconds) and _dense_is_quicker(form, matrix):
        sparse = isinstance(form, SparseForm) and form.plain
        form = DenseForm(matrix.dense(), matrix.slack())
        # The products of an estimate are cheaper with a sparse than with a dense matrix.
        matrix = matrix if sparse else form
    wanted = 1e-9 * typical_size(matrix) if wanted is None or not wanted > 0 else wanted
    if not prove or form is None or MAX_FACTORISATIONS / 2 * form.seconds > seconds:
        return estimated(matrix, wanted, deadline=deadline, start=start, known=known)
    most = HOST_PRODUCTS if place_of_matrix(matrix).is_host else MAX_PRODUCTS
    guess = estimated(
        matrix, wanted, deadline=deadline, start=start, starts=1, most=most, chance=False,
        known=known,
    )  # fmt: skip
    return _proved(matrix, form, guess, wanted, deadline)


def _rescaled(matrix: Any, found: Bottom) -> Bottom:
    """0 if the bound is negative due to rounding and other coordinates prove 0."""
    known = getattr(matrix, "coordinates", None)
    if found.value >= 0 or known is None:
        return found
    doubt = ROUNDING_RTOL * typical_size(matrix) + 2 * float(np.sum(matrix.slack()))
    T = known() if -found.value <= doubt else None
    proved = T is not None and definite_in(matrix, T)
    return Bottom(0.0, "Cholesky") if proved else found


def _of_blocks(
    matrix: Any,
    form: Bipartite,
    wanted: float | None,
    seconds: float,
    start: Array | None,
    prove: bool,
) -> Bottom:
    """The bound from the smaller Gram matrix of the block, if that is not too large."""
    fine = None if wanted is None else 2 * wanted * max(form.scale, wanted)
    fits = form.order <= EXACT_ORDER or _dense_fits(form.smaller(), seconds - form.forming)
    if prove and fits:
        found = lowest(form.smaller(), wanted=fine, seconds=seconds)
        if found.proved:
            return Bottom(form.from_smaller(found.value), "blocks")
    if form.tall or (prove and start is None):  # half as many products as with the whole matrix
        left = PATIENCE if form.tall else seconds
        found = lowest(form.smaller(), wanted=fine, seconds=left, prove=False)
        return Bottom(form.from_smaller(found.value), found.how, found.miss)
    accuracy = 1e-9 * typical_size(matrix) if wanted is None or not wanted > 0 else wanted
    deadline = clock.now() + seconds
    return estimated(matrix, accuracy, deadline=deadline, start=start)


def _proved(matrix: Any, form: Form, guess: Bottom, wanted: float, deadline: float) -> Bottom:
    """The bound of the first shift that a factorisation proves, improved if it is too low."""
    assert guess.vector is not None
    vector = guess.vector
    seen = float(vector @ (matrix @ vector))
    wanted = max(wanted, form.resolution(host(vector), _probable(guess)))
    near = seen - MAX_IN_WANTED * max(wanted, NEGATIVE_RTOL * max(0.0, -seen))
    for shift in _shifts(matrix, guess, near, wanted):
        proof = form.above(shift)
        if proof.definite or clock.passed(deadline):
            break
    if not proof.definite:  # the guess is refuted: no bound is known
        return Bottom(-np.inf, form.how, vector=vector)
    if shift >= near or proof.solve is None or clock.passed(deadline):
        return Bottom(shift, form.how, vector=vector)
    value, better = form.next_to(shift, proof.solve)
    sharper = value - max(wanted, NEGATIVE_RTOL * max(0.0, -value))
    if sharper > shift and form.above(sharper).definite:
        shift = sharper
    return Bottom(shift, form.how, vector=better)


def _probable(guess: Bottom) -> float:
    """The probable λ_min."""
    return guess.value if guess.hope is None else max(guess.value, guess.hope)


def _shifts(matrix: Any, guess: Bottom, near: float, wanted: float) -> Iterator[float]:
    """The shifts to prove in turn.

    They begin just below the probable λ_min. The second is also below the guess, which includes the
    residual of Lanczos. An eigenvector in the known span is accurate, but `hope` assumes that the
    most unfavourable vector outside is coupled to it: `near`, just below its value, comes first.
    """
    top = _probable(guess)
    step = max(wanted, NEGATIVE_RTOL * max(0.0, -top))
    if guess.hope is not None and near > top - step:
        yield near
    for _ in range(MAX_FACTORISATIONS):
        yield top - step
        step = max(STEP_GROWTH * step, top - guess.value + step, 1e-13 * typical_size(matrix))


def _dense_is_quicker(form: Form | None, matrix: Any) -> bool:
    """Whether a dense factorisation is faster than the sparse one of this form, if any."""
    if form is None or not place_of_matrix(matrix).is_host:
        return True
    if not (isinstance(form, SparseForm) and form.plain):
        return False
    return form.fills if form.order <= MAX_DENSE_ORDER else dense_seconds(form.order) < form.seconds


def _dense_fits(matrix: Any, seconds: float) -> bool:
    """Whether the matrix and its factor fit into a quarter of the memory, and into the time."""
    order, place = matrix.order, place_of_matrix(matrix)
    if 16.0 * order**2 >= place.free_memory() / 4:
        return False
    return MAX_FACTORISATIONS / 2 * dense_seconds(order, place) <= seconds
