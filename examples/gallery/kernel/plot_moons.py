"""
Two moons from a few links
==========================

`NPKL` learns a kernel of the samples that is smooth along their neighbour graph
and satisfies a few must-link and cannot-link pairs. k-means on its rows gives the
clusters.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from gramian.kernel import NPKL

X, moon = make_moons(300, noise=0.14, random_state=0)
rng = np.random.default_rng(0)
pairs = rng.permutation(300)[:20].reshape(-1, 2)
same = moon[pairs[:, 0]] == moon[pairs[:, 1]]
links = {"must_link": pairs[same], "cannot_link": pairs[~same]}
print(f"{same.sum()} must-links and {(~same).sum()} cannot-links")

# %%
# `plot` draws the clusters of the graph alone (spectral clustering) and those of
# the learned kernel, with the links.

npkl = NPKL(n_clusters=2, random_state=0).fit(X, **links)
print(npkl.certificate_)
npkl.plot()
plt.show()

# %%
# The adjusted Rand index is 1 for the true clusters and about 0 for random ones.

plain = KMeans(2, n_init=10, random_state=0).fit(X)
print(f"k-means on the samples: {adjusted_rand_score(moon, plain.labels_):.2f}")
print(f"NPKL:                   {adjusted_rand_score(moon, npkl.labels_):.2f}")

# %%
# New samples get the mean row of their neighbours, which defines clusters on the
# whole plane.

x, z = np.meshgrid(np.linspace(-1.8, 2.8, 160), np.linspace(-1.3, 1.8, 110))
plane = npkl.predict(np.column_stack([x.ravel(), z.ravel()])).reshape(x.shape)
order = np.argsort(npkl.labels_, kind="stable")
Z = npkl.kernel_factor_[order] @ npkl.kernel_factor_[order].T

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.contourf(x, z, plane, levels=[-0.5, 0.5, 1.5], colors=["C0", "C1"], alpha=0.25)
left.scatter(*X.T, c=[f"C{k}" for k in npkl.labels_], s=10, linewidths=0)
left.set(title="clusters of the plane", xticks=[], yticks=[])
picture = right.imshow(Z, cmap="RdBu_r", vmin=-1, vmax=1)
right.set(title="learned kernel, sorted by cluster", xticks=[], yticks=[])
fig.colorbar(picture, ax=right)
plt.show()
