"""The common part of sessions of samples: names, classes, cards, and a layout by neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from gramian.app.explorer.history import History, State
from gramian.app.explorer.tables import (
    card,
    checked_names,
    fitting_within,
    next_view,
    sample_number,
    sample_numbers,
    unit_square,
)
from gramian.app.report.families import two_directions
from gramian.common.parameters import positive
from gramian.common.types import Array
from gramian.manifold import NeighborLayout

LAYOUT_SECONDS = 60.0
"""Time limit of the layout by neighbours: 1,797 digits took 7 s on one ARM core."""


class SampleSession(History[State]):
    """Samples with names, the columns that their cards show, and their positions."""

    X: Any
    names: list[str] | None
    frame: Any
    patience: float
    size: int
    kind: str

    template = "page.html"

    @property
    def marks(self) -> Mapping[int, str]:
        """The samples that were named, with their classes."""
        raise NotImplementedError

    def mark_all(self, given: list[tuple[Any, str]], time_limit: float | None = None) -> None:
        """Name the classes of several samples in one change, which may take `patience` seconds."""
        raise NotImplementedError

    def mark(self, i: Any, name: str) -> None:
        """Name the class of a sample, and learn again."""
        self.mark_all([(i, name)])

    def _mark_rows(self, given: dict[str, Any]) -> None:
        """Name those of the requested samples that have no class yet."""
        rows = sample_numbers(given.get("rows"), self.size)
        free = [i for i in rows if i not in self.marks]
        self.mark_all([(i, str(given.get("name", ""))) for i in free or rows])

    def _checked(self, given: list[tuple[Any, str]]) -> dict[int, str]:
        """New samples and their classes; raises ValueError for an empty name or a known class."""
        new: dict[int, str] = {}
        for i, name in given:
            i, name = sample_number(i, self.size), str(name).strip()
            if not name:
                raise ValueError("a class must have a name: write it first")
            if i in self.marks or i in new:
                raise ValueError(f"{self._called(i)} has a class already: undo that first")
            new[i] = name
        return new

    def _in_words(self, new: Mapping[int, str]) -> str:
        """Named samples as a line of the history."""
        who = self._called(next(iter(new))) if len(new) == 1 else f"{len(new):,} samples"
        return f"{who}: {', '.join(sorted(set(new.values())))}"

    def _limit(self, time_limit: float | None) -> float:
        return self.patience if time_limit is None else positive(time_limit, "time_limit")

    def fixed(self) -> dict[str, Any]:
        """The part of a page that does not change."""
        return {"kind": self.kind, "places": self.places.round(4).tolist(), "names": self.names}

    def _sample_names(self) -> list[str]:
        return self.names or [str(k) for k in range(self.size)]

    def _place(self, X: Any) -> None:
        """Check the names, and compute positions from the two leading principal directions."""
        self.size = X.shape[0]
        self.names = checked_names(self.names, self.size)
        self.places = unit_square(two_directions(X))
        self._layout: Array | None = None
        self._laying = Lock()

    def card(self, i: Any) -> dict[str, Any]:
        """The columns of a sample."""
        return card(self.X if self.frame is None else self.frame, sample_number(i, self.size))

    def layout(self) -> dict[str, Any]:
        """Positions by `NeighborLayout`, computed when a page first asks for them."""
        with self._laying:
            if self._layout is None:
                model = NeighborLayout(random_state=0, time_limit=LAYOUT_SECONDS)
                with fitting_within(2 * LAYOUT_SECONDS, "the layout by neighbours"):
                    found = model.fit_transform(self.X)
                self._layout = next_view(found, self.places)
            return {"places": self._layout.round(4).tolist()}

    def _called(self, i: int) -> str:
        return self.names[i] if self.names else f"sample {i}"
