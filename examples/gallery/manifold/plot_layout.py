"""
A picture that tells classes apart
==================================

`MVU` keeps distances, and a plane has no room for those between ten classes of
digits: they overlap. `NeighborLayout` keeps neighbourhoods. It is convex for given
weights of the edges, so that the best value of any rank is known, and with it what
drawing in two dimensions costs.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness

from gramian.manifold import MVU, NeighborLayout

X, classes = load_digits(return_X_y=True)
X, classes = X[:600], classes[:600]

# %%
# How many of ten neighbours in the picture are neighbours of the samples, about:

models = {
    "MVU": MVU(n_neighbors=8, tol=1e-2).fit(X),
    "one round: nothing tears": NeighborLayout(rounds=1, random_state=0).fit(X),
    "NeighborLayout": NeighborLayout(random_state=0).fit(X),
}
for name, model in models.items():
    print(f"{name}: trustworthiness {trustworthiness(X, model.embedding_, n_neighbors=10):.3f}")

# %%
# What two dimensions cost, and the optimum that says so:

layout = models["NeighborLayout"]
print(f"at most {layout.certificate_.relative_gap:.1%}")
print(layout.relaxation_)

# %%
# Coloured by the digit.

fig, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    axis.scatter(*model.embedding_.T, c=classes, cmap="tab10", s=10, linewidths=0)
    axis.set(title=name, xticks=[], yticks=[], aspect="equal")
