"""Files from the network: https only, bounded in size and in time, never unpacked to disk."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
import zlib
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from socket import socket
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from gramian.common import clock

SCHEMES = ("https",)
REDIRECTS = 5
SILENCE = 30.0
"""Seconds that a server may take to connect, or stay silent."""
PATIENCE = 600.0
"""Seconds that one file may take in all."""
CHUNK = 1 << 16


class DownloadError(RuntimeError):
    """A data set could not be had from its public home; nothing of it was kept."""


def fetch(url: str, limit: int) -> bytes:
    """The file at a URL, of at most `limit` bytes; held in memory, so nothing partial is left."""
    try:
        with _opened(url, clock.now() + PATIENCE) as response:
            return _body(response, url, limit)
    except (OSError, HTTPException, ValueError) as error:
        raise DownloadError(f"{url} could not be read ({error})") from error


def unpack(file: bytes, url: str, limit: int, member: str | None = None) -> bytes:
    """What a .gz or .bz2 file holds, or one member of a .zip file; other files as they are."""
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


def _opened(url: str, deadline: float) -> Any:
    """The response, after redirects that are each as good as the first URL."""
    opener = _opener(deadline)
    for _ in range(REDIRECTS + 1):
        if urlsplit(url).scheme not in SCHEMES:
            raise DownloadError(f"{url} is refused: only {' or '.join(SCHEMES)} is safe")
        try:
            return opener.open(Request(url, headers={"User-Agent": "gramian"}), timeout=SILENCE)
        except HTTPError as error:
            with error:
                target = error.headers.get("Location")
                if not 300 <= error.code < 400 or target is None:
                    raise DownloadError(f"{url} answered {error.code} {error.reason}") from None
            url = urljoin(url, target)
    raise DownloadError(f"there were more than {REDIRECTS} redirects, the last one to {url}")


def _body(response: Any, url: str, limit: int) -> bytes:
    announced = response.length
    if announced is not None and announced > limit:
        raise DownloadError(f"{url} announces {announced:,} bytes, more than {limit:,}")
    body = bytearray()
    while piece := response.read(CHUNK):
        body += piece
        if len(body) > limit:
            raise DownloadError(f"{url} sent more than {limit:,} bytes")
    if announced is not None and len(body) < announced:
        raise DownloadError(f"{url} was cut off after {len(body):,} of {announced:,} bytes")
    return bytes(body)


def _opener(deadline: float) -> OpenerDirector:
    """An opener that knows http and https and nothing else: no files, no ftp, no redirects."""
    opener = OpenerDirector()
    for handler in (
        ProxyHandler(),
        _Http(deadline),
        _Https(deadline),
        HTTPDefaultErrorHandler(),
        HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


class _Http(HTTPHandler):
    def __init__(self, deadline: float) -> None:
        super().__init__()
        self.deadline = deadline

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_connection, HTTPConnection, self.deadline), req)


class _Https(HTTPSHandler):
    def __init__(self, deadline: float) -> None:
        super().__init__()
        self.deadline = deadline

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_connection, HTTPSConnection, self.deadline), req)


def _connection(
    kind: type[HTTPConnection], deadline: float, host: str, **options: Any
) -> HTTPConnection:
    connection = kind(host, **options)
    connection.response_class = partial(_Response, deadline=deadline)  # type: ignore[assignment]
    return connection


class _Response(HTTPResponse):
    """A response whose every read, of headers too, ends by the deadline."""

    def __init__(self, sock: socket, *args: Any, deadline: float, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), sock, deadline))


class _Timed(io.RawIOBase):
    """A socket's stream; a timeout of the socket alone would let a trickle last for ever."""

    def __init__(self, stream: io.RawIOBase, sock: socket, deadline: float) -> None:
        self._stream, self._sock, self._deadline = stream, sock, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - clock.now()
        if left <= 0:
            raise TimeoutError(f"not done after {PATIENCE:g} seconds")
        self._sock.settimeout(min(left, SILENCE))
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()
