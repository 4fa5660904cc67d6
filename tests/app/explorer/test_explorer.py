"""The page to work on: what it does, whom it answers, and how it works in a real browser."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons

import gramian as gm
from gramian.app.explorer import Page, Session
from tests.app.explorer.pages import ask, undo, until

X, y = make_moons(200, noise=0.1, random_state=0)
BY_MOON = [np.flatnonzero(y == c) for c in (0, 1)]


@pytest.fixture
def page():
    with Page(Session(X, 2), title="moons & <more>") as served:
        yield served


def link(page, i, j, kind):
    return ask(page, "POST", "link", {"rows": [int(i), int(j)], "kind": kind})


def test_links_move_clusters_and_undo_takes_them_back(page):
    status, first = ask(page, "GET", "state")
    assert status == 200 and len(first["labels"]) == 200 and not first["links"]
    status, told = link(page, BY_MOON[0][0], BY_MOON[0][1], "must")
    assert status == 200 and "belong apart" in told["verdict"]
    status, told = link(page, BY_MOON[0][0], BY_MOON[1][0], "cannot")
    assert status == 200 and "above the optimum" in told["certificate"] and not told["reasons"]
    for k in range(1, 5):
        told = link(page, BY_MOON[0][3 * k], BY_MOON[1][3 * k], "cannot")[1]
    agree = np.mean(np.array(told["labels"]) == y)
    assert max(agree, 1 - agree) > 0.95 and "agreed with the clusters before" in told["verdict"]
    for _ in range(6):
        status, told = undo(page, told)
        assert status == 200
    assert told["labels"] == first["labels"] and told["at"] == 0 and len(told["history"]) == 6
    assert undo(page, told)[0] == 409


def test_each_change_refits_all_links():
    session = Session(X, 2, gm.kernel.NPKL(random_state=0, tol=1e-6), patience=60.0)
    pairs = [(BY_MOON[0][k], BY_MOON[1][k]) for k in range(4)]
    for i, j in pairs:
        session.add(int(i), int(j), "cannot")
    whole = gm.kernel.NPKL(n_clusters=2, random_state=0, tol=1e-6).fit(X, cannot_link=pairs)
    assert session.fitted.result_.value == pytest.approx(whole.result_.value, rel=1e-5)


def test_contradictions_are_rejected_without_effect(page):
    a, b, c = (int(k) for k in BY_MOON[0][:3])
    far = int(BY_MOON[1][0])
    link(page, a, far, "cannot")
    link(page, a, b, "must")
    before = ask(page, "GET", "state")[1]
    status, told = link(page, b, far, "must")
    assert status == 409 and str(a) in told["error"] and str(far) in told["error"]
    for rows, kind in (([a, a], "must"), ([a, 200], "must"), ([a, c], "maybe"), (["0", c], "must"),
                       ([a, b], "must"), ([a, b, c], "cannot"), ([a], "must"), (a, "must"),
                       (None, "must")):  # fmt: skip
        given = {"rows": rows, "kind": kind}
        assert ask(page, "POST", "link", given)[0] == 409
    assert ask(page, "POST", "nothing", {})[0] == 409
    assert ask(page, "GET", "state")[1]["links"] == before["links"]


def test_names_are_links_to_the_first_of_every_name(page):
    for k in range(2):
        for moon, name in enumerate(("one", "other")):
            told = ask(page, "POST", "mark", {"rows": [int(BY_MOON[moon][k])], "name": name})
    assert told[0] == 200 and len(told[1]["marks"]) == 4
    assert {(k["kind"]) for k in told[1]["links"]} == {"must", "cannot"}
    assert ask(page, "POST", "mark", {"rows": [int(BY_MOON[0][0])], "name": "x"})[0] == 409
    rows = ask(page, "GET", "clusters.csv")[1].decode().splitlines()
    assert rows[0] == "sample,cluster" and {row.split(",")[1] for row in rows[1:]} == {
        "one",
        "other",
    }


def test_links_and_model_can_be_downloaded(page, tmp_path):
    assert ask(page, "GET", "model.gramian")[0] == 409
    link(page, BY_MOON[0][0], BY_MOON[1][0], "cannot")
    i, j = int(BY_MOON[0][0]), int(BY_MOON[1][0])
    assert (
        ask(page, "GET", "links.csv")[1]
        == f"first_row,second_row,kind\n{i},{j},cannot-link\n".encode()
    )
    (tmp_path / "m.gramian").write_bytes(ask(page, "GET", "model.gramian")[1])
    model = gm.load(tmp_path / "m.gramian")
    np.testing.assert_array_equal(model.labels_, page.session.labels)
    pair = ask(page, "GET", "question")[1]
    assert len(set(pair["rows"])) == 2 and all(0 <= k < 200 for k in pair["rows"])


def test_only_our_own_page_is_answered(page):
    assert ask(page, "GET", "")[0] == 200
    assert ask(page, "GET", "state", token="x" * 32)[0] == 403
    assert ask(page, "GET", "state", Host="evil.example")[0] == 403
    assert ask(page, "POST", "go", {}, Origin="http://evil.example")[0] == 403
    own = f"http://127.0.0.1:{page.port}"
    assert ask(page, "POST", "go", {}, Origin=own)[0] == 409
    assert ask(page, "POST", "go", {}, **{"Content-Type": "text/plain"})[0] == 400
    assert ask(page, "POST", "link", {"rows": "x" * 2_000_000})[0] == 400
    assert ask(page, "GET", "../../etc/passwd")[0] == 404
    text = ask(page, "GET", "")[1].decode()
    assert "moons & \\u003cmore>" in text and "http" not in text.replace("http-equiv", "")


def test_it_listens_here_only(page):
    assert page._server.server_address[0] == "127.0.0.1" and len(page.token) >= 32


def test_frames_bring_their_names():
    frame = pd.DataFrame(X, index=[f"n{k}" for k in range(200)])
    served = gm.explore(frame, open_browser=False)
    try:
        assert served.session.names[:2] == ["n0", "n1"] and served.url in served._repr_html_()
    finally:
        served.stop()
    with pytest.raises(ValueError, match="n_clusters"):
        Session(X, 1)


# --- in a browser ----------------------------------------------------------------------


def drag(browser, i, j):
    """Draw from one sample to another with the mouse."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    canvas = browser.find_element(By.ID, "canvas")
    script = f"return [{i}, {j}].map(k => [spot(k)[0] - width / 2, spot(k)[1] - height / 2])"
    (ax, ay), (bx, by) = browser.execute_script(script)
    mouse = ActionChains(browser, duration=20).move_to_element_with_offset(canvas, ax, ay)
    mouse.click_and_hold().move_to_element_with_offset(canvas, bx, by).release().perform()


def lonely(places):
    """Samples of either moon with nothing else under the pointer."""
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2) + 9 * np.eye(len(places))
    alone = gaps.min(axis=1) > 0.04
    return [np.flatnonzero((y == c) & alone) for c in (0, 1)]


def test_drawn_in_a_browser(page, browser):
    from selenium.webdriver.common.by import By

    browser.get(page.url)
    until(browser, "document.body.dataset.version === '0' && part === 1")
    first, second = lonely(page.session.places)
    browser.find_element(By.CSS_SELECTOR, "[data-tool=cannot]").click()
    drag(browser, first[0], second[0])
    until(browser, "document.body.dataset.version === '1'")
    session = page.session
    assert {session.links[0].i, session.links[0].j} == {first[0], second[0]}
    assert "optimal within" in browser.find_element(By.ID, "proof").text
    assert not browser.find_element(By.ID, "certificate").is_displayed()
    browser.find_element(By.CSS_SELECTOR, "#outcome summary").click()
    assert "above the optimum" in browser.find_element(By.ID, "certificate").text
    browser.find_element(By.CSS_SELECTOR, "#outcome summary").click()
    browser.find_element(By.CSS_SELECTOR, "[data-tool=must]").click()
    drag(browser, first[0], second[0])  # a contradiction
    until(browser, "document.getElementById('said').textContent !== ''")
    assert len(session.links) == 1
    browser.find_element(By.CSS_SELECTOR, "[data-view=learned]").click()  # the learned view
    browser.find_element(By.ID, "ask").click()
    until(browser, "!document.getElementById('same').hidden")
    browser.find_element(By.ID, "different").click()
    until(browser, "document.body.dataset.version === '2'")
    browser.refresh()  # nothing is lost
    until(browser, "document.body.dataset.version === '2'")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#history li")) == 3
    browser.find_element(By.ID, "undo").click()
    until(browser, "document.body.dataset.version === '3'")
    assert len(session.links) == 1
    browser.find_elements(By.CSS_SELECTOR, "#history button")[0].click()  # the undone one again
    until(browser, "document.body.dataset.version === '4'")
    assert len(session.links) == 2
    severe = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert all("409" in line["message"] for line in severe), severe


def test_two_tabs_see_the_same(page, browser):
    browser.get(page.url)
    until(browser, "document.body.dataset.version === '0'")
    one = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(page.url)
    until(browser, "document.body.dataset.version === '0'")
    link(page, BY_MOON[0][0], BY_MOON[1][0], "cannot")
    until(browser, "document.body.dataset.version === '1'", 10)
    browser.close()
    browser.switch_to.window(one)
    until(browser, "document.body.dataset.version === '1'", 10)
