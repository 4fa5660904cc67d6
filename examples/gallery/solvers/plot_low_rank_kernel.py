"""
Low-rank approximation of a kernel matrix
=========================================

`top_eigen` computes the largest eigenvalues of a symmetric matrix, with a residual
that bounds the error of each; `LowRankKernel` builds a factor from them, solves
linear systems with it, and maps new samples.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split

import gramian as gm
from gramian.spectral import LowRankKernel

X, y = load_digits(return_X_y=True)
train, test, y_train, y_test = train_test_split(X / 16.0, y, random_state=0, stratify=y)
gamma = 0.05
K = rbf_kernel(train, gamma=gamma)

# %%
# Each residual bounds the distance to an eigenvalue of K.

found = gm.spectral.top_eigen(K, 5)
for value, residual in zip(found.values, found.residuals, strict=True):
    print(f"{value:9.4f} ± {residual:.0e}")

# %%
# Kernel ridge regression of the ten indicators, exact and with few eigenpairs:
# ``solve`` applies (LLᵀ + λI)⁻¹ in a time proportional to n times the rank.

Y = np.eye(10)[y_train]
lam = 0.1
exact = KernelRidge(alpha=lam, kernel="rbf", gamma=gamma).fit(train, Y)
right = np.mean(exact.predict(test).argmax(axis=1) == y_test)

ranks = [5, 10, 20, 40, 80, 160, 320]
accuracy, left_out = [], []
for rank in ranks:
    low = LowRankKernel(n_components=rank, kernel="rbf", gamma=gamma, lam=lam).fit(train)
    weights = low.kernel_factor_.T @ low.solve(Y)
    accuracy.append(np.mean((low.transform(test) @ weights).argmax(axis=1) == y_test))
    left_out.append(low.approximation_error_ / np.trace(K))

fig, (one, two) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
one.loglog(ranks, left_out, "o-")
one.set(xlabel="eigenpairs kept", ylabel="fraction of the trace omitted")
two.semilogx(ranks, accuracy, "o-", label="low rank")
two.axhline(right, color="k", lw=0.8, ls=":", label="whole kernel matrix")
two.set(xlabel="eigenpairs kept", ylabel="accuracy on held-out digits")
two.legend(frameon=False)
plt.show()
