"""BILGO, Algorithm 1: bilateral greedy optimisation over the PSD cone."""

from __future__ import annotations

from gramian.common.types import Array
from gramian.linalg import Method
from gramian.methods import lbfgs
from gramian.methods.base import Run, Settings, entering
from gramian.papers import lro
from gramian.papers.greedy import greedy
from gramian.problem import Problem

LOCAL_SEARCHES = {"lbfgs": lbfgs.descend, "cg": lro.descend}


@entering("bilgo")
def bilgo(
    problem: Problem,
    factor: Array,
    settings: Settings,
    *,
    local: str | None = "lbfgs",
    local_every: int = 5,
    local_iterations: int = 50,
    cap_alpha: bool = False,
    eigen: Method = "krylov",
    eigen_tol: float = 1e-4,
    certify_every: int = 5,
) -> Run:
    """Each iteration, with v the leading eigenvector of −∇F(M):

        (α, β) = argmin F(αM + βvvᵀ),   M ← αM + βvvᵀ,   L ← [√α L | √β v].

    Every `local_every` atoms a local search ("lbfgs", or "cg" with the quartic step of LRO)
    refines L, which is the paper's BILGO-LS; ``local=None`` is plain BILGO. The printed stopping
    tests (small relative change) are replaced by the KKT residuals and the certified gap.
    """
    if local is not None and local not in LOCAL_SEARCHES:
        raise ValueError(f"local must be None or one of {sorted(LOCAL_SEARCHES)}, got {local!r}")

    if local_every < 1 or local_iterations < 1:
        raise ValueError("local_every and local_iterations must be at least 1")

    def refine(L: Array, k: int) -> Array:
        if (k + 1) % local_every:
            return L
        search = LOCAL_SEARCHES[str(local)]
        return search(problem.objective, L, settings, iterations=local_iterations)

    return greedy(
        problem,
        factor,
        settings,
        atom=lambda image, pair: pair.vector,
        refine=None if local is None else refine,
        cap_alpha=cap_alpha,
        eigen=eigen,
        eigen_tol=eigen_tol,
        certify_every=certify_every,
    )
