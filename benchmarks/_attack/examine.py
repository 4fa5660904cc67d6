"""One instance: draw it, certify points, solve it, search for better points, judge the claims."""

import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import gramian as gm
from benchmarks._attack import composites, large, small
from benchmarks._attack.instances import Dice, Instance
from benchmarks._attack.judge import HANG, TRACEBACK, Claim, Truth, judge
from benchmarks._attack.oracles import points
from gramian.outcome import InconsistentResultWarning

Record = dict[str, Any]
SMALL = small.FAMILIES | composites.FAMILIES
LARGE_ORDER = 1500
LARGE_SOLVED = 0.3
"""Fraction of the large instances that are also solved; the others are only certified."""
REFUSALS = ("points of every similar pair are identical", "similar pairs is singular")
"""Errors that the library may raise for random data: they have no whitening."""
PATIENCE, GRACE = 10.0, 5.0
"""A run that exceeds this multiple of its time limit plus these seconds ignores the limit."""
CLASSES = ("up to 15", "16 to 60", "61 to 1500", "over 1500")


def draw(seed: int, index: int, large_share: float, only: str | None = None) -> Instance:
    """The instance of a seed and an index; ValueError if the library rejects the data."""
    dice = Dice(np.random.default_rng([seed, index]))
    drawn_large = dice.chance(large_share)
    name = only or dice.choice(large.FAMILIES if drawn_large else SMALL)
    return replace((SMALL | large.FAMILIES)[name](dice), twists=tuple(dice.twists))


def examine(
    seed: int, index: int, large_share: float, only: str | None = None, limit: float = 10.0
) -> Record:
    """Attack one instance."""
    started = time.perf_counter()
    record: Record = {"seed": seed, "index": index, "family": only or "?", "alarms": []}
    try:
        instance = draw(seed, index, large_share, only)
    except Exception as error:
        if isinstance(error, ValueError) and any(words in str(error) for words in REFUSALS):
            return {**record, "refused": str(error)[:200], "seconds": _since(started)}
        record["alarms"] = [_traceback("construction", error)]
        return {**record, "seconds": _since(started)}
    order = instance.problem.order
    record.update(family=instance.family, order=order, order_class=order_class(order))
    record.update(twists=list(instance.twists), bounded=instance.bounded)
    attack = Attack(instance, np.random.default_rng([seed, index, 1]), limit)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        attack.run()
    record["warnings"] = sorted({f"{w.category.__name__}: {w.message}"[:120] for w in raised})
    alarms, certified = judge(attack.claims, attack.truth, instance.bounded)
    record["alarms"] = attack.errors + alarms + _contradictions(raised)
    record.update(certified=certified, claims=len(attack.claims), ended=attack.ended)
    return {**record, "best_by": attack.truth.by, "seconds": _since(started)}


def _contradictions(raised: list[warnings.WarningMessage]) -> list[Record]:
    """Results that the library itself found inconsistent."""
    found = [str(w.message) for w in raised if w.category is InconsistentResultWarning]
    return [{"kind": TRACEBACK, "by": "minimize", "reason": reason[:300]} for reason in found]


def warm_up() -> None:
    """Import and compile before an instance is timed."""
    for family in ("mvu", "nuclear_completion", "npkl"):
        examine(0, 0, 0.0, family)


def order_class(order: int) -> str:
    limits = (15, 60, LARGE_ORDER)
    return CLASSES[sum(order > limit for limit in limits)]


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 4)


def _traceback(where: str, error: Exception) -> Record:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    reason = f"{type(error).__name__} in {frame.name}: {error}"[:300]
    return {"kind": TRACEBACK, "by": where, "reason": reason}


class Attack:
    """The claims of the library about an instance, and the points that may refute them."""

    def __init__(self, instance: Instance, rng: np.random.Generator, limit: float) -> None:
        self.instance, self.rng, self.limit = instance, rng, limit
        self.large = instance.problem.order > LARGE_ORDER
        self.truth = Truth(instance.formula)
        self.claims: list[Claim] = []
        self.errors: list[Record] = []
        self.ended: dict[str, str] = {}

    def run(self) -> None:
        for factor in self.instance.better:
            self.truth.offer("a planted point", factor)
        for name, factor in self._probes():
            self._certify(name, factor)
        if not self.large or self.rng.random() < LARGE_SOLVED:
            for solver in self._solvers():
                self._solve(solver)
        self._search()

    def _probes(self) -> Iterator[tuple[str, np.ndarray]]:
        n = self.instance.problem.order
        for number, factor in enumerate(self.instance.probes):
            yield f"certify probe {number}", factor
        if self.large:
            return
        yield "certify 0", np.zeros((n, 1))
        scale = 10.0 ** self.rng.uniform(-3, 3)
        columns = int(self.rng.integers(1, min(n, 4) + 1))
        yield "certify random", scale * self.rng.standard_normal((n, columns))
        for factor in self.instance.better[:2]:
            yield "certify planted", factor
            noise = 10.0 ** self.rng.uniform(-9, -1) * self.rng.standard_normal(factor.shape)
            yield "certify near planted", factor * (1 + noise)

    def _certify(self, by: str, factor: np.ndarray) -> None:
        trace = self.instance.problem.domain.trace
        if trace is not None:
            if not np.any(factor):
                factor = np.eye(len(factor))
            factor = factor * np.sqrt(trace / np.sum(factor * factor))
        self.truth.offer(by, factor)
        found = self._call(by, lambda: gm.certify(self.instance.problem, factor))
        if found is not None:
            self.claims.append(Claim(by, factor, found.value, found.gap, found.method))

    def _solvers(self) -> Iterator[str]:
        yield "auto"
        others = [name for name in gm.solvers.available() if name != "auto"]
        if not self.large:
            yield str(self.rng.choice(others))

    def _solve(self, solver: str) -> None:
        problem, options = self.instance.problem, self._options(solver)
        result = self._call(solver, lambda: gm.minimize(problem, solver, **options))
        if result is None:
            return
        if result.seconds > PATIENCE * options["time_limit"] + GRACE:
            reason = f"returned after {result.seconds:.1f} s"
            self.errors.append({"kind": HANG, "by": f"{solver} {options}", "reason": reason})
        self.truth.offer(solver, result.factor)
        proof = result.certificate
        by = f"{solver} {options}"
        limited = "rank" in options
        status = {"status": result.status.name, "tol": options["tol"], "limited": limited}
        point = result.factor, proof.value, proof.gap, proof.method
        self.claims.append(Claim(by, *point, **status))
        self.ended[solver] = result.status.name
        if self.rng.random() < 0.3:
            self._certify(f"certify the point of {solver}", result.factor)

    def _options(self, solver: str) -> dict[str, Any]:
        rng = self.rng
        options: dict[str, Any] = {"tol": float(rng.choice([1e-6, 1e-6, 1e-6, 1e-3, 1e-9]))}
        options["time_limit"] = 2.0 if self.large else 0.25
        if rng.random() < 0.1:
            options["time_limit"] = float(rng.choice([1e-3, 1e-2]))
        if rng.random() < 0.15:
            options["max_iter"] = int(rng.choice([0, 1, 2, 10]))
        if rng.random() < 0.1:
            options["rank"] = int(rng.integers(1, min(self.instance.problem.order, 5) + 1))
        return options

    def _search(self) -> None:
        """Points found by other methods, started at the lowest known point."""
        if self.instance.bounded is False or self.large:
            return
        starts = [f for f in (self.truth.factor,) if f is not None]
        for by, factor in points(self.instance.formula, starts, self.limit / 4):
            self.truth.offer(by, factor)

    def _call(self, by: str, ask: Callable[[], Any]) -> Any:
        """The result of a call; None if it is rejected or raises an error, which is recorded."""
        try:
            return ask()
        except ValueError as error:
            if "cannot solve" not in str(error):
                self.errors.append(_traceback(by, error))
        except Exception as error:
            self.errors.append(_traceback(by, error))
        return None
