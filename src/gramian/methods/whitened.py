"""L-BFGS in whitened coordinates, for unfoldings of thousands of points.

In the descent of 3,000 digits (six neighbours) the triangular solves take 44 %, the correction
pairs of L-BFGS 21 %, the edges the rest. 1,000 points of a Swiss roll (12 neighbours, 1e-3) take
0.5 s: 150 steps 0.2 s, the certificate 0.2 s, the rest the graph and its root. The import of the
compiler would take as long, so that up to 2,000 points NumPy and SciPy do the work. Variants that
were not better (digits, and a Swiss roll of 1,000 points):

- Newton's method by conjugate gradients, from a point within 3e-4 of the optimum: worse for the
  same number of products. F is quartic along the many directions that change no edge to first
  order, and full steps are rejected.
- A root without small entries (2 % of the diagonal: a fifth of the entries), or of fewer edges (a
  tree and n/2 others): two to three times the steps.
- For digits, a start from principal components of the samples, or from the unfolding in a basis of
  30 functions: ahead for 200 steps, equal after 600. It is faster beyond 5,000 points, where only a
  few hundred steps are feasible.
- The last part of the root, which is nearly full, as a dense block, with compiled solves for the
  rest: not faster up to 10,000 points.
- Twelve principal axes of landmarks as the start, or three and small random columns: F decreases as
  fast, but the gap stays at 2e-3 for 100 steps more than with random columns of the same size.
- 8 or 14 eigenvectors in a repair: faster, but the S-curve needs 50 steps more.
- Minimising over the span of the lowest eigenvectors and of the factor in each step: without a
  proximal term the bound gets up to a thousand times worse.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from gramian.arrays.places import size
from gramian.common.types import Array
from gramian.methods.base import Run, Settings, Step, entering, no_rank_limit
from gramian.methods.columns import best_on_ray, leanest, starting_factor, with_falling, with_noise
from gramian.methods.lbfgs import StoredPairs, descend
from gramian.methods.loop import Progress, rounds
from gramian.methods.staircase import staircase
from gramian.methods.whitened_bounds import MeanImage, Placing, WhitenedBounds
from gramian.objectives.landmarks import from_landmarks
from gramian.problem import Problem
from gramian.reductions.graph_whitening import GraphWhitening, graph_whitening

SPARE_COLUMNS = 24
"""Columns at the start and throughout: more than most optima have. With only the columns that are
not weak, the thousand digits stay at a gap of 2e-3, with 24 they reach 1e-4 after 1,800 steps."""

CORRECTION_PAIRS = 5
"""Correction pairs of L-BFGS. To 1e-3, 1,000 points of three surfaces, of digits and 400 faces take
as many steps as with 10 and 20 pairs, or fewer, and a step reads half as many pairs."""

FIRST_STEPS, MAX_STEPS = 25, 200
"""L-BFGS steps of a round, and the limit of their number, which grows with every certificate that
does not suffice: at least twofold, and at least in proportion to its gap. After the limit a cheap
certificate follows in any case, and the mean of the iterates starts again."""

MAX_DECREASE_IN_TOLERANCES_PER_STEP = 0.007
"""Decrease of F per step, in tolerances, at which a round ends with a certificate: the gap is then
close to the tolerance."""

STEP_SECONDS_PER_ENTRY = 1.5e-7
"""Approximate seconds of a step per entry of the factor (not measured during the run, so that the
result does not depend on the load of the machine)."""

DEVICE_STEP_SECONDS = 2.6e-3
"""Approximate seconds of a step on a device: 10,000 digits on an H200, in a profiler."""

MAX_QUIET_ROUNDS = 3
"""Rounds without a better gap, each with more columns, before the staircase starts."""

MIN_DECREASE_IN_TOLERANCES = 0.01
"""Decrease of F in a round, in tolerances, after which another round follows. 1,500 rows of w1a,
1e-4: three rounds without a better gap, F decreasing by some 0.3 in each, then 1.0e-3 → 1.7e-4."""

MAX_CERTIFICATE_TIME_FRACTION = 0.1
"""A certificate that takes more than this fraction of the time of `MAX_STEPS` steps is omitted
while F decreases fast. 60,000 digits: 40 s of 80 s."""

FEW_COLUMNS, MAX_SPREAD_RATIO = 12, 0.02
"""Columns if the landmarks have at most this fraction of the variance of their first principal axis
along the axis of that number: 5e-4 to 1e-3 for 1,000 points of surfaces, 7e-3 for images of a
rotation, 0.07 for faces and 0.11 for digits. The optima of surfaces have a few long columns, and a
step takes half as long as with `SPARE_COLUMNS`; faces and digits end 0.6 and 2.5 %
above the optimum after 800 steps."""

DROPPED_COLUMNS_IN_TOLERANCES = 0.02
"""Increase of F, in tolerances, permitted for dropping columns."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """Why the problem has no whitened coordinates; None if it has."""
    if graph_whitening(problem) is None:
        return (
            "it needs distances along the edges of a connected graph, over M ⪰ 0, and an "
            "objective that is invariant to a shift of all points"
        )
    return no_rank_limit(problem, settings)


def whitened(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Minimise F(RYYᵀRᵀ) over Y, R a root of the graph's inverse Laplacian.

    L-BFGS continues between certificates while F or the gap decreases; the staircase follows.
    """
    L = yield from descents(problem, factor, settings)
    white = graph_whitening(problem)
    assert white is not None
    run = staircase(white.problem, white.coordinates(L), settings)
    while True:
        try:
            step = next(run)
        except StopIteration as end:
            return end.value
        yield placed(step, white)


@entering("whitened")
def descents(
    problem: Problem, factor: Array, settings: Settings
) -> Generator[Step, None, NDArray[Any]]:
    """L-BFGS alone, while F or the gap decreases; returns its last factor."""
    white = graph_whitening(problem)
    assert white is not None
    for step in _descent(white.problem, white.coordinates(factor), settings, white.coordinates):
        factor = white.factor(step.factor)
        yield placed(step, white)
    return factor


def _descent(problem: Problem, Y: Array, settings: Settings, place: Placing) -> Iterator[Step]:
    """L-BFGS with spare columns, certified by the mean of its iterates."""
    objective, mean = problem.objective, MeanImage(problem.objective)
    bounds, going = WhitenedBounds(problem, place, settings), StoredPairs()
    steps, uncertified = FIRST_STEPS, 0

    def advance(Y: Array) -> Array:
        return descend(
            objective,
            Y,
            settings,
            iterations=steps,
            memory=CORRECTION_PAIRS,
            watch=mean,
            going=going,
        )

    def look(Y: Array, progress: Progress) -> Step:
        nonlocal steps, uncertified, mean
        image, uncertified = objective.image(Y), uncertified + steps
        value = objective.value(image)
        few = MAX_DECREASE_IN_TOLERANCES_PER_STEP * steps * settings.tol * abs(value)
        early = progress.value - value > few and not settings.expired()
        if early and (uncertified < MAX_STEPS or dear(image)):
            return Step(Y, value)
        image = leanest(problem, image, DROPPED_COLUMNS_IN_TOLERANCES * settings.tol)
        certificate, dual = bounds.certified(image, mean.image or image)
        left = (certificate.relative_gap or 0.0) / settings.tol
        steps, uncertified = int(min(max(2 * steps, FIRST_STEPS * left), MAX_STEPS)), 0
        if steps == MAX_STEPS:
            mean = MeanImage(objective)
        return Step(image.factor, certificate.value, certificate, dual=dual)

    def dear(image: Any) -> bool:
        """Whether a certificate takes long relative to the steps."""
        on_host = objective.place.is_host
        seconds = STEP_SECONDS_PER_ENTRY * size(image.factor) if on_host else DEVICE_STEP_SECONDS
        allowed = MAX_CERTIFICATE_TIME_FRACTION * MAX_STEPS * seconds
        return bounds.seconds_at(image) > allowed

    def resize(Y: Array, progress: Progress) -> Array:
        if progress.falls or progress.closer:
            return Y
        return with_falling(problem, Y, settings, SPARE_COLUMNS // 2)

    start = widened(problem, Y, settings, place)
    yield from rounds(
        start,
        settings,
        advance,
        look,
        resize,
        patience=MAX_QUIET_ROUNDS,
        fall=MIN_DECREASE_IN_TOLERANCES,
        closer=0.8,
    )


def widened(problem: Problem, Y: Array, settings: Settings, place: Placing) -> Array:
    """Y with at least `SPARE_COLUMNS` columns, the new ones random.

    They are small, unless Y has no columns: it is then computed from landmarks.
    """
    columns = min(SPARE_COLUMNS, problem.order)
    if Y.shape[1]:
        return with_noise(Y, max(2, columns - Y.shape[1]), 1e-2, settings)
    found = from_landmarks(problem.objective, FEW_COLUMNS)
    if found is None:
        return starting_factor(problem, settings, columns)
    L, spread = found
    if spread < MAX_SPREAD_RATIO:
        columns = min(FEW_COLUMNS, columns)
    Y = place(problem.objective.place.put(L))
    Y = with_noise(Y, columns - Y.shape[1], 1.0, settings)
    return best_on_ray(problem.objective, Y)


def placed(step: Step, white: GraphWhitening) -> Step:
    """The step in the coordinates of the problem."""
    L, found = white.factor(step.factor), step.certificate
    kept = None if found is None else white.certificate(found, L)
    return replace(step, source=L, certificate=kept)
