"""Round trips through files: two live processes whose clocks are shifted and drift."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from collector.clock import files
from collector.clock.exchange import Card, best_of
from collector.clock.files import Answerer, Asker
from collector.clock.process_clock import ProcessClock
from tb_plugin.analysis.clock_line import Reading, clock_line

ROOT = Path(__file__).parents[3]

ASKING = """
    import json, sys, threading, time
    from pathlib import Path
    from collector.clock import files
    from collector.clock.exchange import best_of
    from collector.clock.files import Asker
    from collector.clock.process_clock import ProcessClock

    folder, shift, ppm, begin = Path(sys.argv[1]), *map(int, sys.argv[2:])

    def mine():
        real = time.monotonic_ns()
        return real + shift + (real - begin) * ppm // 10**6

    # A busy machine may take long over an answer.
    files._FIRST_ANSWER_SECONDS = files._ANSWER_SECONDS = 250.0
    asker = Asker(folder, 3, ProcessClock(mine, mine), threading.Event())
    for _ in range(3):
        found = best_of(asker.ask(5), "files")
        print(json.dumps([found.at_ns, found.offset_ns, found.error_ns]), flush=True)
        time.sleep(0.3)
    print(json.dumps([asker.reference.host]))
"""


def plain_clock() -> ProcessClock:
    return ProcessClock(time.monotonic_ns, time.monotonic_ns)


@pytest.fixture
def served(tmp_path):
    """A directory in which rank 0 answers, on a host of its own."""
    stop = threading.Event()
    answerer = Answerer(tmp_path, lambda: Card("elsewhere", 0), plain_clock())
    thread = threading.Thread(target=answerer.serve, args=(stop,))
    thread.start()
    yield tmp_path
    stop.set()
    thread.join()


@pytest.mark.parametrize(
    ("shift", "ppm"), [(0, 0), (7_200 * 10**9, 100), (-(10**9), -150)]
)
def test_the_bound_of_two_live_processes_holds(served, shift, ppm):
    begin = time.monotonic_ns()
    asked = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(ASKING),
            str(served),
            *map(str, (shift, ppm, begin)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    *found, host = map(json.loads, asked.stdout.splitlines())
    assert host == ["elsewhere"]
    readings = [Reading(*map(int, one)) for one in found]
    assert len(readings) == 3

    def truth(at):
        """The offset when the drifting clock shows `at`."""
        real = begin + (at - shift - begin) * 10**6 // (10**6 + ppm)
        return real - at

    for reading in readings:
        assert abs(reading.offset_ns - truth(reading.at_ns)) <= reading.error_ns
    line = clock_line(readings)
    first, last = readings[0].at_ns, readings[-1].at_ns
    for at in range(first - 10**9, last + 10**9, 50_000_000):
        offset = line.at(at)
        assert abs(offset.offset_ns - truth(at)) <= offset.error_ns


def test_nobody_answers_and_nobody_waits_longer_than_told(tmp_path):
    asker = Asker(tmp_path / "not there", 1, plain_clock(), stopped_after(0.1))
    assert asker.ask(4) == []
    asker.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_an_earlier_start_left_behind_answers_nothing(tmp_path):
    answer = {"number": 5, "host": "x", "to_wall_ns": 0, "got_ns": 1, "answered_ns": 2}
    (tmp_path / "rank0000001.answer").write_text(json.dumps(answer))
    asker = Asker(tmp_path, 1, plain_clock(), stopped_after(0.1))
    assert asker.ask(1) == []
    assert asker.reference is None


def test_an_answer_that_is_half_another_one_answers_nothing(tmp_path, monkeypatch):
    """It is read while it is written: the number is new, the times are old."""
    monkeypatch.setattr(files.secrets, "randbits", lambda _bits: 7)
    names = ("number", "host", "to_wall_ns", "got_ns", "answered_ns", "again")
    halves = [dict(zip(names, (n, "x", 0, 1, 2, n), strict=True)) for n in (7, 6)]
    for first, second in (halves, halves[::-1]):
        torn = {**first, **dict(list(second.items())[2:])}
        (tmp_path / "rank0000001.answer").write_text(json.dumps(torn))
        asker = Asker(tmp_path, 1, plain_clock(), stopped_after(0.1))
        assert asker.ask(1) == []
    (tmp_path / "rank0000001.answer").write_text(json.dumps(halves[0]))
    assert len(Asker(tmp_path, 1, plain_clock(), threading.Event()).ask(1)) == 1


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"number": "5"}', b"\xff" * 600, b"[" * 512]
)
def test_files_of_nonsense_stop_nothing(served, content, monkeypatch):
    for limit in ("_FIRST_ANSWER_SECONDS", "_ANSWER_SECONDS"):
        monkeypatch.setattr(files, limit, 250.0)
    (served / "rank0000009.ask").write_bytes(content)
    (served / "rank0000001.answer").write_bytes(content)
    asker = Asker(served, 1, plain_clock(), threading.Event())
    trips = asker.ask(3)
    assert len(trips) == 3
    found = best_of(trips, "files")
    assert abs(found.offset_ns) <= found.error_ns


def stopped_after(seconds: float) -> threading.Event:
    stop = threading.Event()
    threading.Timer(seconds, stop.set).start()
    return stop


def test_who_gets_no_answer_looks_less_and_less_often(tmp_path, monkeypatch):
    pauses = []

    class Waits(threading.Event):
        def wait(self, timeout=None):
            pauses.append(timeout)
            return False

    monkeypatch.setattr(files, "time", SimpleNamespace(monotonic=lambda: sum(pauses)))
    asker = Asker(tmp_path, 1, plain_clock(), Waits())
    assert asker.ask(5) == []
    assert pauses[0] == files._POLL_SECONDS
    assert pauses == sorted(pauses)
    assert pauses[-1] == files._SLOW_POLL_SECONDS < files._EAGER_SECONDS
    assert 15 <= sum(pauses) < 15.1


def test_one_slow_look_is_no_reason_to_look_away(tmp_path, monkeypatch):
    costs, pauses, now = [2.0, 0.001, 0.04, 3.0, 5.0], [], [0.0]

    class Looks(Answerer):
        def _names(self):
            now[0] += costs[len(pauses)]
            return []

    class Waits(threading.Event):
        def wait(self, timeout=None):
            pauses.append(timeout)
            return False

        def is_set(self):
            return len(pauses) == len(costs)

    monkeypatch.setattr(files, "time", SimpleNamespace(monotonic=lambda: now[0]))
    Looks(tmp_path, lambda: Card("here", 0), plain_clock()).serve(Waits())
    assert pauses == pytest.approx([1.0, 1.0, 1.0, 2.0, 150.0])
