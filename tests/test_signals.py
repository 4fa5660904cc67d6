"""Ctrl-C during an import or a compilation waits for its end."""

import signal
import threading

import numpy as np
import pytest

from gramian.common.signals import undisturbed


def test_interrupt_is_delivered_at_the_end_of_the_block():
    done = []
    with pytest.raises(KeyboardInterrupt), undisturbed():
        signal.raise_signal(signal.SIGINT)
        done.append(1)
    assert done and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_and_handlers_are_left_alone(monkeypatch):
    worker = threading.Thread(target=lambda: undisturbed().__enter__())
    worker.start()
    worker.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)
    with undisturbed():
        pass


def test_interrupt_waits_for_a_compilation(monkeypatch):
    dispatcher = pytest.importorskip("numba.core.dispatcher")
    from gramian.arrays._kernels import compiled

    plain = dispatcher.Dispatcher.compile

    def interrupted(self, signature):
        signal.raise_signal(signal.SIGINT)
        return plain(self, signature)

    monkeypatch.setattr(dispatcher.Dispatcher, "compile", interrupted)
    kernel = compiled(lambda x: x + 1.0)
    with pytest.raises(KeyboardInterrupt):
        kernel(np.float64(1.0))
    assert kernel.signatures
