"""The map of the samples in a real browser: what is drawn is what is selected, linked and named."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy import ndimage

from gramian.app.explorer import MetricSession, Page, RatingSession, Session
from tests.app.explorer.pages import until
from tests.app.explorer.test_limits import completion

image = pytest.importorskip("PIL.Image", reason="needs Pillow to read screenshots")

RNG = np.random.default_rng(0)
LATTICE = np.array([(4.0 * i, 4.0 * j) for i in range(8) for j in range(5)])
LATTICE += RNG.uniform(-0.8, 0.8, LATTICE.shape)
WIDTHS = (390, 1280, 1920)
GROUPS = np.vstack([RNG.normal(size=(20, 2)), RNG.normal(size=(20, 2)) + np.array([9, 0])])
FRAME = pd.DataFrame(GROUPS, columns=["length", "width"]).assign(place=["<i>here</i>"] * 40)


def resize(browser, width, ratio=1, height=480):
    given = {"width": width, "height": height, "deviceScaleFactor": ratio, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", given)


@pytest.fixture
def window(browser):
    """The browser without animations, at its own size with an empty log again afterwards."""
    still(browser, "reduce")
    yield browser
    browser.get("about:blank")  # the page has ended: no more requests
    browser.get_log("browser")
    still(browser, "no-preference")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def still(browser, value):
    features = [{"name": "prefers-reduced-motion", "value": value}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def show(browser, page, version=0):
    browser.get("about:blank")
    browser.get(page.url)
    until(browser, f"document.body.dataset.version === '{version}' && part === 1")


def mouse(browser, kind, x, y, button="left", **more):
    given = {"type": f"mouse{kind}", "x": x, "y": y, "button": button, "clickCount": 1, **more}
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", given)


def click(browser, x, y):
    mouse(browser, "Moved", x, y, "none")
    mouse(browser, "Pressed", x, y)
    mouse(browser, "Released", x, y)


def press(browser, *keys):
    for key in keys:
        for kind in ("keyDown", "keyUp"):
            given = {"type": kind, "key": key, **({"text": key} if len(key) == 1 else {})}
            browser.execute_cdp_cmd("Input.dispatchKeyEvent", given)


def spots(browser, *samples):
    """Where samples should be in the window, by the page's own account."""
    script = "const b = canvas.getBoundingClientRect(); return arguments[0].map(spot)"
    return browser.execute_script(f"{script}.map(([x, y]) => [x + b.left, y + b.top])", samples)


def drawn_dots(browser, ratio):
    """Centres of the dots on a screenshot in pixels of the page, and their sizes."""
    box = browser.execute_script(
        "const b = canvas.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]"
    )
    pixels = np.asarray(image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB"))
    left, top, right, bottom = (round(edge * ratio) for edge in box)
    part = pixels[top:bottom, left:right].astype(int)
    ground = part[2, 2]
    found, count = ndimage.label(np.abs(part - ground).sum(axis=2) > 60)
    centres = np.array(ndimage.center_of_mass(found > 0, found, range(1, count + 1)))
    sizes = [[s.stop - s.start for s in box] for box in ndimage.find_objects(found)]
    return (centres[:, ::-1] + 0.5 + [left, top]) / ratio, np.array(sizes)


def which(centres, places):
    """The sample of each dot, found by the corners of both clouds and not by the page."""
    scale = np.ptp(centres, axis=0) / np.ptp(places, axis=0)
    up = places * [1, -1]
    expected = (up - up.min(axis=0)) * scale + centres.min(axis=0)
    far = np.linalg.norm(expected[:, None] - centres[None], axis=2)
    assert far.min(axis=0).max() < 1.0 and abs(scale[0] / scale[1] - 1) < 0.01
    return far.argmin(axis=0).tolist()


CLICKS = """for (const [clientX, clientY] of arguments[0])
  for (const kind of ["pointermove", "pointerdown", "pointerup"])
    document.elementFromPoint(clientX, clientY).dispatchEvent(new PointerEvent(
      kind, {clientX, clientY, pointerId: 1, pointerType: "mouse", bubbles: true}));
return [...selection]"""


def check_rings(browser, ratio, samples):
    """A ring is wider than every dot and has its sample in the middle."""
    browser.execute_script("hover = -1; card(-1); choose(arguments[0], false)", samples)
    until(browser, "!waiting")
    centres, sizes = drawn_dots(browser, ratio)
    rings = centres[sizes[:, 1] > 1.3 * np.median(sizes[:, 1])]
    far = np.linalg.norm(rings[:, None] - np.array(spots(browser, *samples))[None], axis=2)
    assert far.shape == (len(samples),) * 2 and far.min(axis=0).max() < 1.0


def check_clicks(browser, ratio):
    """Click on every dot, in one script: a frame for each click is slow without a GPU."""
    browser.execute_script("hover = -1; card(-1); choose([], false)")
    until(browser, "!waiting")
    centres, sizes = drawn_dots(browser, ratio)
    assert len(centres) == len(LATTICE) and np.abs(sizes[:, 0] - sizes[:, 1]).max() <= 2
    assert browser.execute_script(CLICKS, centres.tolist()) == which(centres, LATTICE)


@pytest.mark.parametrize("ratio", [1, 2])
def test_a_click_on_a_drawn_dot_selects_it(window, ratio):
    with Page(MetricSession(LATTICE), title="a lattice") as page:
        for width, other in zip(WIDTHS, (1920, 390, 1280), strict=True):
            resize(window, width, ratio)
            show(window, page)
            window.execute_script("takeUp('move')")
            check_clicks(window, ratio)
            check_rings(window, ratio, [3, 29])
            resize(window, other, ratio)
            until(window, f"innerWidth === {other} && canvas.width >= width * {ratio} - 1")
            check_clicks(window, ratio)


@pytest.fixture
def card(window):
    """The browser with WebGL: software that draws for it is named like a graphics card."""
    script = "WebGLRenderingContext.prototype.getParameter = () => 'a card'"
    added = window.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    yield window
    window.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


@pytest.mark.parametrize("ratio", [1, 2])
def test_a_dot_drawn_by_webgl_is_selected(card, ratio):
    with Page(MetricSession(LATTICE)) as page:
        resize(card, 1280, ratio)
        show(card, page)
        assert card.execute_script("return scatter.gl !== null")
        card.execute_script("takeUp('move')")
        check_clicks(card, ratio)
        check_rings(card, ratio, [0, 17])


def test_webgl_context_is_restored(card):
    with Page(MetricSession(LATTICE)) as page:
        resize(card, 1280)
        show(card, page)
        card.execute_script("""lose = scatter.gl.getExtension('WEBGL_lose_context');
         scatter.canvas.addEventListener('webglcontextrestored', () => { window.restored = true; });
          lose.loseContext()""")
        until(card, "scatter.gl.isContextLost()")
        card.execute_script("lose.restoreContext()")
        until(card, "window.restored")
        assert len(drawn_dots(card, 1)[0]) == len(LATTICE)


def test_zoom_and_pan(window):
    with Page(MetricSession(LATTICE)) as page:
        show(window, page)
        window.execute_script("takeUp('move')")
        before = spots(window, 11, 12)
        mouse(window, "Wheel", *before[0], "none", deltaX=0, deltaY=-600)
        until(window, "camera.zoom > 2")
        after = spots(window, 11, 12)
        np.testing.assert_allclose(after[0], before[0], atol=2)  # the mouse is at whole pixels
        assert np.linalg.norm(np.subtract(*after)) > 2 * np.linalg.norm(np.subtract(*before))
        click(window, *after[1])
        assert window.execute_script("return [...selection]") == [12]
        x, y = np.round(np.add(after[0], [30, 30])).tolist()
        mouse(window, "Pressed", x, y)
        mouse(window, "Moved", x + 50, y + 30)
        mouse(window, "Released", x + 50, y + 30)
        np.testing.assert_allclose(spots(window, 11)[0], np.add(after[0], [50, 30]), atol=0.01)
        window.find_element("id", "whole").click()
        np.testing.assert_allclose(spots(window, 11, 12), before, atol=0.01)


def touch(browser, kind, *points):
    given = {"type": f"touch{kind}", "touchPoints": [{"x": x, "y": y} for x, y in points]}
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", given)


def test_two_fingers_zoom(window):
    with Page(MetricSession(LATTICE)) as page:
        show(window, page)
        touch(window, "Start", (300, 300), (400, 300))
        touch(window, "Move", (250, 300), (450, 300))
        touch(window, "End")
        assert window.execute_script("return camera.zoom") == pytest.approx(2, rel=0.05)
        assert window.execute_script("return act === null && fingers.size === 0")


@pytest.fixture(scope="module")
def many():
    """A page of 50,000 samples: tests count the work of a frame, as times depend on machines."""
    with Page(MetricSession(RNG.normal(size=(50_000, 2)), patience=60.0)) as page:
        yield page


COUNT = """const calls = {}, spies = [];
for (const [thing, ...names] of arguments[0].map(([path, ...names]) => [eval(path), ...names]))
  for (const name of names) {
    const own = thing[name];
    calls[name] = 0; spies.push([thing, name, own]);
    thing[name] = function (...given) { calls[name]++; return own.apply(this, given); };
  }
for (let k = 0; k < 5; k++) { (ACTION); waiting = true; paint(performance.now()); }
for (const [thing, name, own] of spies) thing[name] = own;
return calls"""
PEN = ["CanvasRenderingContext2D.prototype", "stroke", "arc", "lineTo", "putImageData"]


def calls_of_five_frames(browser, action, *things):
    return browser.execute_script(COUNT.replace("ACTION", action), things or [PEN])


def test_panning_uploads_no_data_to_the_graphics_card(card, many):
    """Positions, colours and rings stay on the card, so 50,000 points take one or two calls."""
    show(card, many, many.session.version)
    things = ["scatter.gl", "bufferData", "drawArrays"]
    assert calls_of_five_frames(card, "pan(1, 0)", things) == {"bufferData": 0, "drawArrays": 5}
    card.execute_script("choose([...Array(2000).keys()], false)")
    assert calls_of_five_frames(card, "pan(1, 0)", things) == {"bufferData": 0, "drawArrays": 10}
    assert calls_of_five_frames(card, "hover = k", things) == {"bufferData": 0, "drawArrays": 0}


def test_the_work_of_a_frame_is_limited_without_a_card(window, many):
    """With 45,000 selected samples and 5,000 links, too, which once took minutes."""
    show(window, many, many.session.version)
    assert window.execute_script("return scatter.gl === null")
    window.execute_script("""choose([...Array(45000).keys()], false);
      state.links = [...Array(5000).keys()].map(k => ({i: k, j: k + 5000, kind: "must"}))""")
    moved = calls_of_five_frames(window, "k % 2 ? pan(1, 0) : zoom(1.1)")
    assert moved["putImageData"] == 5 and moved["arc"] == 0 and moved["lineTo"] <= 5 * 100
    hovered = calls_of_five_frames(window, "hover = k")
    assert hovered == {"stroke": 5, "arc": 5, "lineTo": 0, "putImageData": 0}
    selected = calls_of_five_frames(window, "choose([k], true)")
    assert selected["putImageData"] == 5 and selected["lineTo"] == 0
    window.execute_script("rest = 0; redraw()")
    assert calls_of_five_frames(window, "redraw()")["lineTo"] == 5 * 5000


def test_points_that_are_not_visible_are_not_drawn(window, many):
    show(window, many, many.session.version)
    things = ["window", "blend"]
    whole = calls_of_five_frames(window, "pan(1, 0)", things)["blend"]
    window.execute_script("zoom(20)")
    assert 0 < calls_of_five_frames(window, "pan(1, 0)", things)["blend"] < whole / 10
    assert whole == 5 * 50_000


def test_a_click_selects_the_nearest_of_many(window, many):
    show(window, many, many.session.version)
    window.execute_script("takeUp('move')")
    at = np.array(spots(window, *range(50_000)))
    for x, y in at[np.linspace(0, 49_999, 12).astype(int)].round():
        window.execute_script("choose([], false)")
        click(window, x, y)
        (found,) = window.execute_script("return [...selection]")
        far = np.linalg.norm(at - [x, y], axis=1)
        assert far[found] == pytest.approx(far.min(), abs=0.01)


LOOKS = """const looks = [...Array(n).keys()].map(k => scatter.looks.slice(8 * k, 8 * k + 6));
  return [looks.filter(look => look[5] === RING).length,
    looks.filter(look => look[3] > 60).length]"""


def test_many_given_samples_have_no_rings(window, many):
    show(window, many, many.session.version)
    for count, ringed in ((100, 100), (50_000, 0)):
        marks = {str(k): "a" for k in range(count)}
        window.execute_script("state.marks = arguments[0]; show(false)", marks)
        assert window.execute_script(LOOKS.replace("RING", "1"))[0] == ringed


def test_the_others_fade_if_many_samples_are_selected(window, many):
    show(window, many, many.session.version)
    for count, ringed, strong in ((100, 100, 50_000), (20_000, 0, 20_000), (0, 0, 50_000)):
        window.execute_script(f"choose([...Array({count}).keys()], false)")
        assert window.execute_script(LOOKS.replace("RING", "2")) == [ringed, strong]


def test_the_size_of_a_page_of_many_samples(many):
    """Two numbers of at most seven characters, two brackets, and separators for each sample."""
    assert len(many.shown()) < 50_000 * 24 + 100_000


def test_a_lasso_selects_many_and_names_them_at_once(window):
    with Page(Session(GROUPS, 2)) as page:
        show(window, page)
        for group, name in ((range(20), "left"), (range(20, 40), "right")):
            press(window, "l")
            around = np.array(spots(window, *group))
            (x, y), (a, b) = around.min(axis=0) - 6, around.max(axis=0) + 6
            mouse(window, "Pressed", x, y)
            for corner in ((a, y), (a, b), (x, b)):
                mouse(window, "Moved", *corner)
            mouse(window, "Released", x, b)
            assert window.execute_script("return [...selection]") == list(group)
            box = window.find_element("id", "name")
            box.clear()
            box.send_keys(name)
            window.find_element("id", "call").click()
            until(window, f"state.history.length === {1 if name == 'left' else 2}")
            until(window, "selection.size === 0")
        assert page.session.called() == ["left"] * 20 + ["right"] * 20
        texts = [line.text for line in window.find_elements("css selector", "#legend button")]
        assert sorted(texts) == ["left\n20", "right\n20"]
        window.find_elements("css selector", "#history button")[-1].click()  # the start
        until(window, "document.body.dataset.version === '3'")
        assert page.session.marks == {}


def test_links_by_the_keyboard(window):
    with Page(Session(GROUPS, 2, names=[f"n{k}" for k in range(40)])) as page:
        show(window, page)
        window.execute_script("canvas.focus()")
        press(window, "a", "ArrowRight")
        first = window.execute_script("return focus")
        assert f"n{first}, cluster" in window.execute_script("return $('live').textContent")
        press(window, "Enter", "ArrowRight", "ArrowRight")
        second = window.execute_script("return focus")
        places = page.session.places
        assert places[second, 0] > places[first, 0]
        press(window, "Enter")
        until(window, "document.body.dataset.version === '1'")
        (link,) = page.session.links
        assert (link.i, link.j, link.kind) == (first, second, "cannot")
        window.execute_script("go(0)")
        until(window, "document.body.dataset.version === '2'")
        assert page.session.links == ()


def test_the_card_of_a_sample_has_its_columns(window):
    with Page(Session(GROUPS, 2, frame=FRAME)) as page:
        show(window, page)
        (at,) = spots(window, 3)
        mouse(window, "Moved", *at, "none")
        until(window, "document.querySelectorAll('#card tr').length === 3")
        text = window.find_element("id", "card").text
        assert "sample 3" in text and "cluster" in text and "<i>here</i>" in text
        assert f"length {GROUPS[3, 0]:.4g}" in text


def test_a_fit_is_animated_from_the_last_one(window):
    still(window, "no-preference")
    with Page(MetricSession(GROUPS)) as page:
        show(window, page)
        page.session.mark_all([(k, "a" if k < 20 else "b") for k in range(0, 40, 3)])
        until(window, "document.body.dataset.version === '1'")
        ends = window.execute_script("return [[...scatter.start], [...scatter.end]]")
        np.testing.assert_allclose(ends[0], page.session.places.ravel(), atol=1e-4)
        np.testing.assert_allclose(ends[1], np.ravel(page.session.state()["learned"]), atol=1e-6)
        until(window, "part === 1")


def test_views_and_downloads_follow_the_buttons(window):
    with Page(Session(GROUPS, 2)) as page:
        show(window, page)
        assert window.find_element("id", "model").get_attribute("aria-disabled") == "true"
        window.find_element("css selector", "[data-view=neighbours]").click()
        until(window, "places.neighbours && part === 1 && view === 'neighbours'")
        shown = window.execute_script("return [...scatter.end]")
        np.testing.assert_allclose(shown, np.ravel(page.session.layout()["places"]), atol=1e-6)
        page.session.add(0, 30, "cannot")
        until(window, "document.body.dataset.version === '1'")
        assert window.find_element("id", "model").get_attribute("aria-disabled") == "false"


def pages():
    yield Page(Session(GROUPS, 2, names=[f"a sample of a long name {k}" for k in range(40)]))
    yield Page(MetricSession(GROUPS))
    yield Page(RatingSession(completion([f"u{k}" for k in range(12)])))


WIDER = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
NAMELESS = """return [...document.querySelectorAll("button, input, a, canvas, summary")].filter(
  part => part.ariaHidden !== "true" && !part.ariaLabel && !part.textContent.trim())
  .map(part => part.outerHTML)"""


def test_every_control_has_a_label_and_no_page_is_wider_than_its_window(window):
    for page in pages():
        with page:
            for width in WIDTHS:
                resize(window, width)
                window.get("about:blank")
                window.get(page.url)
                until(window, "document.body.dataset.version === '0'")
                assert window.execute_script(WIDER) == 0
            assert window.execute_script(NAMELESS) == []


def test_titles_of_rated_items_are_readable(window):
    """With half stars, at every width, a title has the width of its column."""
    users, items = np.nonzero(np.ones((12, 8)))
    names = np.array([f"The Title of a Film That Is Rather Long {k}" for k in range(8)])
    stars = 0.5 + 0.5 * ((users * 3 + items * 7) % 10)
    from gramian.completion import NuclearCompletion

    session = RatingSession(NuclearCompletion(lam=1.0).fit((users, names[items], stars)))
    for item in range(3):
        session.rate(item, session.scale[item])
    assert session.scale == [0.5 * k for k in range(1, 11)]
    with Page(session) as page:
        for width in WIDTHS:
            resize(window, width)
            window.get("about:blank")
            window.get(page.url)
            until(window, "document.body.dataset.version === '3'")
            shares = window.execute_script(
                "return [...document.querySelectorAll('#rated b, #found b')].map("
                "b => b.offsetWidth / b.parentElement.offsetWidth)"
            )
            assert len(shares) >= 6 and min(shares) > 0.9
