"""When a run proves what it estimates, and the certificate that it ends with."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from gramian import clock
from gramian.certificate import Certificate, certify, certify_image, proved_certificate
from gramian.problem import Problem
from gramian.proofs import Bottom
from gramian.solvers.base import RESIDUALS, Settings, Step, is_optimal


@dataclass
class Prover:
    """Confirms certificates that would end a run: a gap is estimated often, and proved seldom."""

    problem: Problem
    settings: Settings
    proof: str
    """What a run may end with: "auto", "proved" or "estimated", as `minimize` explains."""
    wait: int = 0
    """Estimates within the tolerance to let pass before the next proof."""
    failed: int = 0
    found: Certificate | None = None
    """What the last attempt at a proof left."""
    residuals: int = 0
    """Certificates without a bound, whose residuals were within the tolerance."""

    def confirmed(self, step: Step) -> tuple[Step, bool]:
        """The step with a certificate that may end the run, and whether it does."""
        certificate, tol = step.certificate, self.settings.tol
        if certificate is None or not is_optimal(certificate, tol):
            return step, False
        if certificate.gap is None:
            self.residuals += 1
            return step, self.residuals >= RESIDUALS
        if certificate.proved:
            return step, True
        if self.wait > 0:
            self.wait -= 1
            return replace(step, certificate=None), False
        found = self.proved(step, prove=self.proof != "estimated")
        if not is_optimal(found, tol) and self.proof == "estimated":  # Lanczos was not enough
            found = self.proved(step)
        accepted = found.proved or self.proof != "proved"  # an estimate: no proof did fit
        if is_optimal(found, tol) and accepted:
            return replace(step, certificate=found), True
        self.failed += 1
        self.wait = 2**self.failed
        return replace(step, certificate=found), False

    def proved(self, step: Step, *, prove: bool = True) -> Certificate:
        """The certificate of the step with λ_min proved, where a proof fits."""
        image = self.problem.objective.image(step.factor)
        certificate, bottom = proved_certificate(
            self.problem,
            image,
            step.dual,
            tol=self.settings.tol,
            seconds=self.settings.proof_seconds(),
            prove=prove,
        )
        self.settings.hint.vector = bottom.vector
        self.found = certificate
        return certificate

    def last(self, best: Step, *, late: bool) -> Certificate:
        """The certificate of the best point, proved where there is time for it."""
        certificate = best.certificate or self._first(best)
        tried = certificate.proved or certificate is self.found
        if not tried and self.proof != "estimated" and not late:
            with suppress(clock.TimeUpError), clock.until(self.settings.last_deadline()):
                certificate = self.proved(best)
        return certificate

    def _first(self, best: Step) -> Certificate:
        """That of a point that has none yet, by what costs nothing where the time is up."""
        problem, seconds = self.problem, self.settings.proof_seconds()
        nothing = Certificate(best.value, -np.inf, np.nan, None, None, "none", scale=problem.scale)
        try:
            with clock.until(self.settings.last_deadline()):
                return certify(problem, best.factor, tol=self.settings.tol, time_limit=seconds)
        except clock.TimeUpError:
            with suppress(clock.TimeUpError), clock.until(clock.now() + 0.1):
                image = problem.objective.image(best.factor)
                return certify_image(problem, image, bottom=Bottom(-np.inf, ""))
            return nothing
        except (FloatingPointError, np.linalg.LinAlgError):
            return nothing
