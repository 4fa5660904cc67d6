"""What gramian gains on held-out data, in one minute and without a network.

    python examples/demo.py --out demo_output

Prints the error of 3 nearest neighbours on six tables before and after learning a metric, the
agreement of clusters computed from ten links, and the error of predicted ratings, each with the
figure of a standard method; draws the digits in two dimensions (layout.png).

The tables are the labelled ones of scikit-learn (iris, wine, breast cancer, digits) and of
examples/data (flowers, sensors). All rows are printed, gains and losses.
"""

# ruff: noqa: E402
from __future__ import annotations

import os
import time

STARTED = time.perf_counter()  # before the imports, which take seconds
if __name__ in ("__main__", "__mp_main__"):  # not if a test imports it
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):  # the processes share the cores
        os.environ[f"{library}_NUM_THREADS"] = "1"  # read by the imports below

import argparse
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler

from gramian.completion import NuclearCompletion
from gramian.constraints import random_pairs
from gramian.kernel import NPKL
from gramian.manifold import NeighborLayout
from gramian.metric import AutoMetric

Array = NDArray[np.floating]

DATA = Path(__file__).parent / "data"
BUNDLED = {
    "iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer,
    "digits": load_digits,
}  # fmt: skip
FILES = {"flowers": "species", "sensors": "state"}
SETS = (*BUNDLED, *FILES)

SPLITS, MAX_SAMPLES = 10, 600
"""Folds of the cross-validation, and its first samples of the digits; other tables are shorter."""

LINKS, DRAWS = 10, 5
START_METHOD = "fork" if sys.platform == "linux" else "spawn"
"""A forked process does not import the libraries again; other systems do not fork safely."""

NEXT = """
Next, on a file of your own (CSV, Excel, Parquet, ...):
  gramian metric FILE --label COLUMN --model model.gramian     learn a metric from classes
  gramian predict NEW --model model.gramian                    and classify new rows by it
  gramian embed FILE --method layout --plot picture.png        a picture of the rows
  gramian cluster FILE --clusters 3 --open                     draw links in a browser
  gramian complete RATINGS --model ratings.gramian             rows of user, item, rating
Each says first whether it helped on held-out rows. The README has the same in Python."""

HELD_OUT = 0.2
"""Part of the ratings that is predicted."""


def methods() -> dict[str, Any]:
    return {
        "as it is": None,
        "LDA": LinearDiscriminantAnalysis(),
        "NCA": NeighborhoodComponentsAnalysis(random_state=0),
        "gramian": AutoMetric(),
    }


def table(name: str) -> tuple[Array, NDArray[Any]]:
    """Samples and classes of a table."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        return X[:MAX_SAMPLES], y[:MAX_SAMPLES]
    frame = pd.read_csv(DATA / f"{name}.csv")
    return frame.drop(columns=FILES[name]).to_numpy(float), frame[FILES[name]].to_numpy()


def held_out_errors(name: str, fold: int) -> dict[str, float]:
    """3-NN errors in % on the samples of one fold, from which nothing was learned."""
    warnings.simplefilter("ignore")  # NCA ends after 50 iterations, its default
    X, y = table(name)
    folds = StratifiedKFold(SPLITS, shuffle=True, random_state=0).split(X, y)
    train, test = list(folds)[fold]
    scaler = StandardScaler().fit(X[train])
    A, B = scaler.transform(X[train]), scaler.transform(X[test])
    errors = {}
    for label, model in methods().items():
        mapped = (
            (A, B) if model is None else (model.fit(A, y[train]).transform(A), model.transform(B))
        )
        near = KNeighborsClassifier(3).fit(mapped[0], y[train])
        errors[label] = 100 * (1 - float(near.score(mapped[1], y[test])))
    return errors


def layout() -> tuple[Array, NDArray[Any]]:
    """The digits in two dimensions, and their classes."""
    X, y = table("digits")
    return NeighborLayout(random_state=0).fit_transform(X), y


def linked(seed: int) -> tuple[float, float]:
    """Agreement (adjusted Rand index) with two moons of k-means, and of NPKL with ten links."""
    warnings.simplefilter("ignore")
    X, y = make_moons(200, noise=0.15, random_state=seed)
    near, far = random_pairs(y, LINKS // 2, random_state=seed)
    model = NPKL(n_clusters=2, random_state=0).fit(X, must_link=near, cannot_link=far)
    free = np.setdiff1d(np.arange(len(y)), np.vstack([near, far]))  # samples without links
    plain = KMeans(2, n_init=10, random_state=0).fit_predict(X)
    before, after = (adjusted_rand_score(y[free], z[free]) for z in (plain, model.labels_))
    return float(before), float(after)


def completed() -> tuple[float, float, int]:
    """RMSE of ratings predicted by the means of their users and items, and by a completion."""
    ratings = pd.read_csv(DATA / "ratings.csv")
    out = np.random.default_rng(0).random(len(ratings)) < HELD_OUT
    known, asked = ratings[~out], ratings[out]
    model = NuclearCompletion(random_state=0).fit(known)
    middle = known["rating"].mean()
    rest = known["rating"] - middle
    means = middle + sum(
        asked[side].map(rest.groupby(known[side]).mean()).fillna(0.0) for side in ("user", "item")
    )
    predicted = model.predict(asked[["user", "item"]])
    before, after = (
        float(np.sqrt(np.mean((asked["rating"] - guess) ** 2))) for guess in (means, predicted)
    )
    return before, after, int(out.sum())


def print_table(found: dict[str, list[dict[str, float]]]) -> None:
    """Mean errors and their standard errors, the least of each row marked."""
    labels = list(methods())
    print(f"\nError of 3 nearest neighbours in % on held-out samples, mean of {SPLITS} splits,")
    print("with the standard error (* the least of the row):\n")
    print(f"  {'':14}" + "".join(f"{label:>15}" for label in labels))
    first = 0
    for name, runs in found.items():
        errors = np.array([[run[label] for label in labels] for run in runs])
        means, doubts = errors.mean(axis=0), errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
        best = int(np.argmin(means))
        cells = (
            f"{mean:8.1f}{'*' if k == best else ' '}± {doubt:3.1f} "
            for k, (mean, doubt) in enumerate(zip(means, doubts, strict=True))
        )
        print(f"  {name:14}" + "".join(cells))
        first += bool(means[-1] <= means[best] + doubts[best])
    print(f"\n  gramian is first, or within one standard error of the first, on {first} of "
          f"{len(found)} tables")  # fmt: skip


def draw(places: Array, digits: NDArray[Any], path: Path) -> None:
    from matplotlib.figure import Figure  # here, while the other processes compute

    figure = Figure(figsize=(7, 6), layout="constrained")
    axes = figure.subplots()
    dots = axes.scatter(*places.T, c=digits, cmap="tab10", vmin=-0.5, vmax=9.5, s=8)
    figure.colorbar(dots, ticks=range(10), label="digit")
    axes.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo_output"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    print("about a minute: six tables, ten splits each …", flush=True)
    with ProcessPoolExecutor(min(4, os.cpu_count() or 1), get_context(START_METHOD)) as pool:
        pictured = pool.submit(layout)
        runs = {
            name: [pool.submit(held_out_errors, name, seed) for seed in range(SPLITS)]
            for name in sorted(SETS, key=lambda name: name != "digits")  # the longest first
        }
        rated = pool.submit(completed)
        agreed = [pool.submit(linked, seed) for seed in range(DRAWS)]
        print_table({name: [run.result() for run in runs[name]] for name in SETS})
        before, after = np.mean([one.result() for one in agreed], axis=0)
        print(f"\nTwo moons from {LINKS} links, agreement of the clusters with the moons (adjusted "
              f"Rand\nindex of the samples without links), mean of {DRAWS} draws:\n"
              f"  k-means {before:.2f}, gramian {after:.2f}")  # fmt: skip
        before, after, count = rated.result()
        print(f"\nRatings of examples/data/ratings.csv, error (RMSE) of {count} held-out ones:\n"
              f"  means of users and items {before:.2f}, gramian {after:.2f}")  # fmt: skip
        draw(*pictured.result(), out / "layout.png")
        print(f"\nThe digits in two dimensions: {out / 'layout.png'}")
    print(NEXT)
    used = os.times()  # the processes have ended
    print(f"\nAll this took {time.perf_counter() - STARTED:.0f} s, and "
          f"{sum(used[:4]):.0f} s of processor time.")  # fmt: skip


if __name__ == "__main__":
    main()
