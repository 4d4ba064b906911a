"""What we start ends with us, however we end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from memboard.collector.process.bound_process import bound
from tests.collector.recordings import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone does it")

SLEEPS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"

STARTS = f"""
import subprocess, sys, time
from memboard.collector.process.bound_process import bound
child = subprocess.Popen(bound([sys.executable, "-c", {SLEEPS!r}]))
time.sleep(600)
"""


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_process_ends_with_its_parent(number):
    parent = subprocess.Popen(
        [sys.executable, "-c", STARTS], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert not is_gone(child)
    parent.send_signal(number)
    parent.wait()
    wait_until(lambda: is_gone(child))
    parent.stdout.close()


def test_a_process_whose_parent_has_ended_does_not_begin():
    command = bound([sys.executable, "-c", "print('begun')"])
    assert str(os.getpid()) in command
    others = [word.replace(str(os.getpid()), "1") for word in command]
    done = subprocess.run(others, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_process_is_the_program_itself():
    """By its number and its output, its environment and its exit code."""
    code = "import os, sys; print(os.getpid(), os.environ['WORD'], sys.argv[1:]); sys.exit(3)"
    process = subprocess.Popen(
        bound([sys.executable, "-c", code, "-x", "a b"]),
        env={**os.environ, "WORD": "said"},
        stdout=subprocess.PIPE,
        text=True,
    )
    said = process.communicate()[0]
    assert said == f"{process.pid} said ['-x', 'a b']\n"
    assert process.returncode == 3
