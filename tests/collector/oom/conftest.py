"""A stage per test; see `stage`."""

from __future__ import annotations

import sys
import threading

import pytest

from tests.collector.oom.stage import Stage, forget_observers


@pytest.fixture
def staged(monkeypatch):
    """Makes a stage of a cause and puts it in torch's place."""
    forget_observers(monkeypatch.setattr)

    def make(cause="really_full", seed=3):
        return Stage(cause, seed).install(monkeypatch.setattr)

    return make


@pytest.fixture(autouse=True)
def hooks_are_put_back():
    """No test may leave a hook of ours behind."""
    before = sys.excepthook, threading.excepthook
    yield
    assert (sys.excepthook, threading.excepthook) == before
