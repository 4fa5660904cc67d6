"""Sweeps in float32 until an error no longer decreases, followed by one certificate."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
from gramian.common.types import Array
from gramian.methods.alternating import CG_STEPS_PER_ROW
from gramian.methods.base import Step
from gramian.objectives import LowerBound
from gramian.outcome import Outcome, result_of
from gramian.problem import Problem
from gramian.result import History, Result, Status

MIN_ERROR_DECREASE, MAX_SWEEPS = 1e-3, 12
"""Relative decrease of the error for which another sweep follows, and the maximum number of
sweeps."""

CERTIFICATE_TOLERANCE = 0.15
"""Tolerance of the final certificate, if Lanczos estimates λ_min: it adds at most a twentieth of
this to the relative gap. Few products suffice, and the probability that the estimate misses an
eigenvalue by a relevant amount is small."""

DUAL_SWEEPS, MAX_DUAL_SWEEP_ENTRIES = 4, 400_000
"""Sweeps to improve the dual vector, and the entries that all of them may visit. On MovieLens
100K they reduce the certified gap from 1.6 % to 0.6 %, in 0.2 s. On 1M sweeps are expensive."""

PROOF_TIME_FRACTION, MIN_PROOF_SECONDS = 0.25, 0.5
"""Time limit of a proof of λ_min, as a fraction of the time of the sweeps, and its minimum in
seconds."""


FLOAT32_ERROR = 1e-5
"""Relative error of sums in float32."""


@dataclass
class Quick:
    """Sweeps on a state, and their history."""

    rng: np.random.Generator
    deadline: float = np.inf
    started: float = field(default_factory=clock.now)
    history: History = field(default_factory=History)
    watch: Callable[[State], Any] | None = None
    """Called after every sweep."""
    interrupted: bool = False
    reading: float = 0.0
    """Seconds taken to read and sort the entries, if there is a time limit."""

    def expired(self) -> bool:
        return clock.passed(self.deadline)

    def sweep(self, halves: Any, state: Any, count: int) -> None:
        """Take `count` sweeps over both halves, in place, while the time permits.

        The state belongs to `halves`: an array, or blocks on the workers of a cluster.
        """
        for _ in range(count):
            if self.expired() and (len(self.history) or self.interrupted):
                break
            try:
                halves.refit_upper(state, CG_STEPS_PER_ROW)
                value = halves.refit_lower(state, CG_STEPS_PER_ROW)
            except KeyboardInterrupt:  # the state is valid at any time
                self.interrupted, self.deadline = True, clock.now()
                break
            self._record_sweep(halves, state, value)

    def _record_sweep(self, halves: Any, state: Any, value: float) -> None:
        self.tell(Step(lambda: halves.factor(state), value), state.shape[1] - 1)

    def tell(self, step: Step, rank: int) -> None:
        """Add a step to the history and call `watch`."""
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
        """Sweep until the error no longer decreases."""
        last = np.inf
        for _ in range(MAX_SWEEPS):
            self.sweep(halves, state, 1)
            if self.interrupted:
                break
            error = error_of(state)
            self.history.records[-1]["held_out"] = error
            if not error < (1 - MIN_ERROR_DECREASE) * last or self.expired():
                break
            last = error

    def ahead(self, halves: Any, state: Array) -> Array | None:
        """The factor after some further sweeps, for its dual vector.

        The error converges before F: a dual vector of a later iterate gives a much better bound
        on F*. None if sweeps are expensive or there are no dual vectors.
        """
        count = min(DUAL_SWEEPS, MAX_DUAL_SWEEP_ENTRIES // max(halves.size, 1))
        if count == 0 or halves.everywhere or self.interrupted or self.expired():
            return None
        state, history, watch = state.copy(), self.history, self.watch
        self.history, self.watch = History(), None
        self.sweep(halves, state, count)
        self.history, self.watch = history, watch
        return halves.factor(state)

    def result(
        self, problem: Problem, image: Any, ahead: Array | None = None, **limits: Any
    ) -> Result:
        """The result for the image of a factor; its certificate uses the dual vector of the factor
        `ahead`, if given.
        """
        objective = problem.objective
        dual = None if ahead is None else objective.dual(objective.image(ahead))
        return self.certified(problem, image, dual=dual, **limits)

    def cut_off(self, halves: Any, state: Array, problem: str) -> Result:
        """The result for a state without further evaluation of the problem, if the time is up.

        Its value is that of the state, whose offsets are not optimal for its factor, and may be
        above F. The bound is F ≥ 0.
        """
        factor: Array = halves.factor(state)
        value = (1.0 + FLOAT32_ERROR) * float(halves.refit_upper(state.copy(), 0))
        trace = float(np.vdot(factor, factor))
        certificate = certificate_of(value, LowerBound(0.0, LEAST_TERMS), trace=trace)
        return self._result(factor, certificate, problem)

    def _result(self, factor: Array, certificate: Certificate, problem: Problem | str) -> Result:
        return result_of(
            problem,
            Outcome(factor, certificate, self._status()),
            tol=np.inf,
            solver="auto",
            route=("alternating",),
            started=self.started,
            history=self.history,
        )

    def certified(
        self,
        problem: Problem,
        image: Any,
        *,
        dual: Any = None,
        tol: float = CERTIFICATE_TOLERANCE,
        seconds: float | None = None,
    ) -> Result:
        """The result for the image of a factor, with λ_min accurate enough for a gap of `tol`.

        `seconds` limits its proof, by default a fraction of the time of the sweeps.
        """
        if seconds is None:
            seconds = max(MIN_PROOF_SECONDS, PROOF_TIME_FRACTION * clock.elapsed(self.started))
        with blas_threads_for(0):
            certificate = self._certificate(problem, image, dual, tol, seconds)
        return self._result(image.factor, certificate, problem)

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
