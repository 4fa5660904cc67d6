"""Requests to a page, and waiting for one in a browser."""

import http.client
import json
import time
from contextlib import suppress


def ask(page, method, place, given=None, *, token=None, **headers):
    """Status and answer of a request."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
    body = None if given is None else json.dumps(given)
    headers = {"Content-Type": "application/json", **headers}
    with suppress(BrokenPipeError):  # the server may refuse a large body before it is sent
        connection.request(method, f"/{token or page.token}/{place}", body, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    kind = answer.getheader("Content-Type")
    return answer.status, json.loads(content) if kind == "application/json" else content


def undo(page, told):
    """Request the state before the one that is shown."""
    return ask(page, "POST", "go", {"version": told["version"], "to": told["at"] - 1})


def until(browser, script, seconds=30.0):
    """Wait until a script says true."""
    end = time.perf_counter() + seconds
    while not browser.execute_script(f"return {script}"):
        assert time.perf_counter() < end, script
        time.sleep(0.05)
