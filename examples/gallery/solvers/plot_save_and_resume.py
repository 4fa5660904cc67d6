"""
Save, load and resume
=====================

A fitted estimator is saved as arrays and JSON: the file contains no executable
code, and reading it executes nothing. A long solve can write checkpoints, and the
same call resumes after a kill.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.metric import KTA

folder = Path(tempfile.mkdtemp())

# %%
# A pipeline of a scaler, a learned metric and nearest neighbours, saved and loaded.

X, y = load_wine(return_X_y=True)
model = make_pipeline(StandardScaler(), KTA(), KNeighborsClassifier(3)).fit(X, y)
gm.save(model, folder / "wine.gramian")
again = gm.load(folder / "wine.gramian")
print("same predictions:", np.array_equal(model.predict(X), again.predict(X)))
print("its certificate: ", again[1].certificate_)

# %%
# A run that stops after its twentieth step, with a checkpoint. ``every=0`` writes at
# each step; the default is once a minute.

digits, digit = load_digits(return_X_y=True)
problem = gm.problems.kta(StandardScaler().fit_transform(digits), digit, lam=1e-3)
file = folder / "run.gramian"
cut = gm.minimize(problem, "bilgo", tol=1e-7, checkpoint=file, every=0, max_iter=20)
print(cut.status.name, cut.certificate)

# %%
# The same call without the limit starts at the best point in the file.

rest = gm.minimize(problem, "bilgo", tol=1e-7, checkpoint=file, every=0)
print(rest.status.name, rest.certificate)

best = rest.certificate.lower_bound
fig, axis = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
start = 0
for name, run in {"first run": cut, "second run": rest}.items():
    steps = start + run.history["iteration"]
    axis.semilogy(steps, (run.history["value"] - best) / best, ".-", label=name)
    start = steps[-1]
axis.set(xlabel="iteration", ylabel="F above the optimum, relative")
axis.legend(frameon=False)
plt.show()
