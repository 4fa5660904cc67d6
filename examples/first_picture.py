"""The first picture of the README: classes, a layout and clusters, each beside what it replaces.

    python examples/first_picture.py --out docs/images/first.png

Upper row: readings of machines in three states (examples/data/sensors.csv) by PCA, scikit-learn's
digits by t-SNE, clusters of two moons by their neighbourhood graph. Lower row: the same by
`AutoMetric`, `NeighborLayout` and `NPKL` with four links. The number in each title is measured
here: the error of 3 nearest neighbours on held-out samples (mean of four splits, in the two
directions drawn), the share of digits whose nearest neighbour in the picture is the same digit, the
share of samples in the right cluster. t-SNE and `NeighborLayout` are equal here. The moons are one
draw; on noisier ones four links can do harm.
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
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_moons
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.preprocessing import StandardScaler

from gramian.app.verdict import of_graph
from gramian.kernel import NPKL
from gramian.manifold import NeighborLayout
from gramian.metric import AutoMetric

Array = NDArray[np.floating]

DATA = Path(__file__).parent / "data"
SPLITS = 4
ENDS = ((-1, 0), (1, 0), (0, 0.4), (2, 0.4))
"""Near the ends of either moon: two links along the moons, two between them."""

TEN = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
       "#999999", "#7F3C8D")  # fmt: skip
"""Colours that people with colour blindness can tell apart (Okabe and Ito); the digits are named
in the picture as well."""


LABEL = {"boxstyle": "circle,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.75}


def states() -> list[tuple[Array, NDArray[Any], float]]:
    """Held-out readings in two directions, and the 3-NN error there, by PCA and by AutoMetric."""
    frame = pd.read_csv(DATA / "sensors.csv")
    X, y = frame.drop(columns="state").to_numpy(), frame["state"].factorize()[0]
    errors: list[list[float]] = [[], []]
    drawn: list[Any] = []
    halves = StratifiedShuffleSplit(SPLITS, test_size=0.5, random_state=0).split(X, y)
    for number, (train, test) in enumerate(halves):
        scaler = StandardScaler().fit(X[train])
        A, B = scaler.transform(X[train]), scaler.transform(X[test])
        for k, model in enumerate((PCA(2), AutoMetric(n_components=2))):
            model.fit(A, y[train])
            near = KNeighborsClassifier(3).fit(model.transform(A), y[train])
            errors[k].append(1 - float(near.score(model.transform(B), y[test])))
            if number == 0:
                drawn.append((model.transform(B), y[test]))
    return [(*one, float(np.mean(found))) for one, found in zip(drawn, errors, strict=True)]


def digits() -> list[tuple[Array, NDArray[Any], float]]:
    """The digits in two dimensions, and how many have the same digit nearest to them."""
    X, y = load_digits(return_X_y=True)
    found = []
    for model in (TSNE(random_state=0), NeighborLayout(random_state=0)):
        places = np.asarray(model.fit_transform(X))
        near = NearestNeighbors(n_neighbors=2).fit(places).kneighbors(return_distance=False)[:, 0]
        found.append((places, y, float(np.mean(y[near] == y))))
    return found


def moons() -> list[tuple[Array, NDArray[Any], float]]:
    """Clusters of the graph alone and with four links, and the share that is right; the links."""
    X, moon = make_moons(300, noise=0.15, random_state=0)
    a, b, c, d = (int(np.linalg.norm(X - end, axis=1).argmin()) for end in ENDS)
    together, apart = [(a, b), (c, d)], [(a, c), (b, d)]
    model = NPKL(n_clusters=2, random_state=0)
    model.fit(X, must_link=together, cannot_link=apart)
    links = [(pair, "-") for pair in together] + [(pair, ":") for pair in apart]
    found = []
    for shown, labels in enumerate((of_graph(model), model.labels_)):
        labels = labels if np.mean(labels == moon) >= 0.5 else 1 - labels
        found.append((X, labels, float(np.mean(labels == moon)), links if shown else []))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("first.png"))
    out = parser.parse_args().out
    warnings.simplefilter("ignore")
    plt.rcParams.update({"font.size": 15, "axes.titlesize": 16})
    figure, axes = plt.subplots(2, 3, figsize=(13, 8.4), layout="constrained", facecolor="white")
    for axis, name, (points, labels, error) in zip(
        axes[:, 0], ("PCA", "gramian"), states(), strict=True
    ):
        draw_classes(axis, points, labels)
        low, high = np.percentile(points, [1, 99], axis=0)  # no outlier sets the scale
        room = 0.1 * (high - low)
        axis.set(xlim=(low[0] - room[0], high[0] + room[0]))
        axis.set(ylim=(low[1] - room[1], high[1] + room[1]))
        title(axis, f"states by {name}: {error:.0%} errors")
    for axis, name, (points, labels, same) in zip(
        axes[:, 1], ("t-SNE", "gramian"), digits(), strict=True
    ):
        axis.scatter(*points.T, c=[TEN[label] for label in labels], s=5, linewidths=0)
        for digit in range(10):
            middle = np.median(points[labels == digit], axis=0)
            axis.text(*middle, str(digit), bbox=LABEL, ha="center", va="center", weight="bold")
        title(axis, f"digits by {name}: {same:.0%} pure")
    for axis, name, (points, labels, right, links) in zip(
        axes[:, 2], ("graph alone", "with 4 links"), moons(), strict=True
    ):
        draw_classes(axis, points, labels)
        for pair, style in links:
            axis.plot(*points[list(pair)].T, "k" + style, lw=2.2)
        title(axis, f"clusters, {name}: {right:.0%} right")
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
    figure.savefig(out, dpi=75)
    print(out)


def draw_classes(axis: Any, points: Array, labels: NDArray[Any]) -> None:
    """Two or three classes, by colour and by shape."""
    shown = zip(("#0072B2", "#E69F00", "#009E73"), ("o", "^", "s"), strict=True)
    for label, (colour, shape) in enumerate(shown):
        axis.scatter(*points[labels == label].T, c=colour, marker=shape, s=22, linewidths=0)


def title(axis: Any, text: str) -> None:
    axis.set_title(text)
    print(text)


if __name__ == "__main__":
    main()
