"""
Ratings, a path of λ, and recommendations
=========================================

`NuclearCompletion` completes a matrix from some of its entries by a low-rank
matrix plus offsets of rows and columns. The rank is determined by λ, and λ is
selected on held-out ratings.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramian as gm
from gramian.completion import NuclearCompletion

ratings = gm.datasets.load_ratings("synthetic_ratings")
user, item, stars = ratings.triples
rng = np.random.default_rng(0)
train = rng.random(stars.size) < 0.8
print(f"{train.sum()} ratings to learn from, {(~train).sum()} to test on")

# %%
# ``lam="auto"`` computes a path of decreasing λ with warm starts and selects the λ
# with the smallest error on a held-out tenth of the ratings.

model = NuclearCompletion(random_state=0).fit((user[train], item[train], stars[train]))
print(model.certificate_)
print(f"λ = {model.lam_:.2f}, rank {model.row_factors_.shape[1]}")

# %%
# For comparison: the mean and offsets alone (λ is so large that the low-rank matrix
# is zero).

offsets = NuclearCompletion(lam=1e4).fit((user[train], item[train], stars[train]))
tested = (user[~train], item[~train])
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.semilogx(model.path_.values, model.path_.errors, "o-")
left.axvline(model.lam_, color="0.7", zorder=0)
left.set(xlabel="λ", ylabel="RMSE of held-out ratings")
left.set_xticks([2, 3, 5, 10], labels=["2", "3", "5", "10"])
left.minorticks_off()
for name, fitted in {"offsets alone": offsets, "completion": model}.items():
    predicted = fitted.predict(tested)
    error = np.sqrt(np.mean((predicted - stars[~train]) ** 2))
    by_star = [predicted[stars[~train] == k].mean() for k in range(1, 6)]
    right.plot(range(1, 6), by_star, "o-", label=f"{name}, RMSE {error:.2f}")
right.plot([1, 5], [1, 5], color="0.8", zorder=0)
right.set(xlabel="stars given", ylabel="mean of the predictions")
right.legend(frameon=False)
plt.show()

# %%
# The best items that a user has not rated, and items whose factors are similar to
# those of another.

for name, (items, numbers) in {
    "for user-007": model.recommend("user-007", 3),
    "like item-003": model.similar_items("item-003", 3),
}.items():
    print(f"{name}:", ", ".join(f"{i} {x:.2f}" for i, x in zip(items, numbers, strict=True)))

# %%
# A user who was not in the fit is added from a few ratings.

new = (np.repeat("new", 3), np.array(["item-000", "item-003", "item-010"]), np.array([5, 1, 4]))
row = model.complete(new)[0]
best = np.argsort(-row)[:3]
print("for a new user:", ", ".join(f"{model.col_ids_[j]} {row[j]:.2f}" for j in best))
