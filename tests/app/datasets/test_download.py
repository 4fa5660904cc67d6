"""Downloads from a server that behaves, and from one that does not."""

import bz2
import gzip
import io
import os
import shutil
import socket
import ssl
import struct
import subprocess
import time
import zipfile
from email.message import Message
from functools import partial
from urllib.request import Request

import numpy as np
import pytest

from gramian.app.datasets import (
    DataMissingError,
    DownloadError,
    _arrays,
    _download,
    _formats,
    load,
    load_arrays,
    load_ratings,
)
from gramian.app.datasets._arrays import fingerprint
from gramian.app.datasets._homes import HOMES, Home

TEXT = b"+1 1:0.5 3:2\n-1 2:1\n-1 1:3 2:0\n"
X = np.array([[0.5, 0, 2], [0, 1, 0], [3, 0, 0]])
Y = np.array([1, 0, 0])
LIMIT = 20_000


@pytest.fixture
def at_home(server, cache, monkeypatch):
    """A function that lets a set live on the server, in given files."""

    def settle(name, answers, read, arrays, **options):
        server.answers |= {"/" + file: answer for file, answer in answers.items()}
        options = {"limit": LIMIT} | options
        home = Home(server.url, tuple(answers), read, fingerprint(arrays), **options)
        monkeypatch.setitem(HOMES, name, home)

    return settle


@pytest.fixture
def a1a(at_home):
    """Let the data of a1a be what the server sends under a file's name."""
    read = partial(_formats.svmlight, features=3, classes=(-1, 1))
    arrays = {"X": X, "y": Y}
    return lambda answer, file="a1a", **options: at_home(
        "a1a", {file: answer}, read, arrays, **options
    )


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def idx(values):
    head = struct.pack(">BBBB", 0, 0, 8, values.ndim) + struct.pack(
        f">{values.ndim}I", *values.shape
    )
    return head + values.astype(np.uint8).tobytes()


def redirect(target):
    return lambda reply: reply.redirect(target)


# --- a server that behaves -----------------------------------------------------------


def test_a_set_is_fetched_once_and_kept(a1a, server, cache):
    a1a(TEXT)
    first = load("a1a", download=True)
    np.testing.assert_array_equal(first.X.toarray(), X)
    np.testing.assert_array_equal(first.y, Y)
    assert first.X.dtype == np.float64 and first.y.dtype == np.int64
    assert first.X_test is None
    assert first.X.nnz == 4  # the zero that the file mentions is not kept
    assert [path.name for path in cache.iterdir()] == ["a1a.npz"]
    again = load("a1a")
    np.testing.assert_array_equal(again.X.toarray(), X)
    load("a1a", download=True)
    assert server.asked == ["/a1a"]


def test_nothing_is_fetched_unasked(a1a, server, cache):
    a1a(TEXT)
    with pytest.raises(DataMissingError, match="pass download=True to fetch it from http://127"):
        load("a1a")
    assert server.asked == []


def test_redirects_to_good_places_are_followed(a1a, server):
    a1a(redirect("/moved0"))
    for k in range(4):
        server.answers[f"/moved{k}"] = redirect(f"{server.url}moved{k + 1}")
    server.answers["/moved4"] = TEXT
    np.testing.assert_array_equal(load("a1a", download=True).X.toarray(), X)
    assert server.asked == ["/a1a", *(f"/moved{k}" for k in range(5))]


@pytest.mark.parametrize("pack", [("a1a.bz2", bz2.compress), ("a1a.gz", gzip.compress)])
def test_packed_text(a1a, pack):
    file, compress = pack
    a1a(compress(TEXT), file)
    np.testing.assert_array_equal(load("a1a", download=True).X.toarray(), X)


def test_a_test_part_and_a_dense_matrix(at_home):
    read = partial(_formats.svmlight, features=3, classes=(-1, 1), dense=True)
    arrays = {"X": X, "y": Y, "X_test": X[:1], "y_test": Y[:1]}
    at_home("splice", {"splice": TEXT, "splice.t": TEXT.split(b"\n")[0]}, read, arrays)
    found = load("splice", download=True)
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.X_test, X[:1])
    np.testing.assert_array_equal(found.y_test, [1])


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (b"b,1.5,-2\ng, 0,3\n", {"classes": "bg", "label": 0}),
        (b"1,1.5,-2,b\n2,0, 3,g\n\n", {"classes": "bg", "first": 1}),
        (b" 1.5 -2.0000 1 \r\n0 3 7.0 \r\n", {"classes": (1, 7), "delimiter": None}),
        (b"1.5,-2,6\n0,3,7", {"classes": (6, 7)}),
    ],
)
def test_tables(at_home, text, options):
    expected = {"X": np.array([[1.5, -2], [0, 3]]), "y": np.array([0, 1])}
    at_home("glass", {"glass.data": text}, partial(_formats.table, **options), expected)
    found = load("glass", download=True)
    np.testing.assert_array_equal(found.X, expected["X"])
    np.testing.assert_array_equal(found.y, expected["y"])


def test_images(at_home):
    images = np.random.default_rng(0).integers(0, 256, (5, 4, 3))
    labels = np.array([3, 1, 4, 1, 5])
    arrays = {"X": images.reshape(5, 12), "y": labels}
    arrays |= {"X_test": images[:2].reshape(2, 12), "y_test": labels[:2]}
    parts = (images, labels, images[:2], labels[:2])
    answers = {f"{k}.gz": gzip.compress(idx(part)) for k, part in enumerate(parts)}
    at_home("mnist", answers, _formats.idx, arrays)
    found = load("mnist", download=True)
    np.testing.assert_array_equal(found.X, arrays["X"])
    np.testing.assert_array_equal(found.X_test, arrays["X_test"])
    np.testing.assert_array_equal(found.y_test, [3, 1])


RATED = {
    "user": np.array([1, 0, 0]),
    "item": np.array([0, 1, 0]),
    "rating": np.array([5, 3, 4]),
    "timestamp": np.array([30, 20, 10]),
}


def test_ratings_in_the_order_of_the_file(at_home):
    text = b"2\t1\t5\t30\n1\t2\t3\t20\n1\t1\t4\t10\n"
    archive = zipped({"ml-100k/u.data": text, "ml-100k/u.user": b"2|1|5|7"})
    at_home(
        "movielens_100k", {"ml.zip": archive}, _formats.tab_ratings, RATED, member="ml-100k/u.data"
    )
    found = load_ratings("movielens_100k", download=True)
    for key, values in RATED.items():
        np.testing.assert_array_equal(getattr(found, key), values)
    assert found.rating.dtype == np.float64


def test_ratings_sorted_by_user_and_time(at_home):
    """Items are numbered without gaps, and their names are kept."""
    archive = zipped({"ratings.dat": b"2::7::5::30\n1::7::4::20\n1::9::3::10\n"})
    arrays = {"user": [0, 0, 1], "item": [1, 0, 0], "rating": [3, 4, 5], "timestamp": [10, 20, 30]}
    arrays = {key: np.array(values) for key, values in (arrays | {"movie_id": [7, 9]}).items()}
    at_home(
        "movielens_1m", {"1.zip": archive}, _formats.colon_ratings, arrays, member="ratings.dat"
    )
    found = load_ratings("movielens_1m", download=True)
    for key in RATED:
        np.testing.assert_array_equal(getattr(found, key), arrays[key])
    np.testing.assert_array_equal(found.extra["movie_id"], [7, 9])


def test_an_archive_is_never_extracted(a1a, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.parent.rglob("*"))
    members = {"../evil": b"evil", "/evil": b"evil", "data/a1a": TEXT}
    a1a(zipped(members), "a1a.zip", member="data/a1a")
    np.testing.assert_array_equal(load("a1a", download=True).X.toarray(), X)
    new = {path.name for path in set(tmp_path.parent.rglob("*")) - before}
    assert new == {"cache", "a1a.npz"}


# --- a server that does not ----------------------------------------------------------


def cut_off(reply):
    reply.whole(TEXT, announced=len(TEXT) + 1)


def endless(reply):
    reply.send_response(200)
    reply.end_headers()
    while True:
        reply.wfile.write(TEXT * 100)


def endless_chunks(reply):
    reply.protocol_version = "HTTP/1.1"
    reply.send_response(200)
    reply.send_header("Transfer-Encoding", "chunked")
    reply.end_headers()
    while True:
        reply.wfile.write(b"%x\r\n%s\r\n" % (len(TEXT), TEXT))


def cut_off_chunks(reply):
    reply.protocol_version = "HTTP/1.1"
    reply.send_response(200)
    reply.send_header("Transfer-Encoding", "chunked")
    reply.end_headers()
    reply.wfile.write(b"%x\r\n%s" % (len(TEXT) + 1, TEXT))
    reply.close_connection = True


def too_much(reply):
    reply.whole(TEXT, announced=10**12)


def drip(reply):
    reply.send_response(200)
    reply.end_headers()
    while not reply.server.stopping.wait(0.01):
        reply.wfile.write(b" ")


def silence(reply):
    reply.server.stopping.wait()


def nonsense(reply):
    reply.wfile.write(b"hello\r\n\r\n")


PAGE = b"<!DOCTYPE html><html><body>Sorry, moved.</body></html>"

TROUBLE = {
    "wrong hash": (TEXT.replace(b"0.5", b"0.6"), "not have the expected SHA-256"),
    "wrong label": (TEXT.replace(b"+1", b"-1"), "not have the expected SHA-256"),
    "one row less": (TEXT.split(b"\n", 1)[1], "not have the expected SHA-256"),
    "cut off": (cut_off, rf"cut off after {len(TEXT)} of {len(TEXT) + 1} bytes"),
    "cut off chunks": (cut_off_chunks, "could not be read"),
    "endless": (endless, "sent more than 20,000 bytes"),
    "endless chunks": (endless_chunks, "sent more than 20,000 bytes"),
    "too much": (too_much, "announces 1,000,000,000,000 bytes"),
    "drip": (drip, "was not read after 0.4 seconds"),
    "silence": (silence, "timed out"),
    "nonsense": (nonsense, "could not be read"),
    "redirect to a file": (redirect("file:///etc/passwd"), "file:///etc/passwd' is not allowed"),
    "redirect to ftp": (redirect("ftp://localhost/a1a"), "ftp://localhost/a1a is refused"),
    "redirect to data": (redirect("data:,x"), "data:,x' is not allowed"),
    "redirect to a bad port": (redirect("http://localhost:x/"), "could not be read"),
    "redirect for ever": (redirect("/a1a"), "infinite loop"),
    "redirect to nowhere": (lambda reply: reply.send_error(302), "answered 302"),
    "not found": (None, "answered 404 Not Found"),
    "server error": (lambda reply: reply.send_error(500), "answered 500"),
    "page": (PAGE, "is not in the expected format"),
    "nothing": (b"", "the file is empty"),
    "unknown class": (TEXT.replace(b"+1", b"+2"), "2.0 is none of the classes"),
    "too many features": (TEXT.replace(b"3:2", b"4:2"), "is not in the expected format"),
}  # fmt: skip


@pytest.mark.parametrize("name", TROUBLE)
def test_trouble_is_an_error_and_leaves_nothing(a1a, cache, monkeypatch, name):
    monkeypatch.setattr(_download, "SILENCE", 0.2)
    monkeypatch.setattr(_download, "PATIENCE", 0.4)
    answer, message = TROUBLE[name]
    a1a(answer)
    start = time.monotonic()  # a reader without these limits waits for minutes
    with pytest.raises(DownloadError, match=rf"'a1a' could not be downloaded: .*{message}"):
        load("a1a", download=True)
    assert time.monotonic() - start < 30
    assert not cache.exists()
    with pytest.raises(DataMissingError):
        load("a1a")


def test_the_error_says_what_to_do(a1a, cache):
    a1a(None)
    with pytest.raises(
        DownloadError, match="Nothing was stored; try again later, or set GRAMIAN_DA"
    ):
        load("a1a", download=True)


def damaged(archive):
    """A zip file whose member does not have its checksum."""
    with zipfile.ZipFile(io.BytesIO(archive)) as reader:
        checksum = struct.pack("<I", reader.getinfo("a1a").CRC)
    return archive.replace(checksum, bytes(4))


ZEROS = bytes(LIMIT + 1)

BAD_PACKAGES = {
    "gz bomb": ("a1a.gz", gzip.compress(bytes(10**7), mtime=0), "unpacks to more than 20,000"),
    "bz2 bomb": ("a1a.bz2", bz2.compress(bytes(10**7)), "unpacks to more than 20,000"),
    "zip bomb": ("a1a.zip", zipped({"a1a": bytes(10**7)}), "unpacks to more than 20,000"),
    "a byte too much": ("a1a.gz", gzip.compress(ZEROS), "unpacks to more than 20,000"),
    "cut gz": ("a1a.gz", gzip.compress(TEXT)[:-9], "could not be unpacked"),
    "cut bz2": ("a1a.bz2", bz2.compress(TEXT)[:-9], "could not be unpacked"),
    "damaged gz": ("a1a.gz", gzip.compress(TEXT)[:-8] + bytes(8), "could not be unpacked"),
    "page for gz": ("a1a.gz", PAGE, "could not be unpacked"),
    "page for bz2": ("a1a.bz2", PAGE, "could not be unpacked"),
    "page for zip": ("a1a.zip", PAGE, "could not be unpacked"),
    "damaged zip": ("a1a.zip", damaged(zipped({"a1a": TEXT})), "could not be unpacked"),
    "no member": ("a1a.zip", zipped({"../a1a": TEXT, "x/a1a": TEXT}), "there is no a1a in"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_PACKAGES)
def test_bad_packages(a1a, cache, name):
    file, answer, message = BAD_PACKAGES[name]
    assert len(answer) <= LIMIT  # it is the content that is too much
    a1a(answer, file, **({"member": "a1a"} if file.endswith("zip") else {}))
    with pytest.raises(DownloadError, match=message):
        load("a1a", download=True)
    assert not cache.exists()


def test_the_largest_allowed_file_is_taken(server):
    server.answers["/file"] = bytes(LIMIT)
    assert _download.fetch(server.url + "file", LIMIT) == bytes(LIMIT)
    assert _download.unpack(gzip.compress(bytes(LIMIT)), "file.gz", LIMIT) == bytes(LIMIT)


@pytest.mark.parametrize(
    "file",
    [PAGE, b"\0\0\x08", b"\0\0\x08\x01\0\0\0\x05abc", b"\0\0\x0d\x01\0\0\0\0", b"\0\0\x08\xff"],
)
def test_files_that_are_no_images(at_home, file):
    answers = dict.fromkeys(("a", "b", "c", "d"), file)
    at_home("mnist", answers, _formats.idx, {"X": X, "y": Y})
    with pytest.raises(DownloadError, match="is not in the expected format"):
        load("mnist", download=True)


@pytest.mark.parametrize(
    "text", [PAGE, b"1\t2\t3\n", b"1\t2\t3\tx\n", b"1\t2\t3\t99999999999\n", b""]
)
def test_files_that_are_no_ratings(at_home, text):
    at_home("movielens_100k", {"u.data": text}, _formats.tab_ratings, RATED)
    with pytest.raises(DownloadError, match="is not in the expected format"):
        load_ratings("movielens_100k", download=True)


def test_a_long_field_does_not_fill_the_memory():
    rows = _formats.table([b"1,a\n" * 50_000 + b"1" * 10**6 + b",a\n"], classes="a")
    assert rows["X"].shape == (50_001, 1)


def test_nobody_answers(a1a, cache):
    a1a(TEXT)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        with pytest.raises(DownloadError, match="could not be read"):
            _download.fetch(url, LIMIT)


@pytest.mark.parametrize("url", ["http://127.0.0.1/a", "file:///etc/passwd", "ftp://x/a", "/a", ""])
def test_only_https_is_asked(url):
    with pytest.raises(DownloadError, match="is refused: only https is safe"):
        _download.fetch(url, LIMIT)


def test_https_does_not_fall_back_to_http():
    asked = Request("https://127.0.0.1/a")
    with pytest.raises(DownloadError, match=r"http://127\.0\.0\.1/a is refused"):
        _download.Redirects().redirect_request(
            asked, None, 301, "Moved", Message(), "http://127.0.0.1/a"
        )


@pytest.fixture
def secure(server, tmp_path, monkeypatch):
    """The server with a certificate that it made itself, and the file of that."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    options = ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]
    subprocess.run([*make.split(), *options], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.url = f"https://localhost:{server.server_port}/"
    monkeypatch.setattr(_download, "SCHEMES", ("https",))
    return server, certificate


def test_certificates_are_verified(secure, monkeypatch):
    server, certificate = secure
    server.answers["/a"] = TEXT
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(DownloadError, match="CERTIFICATE_VERIFY_FAILED"):
        _download.fetch(server.url + "a", LIMIT)
    assert server.asked == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert _download.fetch(server.url + "a", LIMIT) == TEXT
    server.answers["/b"] = redirect(f"http://localhost:{server.server_port}/a")
    with pytest.raises(DownloadError, match=r"http://localhost:\d+/a is refused"):
        _download.fetch(server.url + "b", LIMIT)


def test_every_home_is_https_and_bounded():
    for home in HOMES.values():
        assert home.base.startswith("https://") and home.base.endswith("/")
        assert len(home.content) == 64
        assert home.limit <= 50_000_000


# --- interruptions -------------------------------------------------------------------


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_an_interrupted_download_leaves_nothing(a1a, cache, monkeypatch):
    a1a(TEXT)
    monkeypatch.setattr(_download, "_body", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load("a1a", download=True)
    assert not cache.exists()


def test_an_interrupted_write_leaves_nothing(a1a, cache, monkeypatch):
    a1a(TEXT)

    def half(file, **arrays):
        file.write(b"PK")
        file.flush()
        assert len(list(cache.iterdir())) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(_arrays.np, "savez_compressed", half)
    with pytest.raises(KeyboardInterrupt):
        load("a1a", download=True)
    assert list(cache.iterdir()) == []


def test_an_older_file_outlives_an_interrupted_write(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    _arrays.write(path, {"X": X})
    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _arrays.write(path, {"X": X + 1})
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]
    np.testing.assert_array_equal(_arrays.read(path)["X"], X)


def test_a_cache_that_cannot_be_written_to(a1a, cache):
    cache.write_text("in the way")
    a1a(TEXT)
    with pytest.raises(
        DownloadError, match=r"could not be stored .* set GRAMIAN_CACHE to a folder"
    ):
        load("a1a", download=True)


def test_a_set_without_a_home_is_not_fetched(server, cache):
    with pytest.raises(
        DataMissingError, match="cannot be downloaded automatically, but is available at http"
    ):
        load_arrays("lfw", download=True)
    assert server.asked == []
