"""
Lower bounds during a run
=========================

A solver decreases F; its certificate increases a lower bound on the optimum.
The optimum lies between the two at every iteration.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import gramian as gm

X, y = load_digits(n_class=4, return_X_y=True)
X, y = X[:300], y[:300]
graph = gm.graph.neighbor_graph(X, 8)
laplacian = graph.laplacian(graph.weights("auto"), normalized=True)
must, cannot = gm.constraints.random_pairs(y, 150, random_state=0)
problem = gm.problems.npkl(laplacian, must, cannot, lam=10.0)
print(problem)

# %%
# ``history["gap"]`` is the certified gap of each iterate that was certified, and
# ``value - gap`` is the bound. A bound stays valid for later iterates, so the best one
# so far counts. The optimum is known here because one solver has computed it to many
# digits.

runs = {name: gm.minimize(problem, name, tol=1e-6) for name in ("auto", "bilgo", "lro")}
optimum = gm.minimize(problem, tol=1e-10).value

fig, axes = plt.subplots(1, 3, figsize=(10, 3.5), layout="constrained", sharey=True)
for axis, (name, run) in zip(axes, runs.items(), strict=True):
    values, gaps = run.history["value"], run.history["gap"]
    certified = np.isfinite(gaps)
    steps = run.history["iteration"]
    below = optimum - np.maximum.accumulate((values - gaps)[certified])
    axis.semilogy(steps, np.maximum(values - optimum, 1e-9), lw=1.5, label="F − F*")
    axis.semilogy(steps[certified], np.maximum(below, 1e-9), "o-", ms=4, lw=1, label="F* − bound")
    axis.set(title=name, xlabel="iteration", ylim=(1e-7, 3e4))
axes[0].legend(frameon=False)
plt.show()

# %%
# No bound exceeds the optimum, and each run ends when the two agree to the
# tolerance.

for name, run in runs.items():
    assert run.certificate.lower_bound <= optimum * (1 + 1e-9)
    print(f"{name:6} {run.certificate}")
