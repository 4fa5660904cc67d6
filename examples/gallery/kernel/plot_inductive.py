"""
A kernel for new samples
========================

`InductiveKernel` starts from a given kernel, stays close to it, and makes samples
of a class more similar. It is defined for any two samples, so it can be used with
other scikit-learn estimators.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split

from gramian.kernel import InductiveKernel, KernelKMeans

X, y = load_digits(n_class=6, return_X_y=True)
X, y = X[:700] / 16, y[:700]
train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

# %%
# Five digits of each class have a label; the others of the first half are
# unlabelled.

rng = np.random.default_rng(0)
known = np.full(len(y_train), -1)
for k in range(6):
    known[rng.choice(np.flatnonzero(y_train == k), 5, replace=False)] = k
learned = InductiveKernel(kernel="rbf").fit(train, known)
print(learned.certificate_)
print(f"rank {learned.kernel_factor_.shape[1]}")

# %%
# k-means with either kernel on the second half, which was not used in the fit. The
# purity is the fraction of samples that belong to the most frequent class of their
# cluster.

mapped = learned.transform(test)
before = KernelKMeans(n_clusters=6, kernel="rbf", random_state=0).fit_predict(test)
after = KernelKMeans(n_clusters=6, random_state=0).fit_predict(mapped)


def purity(labels):
    return sum(np.bincount(y_test[labels == k]).max() for k in np.unique(labels)) / len(labels)


order = np.argsort(y_test, kind="stable")
gamma = learned.kernel_params_["gamma"]
kernels = {
    f"given: purity {purity(before):.0%}": rbf_kernel(test[order], gamma=gamma),
    f"learned: purity {purity(after):.0%}": mapped[order] @ mapped[order].T,
}
fig, axes = plt.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
for axis, (title, K) in zip(axes, kernels.items(), strict=True):
    limit = np.quantile(np.abs(K), 0.99)
    picture = axis.imshow(K, cmap="RdBu_r", vmin=-limit, vmax=limit)
    axis.set(title=title, xticks=[], yticks=[])
    fig.colorbar(picture, ax=axis, shrink=0.8)
fig.supxlabel("held-out digits, sorted by class")
plt.show()
