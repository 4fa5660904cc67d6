"""Sweeps in float32 that end when an error has stopped moving, and one certificate after them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.threads import blas_threads_for
from gramian.bounds import (
    LEAST_TERMS,
    UNKNOWN,
    certificate_of,
    certify_image,
    proved_certificate,
)
from gramian.callbacks import State
from gramian.certificate import Certificate
from gramian.common import clock
from gramian.methods.alternating import STEPS
from gramian.methods.base import Step
from gramian.objectives import LowerBound
from gramian.problem import Problem
from gramian.result import History, Result, Status

Array = NDArray[np.floating]

MOVED, MOST = 1e-3, 12
"""The part of an error that a sweep must take off for another to follow, and how many at most."""

TOL = 0.6
"""The relative gap that the one certificate is made for, where Lanczos estimates λ_min: then it is
short, and the probability that it misses an eigenvalue by more than shows there is small."""

SPARE = 1.0
"""The size of columns in random directions beside those that are there."""

AHEAD, AHEAD_ENTRIES = 4, 400_000
"""Sweeps that are taken for a dual vector, and the entries that all of them may visit. On MovieLens
100K they take the certified gap from 6.9 % to 3.7 %, in 0.2 s; `repair` along eight eigenvectors
takes it to 6.2 % in 0.9 s. On 1M the gap of 12 % is for want of columns, and sweeps are dear."""

PROOF_SHARE, PROOF_LEAST = 0.25, 0.5
"""What a proof of λ_min may take beside the sweeps, and the seconds that it may take at least."""


SINGLE = 1e-5
"""What sums in float32 are allowed to be wrong by, relatively."""


@dataclass
class Quick:
    """States that are swept on, and what is told of the sweeps."""

    rng: np.random.Generator
    deadline: float = np.inf
    started: float = field(default_factory=clock.now)
    history: History = field(default_factory=History)
    watch: Callable[[State], Any] | None = None
    """Is shown every sweep."""
    interrupted: bool = False
    reading: float = 0.0
    """Seconds that it took to read and sort the entries, where there is a limit."""

    def expired(self) -> bool:
        return clock.passed(self.deadline)

    def scattered(self, halves: Any, rows: int, rank: int) -> Array:
        """A state of random Q, of the size that products as large as the targets need."""
        state = np.zeros((rows, rank + 1), dtype=halves.dtype)
        targets, scale = halves.upper.targets, halves.upper.scale
        square = float(np.mean(1.0 if scale is None else np.square(scale)))
        spread = np.sqrt(np.mean(np.square(targets)) / max(square, 1e-300))
        size = np.sqrt(max(float(spread), 1e-30)) / rank**0.25
        Q = state[halves.split :, :-1]
        Q[:] = size * self.rng.standard_normal(Q.shape, dtype=np.float32)
        if halves.noise is not None:
            Q *= halves.noise[halves.split :, None]
        return state

    def widened(self, state: Array, rank: int, noise: Array | None = None) -> Array:
        """The state with random columns beside its own, up to a rank.

        `noise` has the size of each row of them, 1 unless told.
        """
        own = state.shape[1] - 1
        if rank <= own:
            return state
        wide = np.empty((state.shape[0], rank + 1), dtype=state.dtype)
        wide[:, :own], wide[:, -1] = state[:, :-1], state[:, -1]
        more = self.rng.standard_normal((state.shape[0], rank - own), dtype=np.float32)
        size = 1.0 if noise is None else noise[:, None]
        length = SPARE * np.linalg.norm(state[:, :-1] / size) / np.linalg.norm(more)
        wide[:, own:-1] = max(float(length), 1e-6) * size * more
        return wide

    def sweep(self, halves: Any, state: Any, count: int) -> None:
        """That many sweeps over both halves, in place, unless the time is up.

        A state is what `halves` makes of it, an array or blocks on the workers of a cluster.
        """
        for _ in range(count):
            if self.expired() and (len(self.history) or self.interrupted):
                break
            try:
                halves.refit_upper(state, STEPS)
                value = halves.refit_lower(state, STEPS)
            except KeyboardInterrupt:  # what is swept so far is a point like any other
                self.interrupted, self.deadline = True, clock.now()
                break
            self._tell(halves, state, value)

    def _tell(self, halves: Any, state: Any, value: float) -> None:
        self.tell(Step(lambda: halves.factor(state), value), state.shape[1] - 1)

    def tell(self, step: Step, rank: int) -> None:
        """Write a step down, and show it to whoever watches."""
        certificate = step.certificate
        self.history.append({
            "iteration": len(self.history),
            "time": clock.elapsed(self.started),
            "value": step.value,
            "rank": rank,
            "gap": None if certificate is None else certificate.gap,
        })  # fmt: skip
        if self.watch is not None:
            self.watch(State(len(self.history) - 1, step, self.history.records[-1]))

    def until_still(self, halves: Any, state: Any, error_of: Callable[[Any], float]) -> None:
        """Sweeps until the error has stopped moving."""
        last = np.inf
        for _ in range(MOST):
            self.sweep(halves, state, 1)
            if self.interrupted:
                break
            error = error_of(state)
            self.history.records[-1]["held_out"] = error
            if not error < (1 - MOVED) * last or self.expired():
                break
            last = error

    def ahead(self, halves: Any, state: Array) -> Array | None:
        """The factor of a state some sweeps on, for the sake of its dual vector.

        The error has stopped moving when F has not: a dual vector from further on bounds F* much
        better. None where sweeps are dear, and where there are no dual vectors.
        """
        count = min(AHEAD, AHEAD_ENTRIES // max(halves.upper.targets.size, 1))
        if count == 0 or halves.everywhere or self.interrupted or self.expired():
            return None
        state, history, watch = state.copy(), self.history, self.watch
        self.history, self.watch = History(), None
        self.sweep(halves, state, count)
        self.history, self.watch = history, watch
        factor: Array = halves.factor(state)
        return factor

    def result(self, problem: Problem, factor: Array, ahead: Array | None = None) -> Result:
        """The point of a factor, with a certificate; by the dual vector of another, if told."""
        objective = problem.objective
        dual = None if ahead is None else objective.dual(objective.image(ahead))
        return self.result_of(problem, objective.image(factor), dual=dual)

    def cut_off(self, halves: Any, state: Array, problem: str) -> Result:
        """The point of a state without another look at the problem, where the time is up.

        Its value is that of the state, whose offsets are not the best of its factor, and may be
        above F. The bound is that F is not negative.
        """
        factor: Array = halves.factor(state)
        value = (1.0 + SINGLE) * float(halves.refit_upper(state.copy(), 0))
        trace = float(np.vdot(factor, factor))
        certificate = certificate_of(value, LowerBound(0.0, LEAST_TERMS), trace=trace)
        return self._told(factor, certificate, problem)

    def _told(
        self, factor: Array, certificate: Certificate, problem: str, formula: str = ""
    ) -> Result:
        return Result(
            factor=factor,
            value=certificate.value,
            status=self._status(),
            certificate=certificate,
            history=self.history,
            solver="auto",
            route=("alternating",),
            problem=problem,
            formula=formula,
            seconds=clock.elapsed(self.started),
        )

    def result_of(
        self,
        problem: Problem,
        image: Any,
        *,
        dual: Any = None,
        tol: float = TOL,
        seconds: float | None = None,
    ) -> Result:
        """The same for the image of a factor, λ_min as exact as a gap of `tol` needs.

        `seconds` is what its proof may take, by default a share of what the sweeps took.
        """
        if seconds is None:
            seconds = max(PROOF_LEAST, PROOF_SHARE * clock.elapsed(self.started))
        with blas_threads_for(0):
            certificate = self._certificate(problem, image, dual, tol, seconds)
        return self._told(image.factor, certificate, problem.name, problem.displayed)

    def _status(self) -> Status:
        if self.interrupted:
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self.expired() else Status.SETTLED

    def _certificate(
        self, problem: Problem, image: Any, dual: Any, tol: float, seconds: float
    ) -> Certificate:
        late = clock.last_deadline(self.started, self.deadline)
        with suppress(clock.TimeUpError), clock.until(late):
            return proved_certificate(problem, image, dual, tol=tol, seconds=seconds)[0]
        return certify_image(problem, image, bottom=UNKNOWN)
