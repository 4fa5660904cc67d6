"""
A metric in the feature space of a kernel
=========================================

No linear map can separate a ring from the ring around it. With ``kernel="rbf"`` the
same learner works in the feature space of a kernel, exactly, in the span of the
samples.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles
from sklearn.neighbors import NearestCentroid

from gramian.metric import KTA

X, y = make_circles(300, noise=0.12, factor=0.5, random_state=0)
train = np.arange(len(X)) % 2 == 0

# %%
# The nearest class mean is correct only if each class forms one cluster.
# ``kernel_params`` sets the width of the kernel.

linear = KTA(n_components=2).fit(X[train], y[train])
curved = KTA(kernel="rbf", n_components=2).fit(X[train], y[train])
print(curved.certificate_)

views = {
    "samples": X,
    "linear metric": linear.transform(X),
    "metric in the feature space": curved.transform(X),
}
fig, axes = plt.subplots(1, 3, figsize=(10, 3.5), layout="constrained")
for axis, (title, Z) in zip(axes, views.items(), strict=True):
    accuracy = NearestCentroid().fit(Z[train], y[train]).score(Z[~train], y[~train])
    axis.scatter(*Z[~train].T, c=y[~train], cmap="coolwarm", s=14, linewidths=0)
    axis.set(title=f"{title}\nnearest mean {accuracy:.0%} right", xticks=[], yticks=[])
plt.show()

# %%
# The learned distance is a function on the plane. Its level lines around a sample of
# the inner ring follow that ring.

side = np.linspace(-1.6, 1.6, 80)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
anchor = X[train & (y == 1)][0]
pairs = np.stack([np.broadcast_to(anchor, grid.shape), grid], axis=1)

fig, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained", sharey=True)
for axis, (title, model) in zip(axes, {"linear": linear, "rbf": curved}.items(), strict=True):
    distance = model.pair_distance(pairs).reshape(side.size, side.size)
    axis.contourf(side, side, distance, levels=12, cmap="Greys")
    axis.scatter(*X.T, c=y, cmap="coolwarm", s=8, linewidths=0)
    axis.plot(*anchor, "k*", ms=12)
    axis.set(title=f"{title}: distance from the star", aspect="equal", xticks=[], yticks=[])
plt.show()
