"""The main job in one run: a metric for scikit-learn's digits, learned and certified.

    python examples/demo.py --out demo_output

Prints the certificate of the metric that it pictures and, in few dimensions, the 3-NN errors of
PCA, LDA, NCA and KTA on digits held out, and writes two pictures: how BILGO converges (BILGO
Fig. 2) and the digits held out in two dimensions, by each of them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.metric import KTA

Array = NDArray[np.floating]

NCA_ITERATIONS = 60


def three_nn_error(train, test, *, y_train, y_test) -> float:
    return 1 - KNeighborsClassifier(3).fit(train, y_train).score(test, y_test)


def draw_convergence(runs: dict[str, gm.Result], path: Path) -> None:
    """F, λ_max of −∇F and the slack ‖∇F·M‖ against iterations."""
    fig, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    titles = {
        "value": "objective F(M)",
        "lambda_max": "λ_max(−∇F)",
        "slack": "slack ‖∇F·M‖",
    }
    for axis, (column, title) in zip(axes, titles.items(), strict=True):
        for name, run in runs.items():
            history = run.history
            axis.plot(history["iteration"][1:], np.abs(history[column][1:]), label=name, lw=1.6)
        axis.set(title=title, xlabel="iteration", yscale="log")
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    fig.savefig(path, dpi=130)


def learners(dimensions: int) -> dict[str, Any]:
    """What is compared; NCA is stopped after so many iterations, as it takes the longest by far."""
    return {
        "PCA": PCA(dimensions, random_state=0),
        "LDA": LinearDiscriminantAnalysis(n_components=dimensions),
        "NCA": NeighborhoodComponentsAnalysis(dimensions, max_iter=NCA_ITERATIONS, random_state=0),
        "KTA": KTA(n_components=dimensions),
    }


def draw_maps(maps: dict[str, Array], errors: dict[str, float], labels: Array, path: Path) -> None:
    """Held-out digits by two directions of each, the outermost hundredth left outside."""
    fig, axes = plt.subplots(1, len(maps), figsize=(15, 4.2), layout="constrained")
    for axis, (name, points) in zip(axes, maps.items(), strict=True):
        dots = axis.scatter(*points.T, c=labels, cmap="tab10", s=12, alpha=0.8)
        low, high = np.percentile(points, [1, 99], axis=0)
        axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
        axis.set_title(f"{name}: 3-NN error {errors[name]:.1%}")
    fig.colorbar(dots, ax=axes, ticks=range(10), label="digit", shrink=0.8)
    fig.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo_output"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ConvergenceWarning)  # of NCA, which is stopped

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    scaler = StandardScaler().fit(X_train)
    X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

    error = partial(three_nn_error, y_train=y_train, y_test=y_test)
    print(f"digits: {X_train.shape[0]} to learn from, {X_test.shape[0]} held out, 64 features")
    print("\n3-NN error of the digits held out, in few dimensions (and the seconds of the fit):")
    print("  dimensions" + "".join(f"{name:>16}" for name in learners(2)))
    pictured, pictured_errors = {}, {}
    for dimensions in (2, 5, 9):
        told = []
        for name, model in learners(dimensions).items():
            started = time.perf_counter()
            model.fit(X_train, y_train)
            seconds = time.perf_counter() - started
            mapped = error(model.transform(X_train), model.transform(X_test))
            told.append(f"{mapped:8.1%} ({seconds:4.1f} s)")
            if dimensions == 2:
                pictured[name], pictured_errors[name] = model, mapped
        print(f"  {dimensions:10d}" + "".join(told))
    print(f"  {'all 64':>10}{error(X_train, X_test):8.1%}   (left as they are)")
    best = min(pictured_errors, key=pictured_errors.get)
    print(f"\nIn two dimensions {best} is the best of these. KTA has a certificate:")
    kta = pictured["KTA"]
    print(f"KTA, λ = {kta.lam_:.2g} chosen, rank {kta.result_.rank}, pictured by two directions:")
    print(f"certificate: {kta.certificate_}")

    problem = gm.problems.kta(StandardScaler().fit_transform(X), y, lam=1e-3)
    print(f"\nHow three solvers come down on {problem}, and what is proved after 150 steps:")
    runs = {
        "BILGO": gm.minimize(problem, "bilgo", local=None, max_iter=150),
        "BILGO-LS": gm.minimize(problem, "bilgo", max_iter=150),
        "Journée": gm.minimize(problem, "journee", max_iter=150),
    }
    for name, run in runs.items():
        print(f"{name:9} {run.certificate}")

    draw_convergence(runs, out / "convergence.png")
    maps = {name: model.transform(X_test) for name, model in pictured.items()}
    draw_maps(maps, pictured_errors, y_test, out / "digits.png")
    print(f"\npictures: {out / 'convergence.png'}, {out / 'digits.png'}")


if __name__ == "__main__":
    main()
