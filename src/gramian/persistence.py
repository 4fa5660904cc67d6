"""Estimators that can be saved to a file, and read back without running anything from it."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from gramian import storage
from gramian.storage import StoredFileError

FAMILIES = ("completion", "kernel", "manifold", "metric", "spectral")


class Saved:
    """A mixin for estimators: `save`, and what `load` needs.

    Subclasses name in `_remade` the attributes that `_remake` makes from the others.
    """

    _remade: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        storage.storable(cls)

    def save(self, path: str | Path) -> None:
        """Save the fitted estimator as arrays and JSON; `gramian.load` reads it back.

        Parameters
        ----------
        path : str or Path
            The file, replaced only when the new one is whole. Nothing in it is executable.
        """
        check_is_fitted(self)
        content = {"gramian": version("gramian"), "estimator": self}
        storage.write(Path(path), "model", content)

    def _remake(self) -> None:
        """Set the attributes that are not saved."""

    def _to_store(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name not in self._remade}

    @classmethod
    def _from_store(cls, state: dict[str, Any]) -> Any:
        made: Any = cls.__new__(cls)
        made.__init__()
        parameters = made.get_params(deep=False)
        for name, part in state.items():
            if name not in parameters and (not name.isidentifier() or hasattr(cls, name)):
                raise StoredFileError(f"{name!r} is not an attribute of a fitted {cls.__name__}")
            setattr(made, name, part)
        made._remake()
        return made


def load(path: str | Path) -> Any:
    """Read an estimator that was saved with `save`.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    StoredFileError
        For a file that is not a whole model of gramian. Nothing in it is run, ever.
    """
    for family in FAMILIES:  # their classes are known to the reader once they are imported
        import_module(f"gramian.{family}")
    content = storage.read(Path(path), "model")
    estimator = content.get("estimator") if isinstance(content, dict) else None
    if not isinstance(estimator, Saved):
        raise StoredFileError(f"{path} holds no estimator")
    return estimator
