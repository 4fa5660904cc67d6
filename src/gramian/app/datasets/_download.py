"""Downloads: https only, limited in size and time, never unpacked to disk."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
import zlib
from http.client import HTTPException
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from gramian.common import clock

SCHEMES = ("https",)
SILENCE = 30.0
"""Seconds that a server may take to connect or to send the next bytes."""
PATIENCE = 600.0
"""Seconds that one file may take in all."""


class DownloadError(RuntimeError):
    """A data set could not be downloaded; no part of it was stored."""


class Redirects(HTTPRedirectHandler):
    """Follows redirects to safe addresses only."""

    def redirect_request(self, req: Request, *given: Any) -> Request | None:
        _check_scheme(given[-1])
        return super().redirect_request(req, *given)


def fetch(url: str, limit: int) -> bytes:
    """The file at a URL, of at most `limit` bytes; in memory, so no partial file remains."""
    _check_scheme(url)
    request = Request(url, headers={"User-Agent": "gramian"})
    try:
        with build_opener(Redirects).open(request, timeout=SILENCE) as response:
            return _body(response, url, limit)
    except HTTPError as error:
        with error:
            raise DownloadError(f"{url} answered {error.code} {error.reason}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise DownloadError(f"{url} could not be read ({error})") from error


def _check_scheme(url: str) -> None:
    if urlsplit(url).scheme not in SCHEMES:
        raise DownloadError(f"{url} is refused: only {' or '.join(SCHEMES)} is safe")


def _body(response: Any, url: str, limit: int) -> bytes:
    announced, deadline = response.length, clock.now() + PATIENCE
    if announced is not None and announced > limit:
        raise DownloadError(f"{url} announces {announced:,} bytes, more than {limit:,}")
    body = bytearray()
    while piece := response.read1(1 << 16):  # `read` would wait for all of these bytes
        body += piece
        if len(body) > limit:
            raise DownloadError(f"{url} sent more than {limit:,} bytes")
        if clock.now() > deadline:
            raise DownloadError(f"{url} was not read after {PATIENCE:g} seconds")
    if announced is not None and len(body) < announced:
        raise DownloadError(f"{url} was cut off after {len(body):,} of {announced:,} bytes")
    return bytes(body)


def unpack(file: bytes, url: str, limit: int, member: str | None = None) -> bytes:
    """The content of a .gz or .bz2 file, or one member of a .zip file; other files unchanged."""
    try:
        with _unpacker(file, url, member) as stream:
            content = stream.read(limit + 1)
    except KeyError as error:
        raise DownloadError(f"there is no {member} in {url}") from error
    except (
        EOFError, NotImplementedError, OSError, RuntimeError, ValueError, zipfile.BadZipFile,
        zlib.error,
    ) as error:  # fmt: skip
        raise DownloadError(f"{url} could not be unpacked ({error})") from error
    if len(content) > limit:
        raise DownloadError(f"{url} unpacks to more than {limit:,} bytes, which is too much")
    return content


def _unpacker(file: bytes, url: str, member: str | None) -> IO[bytes] | gzip.GzipFile:
    packed = io.BytesIO(file)
    if member is not None:
        return zipfile.ZipFile(packed).open(member)
    if url.endswith(".gz"):
        return gzip.open(packed)
    if url.endswith(".bz2"):
        return bz2.open(packed)
    return packed
