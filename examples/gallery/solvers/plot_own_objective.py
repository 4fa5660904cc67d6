"""
Writing an objective
====================

A problem is a loss of a linear map of M, optionally with a linear term. This example
embeds points from answers of the form "A and B are farther apart than C and D", by
a logistic loss, which is in none of the papers.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import gramian as gm
from gramian.checks import check_adjoint, check_gradient
from gramian.losses import Logistic
from gramian.maps import Mix, PairDistances
from gramian.objectives import Composite

rng = np.random.default_rng(0)
n = 40
angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
places = (
    np.column_stack([np.cos(angle), 0.6 * np.sin(angle)]) * (1 + 0.25 * np.cos(3 * angle))[:, None]
)

# %%
# The answers: the more distant of two random pairs.

pairs = np.array([(i, j) for i in range(n) for j in range(i)])
squares = np.sum((places[pairs[:, 0]] - places[pairs[:, 1]]) ** 2, axis=1)
first, second = rng.integers(0, len(pairs), size=(2, 6000))
far = np.where(squares[first] > squares[second], first, second)
near = np.where(squares[first] > squares[second], second, first)
kept = far != near
far, near = far[kept], near[kept]

# %%
# The map gives d_M(far) − d_M(near) for each answer: pair distances multiplied by a
# sparse matrix of ±1. A small trace term keeps M small and its rank low.

rows = np.repeat(np.arange(far.size), 2)
columns = np.column_stack([far, near]).ravel()
signs = np.tile([1.0, -1.0], far.size)
mix = sp.csr_array((signs, (rows, columns)), shape=(far.size, len(pairs)))
differences = Mix(PairDistances(pairs, n), mix)
objective = Composite(differences, Logistic(weight=1 / far.size), 1e-3)
problem = gm.Problem(
    objective, name="map from comparisons", formula="Σ ln(1 + exp(−Δ)) + 1e-3 tr M"
)
print(problem)

# %%
# The checks of gramian's own maps and objectives are available for extensions.

print(f"adjoint  {check_adjoint(differences):.0e}")
print(f"gradient {check_gradient(objective):.0e}")

# %%
# All solvers accept the problem, and the certificate needs no further code.

result = gm.minimize(problem, tol=1e-5)
print(result)

# %%
# M is the Gram matrix of the points, so its two leading directions give the points up
# to rotation, reflection and scale.

values, vectors = np.linalg.eigh(result.matrix() - result.matrix().mean(axis=0))
L = result.factor - result.factor.mean(axis=0)
U, s, _ = np.linalg.svd(L, full_matrices=False)
found = U[:, :2] * s[:2]
turn = np.linalg.svd(found.T @ places)
aligned = found @ turn[0] @ turn[2]
aligned *= np.sum(aligned * places) / np.sum(aligned**2)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=[2, 1])
left.plot(*np.vstack([places, places[:1]]).T, color="0.75", label="true places")
left.scatter(*places.T, s=24, facecolors="none", edgecolors="0.5")
left.scatter(*aligned.T, c=angle, cmap="twilight", s=28, label="from comparisons")
left.set(aspect="equal", xticks=[], yticks=[])
left.legend(frameon=False, loc="center")
right.bar(np.arange(1, 7), (s**2 / np.sum(s**2))[:6])
right.set(xlabel="eigenvalue", ylabel="share of the trace")
plt.show()
