"""
Six metric learners on one data set
===================================

All six learn a positive semidefinite matrix from the same labels with different
objectives. The error is that of 3 nearest neighbours on held-out samples; the time
is that of the fit.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from gramian.metric import KTA, LMNN, DMLEig, LinearSeparation, LMNNEig, TripletMetric

X, y = load_digits(return_X_y=True)
learners = [LinearSeparation(), KTA(), DMLEig(), LMNNEig(), TripletMetric(), LMNN()]
names = ["Euclidean", *(type(learner).__name__ for learner in learners)]
seeds = range(2)

# %%
# Each fit reports a bound on its distance from the optimum.

errors, seconds = np.zeros((len(names), len(seeds))), np.zeros((len(names), len(seeds)))
for seed in seeds:
    parts = train_test_split(X, y, train_size=400, random_state=seed, stratify=y)
    train, test, y_train, y_test = parts
    scaler = StandardScaler().fit(train)
    train, test = scaler.transform(train), scaler.transform(test)
    errors[0, seed] = 1 - KNeighborsClassifier(3).fit(train, y_train).score(test, y_test)
    for row, learner in enumerate(learners, start=1):
        started = time.perf_counter()
        learner.fit(train, y_train)
        seconds[row, seed] = time.perf_counter() - started
        near = KNeighborsClassifier(3).fit(learner.transform(train), y_train)
        errors[row, seed] = 1 - near.score(learner.transform(test), y_test)

for learner in learners:
    rank, gap = learner.result_.rank, learner.certificate_.relative_gap
    print(f"{type(learner).__name__:16}  rank {rank:2d}  certified relative gap {gap:.0e}")

# %%
# No learner is best on all data: :doc:`/choosing-a-model` compares them on twenty data sets.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
places = np.arange(len(names))
left.barh(places, 100 * errors.mean(axis=1), color=["0.6"] + ["C0"] * len(learners))
left.plot(100 * errors, places, "k.", ms=4)
left.set(yticks=places, yticklabels=names, xlabel="3-NN error, %")
left.invert_yaxis()
right.barh(places[1:], seconds[1:].mean(axis=1), color="C1")
right.set(xlabel="seconds to fit 400 samples", xscale="log")
plt.show()
