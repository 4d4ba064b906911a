"""Locks that serve the whole process, in a child forked while a thread holds them."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from memboard.collector.history import recording
from memboard.collector.hooks import torch_calls
from memboard.collector.oom import device as oom_device
from memboard.collector.sources.device import peak_wrapping
from memboard.collector.sources.device.peaks import PeakLedger


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    "lock",
    [
        recording._lock,
        oom_device._lock,
        torch_calls._lock,
        peak_wrapping._lock,
        PeakLedger(None)._lock,
    ],
)
def test_a_forked_child_has_a_lock_of_its_own(lock):
    seen = []

    def fork():
        child = os.fork()
        if child == 0:
            signal.alarm(250)  # a child that hangs must not outlive the test
            with lock.now:
                os._exit(0)
        seen.append(os.waitpid(child, 0)[1])

    with lock.now:
        thread = threading.Thread(target=fork, daemon=True)
        thread.start()
        thread.join(300)
    assert seen == [0]
