"""Sessions without a browser: history, links by id, reasons, aligned views, scales and signals."""

import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.app.explorer import MetricSession, Page, Session, samples
from gramian.app.explorer.history import History
from gramian.app.explorer.rating import scale_of
from gramian.app.explorer.session import renumbered
from gramian.app.explorer.tables import card, next_view, unit_square
from gramian.metric import KTA

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(size=(15, 2)), RNG.normal(size=(15, 2)) + np.array([8, 0])])
IDS = [f"id-{k}" for k in range(30)]


# --- history -----------------------------------------------------------------------------


class Counter(History):
    """States are numbers."""

    def __init__(self):
        self._begin(0)

    def _actions(self):
        return {"set": lambda given: self._commit(f"to {given['to']}", given["to"], 0.0)}


@given(st.lists(st.tuples(st.sampled_from(["set", "go"]), st.integers(-1, 6))))
def test_any_state_of_the_history_can_be_restored(changes):
    session, states, at = Counter(), [0], 0
    for action, to in changes:
        wanted = at + 1 if action == "set" else to
        given = {"to": to, "version": session.version}
        if action != "set" and not 0 <= wanted < len(states):
            with pytest.raises(ValueError, match="the history has"):
                session.change(action, given)
            continue
        if action == "set":
            states = [*states[: at + 1], to]
        session.change(action, given)
        at = wanted
        assert session._now == states[at]
        assert session._state()["at"] == at and len(session._state()["history"]) == len(states) - 1


def test_undo_of_several_links_restores_clusters_and_view():
    session = Session(X, 2)
    session.add(0, 1, "must")
    session.add(0, 20, "cannot")
    before = session.state()
    session.add(3, 25, "cannot")
    session.go_to(0)
    assert session.links == () and session.fitted is None
    session.go_to(2)
    after = session.state()
    same = ("links", "labels", "learned", "verdict", "certificate")
    assert all(before[name] == after[name] for name in same)
    session.add(5, 26, "cannot")  # the third link of before is dropped
    assert session.state()["history"][-1] == "sample 5 – sample 26: apart"
    assert len(session.state()["history"]) == 3


# --- links -------------------------------------------------------------------------------


def test_downloaded_links_have_ids_and_kinds():
    session = Session(X, 2, names=IDS)
    session.add_all([(0, 1, "must"), (2, 20, "cannot")])
    lines = session.download("links.csv").decode().splitlines()
    assert lines == ["first,second,kind", "id-0,id-1,must-link", "id-2,id-20,cannot-link"]


def test_downloaded_links_have_row_numbers_where_ids_are_not_unique():
    session = Session(X, 2, names=["same"] * 30)
    session.add(0, 20, "cannot")
    assert session.download("links.csv").decode().splitlines()[1] == "0,20,cannot-link"


def test_must_links_are_kept_before_two_samples_are_apart():
    session = Session(X, 2)
    session.add(0, 20, "must")
    assert session.labels[0] == session.labels[20] and session.fitted is None
    assert session.state()["reasons"] == {} and "1 of 1 links kept" in session.verdict()


def test_violated_link_has_a_reason():
    session = Session(X, 2)
    session.add_all([(0, 1, "cannot"), (0, 20, "cannot"), (1, 20, "cannot")])
    reasons = session.state()["reasons"]
    assert len(reasons) == 1 and "2 clusters cannot keep all of these links" in reasons.popitem()[1]
    assert session.verdict().startswith("2 of 3 links kept.")


def test_page_shows_similarity_for_a_link_the_kernel_ignores():
    session = Session(X, 2)
    session.add(0, 20, "cannot")
    session._now.labels[20] = session.labels[0]  # clusters that do not keep the link
    (reason,) = session.state()["reasons"].values()
    assert "their learned similarity is" in reason


def test_every_linked_kernel_has_a_page():
    for model in (gm.kernel.PCP(), gm.kernel.RegPCP()):
        session = Session(X, 2, model)
        session.add(0, 20, "cannot")
        assert session.labels[0] != session.labels[20]


def test_many_samples_are_linked_or_named_in_one_change():
    session = Session(X, 2)
    session.change("link", {"rows": [0, 1, 2, 3], "kind": "must"})
    assert len(session.links) == 3 and session.version == 1
    session.change("mark", {"rows": [0, 5, 6], "name": "left"})
    session.change("mark", {"rows": [0, 20, 21], "name": "right"})  # the named one stays
    assert session.marks == {0: "left", 5: "left", 6: "left", 20: "right", 21: "right"}
    assert session.version == 3
    metric = MetricSession(X)
    metric.change("mark", {"rows": list(range(10)), "name": "a"})
    metric.change("mark", {"rows": list(range(5, 30)), "name": "b"})
    assert [one.name for one in metric.named] == ["a"] * 10 + ["b"] * 20 and metric.version == 2


@given(st.integers(0, 1000))
def test_clusters_keep_their_numbers(seed):
    rng = np.random.default_rng(seed)
    before, swap = rng.integers(0, 4, 50), rng.permutation(4)
    before[:4] = np.arange(4)
    np.testing.assert_array_equal(renumbered(swap[before], before, 4)[swap[before]], before)


# --- views -------------------------------------------------------------------------------


@given(st.floats(0, 6.3), st.booleans(), st.integers(0, 100))
def test_a_turned_or_mirrored_view_is_turned_back(angle, mirrored, seed):
    places = unit_square(np.random.default_rng(seed).normal(size=(20, 2)))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    turned = places @ turn * ([-1, 1] if mirrored else [1, 1])
    np.testing.assert_allclose(next_view(turned, places), places, atol=1e-9)


class Mirror(KTA):
    """A metric that changes nothing but the signs of its columns."""

    def transform(self, X):
        return -np.asarray(X)


def test_map_does_not_move_if_the_metric_is_unchanged():
    data, y = load_wine(return_X_y=True)
    session = MetricSession(StandardScaler().fit_transform(data), Mirror(lam=1.0))
    session.mark_all([(int(k), str(y[k])) for k in range(0, 178, 6)])
    np.testing.assert_allclose(session.state()["learned"], session.places, atol=1e-3)


# --- cards, scales -----------------------------------------------------------------------


def test_cards_of_frames_arrays_and_sparse_rows():
    frame = pd.DataFrame({"a": [1.23456, 2.0], "b": ["x", "y"], "c": [np.nan, 1.0]})
    assert card(frame, 0) == {"columns": [["a", "1.235"], ["b", "x"], ["c", ""]], "more": 0}
    assert card(np.arange(20.0).reshape(1, 20), 0)["more"] == 12
    row = sp.csr_array(np.array([[0.0, 2.0, 0.0, -3.0]]))
    assert card(row, 0) == {"columns": [["x3", "-3"], ["x1", "2"]], "more": 0}


def test_images_are_shown_on_cards():
    images = RNG.uniform(size=(30, 4, 5))
    page = gm.explore(images, open_browser=False)
    page.stop()
    assert page.session.X.shape == (30, 20)
    assert page.session.card(3)["image"].startswith("data:image/png;base64,")
    with pytest.raises(ValueError, match="there is no sample 30"):
        page.session.card(30)


def test_the_layout_by_neighbours_is_computed_once(monkeypatch):
    session = MetricSession(X)
    first = session.layout()
    assert np.shape(first["places"]) == (30, 2) and np.abs(first["places"]).max() == 1
    monkeypatch.setattr(samples, "NeighborLayout", None)
    assert session.layout() == first


def test_the_scale_of_half_stars_is_half_stars():
    assert scale_of(np.repeat(np.arange(0.5, 5.5, 0.5), 3)) == [0.5 * k for k in range(1, 11)]
    assert scale_of(np.array([1.0, 1.0])) == [1.0]
    assert scale_of(np.arange(1.0, 101.0)) == [1, 20, 40, 60, 80, 100]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_every_offered_rating_is_allowed(ratings):
    values = np.array(ratings)
    scale = scale_of(values)
    assert scale == sorted(scale) and 1 <= len(scale) <= 13
    assert scale[0] == values.min() and scale[-1] == values.max()


# --- signals -----------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_page(number):
    before = signal.getsignal(signal.SIGTERM)
    page = Page(MetricSession(X))
    page.wait(lambda: os.kill(os.getpid(), number))
    assert signal.getsignal(signal.SIGTERM) == before
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", page.port))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_sigterm_writes_the_results(tmp_path):
    pd.DataFrame(X, columns=["a", "b"]).to_csv(tmp_path / "x.csv", index=False)
    command = [sys.executable, "-m", "gramian", "cluster", "x.csv", "--clusters", "2", "--open",
               "--out", "o.csv"]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "BROWSER": "true"},
    )  # fmt: skip
    assert "127.0.0.1" in process.stdout.readline()
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert len(pd.read_csv(tmp_path / "o.csv")) == 30
