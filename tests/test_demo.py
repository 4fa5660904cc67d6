"""The demonstration: one fold of a table, the table that is printed, and the picture."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from examples import demo


def test_the_table_counts_rows_in_which_gramian_is_first_or_close(capsys):
    errors = {"as it is": [3.0, 5.0], "LDA": [2.0, 3.0], "NCA": [1.0, 2.0], "gramian": [1.0, 2.5]}
    won = [dict(zip(errors, fold, strict=True)) for fold in zip(*errors.values(), strict=True)]
    lost = [{**fold, "gramian": 9.0} for fold in won]
    demo.print_table({"won": won, "lost": lost})
    assert "on 1 of 2 tables" in capsys.readouterr().out


@pytest.mark.slow
def test_a_fold_and_the_picture(tmp_path):
    found = demo.held_out_errors("iris", 0)
    assert list(found) == list(demo.methods()) and all(0 <= value < 20 for value in found.values())
    X, y = load_iris(return_X_y=True)
    demo.draw(np.asarray(X[:, :2]), y, tmp_path / "layout.png")
    assert (tmp_path / "layout.png").stat().st_size > 1000
