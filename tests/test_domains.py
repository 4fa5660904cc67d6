"""Projections of domains give the nearest member."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gramian import PSDCone, Spectrahedron
from gramian.domains import project

VALUES = hnp.arrays(float, st.integers(1, 8), elements=st.floats(-100, 100))


@given(values=VALUES)
def test_cone_projection_is_the_positive_part(values):
    nearest = PSDCone().project_eigenvalues(values)
    assert np.all(nearest >= 0)
    # Moreau: v = P₊(v) − P₊(−v) with orthogonal parts.
    np.testing.assert_array_equal(nearest - PSDCone().project_eigenvalues(-values), values)


@given(values=VALUES, trace=st.floats(0.01, 50))
def test_simplex_projection_meets_its_optimality_conditions(values, trace):
    nearest = Spectrahedron(trace).project_eigenvalues(values)
    assert np.all(nearest >= 0)
    assert nearest.sum() == pytest.approx(trace, rel=1e-9)
    # One shift for the kept eigenvalues, and the dropped ones lie below it.
    shift = values - nearest
    kept = nearest > 0
    np.testing.assert_allclose(shift[kept], shift[kept][0], atol=1e-9)
    assert np.all(values[~kept] <= shift[kept][0] + 1e-9)


@settings(max_examples=25)
@given(values=hnp.arrays(float, 3, elements=st.floats(-3, 3)))
def test_simplex_projection_is_nearer_than_a_grid(values):
    nearest = Spectrahedron(1.0).project_eigenvalues(values)
    ticks = np.linspace(0, 1, 41)
    grid = np.array([(a, b, 1 - a - b) for a in ticks for b in ticks if a + b <= 1])
    best = np.min(np.sum((grid - values) ** 2, axis=1))
    assert np.sum((nearest - values) ** 2) <= best + 1e-12


@pytest.mark.parametrize("size", [1e8, 1e17, 1e30])
def test_simplex_projection_holds_far_from_the_simplex(size):
    nearest = Spectrahedron(1.0).project_eigenvalues(np.array([-size, 0.0, size]))
    np.testing.assert_allclose(nearest, [0.0, 0.0, 1.0])


@pytest.mark.parametrize("domain", [PSDCone(), Spectrahedron(2.5)])
def test_project_keeps_members_and_is_nearest_in_the_frobenius_norm(domain):
    rng = np.random.default_rng(0)
    S = rng.standard_normal((6, 6))
    S = S + S.T
    values, vectors = project(domain, S)
    P = (vectors * values) @ vectors.T
    again, vectors = project(domain, P)
    np.testing.assert_allclose((vectors * again) @ vectors.T, P, atol=1e-12)
    for _ in range(50):
        M = rng.standard_normal((6, 4))
        M = M @ M.T
        if domain.trace is not None:
            M *= domain.trace / np.trace(M)
        # ⟨S − P, M − P⟩ ≤ 0 for every member M: the variational inequality of a projection.
        assert np.sum((S - P) * (M - P)) <= 1e-10


@pytest.mark.parametrize("domain", [PSDCone(), Spectrahedron(2.5)])
def test_factors_are_moved_into_the_domain_and_directions_keep_to_it(domain):
    rng = np.random.default_rng(1)
    L, D = rng.standard_normal((2, 6, 3))
    L = domain.rescale(L)
    along = domain.tangent(D, L)
    if domain.bounded:
        assert np.sum(L * L) == pytest.approx(domain.trace)
        assert np.sum(along * L) == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(domain.rescale(L), L)
    np.testing.assert_allclose(domain.tangent(along, L), along)
    # To first order a step along it is not moved back.
    step = L + 1e-6 * along
    np.testing.assert_allclose(domain.rescale(step), step, atol=1e-11)


@pytest.mark.parametrize("domain", [PSDCone(), Spectrahedron(2.5)])
@pytest.mark.parametrize("shift", [0.0, 10.0])
def test_vertex_and_bound_are_extreme(domain, shift):
    rng = np.random.default_rng(2)
    G = rng.standard_normal((5, 5))
    G = G + G.T + shift * np.eye(5)
    values, vectors = np.linalg.eigh(G)
    reach = 2.5
    V = domain.vertex(-values[0], vectors[:, :1], reach)
    best = float(np.sum(V * (G @ V)))
    bound = domain.least(float(values[0]))
    assert bound <= best + 1e-12
    if domain.bounded:
        assert best == pytest.approx(bound)
    for _ in range(50):
        L = rng.standard_normal((5, 2))
        L = domain.rescale(L * np.sqrt(reach * rng.random() / np.sum(L * L)))
        assert np.sum(L * (G @ L)) >= best - 1e-12
    assert PSDCone().least(-1.0) == -np.inf


def test_domains_as_text():
    assert PSDCone().trace is None
    assert Spectrahedron(2.0).trace == 2.0
    assert str(PSDCone()) == "M ⪰ 0"
    assert str(Spectrahedron(2.0)) == "M ⪰ 0, tr M = 2"


@pytest.mark.parametrize("trace", [0.0, -1.0, np.nan, np.inf])
def test_rejects_trace_that_is_not_positive(trace):
    with pytest.raises(ValueError, match="needs a positive trace"):
        Spectrahedron(trace)
