"""
Comparing solvers
=================

All solvers accept the same problem, record the same history and get the same
certificate, so they can be compared. The example is kernel learning from links, of
order 300.
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
# ``available()`` lists the solvers and what each accepts.

print(gm.solvers.available())

# %%
# A solver that cannot solve a problem raises an error that names suitable ones.

try:
    gm.minimize(problem, "frank-wolfe")
except ValueError as refusal:
    print(refusal)

# %%
# Six suitable solvers, with a time limit of two seconds each.

names = ["auto", "bilgo", "lro", "bis", "lbfgs", "agd"]
runs = {}
for name in names:
    runs[name] = gm.minimize(problem, name, tol=1e-6, time_limit=2, random_state=0)
best = max(run.certificate.lower_bound for run in runs.values())

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
for k, (name, run) in enumerate(runs.items()):
    seconds, value = run.history["time"], run.history["value"]
    above = np.maximum(value - best, 1e-9) / abs(best)
    left.loglog(np.maximum(seconds, 1e-3), above, label=name, color=f"C{k}", lw=1.5)
    if "gap" in run.history.columns:
        gap = run.history["gap"] / abs(best)
        certified = np.isfinite(gap)
        right.loglog(seconds[certified], gap[certified], ".-", color=f"C{k}", lw=1, ms=4)
left.set(xlabel="seconds", ylabel="F above the best lower bound, relative")
right.set(xlabel="seconds", ylabel="certified relative gap")
left.legend(frameon=False, ncols=2)
plt.show()

# %%
# The final rank of each, and the certified gap.

for name, run in runs.items():
    gap = run.certificate.relative_gap
    print(f"{name:12} {run.status.name:10} rank {run.rank:3d}  certified relative gap {gap:.0e}")
