"""
Adding links to a fitted kernel
===============================

Users may answer whether pairs are similar in several rounds and look at the
clusters in between. `add_links` continues from the fitted kernel (a warm start).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from gramian.kernel import NPKL

X, y = load_digits(n_class=6, return_X_y=True)
X, y = X[:600], y[:600]
rng = np.random.default_rng(0)


def answers(count):
    """Random pairs, and whether their digits are the same."""
    pairs = rng.integers(0, len(X), size=(3 * count, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    pairs = rng.permutation(pairs)[:count]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return {"must_link": pairs[same], "cannot_link": pairs[~same]}


# %%
# Each round adds twenty answers. One kernel continues from the last fit, another is
# fitted from scratch to all answers so far. Both stop at the same certified gap.

first = answers(20)
continued = NPKL(n_clusters=6, random_state=0).fit(X, **first)
links, rand, warm, cold = [20], [adjusted_rand_score(y, continued.labels_)], [], []
for _ in range(6):
    continued.add_links(**answers(20))
    warm.append(continued.result_.seconds)
    known = {"must_link": continued.links_.must, "cannot_link": continued.links_.cannot}
    over = NPKL(n_clusters=6, random_state=0).fit(X, **known)
    cold.append(over.result_.seconds)
    links.append(len(continued.links_.pairs))
    rand.append(adjusted_rand_score(y, continued.labels_))

print(f"continued {np.sum(warm):.1f} s in total, from scratch {np.sum(cold):.1f} s")

# %%
# The times are those of the solver. The saving depends on how much the new links
# change.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
left.plot(links, rand, "o-")
left.set(xlabel="links known", ylabel="adjusted Rand index")
right.plot(links[1:], cold, "s-", color="0.5", label="from scratch")
right.plot(links[1:], warm, "o-", color="C1", label="add_links")
right.set(xlabel="links known", ylabel="seconds", ylim=(0, None))
right.legend(frameon=False)
plt.show()
