"""Reports: what they say, and that they work in a real browser without a network."""

import re
import shutil
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons, make_swiss_roll
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gramian as gm
from gramian.app.report import figures, report_eigen, report_estimator, report_results
from gramian.app.report.page import Section, confusion, figure, write_page
from gramian.app.report.parts import displayed, in_words
from gramian.certificate import Certificate
from gramian.completion import NuclearCompletion
from gramian.kernel import NPKL
from gramian.manifold import MVU
from gramian.metric import KTA, ClassCollapse, MetricClassifier, MetricRegressor
from gramian.result import History

X, y = load_iris(return_X_y=True)
NAMES = load_iris().target_names[y]
MOONS, MOON = make_moons(80, noise=0.05, random_state=0)
ROLL, ALONG = make_swiss_roll(80, random_state=0)


def ratings():
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random((20, 12)) < 0.4)
    return np.array([f"<b>user {k}</b>" for k in i]), j, 1.0 + (i + j) % 5


PAGES = {
    "metric": lambda path: KTA().fit(X, NAMES).report(path, X, NAMES),
    "manifold": lambda path: MVU().fit(ROLL).report(path, y=ALONG),
    "kernel": lambda path: NPKL().fit(MOONS, np.where(np.arange(80) < 8, MOON, -1)).report(path),
    "completion": lambda path: NuclearCompletion().fit(ratings()).report(path),
    "solvers": lambda path: report_results(
        [gm.minimize(gm.problems.kta(X, y, 1.0), s) for s in ("auto", "bilgo", "lbfgs")], path
    ),
    "result": lambda path: gm.minimize(gm.problems.kta(X, y, 1.0)).report(path),
}
SECTIONS = {
    "metric": ["Two leading directions", "Confusion matrix", "Settings of KTA"],
    "manifold": ["Embedding", "Variance kept"],
    "kernel": ["Clusters and links"],
    "completion": ["The path of λ", "Recommendations"],
    "solvers": ["kta: 3 runs", "Convergence", "Eigenvalues of M"],
    "result": ["kta by auto"],
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {name: make(folder / f"{name}.html") for name, make in PAGES.items()}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_sections_and_needs_no_network(name, pages):
    text = pages[name].read_text("utf-8")
    for title in SECTIONS[name]:
        assert f"<h2>{title}</h2>" in text
    assert re.search(r"subject to</b> .+ ⪰ 0", text) and 'class="verdict"' in text
    assert not re.search(r"(https?:)?//[a-z]", re.sub(r"(?m)^// .*|; // .*|  // .*", "", text))
    assert len(text.encode()) < 200_000 and 'class="formula"' in text
    assert "prefers-color-scheme: dark" in text
    head = text.partition("</header>")[0]
    assert re.search(r"\d+ \w+ 20\d\d, \d\d:\d\d UTC · gramian .* · Python 3.*scikit-learn", head)


@pytest.mark.parametrize("name", ["metric", "manifold", "kernel", "completion"])
def test_a_page_begins_with_whether_it_helped(name, pages):
    assert "<main>\n<section><h2>Did it help?</h2>" in pages[name].read_text("utf-8")


def test_a_page_says_what_was_chosen_and_of_which_file(tmp_path):
    model = KTA().fit(X, y)
    text = report_estimator(model, tmp_path / "x.html", source="<flowers>.csv").read_text("utf-8")
    assert "&lt;flowers&gt;.csv · " in text
    assert re.search(
        rf"<td[^>]*>lam</td><td[^>]*>&#x27;auto&#x27;</td><td[^>]*>{model.lam_:.6g}<", text
    )


def test_the_largest_page_is_small(tmp_path):
    rng = np.random.default_rng(0)
    places, names = rng.normal(size=(30_000, 2)), rng.integers(0, 9, 30_000)
    edges = rng.integers(0, 30_000, (50_000, 2))
    drawn = [
        Section("points", figure(figures.points(places, color=names))),
        Section("edges", figure(figures.points(places, color=places[:, 0], edges=edges))),
    ]
    assert write_page(tmp_path / "x.html", "large", drawn).stat().st_size < 1_500_000


def test_formulas_have_subscripts_and_superscripts():
    text = displayed("min ½ Σ_e (d_M(e) − X̃_τ)² + λ‖A^½U‖_* + Σ_{ij} a<b  subject to M ⪰ 0")
    for part in (
        *("Σ<sub>e</sub>", "d<sub>M</sub>(e)", "X̃<sub>τ</sub>", "A<sup>½</sup>U"),
        *("‖<sub>*</sub>", "Σ<sub>ij</sub>", "a&lt;b", "<b>subject to</b> M ⪰ 0"),
    ):
        assert part in text, (part, text)
    assert ElementTree.fromstring(text).tag == "div"


def test_a_problem_may_stand_on_two_lines():
    text = displayed("min ‖U‖_*  subject to [P U; Uᵀ Q] ⪰ 0")
    assert text.count("<span>") == 2 and displayed("") == ""


def test_names_of_users_are_not_markup(pages):
    text = pages["completion"].read_text("utf-8")
    assert "<b>user" not in text and "&lt;b&gt;user" in text


def test_labels_cannot_leave_the_data_of_a_figure(tmp_path):
    evil = np.where(y == 0, "</script><script>alert(1)</script>", "good")
    page = KTA().fit(X, evil).report(tmp_path / "x.html", X, evil)
    assert "<script>alert(1)" not in page.read_text("utf-8")


def test_the_certificate_in_words():
    proved = Certificate(100.0, 0.0, 0.0, 0.1, 1e-3, "trace bound")
    assert "below 99.9, so this is at most 0.1 % above the optimum" in in_words(proved)
    assert "trace bound" in in_words(proved)
    guessed = Certificate(100.0, 0.0, 0.0, 0.1, 1e-3, "trace bound", proof="Lanczos", miss=1e-3)
    assert "proved" not in in_words(guessed) and "at most 0.001" in in_words(guessed)
    open_ = Certificate(100.0, -1.0, 0.0, None, None, "none")
    assert "nothing is proved" in in_words(open_)


def test_results_of_different_problems_are_refused(tmp_path):
    one = gm.minimize(gm.problems.kta(X, y, 1.0))
    other = gm.minimize(gm.problems.top_eigen(np.eye(3)), rank=1)
    with pytest.raises(ValueError, match="different problems"):
        report_results([one, other], tmp_path / "x.html")
    with pytest.raises(ValueError, match="needs one Result"):
        report_results([], tmp_path / "x.html")


def test_residuals_are_the_certificate_of_eigenvalues(tmp_path):
    found = gm.spectral.top_eigen(np.diag([3.0, 2.0, 1.0]), 2)
    text = report_eigen(found, tmp_path / "x.html", "K").read_text("utf-8")
    assert "lies an eigenvalue of K" in text and "The 2 largest eigenvalues of K" in text


def test_an_answer_in_one_step_has_no_curves(tmp_path):
    text = KTA(lam=1.0).fit(X, y).report(tmp_path / "x.html").read_text("utf-8")
    assert "after one step" in text and "certified gap</th>" in text


def test_an_estimator_without_steps_has_a_page(tmp_path):
    model = ClassCollapse(ridge=0.01).fit(X[::3], NAMES[::3])
    assert {"time", "value", "rank"} <= set(model.result_.history.columns)
    model.result_.history.records[0].pop("time")  # as in files of former versions
    text = model.report(tmp_path / "x.html").read_text()
    assert "there is no curve to draw" in text


def test_a_metric_of_one_direction_is_drawn_in_the_plane(tmp_path):
    text = (
        KTA(lam=1e-3, n_components=1)
        .fit(X, NAMES)
        .report(tmp_path / "x.html", X, NAMES)
        .read_text()
    )
    assert "after: one direction, a row for each class" in text
    after = text.partition("after: one direction")[2]
    heights = [float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)h0", after)]
    assert len(heights) == 150 and np.ptp(heights) > 200


@pytest.mark.parametrize("ratio", [1.0, 3.0, 1e3])
def test_units_are_equal_except_for_points_close_to_a_line(ratio):
    places = np.random.default_rng(0).uniform(size=(50, 2)) * [1.0, 1.0 / ratio]
    across, up = figures._alike(places)
    drawn = [np.ptp(axis.at(values)) for axis, values in zip((across, up), places.T, strict=True)]
    if ratio <= 3:
        assert drawn[0] / np.ptp(places[:, 0]) == pytest.approx(drawn[1] / np.ptp(places[:, 1]))
    assert min(drawn) > 100


def test_confusion_matrix_has_names_counts_and_colours():
    text = confusion(np.array([[3, 0], [1, 6]]), ["<malignant>", "benign"], "before")
    table = ElementTree.fromstring(text)
    head, *rows = [[cell.text for cell in row] for row in table.iter("tr")]
    assert head == ["true ↓ predicted →", "<malignant>", "benign"]
    assert rows == [["<malignant>", "3", "0"], ["benign", "1", "6"]]
    assert [cell.get("style") for cell in table.iter("td")] == [
        f"--share: {share}%" for share in (30, 0, 10, 60)
    ]


def test_the_picture_after_is_turned_like_the_one_before(tmp_path):
    class Mirror(KTA):
        def transform(self, X):
            return -np.asarray(X)

    text = Mirror(lam=1.0).fit(X, NAMES).report(tmp_path / "x.html", X, NAMES).read_text("utf-8")
    before, after = text.partition(">after<")[::2]
    spots = [re.findall(r"M([\d.]+) ([\d.]+)h0", part) for part in (before, after)]
    np.testing.assert_allclose(*(np.array(part, dtype=float) for part in spots), atol=0.02)


def test_two_points_are_no_curve(tmp_path):
    result = gm.minimize(gm.problems.kta(X, y, 1.0), "lbfgs")
    short = replace(result, history=History(list(result.history)[:2]))
    text = report_results(short, tmp_path / "x.html").read_text("utf-8")
    assert "there is no curve to draw" in text and 'class="curve' not in text


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_bars_have_whole_numbers_and_are_narrow(count):
    text = figures.bars(np.arange(1.0, count + 1), "number", "height")
    below = re.findall(r'text-anchor="middle">([\d.]+)</text>', text)
    assert below and all("." not in number for number in below)
    assert all(float(width) < 90 for width in re.findall(r'<rect .*?width="([\d.]+)"', text))


def test_labels_must_fit_the_embedding(tmp_path):
    with pytest.raises(ValueError, match="5 labels for the 80 samples"):
        MVU().fit(ROLL).report(tmp_path / "x.html", y=ALONG[:5])


def test_a_page_is_not_called_otherwise(tmp_path):
    with pytest.raises(ValueError, match=r"x.pdf: a report is a page, so its name must end"):
        KTA(lam=1.0).fit(X, y).report(tmp_path / "x.pdf", X, y)
    assert not (tmp_path / "x.pdf").exists()


@pytest.mark.parametrize("report", [gm.report, KTA.report])
def test_unfitted_estimators_have_no_report(report, tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        report(KTA(), tmp_path / "x.html")


def test_one_function_writes_every_page(tmp_path):
    model, values = KTA(lam=1.0).fit(X, y), gm.spectral.top_eigen(np.diag(np.arange(9.0)), 2)
    things = {
        "Settings of KTA": model,
        "kta by auto": model.result_,
        "kta: 2 runs": [model.result_, model.result_],
        "The 2 largest eigenvalues of a symmetric matrix": values,
    }
    for title, thing in things.items():
        path = gm.report(thing, tmp_path / "x.html")
        assert f"<h2>{title}</h2>" in path.read_text("utf-8")


def test_what_is_no_model_has_no_page(tmp_path):
    with pytest.raises(TypeError, match="not an estimator"):
        gm.report(3.0, tmp_path / "x.html")


def test_a_pipeline_reports_by_its_last_step(tmp_path):
    model = make_pipeline(StandardScaler(), KTA()).fit(X, y)
    assert model[-1].report(tmp_path / "x.html", model[:-1].transform(X), y).exists()


@pytest.mark.parametrize(
    "model",
    [
        MetricClassifier(metric=KTA(lam=1e-3)),
        make_pipeline(StandardScaler(), MetricClassifier(metric=KTA(lam=1e-3))),
    ],
    ids=lambda model: type(model).__name__,
)
def test_classifier_reports_on_its_metric(model, tmp_path):
    text = gm.report(model.fit(X, NAMES), tmp_path / "x.html", X, NAMES).read_text("utf-8")
    for title in ("Did it help?", "Two leading directions", "Confusion matrix"):
        assert f"<h2>{title}</h2>" in text


def test_regressor_reports_its_choice_and_its_neighbours(tmp_path):
    model = MetricRegressor().fit(X[::3, :3], X[::3, 3])
    text = model.report(tmp_path / "x.html", X[::3, :3], X[::3, 3]).read_text("utf-8")
    for part in ("<h2>Held-out error</h2>", "<h2>Two leading directions</h2>", "R² after"):
        assert part in text
    with pytest.raises(ValueError, match="a number for each sample"):
        model.report(tmp_path / "x.html", X[::3, :3], NAMES[::3])


@pytest.mark.parametrize("learner", [KTA(lam=1e-3), MetricClassifier(metric=KTA(lam=1e-3))])
def test_rejects_labels_of_other_samples(learner, tmp_path):
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[150, 50\]"):
        learner.fit(X, y).report(tmp_path / "x.html", X, y[:50])


# --- in a browser ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, with the network refused."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--window-size=1200,900", "--host-resolver-rules=MAP * ~NOTFOUND"):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(executable_path=driver)
    )
    opened.set_page_load_timeout(60)
    yield opened
    opened.quit()


def show(browser, page):
    """Go to a page and wait until it is there: a driver may come back from `get` too soon."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(page.as_uri())
    there = (
        "return document.URL === arguments[0] && document.readyState === 'complete' &&"
        " document.querySelectorAll('.drawing svg').length > 0"
    )
    WebDriverWait(browser, 30).until(lambda b: b.execute_script(there, page.as_uri()))


@pytest.mark.parametrize("name", PAGES)
def test_every_figure_is_drawn(name, pages, browser):
    show(browser, pages[name])
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('.drawing > svg')].map(d => ["
        "d.querySelectorAll('path, rect').length, d.getBoundingClientRect().width,"
        "d.closest('section').getBoundingClientRect().width])"
    )
    assert sizes and all(drawn > 0 and 200 < width <= room for drawn, width, room in sizes)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= 1200, "the page is wider than its window"
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_solvers_are_switched_off_by_their_names(pages, browser):
    show(browser, pages["solvers"])
    curves = (
        "return [...document.querySelector('.drawing').querySelectorAll('g.curve')]"
        ".map(g => getComputedStyle(g).display)"
    )
    assert browser.execute_script(curves) == ["inline"] * 3
    browser.find_elements("css selector", ".legend button")[0].click()
    assert browser.execute_script(curves) == ["none", "inline", "inline"]


def test_points_tell_who_they_are(pages, browser):
    from selenium.webdriver.common.action_chains import ActionChains

    show(browser, pages["manifold"])
    plot = browser.find_element("css selector", ".drawing.points svg.plot")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    x, y = browser.execute_script(
        "const all = arguments[0].querySelector('g.all'), dots = all.querySelector('.dots');"
        "const [a, b] = dots.getAttribute('d').match(/-?[\\d.]+/g).map(Number);"
        "const spot = new DOMPoint(a, b).matrixTransform(all.getScreenCTM());"
        "const box = arguments[0].getBoundingClientRect();"
        "return [spot.x - box.x - box.width / 2, spot.y - box.y - box.height / 2]", plot,
    )  # fmt: skip
    ActionChains(browser).move_to_element_with_offset(plot, x, y).perform()
    tip = browser.find_element("css selector", ".drawing.points .tip")
    assert re.fullmatch(r"sample \d+", tip.text)
    whole = browser.find_element("css selector", ".drawing.points > svg")
    before = plot.get_dom_attribute("viewBox")
    mouse = ActionChains(browser).move_to_element(whole).click_and_hold()
    mouse.move_by_offset(60, 60).release().perform()  # a rectangle zooms
    assert plot.get_dom_attribute("viewBox") != before
    ActionChains(browser).double_click(whole).perform()
    assert plot.get_dom_attribute("viewBox") == before


def test_words_of_a_table_are_not_broken_on_a_narrow_page(tmp_path, browser):
    """A wide table scrolls in its place: ids stay in one line, and the page is not wider."""
    rows, cols, stars = ratings()
    model = NuclearCompletion(lam=1.0).fit((rows, np.array([f"film-{k}" for k in cols]), stars))
    page = model.report(tmp_path / "x.html")
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        show(browser, page)
        lines, wide = browser.execute_script(
            "const cells = [...document.querySelectorAll('td.short')];"
            "return [cells.map(cell => { const range = document.createRange();"
            "range.selectNodeContents(cell); return range.getClientRects().length }),"
            "document.documentElement.scrollWidth]"
        )
        assert len(lines) > 5 and max(lines) == 1 and wide <= 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
