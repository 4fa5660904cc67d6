"""
Learning from similar and dissimilar pairs
==========================================

Often there are no classes, only pairs that are known to be similar or dissimilar.
`DMLEig.fit_pairs` learns a metric from them, and a threshold for `predict`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.metric import DMLEig

X, y = load_digits(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# 1000 pairs of equal digits and 1000 pairs of different digits. Half of them are
# used for training, without any labels.

near, far = gm.constraints.random_pairs(y, 1000, random_state=0)
pairs, same = np.vstack([near, far]), np.repeat([True, False], 1000)
half = np.arange(len(pairs)) % 2 == 0
verify = DMLEig().fit_pairs(pairs[half], same[half], X=X)
print(verify.certificate_)

# %%
# The other half is used for evaluation. ``pair_score`` is minus the distance, as a
# ROC curve requires.

asked, truth = pairs[~half], same[~half]
scores = {
    "Euclidean": -np.linalg.norm(X[asked[:, 0]] - X[asked[:, 1]], axis=1),
    "learned": verify.pair_score(asked, X=X),
}

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, score in scores.items():
    wrong, right_ones, _ = roc_curve(truth, score)
    left.plot(wrong, right_ones, label=f"{name}, area {roc_auc_score(truth, score):.3f}")
left.plot([0, 1], [0, 1], color="0.8", zorder=0)
left.set(xlabel="different pairs called the same", ylabel="same pairs called the same")
left.legend(frameon=False)

distance = verify.pair_distance(asked, X=X)
bins = np.linspace(0, np.quantile(distance, 0.99), 40)
right.hist(distance[truth], bins, alpha=0.7, label="same")
right.hist(distance[~truth], bins, alpha=0.7, label="different")
right.axvline(verify.threshold_, color="k", lw=1, label="threshold")
right.set(xlabel="learned distance", ylabel="pairs")
right.legend(frameon=False)
plt.show()

# %%
# The threshold of the fit minimises the errors on the training pairs. If false
# positives are costly, `calibrate` selects the largest threshold with a given false
# positive rate.

print(f"right by the threshold of the fit: {np.mean(verify.predict(asked, X=X) == truth):.3f}")
verify.calibrate(asked[::2], truth[::2], X=X, max_false_positive_rate=0.01)
said, really = verify.predict(asked[1::2], X=X), truth[1::2]
print(f"calibrated to 1 %: {np.mean(said[~really]):.3f} of the different pairs called the same,")
print(f"                   {np.mean(said[really]):.3f} of the same pairs")
