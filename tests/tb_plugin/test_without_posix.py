"""The viewer where the system is another one: no fork, no locks, no limits, no users.

Windows lacks these modules and functions; here they are taken away before anything of ours
is imported. What MemBoard starts to read a file is an interpreter of its own then.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from http.cookiejar import CookieJar

import pytest

from tests.programs import ROOT
from tests.simulate import oom_case

PROGRAM = """
import os, sys
import psutil  # Linux's needs what Windows' does without
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("fork", "forkpty", "geteuid", "getuid", "nice", "killpg"):
    delattr(os, name)
from memboard.tb_plugin.cli import main
sys.exit(main(sys.argv[1:]))
"""


def program(*words: object) -> list[str]:
    return [sys.executable, "-c", PROGRAM, *map(str, words)]


def said(*words: object) -> str:
    return subprocess.run(
        program(*words), check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout


@pytest.fixture
def dumped(tmp_path):
    oom_case("fragmented", 7).write(tmp_path)
    return tmp_path


def test_a_snapshot_is_reported(dumped):
    assert "Out of memory: fragmentation" in said("report", dumped)


def test_a_simulated_run_is_written_and_reported(tmp_path):
    demo = ("demo", "--no-serve", "--simulate", 4, "--steps", 60, "--out", tmp_path)
    said(*demo)
    (run,) = json.loads(said("report", tmp_path, "--json"))["runs"]
    assert run["run"]["num_ranks"] == 4


def test_files_are_served(dumped):
    command = program("open", "--no-browser", dumped)
    with (
        subprocess.Popen(command, stdout=-1, text=True, cwd=ROOT) as server,
        ExitStack() as ending,
    ):
        ending.callback(server.terminate)
        (url,) = re.findall(r"http\S+", server.stdout.readline())
        cookies = urllib.request.HTTPCookieProcessor(CookieJar())
        browser = urllib.request.build_opener(cookies)
        with browser.open(url) as page:
            assert b"<title>" in page.read()
        place = re.match(r"(http://[^/?#]+/)", url)[1]
        with browser.open(f"{place}data/plugin/memboard/runs") as runs:
            assert b'"made_of":"snapshots"' in runs.read()
