"""The first picture of the README: what each family makes of data, before and after.

    python examples/first_picture.py --out docs/images/first.png

Classes that part: scikit-learn's breast cancer data, the half that was held out, in two directions;
DMLEig is the best of our metrics and its rivals there (printed, over four splits). A roll that is
unrolled by MVU. Moons whose clusters follow four links, by NPKL: one draw of many, on some of which
four links are too few. Figures in the titles are measured; a few outliers are outside the first two
frames.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, make_moons, make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler

from gramian.app.verdict import of_graph
from gramian.kernel import NPKL
from gramian.manifold import MVU
from gramian.metric import KTA, LMNN, DMLEig

SPLITS = 4
ENDS = ((-1, 0), (1, 0), (0, 0.4), (2, 0.4))
"""Near the ends of either moon: two links along the moons, two between them."""


def rivals() -> dict[str, Any]:
    return {
        "PCA": PCA(2),
        "LDA": LinearDiscriminantAnalysis(n_components=1),
        "NCA": NeighborhoodComponentsAnalysis(n_components=2, random_state=0),
        "KTA": KTA(n_components=2),
        "LMNN": LMNN(n_components=2),
        "DMLEig": DMLEig(n_components=2),
    }


def classes() -> tuple[dict[str, float], list[Any]]:
    """3-NN errors of held-out halves in two directions (LDA has one), and the first half mapped."""
    X, y = load_breast_cancer(return_X_y=True)
    errors: dict[str, list[float]] = {name: [] for name in rivals()}
    pictures: list[Any] = []
    halves = StratifiedShuffleSplit(SPLITS, test_size=0.5, random_state=0).split(X, y)
    for number, (train, test) in enumerate(halves):
        scaler = StandardScaler().fit(X[train])
        A, B = scaler.transform(X[train]), scaler.transform(X[test])
        for name, model in rivals().items():
            model.fit(A, y[train])
            near = KNeighborsClassifier(3).fit(model.transform(A), y[train])
            errors[name].append(1 - near.score(model.transform(B), y[test]))
            if number == 0 and name in ("PCA", "DMLEig"):
                pictures.append((model.transform(B), y[test]))
    return {name: float(np.mean(found)) for name, found in errors.items()}, pictures


def roll() -> list[Any]:
    """A roll from the side, and unrolled, with the shares of the variance in two dimensions."""
    X, along = make_swiss_roll(600, random_state=0)
    fitted = MVU(time_limit=60).fit(X)
    print(f"roll: {fitted.certificate_}")
    plain = PCA(2).fit(X)
    shares = plain.explained_variance_ratio_.sum(), fitted.explained_variance_ratio_[:2].sum()
    return [(X[:, [0, 2]], along, shares[0]), (fitted.embedding_, along, shares[1])]


def moons() -> list[Any]:
    """Clusters of the graph alone, and with four links, with the shares that are right."""
    X, moon = make_moons(300, noise=0.15, random_state=0)
    a, b, c, d = (int(np.linalg.norm(X - end, axis=1).argmin()) for end in ENDS)
    together, apart = [(a, b), (c, d)], [(a, c), (b, d)]
    model = NPKL(n_clusters=2, random_state=0)
    model.fit(X, must_link=together, cannot_link=apart)
    links = [(pair, "-") for pair in together] + [(pair, ":") for pair in apart]
    return [
        (X, labels, max(np.mean(labels == moon), np.mean(labels != moon)), links if shown else [])
        for shown, labels in enumerate((of_graph(model), model.labels_))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("first.png"))
    out = parser.parse_args().out
    warnings.simplefilter("ignore", ConvergenceWarning)
    errors, parted = classes()
    for name, error in errors.items():
        print(f"breast cancer, two directions, held out: {name:7}{error:6.1%}")
    figure, axes = plt.subplots(2, 3, figsize=(12, 7), layout="constrained")
    for axis, (points, labels), name in zip(axes[:, 0], parted, ("PCA", "DMLEig"), strict=True):
        axis.scatter(*points.T, c=labels, cmap="coolwarm", s=14, linewidths=0)
        low, high = np.percentile(points, [1, 99], axis=0)  # no outlier sets the scale
        room = 0.1 * (high - low)
        axis.set_xlim(low[0] - room[0], high[0] + room[0])
        axis.set_ylim(low[1] - room[1], high[1] + room[1])
        axis.set_title(f"{name}: 3-NN error {errors[name]:.1%} held out")
    for axis, (points, along, share), name in zip(
        axes[:, 1], roll(), ("a roll, in three dimensions", "unrolled by MVU"), strict=True
    ):
        axis.scatter(*points.T, c=along, s=14, linewidths=0)
        axis.set_title(f"{name}: two hold {share:.0%}")
        axis.set_aspect("equal", adjustable="datalim")
    for axis, (points, labels, right, links), name in zip(
        axes[:, 2], moons(), ("clusters of the graph", "NPKL, told four links"), strict=True
    ):
        axis.scatter(*points.T, c=labels, cmap="coolwarm", s=14, linewidths=0)
        for pair, style in links:
            axis.plot(*points[list(pair)].T, "k" + style, lw=1.6)
        axis.set_title(f"{name}: {right:.0%} right")
        print(f"moons, {name}: {right:.1%}")
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
    figure.savefig(out, dpi=110)
    print(out)


if __name__ == "__main__":
    main()
