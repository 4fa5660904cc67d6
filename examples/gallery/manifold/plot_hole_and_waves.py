"""
All directions, or few eigenvectors
===================================

`RegMVU` restricts the kernel to the span of a few smooth eigenvectors of the graph
Laplacian: the size of the problem is the number of eigenvectors, not of samples.
`MVU` has no such restriction. A sheet with a hole, bent to an S, shows the difference.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.datasets import make_s_curve

from gramian.manifold import MVU, RegMVU

X, length = make_s_curve(500, random_state=0)
kept = (np.abs(X[:, 1] - 1) > 0.45) | (np.abs(length) > 1.6)
X, flat = X[kept], np.column_stack([length, X[:, 1]])[kept]
print(f"{len(X)} samples")

# %%
# Both are certified, each among the kernels that it considers.

models = {"MVU": MVU(n_neighbors=6), "RegMVU, 15 waves": RegMVU(n_neighbors=6, n_basis=15)}
for name, model in models.items():
    started = time.perf_counter()
    model.fit(X)
    print(f"{name}: {time.perf_counter() - started:.1f} s, {model.certificate_}")

# %%
# The smooth eigenvectors represent the direction of the sheet but not its width:
# they suit a first look at very many samples.

places = {"the flat sheet": flat} | {name: model.embedding_ for name, model in models.items()}
edges = models["MVU"].graph_.edges
fig, axes = plt.subplots(3, 1, figsize=(7.5, 6), layout="constrained", sharex=True)
for axis, (name, at) in zip(axes, places.items(), strict=True):
    at = at - at.mean(axis=0)
    at = at * np.sign(np.sum(at * flat, axis=0))
    axis.add_collection(LineCollection(at[edges], colors="0.8", linewidths=0.5))
    axis.scatter(*at.T, c=flat[:, 0], cmap="Spectral", s=9, linewidths=0)
    axis.set(title=name, aspect="equal", xticks=[], yticks=[])
plt.show()
