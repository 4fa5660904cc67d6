"""The server of a page: local, at an address with a token, for no other origin."""

from __future__ import annotations

import io
import json
import re
import secrets
import signal
import tempfile
from collections.abc import Callable
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from socket import socket
from threading import Semaphore, Thread
from typing import Any

from gramian.common import clock

MOST = 1_000_000
"""Size limit of a request in bytes: the numbers of 50,000 selected samples take 350,000."""

REQUEST_SECONDS = 30.0
"""Time limit in seconds to receive a request, and to send its answer."""

MOST_CONNECTIONS = 64
"""Connections that are open at a time."""

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


KINDS = {"csv": "text/csv; charset=utf-8", "gramian": "application/octet-stream"}
"""The content types of downloads, by their endings."""


class Page:
    """A session that is served at a local address.

    Parameters
    ----------
    session : Session, MetricSession or RatingSession
    title : str
    before : fitted pipeline, optional
        The steps that transformed the samples before the session, saved before its model.
    port : int
        0 selects a free port.

    Attributes
    ----------
    url : str
        The address, with a token that no other page can guess.
    """

    def __init__(
        self,
        session: Any,
        *,
        title: str = "samples",
        before: Any = None,
        port: int = 0,
    ) -> None:
        self.session, self.title, self.before = session, title, before
        self.token = secrets.token_urlsafe(24)
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}/{self.token}/"
        self._thread: Thread | None = None

    def start(self) -> Page:
        """Serve from a thread of its own."""
        self._thread = Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()
        return self

    def wait(self, ready: Callable[[], None]) -> None:
        """Call `ready`, and serve until Ctrl-C or SIGTERM; in the main thread only."""
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            ready()
            self._server.serve_forever(0.2)
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGTERM, before)
            self._server.server_close()

    def stop(self) -> None:
        """Stop the server."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.server_close()

    def __enter__(self) -> Page:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank">{self.url}</a>'

    # --- answers -----------------------------------------------------------------------

    def shown(self) -> bytes:
        """The page with its styles, its scripts and the part of the session that is constant."""
        folder = files("gramian.app.explorer")
        text = folder.joinpath(self.session.template).read_text("utf-8")
        text = re.sub(
            r"/\*include ([\w.]+)\*/", lambda m: folder.joinpath(m[1]).read_text("utf-8"), text
        )
        fixed = {"title": self.title, **self.session.fixed()}
        data = json.dumps(fixed).replace("<", "\\u003c")
        return text.replace("/*FIXED*/null", data).encode()

    def change(self, action: str, given: dict[str, Any]) -> dict[str, Any]:
        """Make a change, and return the state after it."""
        self.session.change(action, given)
        return self.session.state()

    def download(self, name: str) -> bytes:
        """A file to download."""
        found = self.session.download(name)
        if found is not None:
            return found
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            self.session.save(path, self.before)
            return path.read_bytes()


class _Server(ThreadingHTTPServer):
    """A thread for each connection, up to `MOST_CONNECTIONS`."""

    daemon_threads = True

    def __init__(self, *given: Any) -> None:
        self._free = Semaphore(MOST_CONNECTIONS)
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; close the connection if too many are open."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()


class _Arriving(io.RawIOBase):
    """The bytes of a connection, with a deadline for all reads together."""

    def __init__(self, connection: socket) -> None:
        self.connection, self.deadline = connection, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - clock.now()
        if left <= 0:
            raise TimeoutError("the request did not arrive in time")
        self.connection.settimeout(left)
        return self.connection.recv_into(buffer)


def _handler(page: Page) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers requests of the page; all others are not found."""

        server_version, sys_version = "gramian", ""
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.rfile.close()
            self._arriving = _Arriving(self.connection)
            self.rfile = io.BufferedReader(self._arriving)

        def handle_one_request(self) -> None:
            """Handle a request; close the connection if it is not complete before the deadline."""
            self._arriving.deadline = clock.now() + REQUEST_SECONDS
            super().handle_one_request()

        def do_GET(self) -> None:
            place = self._place()
            if place is None:
                return
            if place == "":
                self._answer(HTTPStatus.OK, "text/html; charset=utf-8", page.shown())
            elif place == "version":
                self._json(HTTPStatus.OK, {"version": page.session.version})
            elif place in ("state", "question", "layout") and hasattr(page.session, place):
                self._reply(getattr(page.session, place))
            elif re.fullmatch(r"card/\d{1,9}", place) and hasattr(page.session, "card"):
                self._reply(lambda: page.session.card(int(place[5:])))
            elif place in page.session.files:
                self._reply(lambda: page.download(place), place)
            else:
                self._json(HTTPStatus.NOT_FOUND, {"error": "not found"})

        def do_POST(self) -> None:
            place = self._place()
            if place is None:
                return
            length = self.headers.get("Content-Length", "")
            kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
            if not length.isdigit() or int(length) > MOST or kind != "application/json":
                self.close_connection = True
                self._json(HTTPStatus.BAD_REQUEST, {"error": "a short JSON object is expected"})
                return
            try:
                given = json.loads(self.rfile.read(int(length)) or b"{}")
            except (ValueError, RecursionError):
                given = None
            if not isinstance(given, dict):
                self._json(HTTPStatus.BAD_REQUEST, {"error": "a JSON object is expected"})
                return
            self._reply(lambda: page.change(place, given))

        def _place(self) -> str | None:
            """The path after the token; None if the request is not from our page."""
            own = {f"127.0.0.1:{page.port}", f"localhost:{page.port}"}
            origin = self.headers.get("Origin")
            from_us = origin is None or origin.removeprefix("http://") in own
            path = self.path.partition("?")[0].encode("utf-8", "replace")
            start = f"/{page.token}/".encode()
            ours = compare_digest(path[: len(start)], start)
            if self.headers.get("Host") not in own or not from_us or not ours:
                self.close_connection = True
                self._json(HTTPStatus.FORBIDDEN, {"error": "this address is not known here"})
                return None
            return path[len(start) :].decode("utf-8", "replace")

        def _reply(self, make: Callable[[], Any], keep_as: str | None = None) -> None:
            """Answer with the result of a function, or with the message of its error."""
            try:
                found = make()
            except (ValueError, TypeError, TimeoutError) as refusal:
                self._json(HTTPStatus.CONFLICT, {"error": str(refusal)})
                return
            if keep_as is None:
                self._json(HTTPStatus.OK, found)
            else:
                kind = KINDS[keep_as.rpartition(".")[2]]
                self._answer(HTTPStatus.OK, kind, found, keep_as)

        def _json(self, status: HTTPStatus, content: dict[str, Any]) -> None:
            self._answer(status, "application/json", json.dumps(content).encode())

        def _answer(
            self, status: HTTPStatus, kind: str, content: bytes, keep_as: str | None = None
        ) -> None:
            self.connection.settimeout(REQUEST_SECONDS)
            headers = {
                "Content-Type": kind,
                "Content-Length": str(len(content)),
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
                "Content-Security-Policy": POLICY,
            }
            if keep_as is not None:
                headers["Content-Disposition"] = f'attachment; filename="{keep_as}"'
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing is logged: the token is in every address."""

    return Handler
