"""The main job in one run: a metric for scikit-learn's digits, learned and certified.

    python examples/demo.py --out demo_output

Prints the 3-NN error before and after, the time, the rank and the certificate, and writes two
pictures: how BILGO converges (BILGO Fig. 2) and the digits before and after in two dimensions.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.metric import KTA


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


def draw_before_after(before, after, labels, path: Path) -> None:
    """Held-out digits by their two leading directions, Euclidean and learned."""
    fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    for axis, points, title in zip(
        axes,
        (before, after),
        ("before: two PCA directions", "after: two KTA directions"),
        strict=True,
    ):
        dots = axis.scatter(points[:, 0], points[:, 1], c=labels, cmap="tab10", s=12, alpha=0.8)
        axis.set(title=title, xticks=[], yticks=[])
    fig.colorbar(dots, ax=axes, ticks=range(10), label="digit", shrink=0.8)
    fig.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo_output"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    scaler = StandardScaler().fit(X_train)
    X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

    started = time.perf_counter()
    kta = KTA().fit(X_train, y_train)
    seconds = time.perf_counter() - started
    error = partial(three_nn_error, y_train=y_train, y_test=y_test)
    print(f"digits: {X_train.shape[0]} to learn from, {X_test.shape[0]} held out, 64 features")
    print(f"KTA fitted in {seconds:.2f} s, rank {kta.result_.rank}, λ = {kta.lam_:.2g} chosen")
    print(f"certificate: {kta.certificate_}")

    print("\n3-NN error of the digits held out, in few dimensions:")
    print("  dimensions   PCA     KTA")
    for dimensions in (2, 3, 5, 9):
        pca = PCA(dimensions, random_state=0).fit(X_train)
        few = KTA(n_components=dimensions).fit(X_train, y_train)
        errors = [error(m.transform(X_train), m.transform(X_test)) for m in (pca, few)]
        print(f"  {dimensions:10d}  {errors[0]:5.1%}  {errors[1]:5.1%}")
    before, after = error(X_train, X_test), error(kta.transform(X_train), kta.transform(X_test))
    print(f"  all 64      {before:5.1%}  {after:5.1%}   (left as they are, and KTA)")

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
    pca = PCA(2, random_state=0).fit(X_train)
    two = KTA(n_components=2).fit(X_train, y_train)
    draw_before_after(pca.transform(X_test), two.transform(X_test), y_test, out / "digits.png")
    print(f"\npictures: {out / 'convergence.png'}, {out / 'digits.png'}")


if __name__ == "__main__":
    main()
