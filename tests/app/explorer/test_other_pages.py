"""The pages of a metric and of ratings: what they do, and how they work in a real browser."""

import io
import sys
from urllib.request import urlopen

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.app.cli import main
from gramian.app.explorer import MetricSession, Page, RatingSession
from gramian.completion import MMMF, NuclearCompletion
from gramian.metric import KTA
from tests.app.explorer.pages import ask, undo, until

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
NAMES = np.array(["red", "white", "rosé"])[y]
FIRST = [int(np.flatnonzero(y == c)[0]) for c in range(3)]


@pytest.fixture
def metric():
    with Page(MetricSession(X), title="wines & <more>") as served:
        yield served


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    stars = np.clip(np.round(3 + rng.normal(size=(60, 3)) @ rng.normal(size=(3, 40))), 1, 5)
    user, film = np.nonzero(rng.random(stars.shape) < 0.4)
    names = np.array([f"film <{k}>" for k in range(40)])
    return NuclearCompletion(lam=4.0, random_state=0).fit((user, names[film], stars[user, film]))


@pytest.fixture
def ratings(model):
    with Page(RatingSession(model), title="films") as served:
        yield served


def mark(page, i, name):
    return ask(page, "POST", "mark", {"rows": [int(i)], "name": name})


# --- a metric --------------------------------------------------------------------------


def test_names_move_the_map_and_undo_takes_them_back(metric, tmp_path):
    first = ask(metric, "GET", "state")[1]
    assert set(first["labels"]) == {-1} and "Write the name of a class" in first["verdict"]
    assert ask(metric, "GET", "question")[0] == 409
    for k in FIRST:
        status, told = mark(metric, k, NAMES[k])
        assert status == 200
    assert told["classes"] == ["red", "rosé", "white"] and -1 not in told["labels"]
    rng = np.random.default_rng(0)
    for k in rng.permutation(np.setdiff1d(np.arange(178), FIRST))[:12]:
        told = mark(metric, k, NAMES[k])[1]
    assert "classes before they were given; Euclidean" in told["verdict"]
    assert "above the optimum" in told["certificate"] and told["learned"] != first["learned"]
    assert np.mean(metric.session.said() == NAMES) > 0.85
    asked = ask(metric, "GET", "question")[1]["rows"][0]
    assert str(asked) not in told["marks"]
    text = ask(metric, "GET", "labels.csv")[1].decode()
    found = pd.read_csv(io.StringIO(text))
    assert found["class"].tolist() == metric.session.said().tolist()
    assert (found["by"] == "given").sum() == 15
    (tmp_path / "m.gramian").write_bytes(ask(metric, "GET", "model.gramian")[1])
    again = gm.load(tmp_path / "m.gramian")
    others = found["by"] == "predicted"
    assert again.predict(X)[others].tolist() == found["class"][others].tolist()
    for _ in range(15):
        told = undo(metric, told)[1]
    past = {"version": 0, "seconds": 0, "history": []}
    assert {**told, **past} == {**first, **past}
    assert undo(metric, told)[0] == 409


def test_a_change_is_the_fit_of_all_names():
    session = MetricSession(X)
    session.mark_all([(int(k), NAMES[k]) for k in range(0, 178, 6)])
    whole = KTA().fit(X[::6], NAMES[::6])
    np.testing.assert_allclose(session.fitted.get_mahalanobis_matrix(),
                               whole.get_mahalanobis_matrix(), atol=1e-8)  # fmt: skip
    with pytest.raises(ValueError, match="class already"):
        session.mark(0, "red")
    for wrong in (178, -1, True, "0"):
        with pytest.raises(ValueError, match="there is no sample"):
            session.mark(wrong, "red")
    with pytest.raises(ValueError, match="must have a name"):
        session.mark(1, "  ")
    with pytest.raises(ValueError, match="unknown action"):
        session.change("link", {})


def test_frames_and_known_classes_from_python():
    frame = pd.DataFrame(X, index=[f"w{k}" for k in range(178)])
    known = np.where(np.arange(178) % 9 == 0, NAMES, "")
    served = gm.explore(frame, known, model=KTA(), open_browser=False)
    try:
        assert len(served.session.named) == 20 and served.session.names[1] == "w1"
    finally:
        served.stop()
    with pytest.raises(ValueError, match="y requires model="):
        gm.explore(frame, known, open_browser=False)
    with pytest.raises(ValueError, match="3 labels for 178 samples"):
        gm.explore(frame, known[:3], model=KTA(), open_browser=False)


# --- ratings ---------------------------------------------------------------------------


def rate(page, item, value):
    return ask(page, "POST", "rate", {"item": item, "value": value})


def test_ratings_move_the_list(ratings, model):
    first = ask(ratings, "GET", "state")[1]
    assert len(first["best"]) == 10 and "Rate a few" in first["verdict"]
    for item in (3, 7, 11):
        status, told = rate(ratings, item, 5 if item == 3 else 1)
        assert status == 200
    given = (np.full(3, "x"), model.col_ids_[[3, 7, 11]], np.array([5.0, 1.0, 1.0]))
    items, values = (found[0] for found in model.recommend_new(given, 10)[1:])
    assert [model.col_ids_[one["item"]] for one in told["best"]] == items.tolist()
    np.testing.assert_allclose([k["predicted"] for k in told["best"]], values, atol=1e-3)
    assert "3 ratings were predicted with a mean error of" in told["verdict"]
    assert ask(ratings, "GET", "question")[1]["rows"][0] not in (3, 7, 11)
    kept = pd.read_csv(io.StringIO(ask(ratings, "GET", "ratings.csv")[1].decode()))
    assert kept["rating"].tolist() == [5, 1, 1]
    told = rate(ratings, 3, 2)[1]  # another mind
    assert [one["value"] for one in told["rated"]] == [1, 1, 2]
    assert rate(ratings, 40, 1)[0] == rate(ratings, 1, 9)[0] == rate(ratings, 1, "5")[0] == 409
    for _ in range(4):
        told = undo(ratings, told)[1]
    assert told["best"] == first["best"] and told["rated"] == []
    assert ask(ratings, "GET", "model.gramian")[0] == 404
    text = ask(ratings, "GET", "")[1].decode()
    assert "film \\u003c3>" in text and "http" not in text


def test_models_that_fold_nothing_in_are_refused():
    with pytest.raises(ValueError, match="folds in new ratings, NuclearCompletion, and this is MM"):
        gm.explore(MMMF(), open_browser=False)


# --- from the command line -------------------------------------------------------------


def test_both_commands_open_a_page_and_write_what_was_made(tmp_path, model, monkeypatch, capsys):
    seen = []

    def used(page, ready):
        """In the place of waiting for Ctrl-C."""
        ready()
        with page:
            seen.append(urlopen(f"{page.url}state").read())

    monkeypatch.setattr(Page, "wait", used)
    monkeypatch.setattr("webbrowser.open", lambda url: True)
    monkeypatch.chdir(tmp_path)
    flowers = load_iris(as_frame=True)
    kinds = flowers.target_names[flowers.target]
    frame = flowers.data.assign(species=np.where(np.arange(150) % 10 == 0, kinds, ""))
    frame.to_csv("flowers.csv", index=False)
    model.save("r.gramian")
    for line in (
        "metric flowers.csv --label species --open --out o.csv --model m.gramian",
        "recommend --model r.gramian --open --out best.csv",
    ):
        monkeypatch.setattr(sys, "argv", ["gramian", *line.split()])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code, capsys.readouterr().err
    assert b"setosa" in seen[0] and b"best" in seen[1]
    assert np.mean(pd.read_csv("o.csv")["class"] == kinds) > 0.8
    assert set(gm.load("m.gramian").predict(flowers.data)) == set(kinds)
    assert len(pd.read_csv("best.csv")) == 10


# --- in a browser ----------------------------------------------------------------------


def severe(browser):
    return [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]


def test_a_class_is_written_and_points_clicked(metric, browser):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    browser.get(metric.url)
    until(browser, "document.body.dataset.version === '0'")
    canvas = browser.find_element(By.ID, "canvas")
    for number, k in enumerate(FIRST, 1):
        box = browser.find_element(By.ID, "name")
        box.clear()
        box.send_keys(NAMES[k])
        until(browser, "part === 1")
        at = browser.execute_script(f"return [spot({k})[0] - width / 2, spot({k})[1] - height / 2]")
        ActionChains(browser, duration=20).move_to_element_with_offset(
            canvas, *at
        ).click().perform()
        until(browser, f"document.body.dataset.version === '{number}'")
    assert len(metric.session.named) == 3
    assert len(browser.find_elements(By.CSS_SELECTOR, "#legend button")) == 3
    assert not browser.find_element(By.CSS_SELECTOR, "[data-tool=must]").is_displayed()
    browser.find_element(By.ID, "ask").click()
    until(browser, "document.getElementById('question').textContent !== ''")
    browser.find_element(By.ID, "undo").click()
    until(browser, "document.body.dataset.version === '4'")
    browser.refresh()
    until(browser, "document.body.dataset.version === '4'")
    assert browser.execute_script("return Object.keys(state.marks).length") == 2
    assert severe(browser) == []


def test_films_are_rated_and_the_list_follows(ratings, browser):
    from selenium.webdriver.common.by import By

    browser.get(ratings.url)
    until(browser, "document.body.dataset.version === '0'")
    before = [line.text for line in browser.find_elements(By.CSS_SELECTOR, "#best li")]
    browser.find_element(By.ID, "search").send_keys("film <17")
    until(browser, "document.querySelectorAll('#found li').length === 1")
    browser.find_elements(By.CSS_SELECTOR, "#found button")[-1].click()
    until(browser, "document.body.dataset.version === '1'")
    assert ratings.session.rated[0].item == ratings.session.items.index("film <17>")
    assert ratings.session.rated[0].value == 5
    assert [line.text for line in browser.find_elements(By.CSS_SELECTOR, "#best li")] != before
    browser.find_element(By.ID, "ask").click()
    until(browser, "document.querySelectorAll('.asked').length === 1")
    browser.find_elements(By.CSS_SELECTOR, ".asked button")[0].click()
    until(browser, "document.body.dataset.version === '2'")
    browser.refresh()
    until(browser, "document.querySelectorAll('#rated li').length === 2")
    browser.find_element(By.ID, "undo").click()
    until(browser, "document.querySelectorAll('#rated li').length === 1")
    assert severe(browser) == []
