"""Measurements that many tables share: samples, splits, fits, errors, slopes, times to a value."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks.harness.data import Dataset

Transform = Callable[[Any], Any]


@dataclass(frozen=True)
class Split:
    """Training and test samples with their labels."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray

    def error(self, transform: Transform | None = None, k: int = 3, **options: Any) -> float:
        """Error % of k nearest neighbours, after `transform` if it is given."""
        X, X_test = (self.X, self.X_test) if transform is None else map(transform, self.pair)
        neighbours = KNeighborsClassifier(k, **options).fit(X, self.y)
        return 100 * (1 - float(neighbours.score(X_test, self.y_test)))

    @property
    def pair(self) -> tuple[Any, Any]:
        return self.X, self.X_test

    def mapped(self, transform: Transform) -> "Split":
        """The split of the transformed samples."""
        return replace(self, X=transform(self.X), X_test=transform(self.X_test))

    def standardised(self) -> "Split":
        """Features of mean 0 and variance 1 in the training part."""
        return self.mapped(StandardScaler().fit(self.X).transform)

    def normalised(self) -> "Split":
        """Samples divided by one number, the standard deviation of all training entries."""
        scale = self.X.std()
        return self.mapped(lambda X: X / scale)


def random_split(X: Any, y: np.ndarray, seed: int, test_size: float = 0.3) -> Split:
    """A stratified split."""
    train, test, *labels = train_test_split(
        X, y, test_size=test_size, stratify=y, random_state=seed
    )
    return Split(train, labels[0], test, labels[1])


def all_samples(data: Dataset) -> tuple[Any, np.ndarray]:
    """The training and test parts of a dense set together."""
    if data.X_test is None or data.y_test is None:
        return data.X, data.y
    return np.vstack([data.X, data.X_test]), np.concatenate([data.y, data.y_test])


@contextmanager
def no_convergence_warnings() -> Iterator[None]:
    """Hide ConvergenceWarning: the tables report the status or the gap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def fitted(
    model: Any,
    *data: Any,
    method: str = "fit",
    clock: Callable[[], float] = time.perf_counter,
    **samples: Any,
) -> tuple[Any, float]:
    """The fitted model and the seconds of the fit."""
    with no_convergence_warnings():
        start = clock()
        getattr(model, method)(*data, **samples)
        return model, clock() - start


def seconds_of(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call and its seconds."""
    start = time.perf_counter()
    value = call()
    return value, time.perf_counter() - start


def spread(values: Iterable[float], digits: int = 2, ddof: int = 0, form: str = "{} ± {}") -> str:
    """Mean and standard deviation; the mean alone for a single value."""
    found = np.asarray(list(values), dtype=float)
    mean = f"{found.mean():.{digits}f}"
    return mean if found.size < 2 else form.format(mean, f"{found.std(ddof=ddof):.{digits}f}")


def mean_of_all(values: Sequence[float | None]) -> float | None:
    """The mean, None if one value is missing."""
    return None if any(value is None for value in values) else float(np.mean(values))


def ratio(a: float | None, b: float | None) -> float | None:
    """a/b, None if either is missing."""
    return None if a is None or b is None else a / b


def slope(
    points: Mapping[float, float | None], least: float = 0, most: float = np.inf
) -> float | None:
    """Least-squares slope of log value against log x in [least, most]; None below two points."""
    kept = [(x, v) for x, v in points.items() if v is not None and v > 0 and least <= x <= most]
    if len(kept) < 2:
        return None
    return float(np.polyfit(*np.log(kept).T, 1)[0])


@dataclass(frozen=True)
class Run:
    """One run of a solver: the history of F, the last point, and its certificate."""

    times: np.ndarray
    values: np.ndarray
    seconds: float
    value: float
    gap: float | None
    """The certified relative gap."""
    bound: float
    """The certified lower bound of F*."""
    rank: int
    steps: int
    status: str
    curves: Mapping[str, np.ndarray]
    """Other columns of the history."""

    @classmethod
    def of(cls, result: Any, certificate: Any = None, columns: Iterable[str] = ()) -> "Run":
        """The run of a `Result`, with another certificate of its last point if it is given."""
        certificate, history = certificate or result.certificate, result.history
        known = history.columns
        time, value = (history[c] if c in known else np.zeros(0) for c in ("time", "value"))
        bound = -np.inf if certificate.gap is None else result.value - certificate.gap
        return cls(
            time, value, result.seconds, result.value, certificate.relative_gap, bound,
            result.rank, result.iterations, result.status.name, {c: history[c] for c in columns},
        )  # fmt: skip

    @property
    def best(self) -> float:
        return float(np.min(self.values, initial=self.value))

    def reach(self, target: float) -> float | None:
        """Seconds to an objective of at most `target`."""
        return time_to(self.times, self.values, target)

    def shown(self, target: float, unit: float = 1.0) -> float | str:
        """The time to the target in a unit, or that after which the run ended without it."""
        found = self.reach(target)
        return f"> {self.seconds / unit:.3g}" if found is None else found / unit


def first_at_most(values: np.ndarray, target: float) -> int | None:
    """The first index with a value of at most `target`."""
    reached = np.flatnonzero(np.asarray(values) <= target)
    return int(reached[0]) if reached.size else None


def time_to(times: np.ndarray, values: np.ndarray, target: float) -> float | None:
    """The time of the first value of at most `target`."""
    at = first_at_most(values, target)
    return None if at is None else float(times[at])
