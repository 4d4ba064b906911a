"""Fixtures of the readers' tests."""

from __future__ import annotations

import os
import threading

import pytest


@pytest.fixture
def read(monkeypatch):
    """How many bytes each read asked for; those of other threads are not these tests'."""
    asked: list[int] = []
    pread, reader = os.pread, threading.get_ident()

    def noted(descriptor: int, length: int, at: int) -> bytes:
        if threading.get_ident() == reader:
            asked.append(length)
        return pread(descriptor, length, at)

    monkeypatch.setattr(os, "pread", noted)
    return asked
