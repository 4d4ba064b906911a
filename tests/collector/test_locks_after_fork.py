"""Locks that serve the whole process, in a child forked while a thread holds them.

That of `collector.sources.device.peak_wrapping` has its test there.
"""

from __future__ import annotations

import os
import signal
import threading

import pytest

from collector.history import recording
from collector.hooks import torch_calls
from collector.oom import device as oom_device


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    "module",
    [recording, oom_device, torch_calls],
)
def test_a_forked_child_has_a_lock_of_its_own(module):
    seen = []

    def fork():
        child = os.fork()
        if child == 0:
            signal.alarm(250)  # a child that hangs must not outlive the test
            with module._lock.now:
                os._exit(0)
        seen.append(os.waitpid(child, 0)[1])

    with module._lock.now:
        thread = threading.Thread(target=fork, daemon=True)
        thread.start()
        thread.join(300)
    assert seen == [0]
