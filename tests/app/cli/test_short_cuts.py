"""Embeddings say how far they are to be trusted, and where the graph takes short cuts."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_s_curve, make_swiss_roll

from gramian.app.verdict import short_cut, verdict_of_embedding
from gramian.graph import neighbor_graph

ROLL = make_swiss_roll(400, random_state=0)[0]


def test_finds_short_cut_in_graph_of_a_roll():
    assert short_cut(ROLL, 5) is None  # which unrolls
    first, loss = short_cut(ROLL, 8)  # which does not
    assert first == 6 and loss == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("seed", range(3))
def test_finds_no_short_cut_in_other_graphs(seed):
    assert short_cut(make_s_curve(200, random_state=seed)[0], 8) is None
    assert short_cut(np.random.default_rng(seed).normal(size=(300, 3)), 10) is None


def test_verdict_reports_short_cuts():
    folded = SimpleNamespace(  # what a fit looks like that kept to the plane
        n_components=2, n_neighbors=8, embedding_=ROLL[:, :2],
        explained_variance_ratio_=np.array([0.5, 0.3, 0.2]), kernel_factor_=ROLL[:, :2],
        graph_=neighbor_graph(ROLL, 8),
    )  # fmt: skip
    answer = verdict_of_embedding(folded, ROLL).sentence
    assert "Trustworthiness 0." in answer
    assert "With 6 neighbours the graph takes a short cut" in answer and answer.endswith("try 5.")
