"""
Unfolding a Swiss roll
======================

`MVU` maximises the variance of the samples subject to the edge lengths of a
neighbour graph. This unrolls a rolled sheet.
"""

import matplotlib.pyplot as plt
import numpy as np
from mpl_toolkits.mplot3d.art3d import Line3DCollection
from sklearn.datasets import make_swiss_roll

from gramian.manifold import MVU

X, angle = make_swiss_roll(500, random_state=0)
mvu = MVU(n_neighbors=6).fit(X)
print(mvu.result_)

# %%
# The graph whose lengths are preserved: each sample is joined to its six nearest.

fig = plt.figure(figsize=(5.5, 4.2), layout="constrained")
axis = fig.add_subplot(projection="3d")
lines = Line3DCollection(X[mvu.graph_.edges], colors="0.7", linewidths=0.5)
axis.add_collection(lines)
axis.scatter(*X.T, c=angle, s=14, cmap="Spectral", depthshade=False)
axis.view_init(12, -72)
axis.set_axis_off()
axis.set_box_aspect((1, 1.1, 1), zoom=1.2)
plt.show()

# %%
# `plot` draws the embedding with its graph, and the spectrum of the learned
# kernel: two eigenvalues contain nearly all of its trace, so two dimensions suffice.

mvu.plot(angle)
plt.show()

# %%
# New samples are placed by weights that reconstruct them from their neighbours.

fresh, fresh_angle = make_swiss_roll(200, random_state=1)
placed = mvu.transform(fresh)
along = abs(np.corrcoef(mvu.embedding_[:, 0], angle)[0, 1])
new = abs(np.corrcoef(placed[:, 0], fresh_angle)[0, 1])
print(f"correlation of the first direction with the angle: {along:.3f}, {new:.3f} for new samples")
