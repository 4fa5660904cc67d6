"""
A layout that separates classes
===============================

`MVU` preserves distances, and in a plane ten classes of digits then overlap.
`NeighborLayout` preserves neighbourhoods. For given edge weights the problem is
convex, so the best value of any rank is known, and with it the cost of the
restriction to two dimensions.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness

from gramian.manifold import MVU, NeighborLayout

X, classes = load_digits(return_X_y=True)
X, classes = X[:600], classes[:600]

# %%
# The approximate fraction of ten neighbours in the plot that are neighbours of the samples:

models = {
    "MVU": MVU(n_neighbors=8, tol=1e-2).fit(X),
    "one round: nothing tears": NeighborLayout(rounds=1, random_state=0).fit(X),
    "NeighborLayout": NeighborLayout(random_state=0).fit(X),
}
for name, model in models.items():
    print(f"{name}: trustworthiness {trustworthiness(X, model.embedding_, n_neighbors=10):.3f}")

# %%
# The cost of two dimensions, and the optimum that bounds it:

layout = models["NeighborLayout"]
print(f"at most {layout.certificate_.relative_gap:.1%}")
print(layout.relaxation_)

# %%
# Coloured by the digit.

fig, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    axis.scatter(*model.embedding_.T, c=classes, cmap="tab10", s=10, linewidths=0)
    axis.set(title=name, xticks=[], yticks=[], aspect="equal")
