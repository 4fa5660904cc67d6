"""Scaling of a quadratic objective to numbers near 1 for conic solvers: M = α D M̂ D."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.arrays.dense import eigh
from gramian.certificate import Certificate
from gramian.common.types import Array
from gramian.linalg.svec import smat, triangle
from gramian.objectives.quadratic_form import QuadraticForm
from gramian.reductions.base import carried


@dataclass(frozen=True)
class ConicScaling:
    """M = α D M̂ D with D = diag(d), and F = β F̂ + constant."""

    form: QuadraticForm
    """F̂."""
    d: Array
    alpha: float
    beta: float
    constant: float

    def factor(self, Y: Array) -> Array:
        """√α DY."""
        return np.ascontiguousarray(self.d[:, None] * Y * np.sqrt(self.alpha))

    def coordinates(self, L: Array) -> Array:
        """D⁻¹L/√α."""
        return L / (self.d[:, None] * np.sqrt(self.alpha))

    def certificate(self, found: Certificate, L: Array) -> Certificate:
        """The gap of F̂ in units of F."""
        return carried(found, L, scale=self.beta, constant=self.constant)

    def without_falling(self, s: Array, trace: float | None) -> Array:
        """A factor of M̂ = smat(s) without directions whose removal decreases F̂.

        An interior point has only positive eigenvalues. At an optimum an eigenvalue of M̂ or the
        slope of F̂ along its vector is 0, and otherwise they are near 1.
        """
        form, order = self.form, self.d.size
        M = smat(s, order)
        G = smat(2 * (form.B.T @ (form.B @ s - form.t)) + form.c, order)
        if trace is not None:  # slopes along the slice ⟨D², M̂⟩ = τ/α
            G = G - np.diag(self.d**2) * (np.sum(G * M) / np.sum(self.d**2 * np.diag(M)))
        values, vectors = eigh(M)
        slopes = np.sum(vectors * (G @ vectors), axis=0)
        kept = values > np.maximum(slopes, 0.0)
        return vectors[:, kept] * np.sqrt(values[kept])


def conic_scaling(form: QuadraticForm, trace: float | None) -> ConicScaling:
    """The scaled problem, whose numbers are near 1.

    d gives the columns of B of diagonal entries of M equal lengths. For the Laplacian basis of
    RegMVU this is Λ^{-1/2}. α is the size of M̂ estimated from t, c or the trace, and β that of F.
    """
    i, j, _ = triangle(form.order)
    lengths = column_norms(form.B)[i == j]
    typical = np.exp(np.mean(np.log(lengths[lengths > 0]))) if np.any(lengths > 0) else 1.0
    d = np.sqrt(1.0 / np.where(lengths > 1e-8 * typical, lengths, typical))
    weights = d[i] * d[j]
    B = form.B * weights if not sp.issparse(form.B) else form.B @ sp.diags_array(weights)
    c = form.c * weights
    of_t, of_c = float(np.linalg.norm(form.t)), float(np.linalg.norm(c))
    alpha = (max(of_t, of_c) or 1.0) if trace is None else trace / float(np.mean(d**2))
    beta = max(alpha**2, of_t**2, alpha * of_c)
    root = np.sqrt(beta)
    scaled = QuadraticForm(B * (alpha / root), form.t / root, c * (alpha / beta), 0.0, form.order)
    return ConicScaling(scaled, d, alpha, beta, form.constant)


def column_norms(B: Any) -> Array:
    """The norm of each column of a dense or sparse matrix."""
    squares = B.multiply(B) if sp.issparse(B) else B * B
    return np.sqrt(np.asarray(squares.sum(axis=0)).ravel())
