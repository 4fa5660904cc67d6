"""Images of samples under the pointer of an embedding's page."""

import io
import re
from base64 import b64decode

import numpy as np
import pytest
from sklearn.datasets import load_digits

from gramian.app.report.thumbnails import are_images, sheet_of
from gramian.manifold import RegMVU

DIGITS = load_digits().images[:40]


def read(png):
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(io.BytesIO(png)))


def test_a_sheet_holds_every_image_row_by_row():
    sheet = sheet_of(DIGITS)
    pixels = read(sheet.png)
    assert (sheet.width, sheet.height, sheet.columns) == (8, 8, 7)
    assert pixels.shape == (6 * 8, 7 * 8)
    for who in (0, 6, 7, 39):
        y, x = divmod(who, sheet.columns)
        tile = pixels[8 * y : 8 * y + 8, 8 * x : 8 * x + 8]
        np.testing.assert_array_equal(tile, np.round(255 * DIGITS[who] / 16))


def test_large_images_are_made_small_and_flat_ones_are_black():
    wide = np.repeat(np.repeat(DIGITS, 9, axis=1), 11, axis=2)[:, :70]
    sheet = sheet_of(wide)
    assert max(sheet.width, sheet.height) <= 32
    assert read(sheet.png).max() == 255
    assert read(sheet_of(np.ones((3, 4, 4))).png).max() == 0


def test_the_page_of_an_embedding_carries_them(tmp_path):
    X = DIGITS.reshape(40, 64)
    fitted = RegMVU(tol=0.1).fit(X)
    assert are_images(DIGITS) and not are_images(X)
    page = fitted.report(tmp_path / "page.html", DIGITS, np.arange(40) % 3).read_text("utf-8")
    found = re.search(r'data-tile="8 8 7" data-sheet="data:image/png;base64,([^"]+)"', page)
    assert read(b64decode(found[1])).shape == (48, 56)
    plain = fitted.report(tmp_path / "plain.html", X).read_text("utf-8")
    assert 'data-tile="' not in plain
    with pytest.raises(ValueError, match="holds 5 images of the 40 samples"):
        fitted.report(tmp_path / "no.html", DIGITS[:5])


def test_rejects_too_many_or_invalid_images():
    with pytest.raises(ValueError, match="can show 5,000 images, got 5,001"):
        sheet_of(np.zeros((5001, 1, 1)))
    with pytest.raises(ValueError, match="finite"):
        sheet_of(np.full((2, 2, 2), np.nan))
