"""Progress plots: frames, figures and animations."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_swiss_roll

from gramian.common import clock
from gramian.estimators import plotting
from gramian.manifold import MVU, ColoredMVU, NeighborLayout, RegMVU

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

ROLL, ALONG = make_swiss_roll(80, random_state=0)


@pytest.mark.parametrize(
    "learner",
    [
        MVU(tol=0.1),
        MVU(max_edge_error=0.1, time_limit=0.5),
        ColoredMVU(tol=0.1),
        RegMVU(tol=0.1),
        NeighborLayout(rounds=2, tol=0.1),
    ],
    ids=["MVU", "exact", "ColoredMVU", "RegMVU", "NeighborLayout"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:y holds numbers that are not whole")
def test_every_unfolding_shows_where_its_samples_are(learner):
    picture = plotting.Picture()
    copied = np.vstack([ROLL, ROLL[:3]])
    with clock.watched_by(picture):
        learner.fit(copied, np.append(ALONG, ALONG[:3]))
    assert 1 <= len(picture.frames) <= plotting.FRAMES
    assert {frame.shape for frame in picture.frames} == {(83, 2)}
    last = picture.frames[-1]
    np.testing.assert_allclose(last[80:], last[:3])
    found = np.linalg.norm(learner.embedding_[:, None] - learner.embedding_, axis=2)
    seen = np.linalg.norm(last[:, None] - last, axis=2)
    assert np.corrcoef(found.ravel(), seen.ravel())[0, 1] > 0.9


def test_frames_are_thinned_and_drawn_now_and_then(monkeypatch):
    drawn = []
    picture = plotting.Picture(drawn.append, color=np.arange(5), title="growing")
    places = np.random.default_rng(0).standard_normal((5, 4))
    for _ in range(10 * plotting.FRAMES):
        picture.frame(lambda: places)
    assert plotting.FRAMES / 2 <= len(picture.frames) <= plotting.FRAMES
    assert len(drawn) < 10  # not more than one a second
    picture.end(places[:, :2])
    np.testing.assert_array_equal(picture.frames[-1], places[:, :2])
    assert drawn[-1].axes[0].get_title() == "growing"
    picture.close()


def test_gif_contains_all_frames_rotated_to_match():
    image = pytest.importorskip("PIL.Image")
    picture = plotting.Picture()
    places = np.random.default_rng(0).standard_normal((20, 2)) * [3, 1]
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    places -= places.mean(axis=0)
    picture.frames = [places[::-1], places, places @ turn]
    _, first, second = plotting.turned_alike(picture.frames)
    np.testing.assert_allclose(first, second, atol=1e-12)
    moving = image.open(io.BytesIO(picture.gif(rate=4)))
    assert moving.format == "GIF" and moving.n_frames == 2  # equal ones are one
    lengths = []
    for k in range(moving.n_frames):
        moving.seek(k)
        moving.load()
        lengths.append(moving.info["duration"])
    assert lengths == [250, 250 * (2 + 4)]  # the last frame is repeated for a second
    picture.close()


def test_points_of_other_parts_are_no_frame_of_these():
    frames = [np.ones((4, 2)), np.zeros((6, 2))]
    assert [turned.shape for turned in plotting.turned_alike(frames)] == [(4, 2), (6, 2)]


def test_progress_plot_streams_to_a_notebook(monkeypatch):
    shown, updated = [], []

    def display(figure, display_id):
        shown.append(figure)
        return SimpleNamespace(update=updated.append)

    matplotlib.pyplot.install_repl_displayhook()  # before the shell below seems to be one
    shell = SimpleNamespace(get_ipython=lambda: object())
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr(plotting, "EVERY", 0.1)
    apart = np.vstack([ROLL, ROLL[:30] + 200.0])
    fitted = MVU(tol=0.1, progress="plot", connect="components").fit(apart)
    assert len(fitted.parts_) == 2 and len(shown) == 1 and updated
    assert clock.watcher() is None


def test_progress_plot_is_not_drawn_without_a_display(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    before = matplotlib.pyplot.get_fignums()
    RegMVU(tol=0.1, progress="plot").fit(ROLL)
    assert matplotlib.pyplot.get_fignums() == before
    with pytest.raises(ValueError, match='progress must be True, False or "plot"'):
        RegMVU(progress="film").fit(ROLL)
