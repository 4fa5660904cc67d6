"""
The nearest positive semidefinite matrix
========================================

Pairwise estimates of correlations, each from the days on which both series are
known, may be inconsistent: their matrix can have negative eigenvalues. `nearest`
finds the positive semidefinite matrix that is closest to the known entries, with a
weight for each.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm

rng = np.random.default_rng(1)
names, days = 14, 60
mixing = rng.normal(size=(names, 3))
series = rng.normal(size=(days, 3)) @ mixing.T + 0.7 * rng.normal(size=(days, names))
seen = rng.random(series.shape) < 0.35

# %%
# Pairs with fewer than five common days are unknown (NaN).

T, W = np.full((names, names), np.nan), np.zeros((names, names))
for i in range(names):
    for j in range(names):
        both = seen[:, i] & seen[:, j]
        W[i, j] = both.sum()
        if i == j:
            T[i, j] = 1.0
        elif both.sum() >= 5:
            T[i, j] = np.corrcoef(series[both, i], series[both, j])[0, 1]
W = np.where(np.isnan(T), np.nan, W / np.nanmax(W))
filled = np.where(np.isnan(T), 0.0, T)
unknown = int(np.isnan(T[np.triu_indices(names)]).sum())
print(f"{unknown} entries unknown, lowest eigenvalue {np.linalg.eigvalsh(filled)[0]:.2f}")

# %%
# The diagonal has a hundred times the weight, so that it stays near 1.

W[np.diag_indices(names)] = 100.0
problem = gm.problems.nearest(T, weights=W)
result = gm.minimize(problem, tol=1e-8)
M = result.matrix()
print(result)

# %%
# Unknown entries are filled in, and the spectrum has no negative eigenvalue.

fig, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained", width_ratios=[1, 1, 1.1])
for axis, matrix, title in zip(axes, (T, M), ("pair by pair", "nearest"), strict=False):
    picture = axis.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
    axis.set(title=title, xticks=[], yticks=[], facecolor="0.85")
fig.colorbar(picture, ax=axes[:2], shrink=0.8)
order = np.arange(1, names + 1)
axes[2].bar(order - 0.2, np.linalg.eigvalsh(filled)[::-1], 0.4, label="pair by pair")
axes[2].bar(order + 0.2, np.linalg.eigvalsh(M)[::-1], 0.4, label="nearest")
axes[2].axhline(0, color="k", lw=0.8)
axes[2].set(title="eigenvalues")
axes[2].legend(frameon=False)
plt.show()
