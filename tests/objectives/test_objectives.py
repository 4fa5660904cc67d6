"""Every objective: factored and dense forms agree, and restrictions agree with F."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator

from gramian.checks import check_gradient, check_hessian
from gramian.linalg.svec import svec
from gramian.losses import Logistic, SmoothedHinge, SoftMin, Squared, SquaredHinge
from gramian.maps import Congruence, Entries, Mix, PairDistances, triplet_margins
from gramian.objectives import Composite, GramOperator, GramQuadratic, LowRankPlusIdentity, Sum
from gramian.objectives.curvature import row_preconditioner
from gramian.objectives.dense import gradient_dense, value_dense
from gramian.objectives.matrices import MatrixSum, Scaled
from gramian.objectives.supports import Growth
from tests.cases import psd, symmetric

N = 7
_rng = np.random.default_rng(3)
PAIRS = _rng.integers(0, N, (12, 2))
EDGES = np.array([_rng.choice(N, 2, replace=False) for _ in range(12)])
TRIPLETS = np.array([_rng.choice(N, 3, replace=False) for _ in range(12)])
TARGET = _rng.standard_normal(12)
DATA = _rng.standard_normal((9, N))
SYMMETRIC, PSD = symmetric(_rng, N), psd(_rng, N, 4)
U = _rng.standard_normal((N, 2))

MAPS = {
    "entries": Entries(PAIRS, N),
    "distances": PairDistances(EDGES, N),
    "mix": Mix(Entries(PAIRS, N), sp.random_array((12, 12), density=0.4, rng=_rng)),
    "triplets": triplet_margins(TRIPLETS, N),
    "congruence": Congruence(PairDistances(EDGES, 9), DATA),
    "sparse-congruence": Congruence(Entries(PAIRS, 9), sp.csr_array(np.round(DATA))),
}
LOSSES = {
    "squared": Squared(TARGET, weight=0.5),
    "squared-hinge": SquaredHinge(),
    "smoothed-hinge": SmoothedHinge(mu=2.0),
    "logistic": Logistic(TARGET),
    "soft-min": SoftMin(mu=1.0),
}
LINEAR = {
    "none": None,
    "scalar": -0.7,
    "dense": SYMMETRIC,
    "sparse": sp.csr_array(np.where(np.abs(SYMMETRIC) > 0.6, SYMMETRIC, 0.0)),
    "low-rank": LowRankPlusIdentity(N, 0.5, U, np.array([1.0, -2.0])),
}
FORMS = {
    "dense": PSD,
    "list": PSD.tolist(),
    "sparse": sp.coo_array(PSD),
    "number": 1.5,
    "none": None,
    "low-rank": LowRankPlusIdentity(N, 0.5, U),
    "operator": aslinearoperator(PSD),
    "gram": GramOperator(DATA, 0.3),
    "gram-sparse": GramOperator(sp.csr_array(DATA), 0.3, np.arange(9.0)),
    "sum": MatrixSum(GramOperator(DATA), LowRankPlusIdentity(N, 0.5)),
    "scaled": Scaled(GramOperator(DATA), 0.2),
}


def gram(A=PSD, B=0.5, C=SYMMETRIC):
    return GramQuadratic(A, B, C, constant=1.0)


OBJECTIVES = {
    **{f"{m}-{g}": Composite(MAPS[m], LOSSES[g], constant=2.0) for m in MAPS for g in LOSSES},
    **{f"C-{c}": Composite(MAPS["entries"], LOSSES["logistic"], LINEAR[c]) for c in LINEAR},
    **{f"A-{form}": gram(A=value) for form, value in FORMS.items()},
    **{f"B-{form}": gram(B=value) for form, value in FORMS.items()},
    **{f"C-gram-{form}": gram(C=value) for form, value in FORMS.items()},
    "C-gram-indefinite": gram(C=LINEAR["low-rank"]),
    "sum": Sum(
        [
            gram(),
            Composite(MAPS["triplets"], LOSSES["squared-hinge"], 0.3),
            Composite(MAPS["entries"], LOSSES["squared"], SYMMETRIC),
        ]
    ),
    "sum-quadratic": Sum([gram(), Composite(MAPS["entries"], LOSSES["squared"])]),
}
EVERY = pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
FEW = pytest.mark.parametrize(
    "objective",
    [OBJECTIVES[k] for k in ("triplets-smoothed-hinge", "C-gram-gram", "sum")],
    ids=["composite", "gram-quadratic", "sum"],
)
SMOOTH = pytest.mark.parametrize(
    "objective",
    [
        value
        for name, value in OBJECTIVES.items()
        if not name.endswith("hinge") and name != "sum"  # whose second derivative jumps
    ],
    ids=[name for name in OBJECTIVES if not name.endswith("hinge") and name != "sum"],
)


def factors(seed=0, columns=(3, 2)):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((N, r)) for r in columns]


def same_image(objective, image, factor):
    """Whether an image agrees with that of `factor` in all methods of a solver."""
    fresh = objective.image(factor)
    np.testing.assert_allclose(image.factor, factor, atol=1e-12)
    scale = 1 + abs(objective.value(fresh))
    assert objective.value(image) == pytest.approx(objective.value(fresh), abs=1e-10 * scale)
    np.testing.assert_allclose(
        objective.gradient(image).dense(), objective.gradient(fresh).dense(), atol=1e-9 * scale
    )
    np.testing.assert_allclose(
        objective.gradient_factor(image), objective.gradient_factor(fresh), atol=1e-9 * scale
    )


@EVERY
def test_gradient_matches_differences(objective):
    check_gradient(objective, 0.7 * factors()[0])


@SMOOTH
def test_hessian_matches_differences(objective):
    check_hessian(objective, 0.7 * factors()[0])


@EVERY
def test_hessian_is_symmetric(objective):
    L, _ = factors()
    D, E = np.random.default_rng(8).standard_normal((2, *L.shape))
    product = objective.hessian_factor(objective.image(L))
    left, right = np.sum(E * product(D)), np.sum(D * product(E))
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9)


@EVERY
def test_subspace_agrees_with_F(objective):
    """svec(S) ↦ F(W S Wᵀ), its gradient and its curvature."""
    W, B = factors(columns=(3, 3))[0], np.random.default_rng(4).standard_normal((3, 2))
    restriction = objective.subspace(W)
    image, s = objective.image(W @ B), svec(B @ B.T)
    G = objective.gradient(image).dense()
    assert restriction.value(s) == pytest.approx(objective.value(image), rel=1e-9)
    np.testing.assert_allclose(
        restriction.gradient(s), svec(W.T @ G @ W), atol=1e-9 * (1 + np.abs(G).max())
    )
    assert np.linalg.eigvalsh(restriction.hessian(s))[0] >= -1e-9 * (1 + np.abs(G).max())
    assert objective.subspace_cost(3) >= 1


@EVERY
def test_factored_and_dense_forms_agree(objective):
    L, V = factors()
    M, image = L @ L.T, objective.image(L)
    G = gradient_dense(objective, M)
    scale = 1 + np.abs(G).max()
    assert objective.value(image) == pytest.approx(value_dense(objective, M), rel=1e-10)
    gradient = objective.gradient(image)
    assert gradient.shape == (N, N)
    np.testing.assert_allclose(gradient.dense(), G, atol=1e-11 * scale)
    np.testing.assert_allclose(G, G.T, atol=1e-11 * scale)
    np.testing.assert_allclose(gradient @ V, G @ V, atol=1e-10 * scale)
    np.testing.assert_allclose(gradient @ V[:, 0], G @ V[:, 0], atol=1e-10 * scale)
    np.testing.assert_allclose((-gradient) @ V, -G @ V, atol=1e-10 * scale)
    np.testing.assert_allclose((-gradient).dense(), -G, atol=1e-11 * scale)
    np.testing.assert_allclose(objective.gradient_factor(image), 2 * G @ L, atol=1e-9 * scale)


@pytest.mark.parametrize("size", [1e-8, 1e8])
def test_dense_quadratics_are_accurate_at_every_size(size):
    M, A, B = size * psd(_rng, N, 3), psd(_rng, N, 4), psd(_rng, N, 5)
    objective = GramQuadratic(A, B, np.zeros((N, N)))
    assert value_dense(objective, M) == pytest.approx(
        np.sum((A @ M) * (M @ A)) + np.sum((B @ M) * M), rel=1e-10, abs=0.0
    )
    gradient = 2 * A @ M @ A + B @ M + M @ B
    np.testing.assert_allclose(
        gradient_dense(objective, M), gradient, atol=1e-12 * np.abs(gradient).max()
    )


@EVERY
def test_blend_is_F_over_two_matrices(objective):
    L, V = factors()
    blend = objective.blend(objective.image(L), objective.image(V))
    for alpha, beta in [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (0.3, 2.0), (1.7, 0.2)]:
        M = alpha * L @ L.T + beta * V @ V.T
        value = blend.restriction.value(np.array([alpha, beta]))
        assert value == pytest.approx(value_dense(objective, M), rel=1e-9)
        parts = [np.sqrt(s) * F for s, F in ((alpha, L), (beta, V)) if s > 0]
        joined = np.hstack(parts) if parts else np.zeros((N, 0))
        same_image(objective, blend.take(alpha, beta), joined)


@EVERY
def test_line_is_F_along_the_factor(objective):
    L = 0.5 * factors()[0]
    D = 0.5 * factors(1)[0]
    line = objective.line(objective.image(L), D)
    for mu in (0.0, 0.4, -1.5):
        moved = L + mu * D
        value = line.restriction.value(np.array([1.0, 2 * mu, mu * mu]))
        assert value == pytest.approx(value_dense(objective, moved @ moved.T), rel=1e-9)
        same_image(objective, line.take(mu), moved)


@SMOOTH
@pytest.mark.parametrize("kind", ["blend", "line"])
def test_restrictions_have_right_derivatives(objective, kind):
    L, V = factors(2)
    image = objective.image(0.5 * L)
    if kind == "blend":
        restriction = objective.blend(image, objective.image(0.5 * V)).restriction
        theta = np.array([0.7, 0.4])
    else:
        restriction = objective.line(image, 0.5 * factors(3)[0]).restriction
        theta = np.array([1.0, 0.6, 0.09])
    assert restriction.quadratic == objective.facts.quadratic
    h = 1e-5
    steps = h * np.eye(theta.size)
    slope = [(restriction.value(theta + s) - restriction.value(theta - s)) / (2 * h) for s in steps]
    bend = [
        (restriction.gradient(theta + s) - restriction.gradient(theta - s)) / (2 * h) for s in steps
    ]
    scale = 1 + np.abs(bend).max()
    np.testing.assert_allclose(restriction.gradient(theta), slope, atol=1e-6 * scale)
    np.testing.assert_allclose(restriction.hessian(theta), bend, atol=1e-6 * scale)


@EVERY
def test_growth_is_a_lower_bound(objective):
    growth = objective.growth()
    rng = np.random.default_rng(5)
    for scale in (0.0, 1e-2, 1.0, 30.0):
        for rank in (1, 3, N):
            L = scale * rng.standard_normal((N, rank))
            t = float(np.sum(L * L))
            if t == 0 and not np.isfinite(growth.slope):
                continue
            value = objective.value(objective.image(L))
            # The worst direction for a linear term is its own eigenvector: try random ones.
            bound = growth.floor + growth.slope * t + growth.bend * t * t
            assert value >= bound - 1e-9 * (1 + abs(value))


@EVERY
def test_empty_factor_is_the_zero_matrix(objective):
    empty, (L, _) = np.zeros((N, 0)), factors()
    image = objective.image(empty)
    zero = np.zeros((N, N))
    assert objective.value(image) == pytest.approx(value_dense(objective, zero))
    np.testing.assert_allclose(
        objective.gradient(image).dense(), gradient_dense(objective, zero), atol=1e-12
    )
    assert (objective.gradient(image) @ L).shape == L.shape
    assert objective.gradient_factor(image).shape == (N, 0)
    blend = objective.blend(image, objective.image(L))
    same_image(objective, blend.take(1.0, 2.0), np.sqrt(2.0) * L)
    same_image(objective, blend.take(0.0, 0.0), empty)
    line = objective.line(image, empty)
    assert line.restriction.value(np.array([1.0, 2.0, 1.0])) == pytest.approx(
        objective.value(image)
    )


@FEW
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), rank=st.integers(1, N), scale=st.floats(1e-3, 1e3))
def test_value_does_not_depend_on_the_rotation_of_the_factor(objective, seed, rank, scale):
    rng = np.random.default_rng(seed)
    L = scale * rng.standard_normal((N, rank))
    Q = np.linalg.qr(rng.standard_normal((rank, rank)))[0]
    value = objective.value(objective.image(L))
    size = 1 + abs(value) + scale**2
    assert objective.value(objective.image(L @ Q)) == pytest.approx(value, abs=1e-10 * size)


@FEW
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_is_convex_between_psd_matrices(objective, seed):
    rng = np.random.default_rng(seed)
    M, K = psd(rng, N), psd(rng, N)
    t = rng.uniform()
    chord = t * value_dense(objective, M) + (1 - t) * value_dense(objective, K)
    assert value_dense(objective, t * M + (1 - t) * K) <= chord + 1e-9 * (1 + abs(chord))


def test_composite_equals_manual_computation():
    """(M₁₂ − 1)² + 2·M₃₃ + 3·tr M + 5 at M = diag(1, 2, 3) with M₁₂ = 0.5."""
    M = np.array([[1.0, 0.5, 0.0], [0.5, 2.0, 0.0], [0.0, 0.0, 3.0]])
    C = np.diag([3.0, 3.0, 5.0])
    objective = Composite(Entries([[0, 1]], 3), Squared(1.0), C, constant=5.0)
    assert value_dense(objective, M) == pytest.approx(0.25 + 3 * 6 + 2 * 3 + 5)
    expected = C + np.array([[0.0, -0.5, 0.0], [-0.5, 0.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(gradient_dense(objective, M), expected)


def test_gram_quadratic_is_its_displayed_formula():
    rng = np.random.default_rng(8)
    A, B, C, M = psd(rng, 4), psd(rng, 4), symmetric(rng, 4), psd(rng, 4)
    expected = np.trace(A @ M @ A @ M + B @ M @ M + 2 * C @ M) + 3.0
    assert value_dense(GramQuadratic(A, B, C, constant=3.0), M) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("growth", "value", "trace"),
    [
        (Growth(0.0, 2.0), 6.0, 3.0),
        (Growth(1.0, 0.0, 2.0), 9.0, 2.0),
        (Growth(0.0, -3.0, 1.0), 4.0, 4.0),
        (Growth(0.0, 1.0, 1e-18), 1.0, 1.0),  # a bend that rounding would swallow
        (Growth(0.0, 1e6, 1e-8), 1.0, 1e-6),
        (Growth(5.0, 1.0), 4.0, 0.0),
        (Growth(0.0, 0.0), 1.0, None),
        (Growth(0.0, -1.0), 1.0, None),
        (Growth(), 1.0, None),
        (Growth(-np.inf, 1.0), 1.0, None),
        (Growth(0.0, -np.inf, 1.0), 1.0, None),
    ],
)
def test_trace_below_solves_the_growth_for_the_trace(growth, value, trace):
    found = growth.trace_below(value)
    assert found == (None if trace is None else pytest.approx(trace, rel=1e-9))


def test_sum_rejects_different_orders():
    with pytest.raises(ValueError, match=r"one order, got \[3, 7\]"):
        Sum([gram(), Composite(Entries([[0, 1]], 3), Squared())])
    with pytest.raises(ValueError, match="one order"):
        Sum([])


@pytest.mark.parametrize(
    "make_loss",
    [
        lambda: Squared(np.zeros(11)),
        lambda: Squared(np.zeros((12, 1))),
        lambda: SquaredHinge(weight=np.ones(13)),
        lambda: Logistic(np.zeros((1, 12, 1))),
    ],
    ids=["short target", "column target", "long weight", "cube"],
)
def test_composite_rejects_loss_of_wrong_size(make_loss):
    with pytest.raises(ValueError, match="12"):
        Composite(MAPS["entries"], make_loss())


@pytest.mark.parametrize(
    ("A", "B", "commute"),
    [
        (PSD, 0.5, True),
        (2.0, PSD, True),
        (PSD, PSD @ PSD, True),
        (np.diag([1.0, 1, 1, 2, 2, 3, 4]), np.diag([5.0, 6, 7, 1, 1, 1, 1]), True),
        (np.zeros((N, N)), PSD, True),
        (PSD, np.zeros((N, N)), True),
        (PSD, DATA.T @ DATA, False),
    ],
    ids=["B=bI", "A=aI", "B=A²", "repeated", "A=0", "B=0", "apart"],
)
def test_common_eigenbasis(A, B, commute):
    objective = GramQuadratic(A, B, SYMMETRIC)
    basis = objective.eigenbasis
    if not commute:
        assert basis is None
        return
    for matrix, values in ((objective.A.dense(), basis.a), (objective.B.dense(), basis.b)):
        np.testing.assert_allclose((basis.V * values) @ basis.V.T, matrix, atol=1e-10)
    M = psd(np.random.default_rng(1), N)
    rotated = basis.V.T @ M @ basis.V
    quadratic = value_dense(objective, M) - 2 * np.sum(SYMMETRIC * M)
    assert np.sum(basis.H * rotated**2) == pytest.approx(quadratic)


def test_a_preconditioner_inverts_the_hessian_within_rows():
    """If no two rows are paired and ∇F is a multiple of I, it is the exact inverse."""
    rng = np.random.default_rng(0)
    n, rank = 12, 3
    diagonal = np.column_stack([np.arange(n)] * 2)
    targets = 1 + rng.random(n)
    objective = Composite(Entries(diagonal, n), Squared(targets), 2.0 * sp.eye_array(n))
    L = rng.standard_normal((n, rank))
    L *= np.sqrt(targets / np.sum(L * L, axis=1))[:, None]  # so that the loss has no slope
    image = objective.image(L)
    product, near = objective.hessian_factor(image), row_preconditioner(objective, image)
    R = rng.standard_normal((n, rank))
    np.testing.assert_allclose(product(near(R)), R, rtol=1e-9, atol=1e-9)


def test_no_preconditioner_for_dense_pairs():
    objective = Composite(PairDistances([(0, 1), (1, 2)], 3), Squared(np.ones(2)))
    assert row_preconditioner(objective, objective.image(np.ones((3, 1)))) is None
