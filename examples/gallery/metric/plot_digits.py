"""
Digits, before and after
========================

A metric learned from labels is a linear map of the samples: the Euclidean distance
of the mapped samples is the learned metric. Here `KTA` is fitted to half of
scikit-learn's digits and maps them to two dimensions; the other half is used for
evaluation.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from gramian.metric import KTA

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

# %%
# ``n_components=2`` keeps the two directions in which the mapped samples vary most;
# the metric itself, and its certificate, use all 64.

kta = KTA(n_components=2).fit(X_train, y_train)
print(kta.result_)

# %%
# PCA keeps the directions of largest variance and does not use the labels.

pca = PCA(2, random_state=0).fit(X_train)
panels = {"PCA": pca, "KTA": kta}

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for axis, (name, model) in zip(axes, panels.items(), strict=True):
    train, test = model.transform(X_train), model.transform(X_test)
    error = 1 - KNeighborsClassifier(3).fit(train, y_train).score(test, y_test)
    dots = axis.scatter(*test.T, c=y_test, cmap="tab10", s=12, alpha=0.85, linewidths=0)
    axis.set(title=f"{name}: 3-NN error {error:.0%}", xticks=[], yticks=[])
fig.colorbar(dots, ax=axes, ticks=range(10), label="digit", shrink=0.85)
plt.show()

# %%
# With more directions the gain over PCA decreases, since 64 pixels contain most of
# the information about a digit.

print("directions   PCA    KTA")
for count in (2, 3, 5, 9):
    errors = []
    for model in (PCA(count, random_state=0), KTA(n_components=count)):
        train = model.fit(X_train, y_train).transform(X_train)
        near = KNeighborsClassifier(3).fit(train, y_train)
        errors.append(1 - near.score(model.transform(X_test), y_test))
    print(f"{count:10d}  {errors[0]:.1%}  {errors[1]:.1%}")
