"""The TensorBoard beside a command ends with it, whatever happens."""

from __future__ import annotations

import pytest

from collector.cli.tensorboard import Server, serving


def test_what_fails_while_it_starts_stops_it(tmp_path, monkeypatch):
    processes = []

    def stopped(self):
        processes.append(self._process)
        stop(self)

    stop = Server.stop
    monkeypatch.setattr(Server, "stop", stopped)

    def start(self, remedy):
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "start", start)
    with pytest.raises(KeyboardInterrupt), serving(tmp_path, 0):
        raise AssertionError("it went on")
    (process,) = processes
    assert process.poll() is not None
