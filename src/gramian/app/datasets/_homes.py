"""Public sources of data sets, and fingerprints of their content.

A source is only listed if its files contain the arrays used in the benchmarks; a download with
another fingerprint raises an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from string import ascii_uppercase
from typing import Any

from gramian.app.datasets import _formats
from gramian.app.datasets._arrays import Arrays, fingerprint
from gramian.app.datasets._download import DownloadError, fetch, unpack

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
GROUPLENS = "https://files.grouplens.org/datasets/movielens/"
MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"
STANFORD = "https://hastie.su.domains/ElemStatLearn/datasets/"

MB = 1_000_000


@dataclass(frozen=True)
class Home:
    """A public source: the files of a data set, their parser, and the expected fingerprint."""

    base: str
    files: tuple[str, ...]
    read: Callable[[Sequence[bytes]], Arrays]
    content: str
    limit: int = 4 * MB
    """The size limit of a file in bytes, compressed or not."""
    member: str | None = None
    """The member of a zip archive to read."""

    def download(self) -> Arrays:
        """The arrays; raises DownloadError if the fingerprint is wrong."""
        urls = [self.base + name for name in self.files]
        files = [unpack(fetch(url, self.limit), url, self.limit, self.member) for url in urls]
        try:
            arrays = self.read(files)
        except (ValueError, TypeError, OverflowError) as error:
            raise DownloadError(
                f"the download from {self.base} is not in the expected format ({error})"
            ) from error
        if fingerprint(arrays) != self.content:
            raise DownloadError(
                f"the download from {self.base} differs from the data of the benchmarks: it does "
                "not have the expected SHA-256"
            )
        return arrays


CONTENT = {
    "a1a": "6698a22e7d263c55e9520f84435cc3a3a04f670643e4a6d472b35032cd140d46",
    "a2a": "95b3c5260666f93a721d3253e1e72f580c99ee3c493dc2394012115161512e97",
    "a3a": "5f37bd77a4458d368297dd23456777959fd9e988af8367dc1133c1ae36836400",
    "a4a": "175b2ee523d28a2d684507ad5491019700bcc0358de09d7729ff467b4b273f49",
    "a5a": "f85ebe2d8eb3d2f44917cedf7896de5fb451356b2ca5f71e7acf182948074e5b",
    "a7a": "bef9fc7ccce1552de43f77d77f849b2d56ee582d2c7bea372a616b482c060c61",
    "a9a": "9855b693c5f1f484d6b18ca1ee0916678e9e7f35d9be77b3ec47d1453a4440b6",
    "w1a": "61bb0ffab118218ac52b5e39650d9fa619e99c1eeb66eb12eb68299530664b91",
    "w3a": "c75f2289e112610b780187b6bf9c66c61da27c02fc07ed56253c3dec81c647a8",
    "splice": "814302e96bd5411cb3993d60e638d3e0de0bfac588a961797b071ab6aa30250f",
    "mushrooms": "86d8f5d06743c1b46bebedb00f12fce465d195447744d9aec712b82e89f6578a",
    "dna": "ec22d06623d6c0d111ecc4d3f67d7b37bd3d581dc1799fbbe3eda1cde6247057",
    "news20": "b756ce5afc4f3007f59d4737a5796cbc2ae70bd351160d77deb7871adc70487d",
    "letter": "7d8b25fd311a00dd0a74e37d16f7358a1dea70f7e31ce496f0692f3a39e1d938",
    "optdigits": "19007573a250c27280f49afe38d4c37e1002345499f519edbede2bc0ad1a4e78",
    "pendigits": "8f1c5fb37928d7eff35952a2c174b3d2e1d966407bb141ca131add300ee91c6f",
    "satimage": "5f8b4dd61cbfaa2c5d2e5777094fd38d261a2e38e54e5f8899cb699541a892c8",
    "sonar": "faa640941877a92cc0ab22a1c1159e8aa3aec3e655131744ec258111990c1b1d",
    "glass": "c7121a1ecc6f4c2899fe9620067b1e903aac5679fd0041af6a9bef17060284ed",
    "ionosphere": "3929b61e00845fb265d5d594b254a37aa5cf21eec42eaeb5ce388dc5d3b90a0d",
    "soybean_small": "ec661b582ffb837cc0a46c06d4f0db7783199d23086efba7ee27d3b8adb3b652",
    "usps": "cb1c49520d949f8aafe194681f86893404a1a76d38857444c4e67f258fe3aaf0",
    "mnist": "5ca693bf64639e2bcf653937c89683775d08b112ca4510f78e429b0bfae47eb9",
    "movielens_100k": "27efc5041af868c7d638679e2675002fd0ab7889e675902166aad8033aa7212a",
    "movielens_1m": "272dc803dfd7d75fe8cde41fc071ce7f015854e7aa98b5c792cd334b98d41e36",
}
"""The fingerprints of the data sets."""


def _libsvm(
    name: str, *files: str, classes: Sequence[int] = (-1, 1), limit: int = 4 * MB, **options: Any
) -> Home:
    """A set of the LIBSVM page."""
    folder = "binary/" if len(classes) == 2 else "multiclass/"
    read = partial(_formats.svmlight, classes=classes, **options)
    return Home(LIBSVM + folder, files or (name, f"{name}.t"), read, CONTENT[name], limit)


def _table(name: str, base: str, *files: str, limit: int = 4 * MB, **options: Any) -> Home:
    """A set in rows of numbers."""
    return Home(base, files, partial(_formats.table, **options), CONTENT[name], limit)


HOMES = {
    **{
        name: _libsvm(name, features=123)
        for name in ("a1a", "a2a", "a3a", "a4a", "a5a", "a7a", "a9a")
    },
    **{name: _libsvm(name, features=300, limit=12 * MB) for name in ("w1a", "w3a")},
    "splice": _libsvm("splice", features=60, dense=True),
    "mushrooms": _libsvm("mushrooms", "mushrooms", features=112, classes=(1, 2)),
    "dna": _libsvm("dna", "dna.scale", "dna.scale.t", features=180, classes=(1, 2, 3)),
    "news20": _libsvm(
        "news20", "news20.bz2", "news20.t.bz2",
        features=62061, classes=range(1, 21), limit=40 * MB,
    ),
    "letter": _table(
        "letter", f"{UCI}letter-recognition/", "letter-recognition.data",
        classes=ascii_uppercase, label=0,
    ),
    "optdigits": _table(
        "optdigits", f"{UCI}optdigits/", "optdigits.tra", "optdigits.tes", classes=range(10)
    ),
    "pendigits": _table(
        "pendigits", f"{UCI}pendigits/", "pendigits.tra", "pendigits.tes", classes=range(10)
    ),
    "satimage": _table(
        "satimage", f"{UCI}statlog/satimage/", "sat.trn", "sat.tst",
        classes=(1, 2, 3, 4, 5, 7), delimiter=None,
    ),
    "sonar": _table(
        "sonar", f"{UCI}undocumented/connectionist-bench/sonar/", "sonar.all-data", classes="MR"
    ),
    "glass": _table(
        "glass", f"{UCI}glass/", "glass.data", classes=(1, 2, 3, 5, 6, 7), first=1
    ),
    "ionosphere": _table("ionosphere", f"{UCI}ionosphere/", "ionosphere.data", classes="bg"),
    "soybean_small": _table(
        "soybean_small", f"{UCI}soybean/", "soybean-small.data", classes=("D1", "D2", "D3", "D4")
    ),
    "usps": _table(
        "usps", STANFORD, "zip.train.gz", "zip.test.gz",
        classes=range(10), label=0, delimiter=None, limit=40 * MB,
    ),
    "mnist": Home(
        MNIST,
        tuple(
            f"{part}-{kind}-ubyte.gz"
            for part in ("train", "t10k")
            for kind in ("images-idx3", "labels-idx1")
        ),
        _formats.idx, CONTENT["mnist"], 50 * MB,
    ),
    "movielens_100k": Home(
        GROUPLENS, ("ml-100k.zip",), _formats.tab_ratings, CONTENT["movielens_100k"],
        16 * MB, "ml-100k/u.data",
    ),
    "movielens_1m": Home(
        GROUPLENS, ("ml-1m.zip",), _formats.colon_ratings, CONTENT["movielens_1m"],
        40 * MB, "ml-1m/ratings.dat",
    ),
}  # fmt: skip
