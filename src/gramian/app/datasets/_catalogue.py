"""All data sets by name, with a description and their sources."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

from gramian.app.datasets._arrays import Arrays
from gramian.app.datasets._builtin import BUILT_IN
from gramian.app.datasets._homes import HOMES, LIBSVM, UCI, Home
from gramian.common import html

TERMS = "research use with acknowledgement of GroupLens, no redistribution"


@dataclass(frozen=True)
class Entry:
    """A data set: its size, its kind ("dense", "sparse" or "ratings"), and a description.

    For ratings, `samples` is the number of users and `features` the number of items.
    """

    name: str
    samples: int
    features: int
    kind: str
    description: str
    test_samples: int = 0
    by_hand: str = ""
    """Where to find a data set without a verified download."""

    @property
    def make(self) -> Callable[[], Arrays] | None:
        return BUILT_IN.get(self.name)

    @property
    def home(self) -> Home | None:
        return HOMES.get(self.name)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of the data set: "built in", "GRAMIAN_DATA", "download"."""
        if self.make is not None:
            return ("built in",)
        return ("GRAMIAN_DATA", "download") if self.home else ("GRAMIAN_DATA",)


class DatasetTable(tuple[Entry, ...]):
    """The sets; prints as a table."""

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        columns = ["name", "size", "kind", "from", "what it is"]
        return html.table("data sets", columns, [_cells(entry) for entry in self])

    def __str__(self) -> str:
        rows = [_cells(entry) for entry in self]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )


def available() -> DatasetTable:
    """All data sets, with name, size, kind, sources and a description."""
    return DatasetTable(CATALOGUE.values())


def unknown(name: object) -> ValueError:
    """The error for an unknown name, with similar names."""
    near = difflib.get_close_matches(str(name), CATALOGUE, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return ValueError(f"unknown data set {name!r}; {hint}available: {', '.join(CATALOGUE)}")


def _cells(entry: Entry) -> tuple[str, ...]:
    test = f" + {entry.test_samples}" if entry.test_samples else ""
    size = f"{entry.samples}{test} x {entry.features}"
    return entry.name, size, entry.kind, " or ".join(entry.sources), entry.description


def _adult(number: int, samples: int, test: int, by_hand: str = "") -> Entry:
    return Entry(
        f"a{number}a",
        samples,
        123,
        "sparse",
        "census records, income above $50,000 or not (UCI Adult, LIBSVM's binary features)",
        test,
        by_hand=by_hand,
    )


DERIVED = f"{LIBSVM}binary.html, up to the order of rows, which here is that of a9a"

CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry("swiss_roll", 1000, 3, "dense", "made: a rolled sheet and its flat coordinates"),
        Entry("swiss_roll_hole", 1000, 3, "dense", "made: the same with a hole in the sheet"),
        Entry("s_curve", 1000, 3, "dense", "made: a sheet bent to an S and its flat coordinates"),
        Entry("two_moons", 400, 2, "dense", "made: two half circles, with links between samples"),
        Entry("digits", 1797, 64, "dense", "handwritten digits, 8 x 8 (scikit-learn)"),
        Entry("iris", 150, 4, "dense", "flowers of three species (scikit-learn)"),
        Entry("wine", 178, 13, "dense", "wines of three growers (scikit-learn)"),
        Entry("breast_cancer", 569, 30, "dense", "tumours, malignant or benign (scikit-learn)"),
        Entry(
            "synthetic_ratings", 200, 120, "ratings",
            "made: 5,000 synthetic ratings of low rank, unevenly spread",
        ),
        _adult(1, 1605, 30956),
        _adult(2, 2265, 30296),
        _adult(3, 3185, 29376),
        _adult(4, 4781, 27780),
        _adult(5, 6414, 26147),
        _adult(6, 11220, 21341, DERIVED),
        _adult(7, 16100, 16461),
        _adult(8, 22696, 9865, DERIVED),
        _adult(9, 32561, 16281),
        Entry("w1a", 2477, 300, "sparse", "words of web pages, two classes (Platt)", 47272),
        Entry("w3a", 4912, 300, "sparse", "words of web pages, two classes (Platt)", 44837),
        Entry("mushrooms", 8124, 112, "sparse", "mushrooms, edible or poisonous (LIBSVM)"),
        Entry("splice", 1000, 60, "dense", "DNA around splice junctions, two classes", 2175),
        Entry("dna", 2000, 180, "sparse", "DNA around splice junctions, three classes", 1186),
        Entry("news20", 15935, 62061, "sparse", "words of postings to 20 newsgroups", 3993),
        Entry("usps", 7291, 256, "dense", "handwritten digits of envelopes, 16 x 16", 2007),
        Entry("mnist", 60000, 784, "dense", "handwritten digits, 28 x 28", 10000),
        Entry("optdigits", 3823, 64, "dense", "handwritten digits, 8 x 8 (UCI)", 1797),
        Entry("pendigits", 7494, 16, "dense", "digits as strokes of a pen (UCI)", 3498),
        Entry("letter", 20000, 16, "dense", "printed capital letters, 16 measurements (UCI)"),
        Entry("satimage", 4435, 36, "dense", "satellite image patches, six soils (UCI)", 2000),
        Entry(
            "segment", 2310, 19, "dense", "patches of outdoor images, seven classes (UCI)",
            by_hand=f"{UCI}statlog/segment/, where the numbers are rounded in another way",
        ),
        Entry(
            "waveform", 5000, 21, "dense", "noisy mixtures of three waves (UCI, simulated there)",
            by_hand=f"{UCI}waveform/, packed by compress (.Z)",
        ),
        Entry(
            "isolet", 6238, 617, "dense", "spoken letters of the alphabet (UCI)", 1559,
            by_hand=f"{UCI}isolet/, packed by compress (.Z)",
        ),
        Entry("sonar", 208, 60, "dense", "sonar echoes, mines or rocks (UCI)"),
        Entry("glass", 214, 9, "dense", "glass by its oxides, six types (UCI)"),
        Entry("ionosphere", 351, 34, "dense", "radar echoes, good or bad (UCI)"),
        Entry("soybean_small", 47, 35, "dense", "four diseases of soybeans (UCI)"),
        Entry(
            "pima", 768, 8, "dense", "diabetes or not, by eight measurements",
            by_hand="the home of the R package mlbench (UCI has withdrawn the set)",
        ),
        Entry(
            "orl_faces", 400, 10304, "dense", "faces of 40 people, 112 x 92 (AT&T Cambridge)",
            by_hand="https://cam-orl.co.uk/facedatabase.html, pixels by rows, ten images a person",
        ),
        Entry(
            "lfw", 13233, 2914, "dense",
            "Labeled Faces in the Wild, 62 x 47, deep-funneled, with the pairs to verify",
            by_hand="http://vis-www.cs.umass.edu/lfw/, cropped and shrunk as in scikit-learn",
        ),
        Entry("movielens_100k", 943, 1682, "ratings", f"100,000 ratings of films; {TERMS}"),
        Entry("movielens_1m", 6040, 3706, "ratings", f"1,000,209 ratings of films; {TERMS}"),
    )
}  # fmt: skip
