"""Pages that several people use, clients that never end, names and classes as they are given."""

import socket
import threading
import time

import numpy as np
import pytest

import gramian as gm
from gramian.app.explorer import MetricSession, Page, RatingSession, Session, server
from gramian.app.explorer import session as session_module
from gramian.app.explorer.serve import known_classes
from gramian.common import clock
from gramian.completion import NuclearCompletion
from gramian.graph import smoothest
from gramian.metric import KTA, LMNN
from tests.app.explorer.pages import ask, undo
from tests.slow import slow

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(size=(30, 4)), RNG.normal(size=(30, 4)) + 4])


def completion(users):
    ratings = [(user, f"film {k}", float(1 + (3 * n + k) % 5)) for n, user in enumerate(users)
               for k in range(8) if (n + k) % 3]  # fmt: skip
    rows, cols, values = (np.array(part, dtype=object) for part in zip(*ratings, strict=True))
    return NuclearCompletion(lam=4.0).fit((rows, cols, values.astype(float)))


SESSIONS = {
    "links": (lambda: Session(X), ("link", {"rows": [0, 40], "kind": "cannot"})),
    "classes": (lambda: MetricSession(X), ("mark", {"rows": [0], "name": "a"})),
    "ratings": (
        lambda: RatingSession(completion([f"u{k}" for k in range(12)])),
        ("rate", {"item": 0, "value": 3}),
    ),
}


@pytest.mark.parametrize("kind", SESSIONS)
def test_undo_names_what_it_undoes(kind):
    """One tab shows a change of its own, another has made one since."""
    make, (action, given) = SESSIONS[kind]
    other = {
        **given,
        **{"links": {"rows": [0, 41]}, "classes": {"rows": [1]}, "ratings": {"item": 1}}[kind],
    }
    with Page(make()) as page:
        mine = ask(page, "POST", action, given)[1]
        theirs = ask(page, "POST", action, other)[1]
        for seen in ({"version": mine["version"]}, {}, {"version": None}, {"version": "2"}):
            status, told = ask(page, "POST", "go", {**seen, "to": 1})
            assert status == 409 and "a change was made on another page" in told["error"]
        assert ask(page, "GET", "state")[1]["version"] == theirs["version"]
        status, told = undo(page, theirs)
        assert status == 200 and told["version"] > theirs["version"]


# --- connections that last ---------------------------------------------------------------


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setattr(server, "REQUEST_SECONDS", 1.0)
    with Page(MetricSession(X)) as served:
        yield served


def ended(connection, pieces):
    """Whether the server ends a connection to which a byte is sent now and then."""
    until = time.monotonic() + 20
    connection.settimeout(0.1)
    while time.monotonic() < until:
        try:
            connection.sendall(next(pieces))
            if connection.recv(1 << 16) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.parametrize("part", [slow("line"), slow("headers"), "body"])
def test_a_request_that_drips_is_ended(page, part):
    start = {
        "line": b"GET /",
        "headers": b"GET / HTTP/1.1\r\nHost: ",
        "body": f"POST /{page.token}/mark HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nContent-Type: "
        "application/json\r\nContent-Length: 5000\r\n\r\n".encode(),
    }[part]
    with socket.create_connection(("127.0.0.1", page.port)) as connection:
        connection.sendall(start)
        assert ended(connection, iter(lambda: b"a", b""))
    assert ask(page, "GET", "version")[0] == 200


@pytest.mark.slow
def test_connections_are_counted(page, monkeypatch):
    monkeypatch.setattr(server, "REQUEST_SECONDS", 30.0)
    before = threading.active_count()
    many = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(100)]
    try:
        for one in many[server.MOST_CONNECTIONS :]:
            one.settimeout(10)
            assert one.recv(1) == b""
        assert threading.active_count() <= before + server.MOST_CONNECTIONS
    finally:
        for one in many:
            one.close()
    until = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.05)
    assert ask(page, "GET", "version")[0] == 200


# --- who is nobody, and what is unknown --------------------------------------------------


def test_accepts_a_user_named_you():
    users = [f"u{k}" for k in range(12)]
    named = RatingSession(completion(["you", *users[1:]]))
    best = named.state()["best"]
    items = named.model.col_ids_[[one["item"] for one in best]]
    of_nobody = named.model.predict((np.full(len(items), "nobody", dtype=object), items))
    np.testing.assert_allclose([one["predicted"] for one in best], of_nobody, atol=1e-3)
    named.rate(0, 3)
    assert named.you not in named.model.row_ids_
    assert f"{named.you},film 0".encode() in named.download("ratings.csv")
    assert RatingSession(completion(["you", "you 2", *users])).you == "you 3"


def test_items_are_shown_by_their_titles():
    model = completion([f"u{k}" for k in range(12)])
    model.titles_ = np.array([["film 1", "Alien"], ["film 2", "Brazil"]])
    session = RatingSession(model)
    place = session.items.index("film 1")
    session.rate(place, 3)
    assert session.fixed()["items"][place] == "Alien" and "film 0" in session.fixed()["items"]
    assert session.state()["history"] == ["Alien: 3"]
    assert session.download("ratings.csv").decode().splitlines()[1] == "you,film 1,3.0"


@pytest.mark.parametrize("y", [[-1, 1, -1, 1], ["-1", "1", "-1", "1"], [-1.0, 1.0, -1.0, 1.0]])
def test_minus_one_is_a_class(y):
    labels = np.array(y)
    assert [k for k, _ in known_classes(labels, 4)] == [0, 1, 2, 3]
    assert [k for k, _ in known_classes(labels, 4, unknown=labels[0])] == [1, 3]


def test_what_is_missing_is_unknown():
    y = ["a", "", None, np.nan, " ", "b"]
    assert known_classes(y, 6) == [(0, "a"), (5, "b")]


def test_explore_takes_minus_one_for_a_class_by_default():
    y = np.repeat([-1, 1], 30)
    for unknown, classes in ((None, {"-1", "1"}), (-1, {"1"})):
        page = gm.explore(X, y, model=KTA(), unknown=unknown, open_browser=False)
        page.stop()
        assert {one.name for one in page.session.named} == classes


# --- limits and names --------------------------------------------------------------------


class Endless(LMNN):
    """A metric whose fit never has anything to keep."""

    def fit(self, X, y):
        clock.phase("the neighbours")
        while True:
            clock.check()


def test_the_start_has_a_time_limit():
    y = np.repeat([0, 1], 30)
    with pytest.raises(TimeoutError, match=r"Endless was not ready within 0\.3 s"):
        gm.explore(X, y, model=Endless(), time_limit=0.3, open_browser=False)
    with pytest.raises(TimeoutError, match="the graph of 300 samples was not ready within 1e-09 s"):
        Session(RNG.normal(size=(300, 2)), time_limit=1e-9)
    for limit in (0, -1, np.nan, "1"):
        with pytest.raises(ValueError, match="time_limit must be a finite number above 0"):
            gm.explore(X, open_browser=False, time_limit=limit)


def test_a_change_that_takes_too_long_is_refused_and_nothing_has_changed():
    session = MetricSession(X, Endless(), patience=0.2)
    with Page(session) as page:
        first = ask(page, "POST", "mark", {"rows": [0], "name": "a"})[1]
        status, told = ask(page, "POST", "mark", {"rows": [40], "name": "b"})
        assert status == 409 and "not ready within 0.2 s" in told["error"]
        assert ask(page, "GET", "state")[1] == first


@pytest.mark.parametrize("model", [None, KTA()])
def test_names_of_another_length_are_refused(model):
    with pytest.raises(ValueError, match="names has 3 entries for 60 samples"):
        gm.explore(X, model=model, names=["a", "b", "c"], open_browser=False)


def test_given_classes_are_not_predicted_again(monkeypatch):
    session = MetricSession(X)
    session.mark_all([(k, "a" if k < 30 else "b") for k in range(60)])
    monkeypatch.setattr(session, "classifier", None)
    assert session.said().tolist() == ["a"] * 30 + ["b"] * 30


def test_the_waves_of_a_large_graph_are_those_of_its_factorisation():
    samples = RNG.normal(size=(1200, 10))
    samples[:500, 0] += 6
    session = Session(samples)
    exact = smoothest(session._blank.laplacian_, 2, constant=True)[1]
    cosines = np.linalg.svd(exact.T @ session._waves, compute_uv=False)
    assert cosines.min() > 1 - 1e-6


def test_the_waves_of_a_large_graph_end_in_time():
    """Its products ask the clock; a factorisation does not."""
    session = Session(RNG.normal(size=(1200, 10)))
    with pytest.raises(clock.TimeUpError), clock.budget(1e-9):
        session_module._waves(session._blank.laplacian_, 2)
