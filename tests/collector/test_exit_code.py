"""Recordings tell how a program ended, by each way to say that it failed."""

from __future__ import annotations

import builtins
import subprocess
import sys

import pytest

import memboard as mb
from tests import programs
from tests.collector.recordings import ONLY_STEPS, rank_files, read, read_only_file

HEAD = """
import sys, memboard as mb
from sys import exit as sys_exit
taken = lambda code: sys_exit(code)
rec = mb.record(sys.argv[1], oom=False)
rec.step()
"""


def ended(run_dir, code):
    """Its exit code, and how the recording says that it ended."""
    done = programs.run(HEAD + code, run_dir, check=False)
    close = read_only_file(run_dir).close
    return done.returncode, close.how, close.message


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("sys.exit(3)", (3, "exception", "SystemExit: 3")),
        ("sys.exit('no data')", (1, "exception", "SystemExit: no data")),
        ("exit(4)", (4, "exception", "SystemExit: 4")),
        (
            "import argparse\nargparse.ArgumentParser().parse_args(['--nope'])",
            (2, "exception", "SystemExit: 2"),
        ),
        (
            "def main():\n    try: sys.exit(3)\n    finally: print()\nmain()",
            (3, "exception", "SystemExit: 3"),
        ),
        (  # the exception is in a circle, which any thread may collect before the end
            (
                "import atexit, gc\natexit.register(lambda: gc.collect())\n"
                "def main():\n    try: sys.exit(3)\n    finally: print()\nmain()"
            ),
            (3, "exception", "SystemExit: 3"),
        ),
        (
            "try: sys.exit(3)\nexcept SystemExit: 1 / 0",
            (1, "exception", "ZeroDivisionError: division by zero"),
        ),
        ("sys.exit(0)", (0, "closed", "")),
        ("sys.exit()", (0, "closed", "")),
        ("", (0, "closed", "")),
        ("try: sys.exit(3)\nexcept SystemExit: pass", (0, "closed", "")),
        (
            "try: sys.exit(3)\nexcept SystemExit as error: kept = error",
            (0, "closed", ""),
        ),
        (
            (
                "import threading\n"
                "thread = threading.Thread(target=lambda: sys.exit(5))\n"
                "thread.start(); thread.join()"
            ),
            (0, "closed", ""),
        ),
        ("rec.close()\nsys.exit(3)", (3, "closed", "")),
        ("taken(3)", (3, "exception", "SystemExit: 3")),
        ("taken(0)", (0, "closed", "")),
        ("try: taken(3)\nexcept SystemExit: pass", (0, "closed", "")),
    ],
)
def test_an_exit_with_a_code_reads_as_such(tmp_path, code, expected):
    assert ended(tmp_path / "run", code) == expected


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python cannot tell")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise SystemExit(3)", (3, "exception", "SystemExit: 3")),
        (
            "def main(): raise SystemExit('no data')\nmain()",
            (1, "exception", "SystemExit: no data"),
        ),
        ("raise SystemExit(0)", (0, "closed", "")),
        ("raise SystemExit", (0, "closed", "")),
        ("try: raise SystemExit(3)\nexcept SystemExit: pass", (0, "closed", "")),
        ("1 / 0", (1, "exception", "ZeroDivisionError: division by zero")),
    ],
)
def test_a_bare_exit_with_a_code_reads_as_such(tmp_path, code, expected):
    assert ended(tmp_path / "run", code) == expected


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python cannot tell")
def test_nothing_is_watched_behind_the_last_recorder(tmp_path):
    def tools():
        return [sys.monitoring.get_tool(number) for number in range(6)]

    before = tools()
    with mb.record(tmp_path / "run", **ONLY_STEPS):
        assert tools().count("memboard") == 1
    assert tools() == before


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_process_of_multiprocessing_ends_its_own_recording(tmp_path):
    code = (
        "import multiprocessing, sys, memboard as mb\n"
        "def train(path, fail):\n"
        "    rec = mb.record(path, oom=False)\n"
        "    rec.step()\n"
        "    if fail == 'exit': sys.exit(3)\n"
        "    if fail: raise ValueError('odd')\n"
        "context = multiprocessing.get_context('fork')\n"
        "for name, fail in (('fails', 'exit'), ('raises', 'error'), ('ends', '')):\n"
        "    args = (f'{sys.argv[1]}/{name}', fail)\n"
        "    process = context.Process(target=train, args=args)\n"
        "    process.start(); process.join()\n"
        "    assert process.exitcode == {'exit': 3, 'error': 1, '': 0}[fail]\n"
    )
    programs.run(code, tmp_path)
    (fails,) = rank_files(tmp_path / "fails")
    (raises,) = rank_files(tmp_path / "raises")
    assert read(raises).close.message == "ValueError: odd"
    (ends,) = rank_files(tmp_path / "ends")
    assert read(fails).close.how == "exception"
    assert read(fails).close.message == "SystemExit: 3"
    assert read(ends).close.how == "closed"


def test_what_was_there_comes_back(tmp_path):
    before = sys.exit, builtins.exit, builtins.quit
    with mb.record(tmp_path / "run", **ONLY_STEPS):
        assert (sys.exit is before[0]) == (sys.version_info >= (3, 12))
        with pytest.raises(SystemExit) as raised:
            sys.exit(3)
        assert raised.value.code == 3
        assert raised.value.args == (3,)
    assert (sys.exit, builtins.exit, builtins.quit) == before


HELD = """
import gc, threading
from memboard.collector.process.exit_code import main_frame

wait = threading.Event()
for _ in range(200):
    threading.Thread(target=wait.wait, daemon=True).start()

def asked():
    for _ in range(50):
        gc.collect()
        gc.set_threshold(100)
        for _ in range(20):
            circle = {"local": threading.local()}
            circle["local"].mine = circle["itself"] = circle
        del circle
        assert main_frame() is not None
        gc.set_threshold(700)

thread = threading.Thread(target=asked)
thread.start()
thread.join()
print("asked", flush=True)
"""


def test_asking_for_the_main_threads_frame_waits_for_nobody():
    """Before Python 3.12 a collection within `sys._current_frames` can."""
    done = subprocess.run(
        [sys.executable, "-c", HELD], capture_output=True, timeout=60, check=False
    )
    assert done.stdout == b"asked\n"
