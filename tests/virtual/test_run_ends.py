"""`memboard run --on` leaves nothing running, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.collector.recordings import wait_until
from tests.collector.test_bound_process import is_gone
from tests.virtual.running import ROOT, python

HOLDS = """
import os, subprocess, sys, time
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
path = f"pids-{os.environ.get('RANK', '0')}"
with open(path + ".new", "w") as file:
    print(os.getpid(), helper.pid, file=file)
os.rename(path + ".new", path)
while True:
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        pass
"""

CASES = {
    "one": ["holds.py"],
    "ranks": ["--nproc", "2", "holds.py"],
    "single ranks": ["--world-size", "8", "--ranks", "0,7", "holds.py"],
    "sweep": ["--sweep", "x=1,2", "holds.py", "{x}"],
    "largest": ["--largest", "x", "holds.py", "{x}"],
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("case", CASES)
def test_what_it_started_ends_with_it(tmp_path, case, number):
    (tmp_path / "holds.py").write_text(HOLDS)
    command = [
        sys.executable,
        "-m",
        "memboard.tb_plugin.cli",
        "run",
        "--python",
        python(),
    ]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [*command, "--on", "24GiB,8.9", *CASES[case]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the terminal's Ctrl-C would reach all of them
    )
    num_processes = 2 if case == "ranks" else 1
    wait_until(
        lambda: (
            len(list(tmp_path.glob("pids-?"))) == num_processes
            or process.poll() is not None
        )
    )
    pids = [
        list(map(int, path.read_text().split())) for path in tmp_path.glob("pids-?")
    ]
    assert len(pids) == num_processes
    process.send_signal(number)
    process.wait()
    for child, helper in pids:
        wait_until(lambda child=child: is_gone(child))
        if number == signal.SIGKILL:
            os.kill(helper, signal.SIGKILL)  # the program's own affair
        else:
            wait_until(lambda helper=helper: is_gone(helper), 60)
    left = [path.name for path in tmp_path.glob("memboard-run-*")]
    assert bool(left) == (number == signal.SIGKILL)
