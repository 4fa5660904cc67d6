"""The methods for problems with constraints: conditions of each, and the choice of `auto`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gramian.constrained import (
    anchored_newton,
    conic,
    interior_point,
    theta_form,
    unfolding_path,
    unit_diagonal,
)
from gramian.constrained.augmented_lagrangian import augmented_lagrangian, crowded
from gramian.constrained.dual_newton import dual_newton
from gramian.constrained.model import DENSE_ORDER, Model
from gramian.constrained.points import Candidate
from gramian.constrained.splitting import splitting
from gramian.maps import PairDistances
from gramian.methods.base import Settings

MAX_UNCOMPILED_ORDER = 200
"""Order up to which compiling a sweep takes longer than solving the problem."""


class Method(NamedTuple):
    """A method with its name and the reason why it does not accept a problem."""

    name: str
    run: Callable[..., Iterator[Candidate]]
    refusal: Callable[[Model], str | None]

    @property
    def options(self) -> list[str]:
        """The keyword options of this method."""
        parameters = inspect.signature(self.run).parameters.values()
        return [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]


def _dense_and_linear(model: Model) -> str | None:
    if model.linear is None:
        return "it needs a linear objective ⟨C, M⟩"
    if model.order > DENSE_ORDER or model.rows is None:
        return f"it holds M as a dense matrix, of order {DENSE_ORDER} at most"
    return None


METHODS = {
    method.name: method
    for method in (
        Method("augmented-lagrangian", augmented_lagrangian, lambda model: None),
        Method("clarabel", conic.clarabel, conic.refusal),
        Method("interior-point", interior_point.interior_point, interior_point.refusal),
        Method("unit-diagonal", unit_diagonal.unit_diagonal, unit_diagonal.refusal),
        Method("anchored-newton", anchored_newton.anchored_newton, anchored_newton.refusal),
        Method("dual-newton", dual_newton, _dense_and_linear),
        Method("unfolding-path", unfolding_path.unfolding_path, unfolding_path.refusal),
        Method("theta-form", theta_form.theta_form, theta_form.refusal),
        Method("splitting", splitting, _dense_and_linear),
    )
}


def methods_for(solver: Any, model: Model, settings: Settings) -> list[Method]:
    """The methods of a run: the named one, or those chosen by `auto`."""
    if solver == "auto":
        return choose(model, settings)
    if not isinstance(solver, str) or solver not in METHODS:
        raise ValueError(
            f"a problem with constraints is solved by auto, {', '.join(METHODS)}; "
            f"got solver={solver!r}"
        )
    refusal = METHODS[solver].refusal(model)
    if refusal is not None:
        raise ValueError(f"solver {solver!r} cannot solve {model.problem.name!r}: {refusal}")
    return [METHODS[solver]]


def check_method_options(methods: list[Method], options: dict[str, Any]) -> None:
    """Raise TypeError for options that none of the methods has."""
    known = dict.fromkeys(name for method in methods for name in method.options)
    unknown = sorted(set(options) - set(known))
    if unknown:
        names = " and ".join(method.name for method in methods)
        raise TypeError(
            f"solver {names} has no option {', '.join(unknown)}; "
            f"it has: {', '.join(known) or 'none'}"
        )


def choose(model: Model, settings: Settings) -> list[Method]:
    """The methods of `auto`, each of which starts if the previous one does not converge."""
    if model.order > MAX_UNCOMPILED_ORDER and unit_diagonal.refusal(model) is None:
        return [METHODS["unit-diagonal"], METHODS["augmented-lagrangian"]]
    if anchored_newton.refusal(model) is None:
        more = [METHODS["augmented-lagrangian"]] if model.order <= MAX_UNCOMPILED_ORDER else []
        return [METHODS["anchored-newton"], *more]
    if settings.rank is not None:
        return [METHODS["augmented-lagrangian"]]
    chosen = ["unfolding-path"] if unfolding_path.refusal(model) is None else []
    chosen += ["interior-point"] if interior_point.preferred(model) else []
    # Clarabel solves some ill-conditioned programs on which the interior point method stalls.
    chosen += ["clarabel"] if conic.refusal(model) is None else []
    chosen += ["theta-form"] if theta_form.refusal(model) is None else []
    # Distances along a graph need its coordinates, which the dense method does not use.
    distances = all(isinstance(map, PairDistances) for map in model.bounds.map.maps)
    if crowded(model) and not distances and _dense_and_linear(model) is None:
        # With several blocks, a decomposition of the whole costs more than one per block.
        chosen += ["dual-newton", "splitting"] if len(model.blocks) == 1 else ["splitting"]
    return [METHODS[name] for name in (*chosen, "augmented-lagrangian")]
