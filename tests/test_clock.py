"""Deadlines: shares of the time of a fit, and estimators that stop soon after their limit."""

import time
from contextlib import suppress

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_s_curve

import gramian as gm
from gramian.arrays import threads
from gramian.common import clock
from gramian.kernel import NPKL, PCP, AutoKernel, RegPCP
from gramian.manifold import MVU, ColoredMVU, NeighborLayout, RegMVU
from gramian.metric import (
    KTA,
    LMNN,
    AutoMetric,
    ClassCollapse,
    DMLEig,
    LinearSeparation,
    LMNNEig,
    TripletMetric,
)
from gramian.metric._impostors import Impostors
from gramian.objectives import Composite, GramQuadratic
from tests.slow import slow, slow_except

LIMIT = 1000.0
"""Seconds: far more than the tests take, so that only the jump of the clock ends a fit."""

CERTIFICATE = 30
"""Images of factors that a start, a step and a last certificate compute; `MVU` compares two starts.
Fits without a deadline compute hundreds."""

pytestmark = pytest.mark.filterwarnings("ignore")


class Jumping(clock.Watcher):
    """A clock that jumps beyond the deadline when the k-th phase begins."""

    def __init__(self, monkeypatch, jump=np.inf):
        self.offset, self.jump, self.phases, self.late = 0.0, jump, [], 0
        monkeypatch.setattr(clock, "now", lambda: time.perf_counter() + self.offset)
        for kind in (Composite, GramQuadratic):
            monkeypatch.setattr(kind, "image", self.counted(kind.image))

    def counted(self, evaluate):
        def image(objective, *given, **named):
            self.late += self.offset > 0
            return evaluate(objective, *given, **named)

        return image

    def phase(self, name):
        self.phases.append(name)
        if len(self.phases) > self.jump:
            self.offset = 2 * LIMIT


def labelled():
    return make_blobs(300, 6, centers=3, cluster_std=6.0, random_state=0)


def linked():
    X, y = make_blobs(120, 4, centers=3, random_state=0)
    return X, np.where(np.arange(120) % 3 == 0, y, -1)


def curved():
    return make_s_curve(250, random_state=0)


def unlabelled():
    return curved()[:1]


ESTIMATORS = [
    slow(AutoMetric, labelled),
    *((kind, labelled) for kind in (KTA, LMNN, DMLEig, LinearSeparation, LMNNEig, TripletMetric)),
    (ClassCollapse, labelled),
    *((kind, linked) for kind in (NPKL, PCP, RegPCP, AutoKernel)),
    (RegMVU, unlabelled),
    *(slow(kind, unlabelled) for kind in (MVU, NeighborLayout)),
    slow(ColoredMVU, curved),
]


@pytest.mark.parametrize("jump", slow_except((0, 1, 2, 4, 8), 1, 4))
@pytest.mark.parametrize(("kind", "data"), ESTIMATORS, ids=lambda part: part.__name__)
def test_no_estimator_evaluates_more_than_a_certificate_after_its_deadline(
    kind, data, jump, monkeypatch
):
    watcher = Jumping(monkeypatch, jump)
    with clock.watched_by(watcher), suppress(TimeoutError):
        kind(time_limit=LIMIT).fit(*data())
    assert watcher.late <= CERTIFICATE


def test_search_for_impostors_stops_at_the_block_in_which_the_time_ends(monkeypatch):
    X, y = make_blobs(600, 6, centers=3, cluster_std=6.0, random_state=0)
    monkeypatch.setattr("gramian.metric._impostors.ROWS", 8)
    visited, watcher, search = [], Jumping(monkeypatch), Impostors._of

    def counted(self, group, start):
        visited.append(start)
        if len(visited) == 5:
            watcher.offset = 2 * LIMIT
        return search(self, group, start)

    monkeypatch.setattr(Impostors, "_of", counted)
    with pytest.raises(TimeoutError, match="impostors of 600 samples"):
        LMNN(time_limit=LIMIT, shrinkage=0.0).fit(X, y)
    assert len(visited) < 5 + threads.cores()


def test_late_search_for_impostors_keeps_the_rounds_before_it(monkeypatch):
    X, y = labelled()
    watcher, counted, search = Jumping(monkeypatch), [], Impostors._of

    def late(self, group, start):
        counted.append(self.anchors.size)
        if len(counted) > 3:  # the first search has three blocks, one for each class
            watcher.offset = 2 * LIMIT
        return search(self, group, start)

    monkeypatch.setattr(Impostors, "_of", late)
    fitted = LMNN(time_limit=LIMIT, shrinkage=0.0).fit(X, y)
    assert fitted.result_.status.name == "TIME_LIMIT"
    assert fitted.certificate_.gap is not None


def test_phase_has_its_share_of_the_time_left(monkeypatch):
    watcher = Jumping(monkeypatch)
    monkeypatch.setattr(clock, "now", lambda: watcher.offset)
    with clock.budget(10.0):
        watcher.offset = 2.0
        with clock.share(0.5):
            assert clock.left() == 4.0
            watcher.offset = 7.0
            with pytest.raises(clock.TimeUpError):
                clock.check()
        assert clock.left() == 3.0
        with clock.reserve(1.0):
            assert clock.left() == 2.0
        with clock.reserve(5.0):
            assert clock.left() == 0.0
    with clock.share(0.5), clock.reserve(1.0):
        assert clock.left() == np.inf


def test_phase_within_a_share_belongs_to_the_whole_fit():
    with clock.budget(None) as whole:
        with clock.share(0.5):
            clock.phase("the judgement")
        assert whole.phase == "the judgement"


def test_threads_of_a_pool_have_the_deadline(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 2)
    known = []

    def kernel(first, last):
        known.append(clock.left() <= 0)

    with clock.until(clock.now() - 1.0):
        threads.in_parts(kernel, 8, 8 * threads.WORK)
    assert known == [True] * 8


def test_second_interrupt_of_a_fit_is_raised_again():
    with clock.budget(None):
        with clock.share(0.5):
            clock.caught(KeyboardInterrupt())
        assert clock.interrupted()
        with clock.share(0.5), pytest.raises(KeyboardInterrupt):
            clock.caught(KeyboardInterrupt())
        clock.caught(clock.EndedError())


def test_run_raises_the_second_interrupt_of_a_fit():
    problem = gm.problems.top_eigen(np.diag([3.0, 1.0, 0.5]))

    def pressed(problem, L, settings):
        raise KeyboardInterrupt

    with clock.budget(None) as budget:
        assert gm.minimize(problem, pressed).status is gm.Status.INTERRUPTED
        budget.interrupted = True
        with pytest.raises(KeyboardInterrupt):
            gm.minimize(problem, pressed)
