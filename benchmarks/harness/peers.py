"""Other software, each in its own virtual environment.

A peer is one script in ``benchmarks/peers/``. It names its requirements in a ``script`` block of
comments (the inline script metadata of PEP 723) and ends in ``exchange.serve(fn)``.
"""

import hashlib
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from benchmarks.harness import exchange
from benchmarks.harness.process import ChildResult, child_env, run_group

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "peers"
INSTALL_TIMEOUT = 1200.0

_METADATA = re.compile(r"(?m)^# /// script$\n(?P<toml>(?:^#.*$\n)+?)^# ///$")


_FAILED: set[str] = set()
"""Stamps of the peers whose installation failed in this process; it is not tried again."""

_INSTALLING = Lock()
"""Held while an environment is checked and set up: peers may be called side by side."""


class PeerUnavailableError(RuntimeError):
    """The environment of the peer cannot be set up."""


@dataclass(frozen=True)
class Peer:
    """A peer's name, pip requirements and script."""

    name: str
    requirements: tuple[str, ...]
    script: Path

    @property
    def stamp(self) -> str:
        """A hash of the requirements and the Python version."""
        text = "\n".join((sys.version, *self.requirements))
        return hashlib.sha256(text.encode()).hexdigest()


def find_peer(name: str, folder: Path = FOLDER) -> Peer:
    """The peer whose script is ``folder/name.py``."""
    script = folder / f"{name}.py"
    if not script.exists():
        known = ", ".join(sorted(path.stem for path in folder.glob("*.py"))) or "none"
        raise ValueError(f"no peer named {name!r}; the peers are: {known}")
    block = _METADATA.search(script.read_text())
    if block is None:
        raise ValueError(f"{script.name} has no '# /// script' block naming its dependencies")
    lines = (line.removeprefix("#").removeprefix(" ") for line in block["toml"].splitlines())
    metadata = tomllib.loads("\n".join(lines))
    return Peer(name, tuple(metadata["dependencies"]), script)


def run_peer(
    peer: Peer,
    kwargs: Mapping[str, Any],
    timeout: float | None = None,
    *,
    threads: int | None = None,
) -> ChildResult:
    """Call the peer with ``kwargs`` (arrays and JSON values); its value is a dict of such values.

    If the peer cannot be installed, fails or exceeds the time limit, the result has an ``error``.
    """
    try:
        with _INSTALLING:
            python = ensure_env(peer)
    except PeerUnavailableError as error:
        return ChildResult(error=str(error))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exchange.write(folder, "request", kwargs)
        env = child_env([str(ROOT)], threads)
        finished = run_group([str(python), str(peer.script), name], timeout, env)
        failure = finished.failure()
        if failure is not None:
            return failure
        return ChildResult(exchange.read(folder, "answer"), **exchange.read(folder, "cost"))


def ensure_env(peer: Peer, folder: Path = FOLDER / ".envs") -> Path:
    """The Python of the peer's environment, which is set up if missing or out of date."""
    env = folder / peer.name
    stamp = env / "requirements.sha256"
    if not (stamp.exists() and stamp.read_text() == peer.stamp):
        shutil.rmtree(env, ignore_errors=True)
        if peer.stamp in _FAILED:
            raise PeerUnavailableError(f"{peer.name} could not be installed")
        _install(peer, env)
        stamp.write_text(peer.stamp)
    return env / "bin" / "python"


def _install(peer: Peer, env: Path) -> None:
    pip = [str(env / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    for command in ([sys.executable, "-m", "venv", str(env)], [*pip, *peer.requirements]):
        finished = run_group(command, INSTALL_TIMEOUT, child_env([], None))
        if finished.failure() is not None:
            shutil.rmtree(env, ignore_errors=True)
            _FAILED.add(peer.stamp)
            # The log names hosts and paths, so it goes to the terminal only.
            print(finished.output, file=sys.stderr)
            raise PeerUnavailableError(f"{peer.name} could not be installed")
