"""
The cost of a rank limit
========================

``rank=r`` limits the factor to r columns. The problem is then no longer convex,
and a solver can only find a point without a better one nearby. The certificate
compares it with the best M of *any* rank and therefore bounds the cost of the
limit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

import gramian as gm

X, y = load_digits(return_X_y=True)
problem = gm.problems.kta(StandardScaler().fit_transform(X), y, lam=1e-3)
best = gm.minimize(problem)
print(best)

# %%
# The certified gap is never below the true one.

ranks = [1, 2, 3, 5, 9, 15, 20, 30, 40, 50]
runs = [gm.minimize(problem, rank=rank, tol=1e-4) for rank in ranks]
cost = np.array([run.value - best.value for run in runs])
claimed = np.array([run.certificate.gap for run in runs])

fig, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
axis.plot(ranks, claimed / best.value, "o-", color="C1", label="certified: at most this")
axis.plot(ranks, cost / best.value, "s-", color="C0", label="true cost of the limit")
axis.set(xlabel="rank allowed", ylabel="F above the optimum, relative", yscale="log")
axis.legend(frameon=False)
plt.show()

# %%
# ``status`` states how each run ended.

for rank, run in zip(ranks[:3], runs[:3], strict=True):
    print(f"rank {rank}: {run.status.name}, {run.certificate}")
