"""The largest shift that a factorisation proves: an estimate first, then the proof below it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import host
from gramian.common import clock
from gramian.proofs.base import EXACT_ORDER, Bottom, Form, place_of_matrix, typical_size
from gramian.proofs.bipartite import Bipartite
from gramian.proofs.dense import DenseForm, all_eigenvalues, definite_in, dense_seconds
from gramian.proofs.estimate import COARSE, estimated
from gramian.proofs.low_rank import LowRank
from gramian.proofs.sparse import SparseForm

Array = NDArray[np.floating]

PATIENCE = 60.0
"""Seconds that the factorisations of one proof may take, unless told."""

TRIALS = 6
"""Factorisations of one proof, three of them as a rule."""

GUESS, DEVICE_GUESS = 120, 480
"""Products of the estimate that says where to try first; on a device they cost little beside a
factorisation, and a good guess saves one."""

DENSE = 5000
"""Orders up to which a dense factor takes less time than a sparse one that fills in, whatever the
machine; beyond it trial factorisations tell."""

WIDER = 16.0
"""How much further down the next one is tried where one fails."""

NEARLY = 1e-6
"""Part of the size of a matrix up to which a negative eigenvalue may be rounding or a matter of
units."""

ENOUGH = 4.0
"""A bound this many times as far down as is wanted need not be sharpened."""


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
    """A lower bound on λ_min, proved where that fits into the time and the memory there is.

    Parameters
    ----------
    matrix : see `gramian.proofs.base.Matrix`.
    wanted : the accuracy that is of use; by default a billionth of the matrix's size.
    seconds : what the proof may take; 0 gives an estimate at once.
    start : a guess of the eigenvector.
    prove : whether to try; without, it is an estimate beyond order 1500.
    known : columns on whose span the matrix is near 0, as ∇F is on L: an estimate looks beside it.
    rescale : whether to try 0 in coordinates of the matrix's own, where rounding hides it.
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
        fine = wanted is None or lost <= max(wanted, COARSE * max(0.0, -found.value))
        if fine or (prove and not _dense_fits(matrix, seconds)):
            return found
        form, start = None, found.vector  # columns of very different size: entries tell more
    if prove and _dense_fits(matrix, seconds) and _dense_is_quicker(form, matrix):
        sparse = isinstance(form, SparseForm) and form.plain
        form = DenseForm(matrix.dense(), matrix.slack())
        # Products of an estimate are cheaper with a sparse matrix than with its entries.
        matrix = matrix if sparse else form
    wanted = 1e-9 * typical_size(matrix) if wanted is None or not wanted > 0 else wanted
    if not prove or form is None or TRIALS / 2 * form.seconds > seconds:
        return estimated(matrix, wanted, deadline=deadline, start=start, known=known)
    most = GUESS if place_of_matrix(matrix).is_host else DEVICE_GUESS
    guess = estimated(
        matrix, wanted, deadline=deadline, start=start, starts=1, most=most, chance=False,
        known=known,
    )  # fmt: skip
    return _proved(matrix, form, guess, wanted, deadline)


def _rescaled(matrix: Any, found: Bottom) -> Bottom:
    """0 where a bound is negative by rounding and the matrix's own coordinates prove 0."""
    known = getattr(matrix, "coordinates", None)
    if found.value >= 0 or known is None:
        return found
    doubt = NEARLY * typical_size(matrix) + 2 * float(np.sum(matrix.slack()))
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
    """That of the smaller Gram matrix of the block, where it is not too large itself."""
    fine = None if wanted is None else 2 * wanted * max(form.scale, wanted)
    fits = form.order <= EXACT_ORDER or _dense_fits(form.smaller(), seconds - form.forming)
    if prove and fits:
        found = lowest(form.smaller(), wanted=fine, seconds=seconds)
        if found.proved:
            return Bottom(form.from_smaller(found.value), "blocks")
    if form.tall:
        found = lowest(form.smaller(), wanted=fine, seconds=PATIENCE, prove=False)
        return Bottom(form.from_smaller(found.value), found.how, found.miss)
    accuracy = 1e-9 * typical_size(matrix) if wanted is None or not wanted > 0 else wanted
    deadline = clock.now() + seconds
    return estimated(matrix, accuracy, deadline=deadline, start=start)


def _proved(matrix: Any, form: Form, guess: Bottom, wanted: float, deadline: float) -> Bottom:
    """The bound of the first shift that a factorisation proves, sharpened where it is far down.

    The first shift lies below what λ_min probably is, the second also below the guess, which
    allows for the residual of Lanczos.
    """
    low, vector = float(guess.value), guess.vector
    assert vector is not None
    top = low if guess.hope is None else max(low, guess.hope)
    seen = float(vector @ (matrix @ vector))
    wanted = max(wanted, form.resolution(host(vector), top))
    step, shift, proof = max(wanted, COARSE * max(0.0, -top)), top, None
    for _ in range(TRIALS):
        shift = top - step
        proof = form.above(shift)
        if proof.definite or clock.passed(deadline):
            break
        step = max(WIDER * step, top - low + step, 1e-13 * typical_size(matrix))
    if proof is None or not proof.definite:  # the guess is refuted, and no bound is left
        return Bottom(-np.inf, form.how, vector=vector)
    first = Bottom(shift, form.how, vector=vector)
    near = seen - shift <= ENOUGH * max(wanted, COARSE * max(0.0, -seen))
    if near or proof.solve is None or clock.passed(deadline):
        return first
    value, vector = form.next_to(shift, proof.solve)
    sharper = value - max(wanted, COARSE * max(0.0, -value))
    if sharper > shift and form.above(sharper).definite:
        shift = sharper
    return Bottom(shift, form.how, vector=vector)


def _dense_is_quicker(form: Form | None, matrix: Any) -> bool:
    """Whether a dense factor takes less time than the sparse one of this form, if it has one."""
    if form is None or not place_of_matrix(matrix).is_host:
        return True
    if not (isinstance(form, SparseForm) and form.plain):
        return False
    return form.fills if form.order <= DENSE else dense_seconds(form.order) < form.seconds


def _dense_fits(matrix: Any, seconds: float) -> bool:
    """Whether the matrix and its factor fit into a quarter of the memory, and into the time."""
    order, place = matrix.order, place_of_matrix(matrix)
    if 16.0 * order**2 >= place.free_memory() / 4:
        return False
    return TRIALS / 2 * dense_seconds(order, place) <= seconds
