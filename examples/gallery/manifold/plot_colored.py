"""
Unfolding along side information
================================

`MVU` shows the directions in which the samples vary most, which may not be the
interesting ones. `ColoredMVU` maximises the variance along given side information
only: labels or numbers. Here a sheet is bent to an S and far wider than it is long,
and the side information of a sample is its position along the S.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_s_curve

from gramian.manifold import MVU, ColoredMVU

X, along = make_s_curve(300, random_state=0)
across = 6 * X[:, 1]
X = np.column_stack([X[:, 0], across, X[:, 2]])

# %%
# Correlations of the first direction of each embedding with the two coordinates
# of the sheet:

models = {
    "MVU": MVU(n_neighbors=6).fit(X),
    "ColoredMVU": ColoredMVU(n_neighbors=6).fit(X, along),
}
for name, model in models.items():
    first = model.embedding_[:, 0]
    known = [abs(np.corrcoef(first, coordinate)[0, 1]) for coordinate in (along, across)]
    print(f"{name:11} along {known[0]:.2f}, across {known[1]:.2f}; {model.certificate_}")

# %%
# Coloured by the position along the S.

fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    dots = axis.scatter(*model.embedding_.T, c=along, cmap="Spectral", s=14, linewidths=0)
    axis.set(title=name, xlabel="first direction", ylabel="second direction", aspect="equal")
fig.colorbar(dots, ax=axes, label="place along the S", shrink=0.8)
plt.show()
