"""What sessions of samples share: names, cards, and a layout by neighbours."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.app.explorer.history import History
from gramian.app.explorer.tables import (
    card,
    checked_names,
    fitting_within,
    next_view,
    sample_number,
    unit_square,
)
from gramian.app.report.families import two_directions
from gramian.manifold import NeighborLayout

Array = NDArray[np.floating]

LAYOUT_SECONDS = 60.0
"""Time limit of the layout by neighbours: 1,797 digits took 7 s on one ARM core."""


class SampleSession(History):
    """Samples with names, the columns that their cards show, and their positions."""

    X: Any
    names: list[str] | None
    frame: Any
    size: int

    def _place(self, X: Any) -> None:
        """Check the names, and take the two leading principal directions as positions."""
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
