"""
A metric from comparisons
=========================

`TripletMetric` learns from comparisons of the form "A is more similar to B than to
C". Here the comparisons come from a hidden metric that depends on two of ten
directions, and the learned metric is compared with it.
"""

import matplotlib.pyplot as plt
import numpy as np

from gramian.metric import TripletMetric

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 10))
hidden = np.zeros((10, 2))
hidden[[0, 1, 2], 0] = [1.0, 1.0, 0.5]
hidden[[6, 7], 1] = [1.0, -1.0]
truth = hidden @ hidden.T

# %%
# Each triplet consists of three random samples; the second is closer to the first
# than the third by the hidden metric.


def comparisons(count):
    """Triplets (anchor, nearer, farther) by the hidden metric."""
    drawn = rng.integers(0, len(X), size=(count, 3))
    drawn = drawn[(drawn[:, 0] != drawn[:, 1]) & (drawn[:, 0] != drawn[:, 2])]
    drawn = drawn[drawn[:, 1] != drawn[:, 2]]
    near, far = (np.sum(((X[drawn[:, 0]] - X[drawn[:, k]]) @ hidden) ** 2, axis=1) for k in (1, 2))
    turned = drawn[:, [0, 2, 1]]
    return np.where((near <= far)[:, None], drawn, turned)


def right(metric, triplets):
    """The fraction of comparisons that a fitted metric satisfies."""
    near, far = (metric.pair_distance(triplets[:, [0, k]], X=X) for k in (1, 2))
    return np.mean(near < far)


fresh = comparisons(4000)
counts = (30, 100, 300, 1000)
fitted = {count: TripletMetric().fit_triplets(comparisons(count), X=X) for count in counts}
for count, metric in fitted.items():
    print(f"{count:5d} comparisons: rank {metric.result_.rank}, {right(metric, fresh):.1%} right")

# %%
# The trace in the objective keeps the rank low; the rank 2 of the hidden metric was
# not given. Matrices are drawn with unit trace.

shown = {"hidden": truth} | {
    f"from {count}": fitted[count].get_mahalanobis_matrix() for count in (30, 100, 1000)
}
fig, axes = plt.subplots(1, 4, figsize=(9.5, 2.7), layout="constrained")
for axis, (title, M) in zip(axes, shown.items(), strict=True):
    picture = axis.imshow(M / np.trace(M), cmap="RdBu_r", vmin=-0.25, vmax=0.25)
    axis.set(title=title, xticks=[], yticks=[])
fig.colorbar(picture, ax=axes, shrink=0.8)
plt.show()
