"""
Likes, dislikes and levels with a margin
========================================

`MMMF` completes a matrix of signs or ordered levels: each known entry should lie
on the correct side of the thresholds, with a margin, at a small nuclear norm of
the matrix.
"""

import matplotlib.pyplot as plt
import numpy as np

from gramian.completion import MMMF, NuclearCompletion

rng = np.random.default_rng(0)
score = rng.normal(size=(90, 2)) @ rng.normal(size=(2, 60)) + 0.3 * rng.normal(size=(90, 60))
known = rng.random(score.shape) < 0.25
asked = np.argwhere(~known)

# %%
# Signs first: a quarter of the likes (+1) and dislikes (−1) are known.

signs = np.where(score > 0, 1.0, -1.0)
model = MMMF(random_state=0).fit(np.where(known, signs, np.nan))
truth = signs[~known]
print(model.certificate_)
print(f"{np.mean(model.predict(asked) == truth):.1%} of the unknown signs are right")

# %%
# The certificate refers to the smoothed hinge. ``hinge_gap_`` bounds the
# suboptimality for the hinges without smoothing.

print(f"hinges: at most {model.hinge_gap_:.1%} above their optimum")

# %%
# ``decision_function`` returns the distance of an entry from the threshold: larger
# distances are more reliable.

value = model.decision_function(asked)
sure = np.abs(value)
steps = np.linspace(0, 0.95, 40)
kept = np.quantile(sure, steps)
right = [np.mean((value[sure >= least] > 0) == (truth[sure >= least] > 0)) for least in kept]

fig, (left, middle) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
bins = np.linspace(-2.5, 2.5, 50)
left.hist(value[truth > 0], bins, alpha=0.7, label="like")
left.hist(value[truth < 0], bins, alpha=0.7, label="dislike")
left.set(xlabel="score of an unknown entry", ylabel="entries")
left.legend(frameon=False)
middle.plot(100 * (1 - steps), 100 * np.array(right))
middle.set(xlabel="% of the unknown entries, the surest first", ylabel="% of them right")
plt.show()

# %%
# With more than two levels each entry has to be on the correct side of every
# threshold. Here the levels are a number cut into five intervals, and
# `NuclearCompletion`, which treats them as numbers, is better. Try both.

levels = np.digitize(score, [-2.0, -0.7, 0.7, 2.0]).astype(float)
table = np.where(known, levels, np.nan)
for completion in (MMMF(random_state=0), NuclearCompletion(random_state=0)):
    found = np.clip(np.rint(completion.fit(table).predict(asked)), 0, 4)
    off = np.mean(np.abs(found - levels[~known]))
    print(f"{type(completion).__name__:18} {off:.2f} levels off on average")
