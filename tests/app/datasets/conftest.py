"""A server on this machine that can misbehave, and a cache that is empty."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gramian.app.datasets import _download


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        answer = self.server.answers.get(self.path)
        try:
            if callable(answer):
                answer(self)
            elif answer is None:
                self.send_error(404)
            else:
                self.whole(answer)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has had enough

    def whole(self, body, announced=None):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) if announced is None else announced))
        self.end_headers()
        self.wfile.write(body)

    def redirect(self, target):
        self.send_response(302)
        self.send_header("Location", target)
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked = {}, []
        self.url = f"http://127.0.0.1:{self.server_port}/"
        self.stopping = threading.Event()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(_download, "SCHEMES", ("http",))
    monkeypatch.setenv("no_proxy", "*")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.stopping.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of downloads, and no other place that could have a set."""
    monkeypatch.delenv("GRAMIAN_DATA", raising=False)
    monkeypatch.setenv("GRAMIAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
