"""Kills recordings with SIGKILL at random moments and reads what they left.

    python -m tests.perf.kill_nine [rounds] [segments]

Each round starts a training that records a step every 2 ms and prints the last step it
took, kills it after a random while, and reads its file: reading must not raise, all
bytes but a torn tail must be intact, no step may be missing in the middle, and no more
than the last 2 s may be lost. With `segments` the file is cut ten times a second, and
all segments together must hold that. Prints one table.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memboard.collector.format.encoding.framing import Damage, read_frames
from memboard.collector.format.names import RANK_FILES_DIR
from memboard.collector.format.records import (
    CHUNK,
    decode_chunk,
    decode_chunk_ref,
    decode_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
BOUND_SECONDS = 2.0

# One process per round would be all interpreter start: a parent with everything loaded
# forks a fresh training for each round and waits for it.
NURSERY = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
import memboard as mb, memboard.collector.engine, torch
MORE = json.loads(sys.argv[2])
memboard.collector.engine.SEGMENT_SECONDS = 0.1

def train(run_dir):
    rec = mb.record(run_dir, config={**MORE, "host": 0.05})
    step = 0
    while True:
        rec.step(step, tokens=512)
        os.write(1, b"%d %d\\n" % (step, time.time_ns()))
        step += 1
        time.sleep(0.002)

for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        train(line.strip())
    os.write(1, b"pid %d\\n" % pid)
    os.waitpid(pid, 0)
    os.write(1, b"dead\\n")
"""


@dataclass(frozen=True)
class Round:
    """One killed training."""

    lived_seconds: float
    taken: int
    """Steps the training had taken when it died."""
    kept: int
    lost_seconds: float
    torn_bytes: int
    file_bytes: int


class Nursery:
    """Forks trainings on demand."""

    def __init__(self, **settings: object) -> None:
        self._settings = json.dumps(settings)

    def __enter__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-c", NURSERY, str(ROOT), self._settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(300)
        self._process.stdout.close()

    def live_and_die(
        self, run_dir: Path, seconds: float, until: Callable[[], bool] = lambda: True
    ) -> list[tuple[int, int]]:
        """Train for a while, and until something is so, be killed.

        Returns (step, wall ns) of each step taken.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{run_dir}\n".encode())
        self._process.stdin.flush()
        fd, text, pid = self._process.stdout.fileno(), b"", None
        first = None
        written = select.poll()  # select() takes file numbers below 1,024 only
        written.register(fd, select.POLLIN)
        while not text.endswith(b"dead\n"):
            if written.poll(5):
                text += os.read(fd, 1 << 16)
            if pid is None and b"pid " in text and b"\n" in text.split(b"pid ", 1)[1]:
                pid = int(text.split(b"pid ", 1)[1].split(b"\n", 1)[0])
            if first is None and pid is not None and text.count(b"\n") > 1:
                first = time.monotonic()
            if first is None or time.monotonic() - first <= seconds:
                continue
            if until():
                os.kill(int(pid or 0), signal.SIGKILL)
                seconds = float("inf")
        words = (line.split() for line in text.decode().splitlines())
        return [
            (int(pair[0]), int(pair[1]))
            for pair in words
            if len(pair) == 2 and pair[0] != "pid"
        ]


def files_of(run_dir: Path) -> list[Path]:
    """The rank's file, or its segments, the first one first."""
    return sorted(run_dir.joinpath(*RANK_FILES_DIR).glob("*.events"))


def has_steps(run_dir: Path) -> bool:
    """Whether any step of a training is on the disk."""
    return any(
        steps_in(list(read_frames(path.read_bytes()))) for path in files_of(run_dir)
    )


def steps_in(frames: list) -> list[int]:
    """The steps that a file's chunks hold."""
    schema_id = step_schema(frames)
    steps: list[int] = []
    for frame in frames:
        if not isinstance(frame, Damage) and frame.kind == CHUNK:
            ref, _ = decode_chunk_ref(frame.payload, frame.offset, frame.end)
            if ref.schema_id == schema_id:
                steps += decode_chunk(frame.payload, [1])[0].tolist()
    return steps


def judge(run_dir: Path, taken: list[tuple[int, int]], bound_seconds: float) -> Round:
    """Read what a killed training left; raises AssertionError where it broke its word."""
    files = files_of(run_dir)
    steps: list[int] = []
    torn = size = 0
    for path in files:
        data = path.read_bytes()
        size += len(data)
        frames = list(read_frames(data, last=True))
        for frame in frames:
            if isinstance(frame, Damage):
                is_end = frame is frames[-1] and path is files[-1]
                assert is_end, f"damage before the end: {frame}"
                torn = frame.end - frame.offset
            elif frame.kind:
                decode_record(frame.kind, frame.payload)
        steps += steps_in(frames)
    assert steps == list(range(len(steps))), "a step is missing in the middle"
    died_ns = taken[-1][1]
    lost = [wall_ns for step, wall_ns in taken if step >= len(steps)]
    lost_seconds = (died_ns - lost[0]) / 1e9 if lost else 0.0
    assert lost_seconds <= bound_seconds, f"the last {lost_seconds:.2f} s are lost"
    return Round(
        lived_seconds=(died_ns - taken[0][1]) / 1e9,
        taken=len(taken),
        kept=len(steps),
        lost_seconds=lost_seconds,
        torn_bytes=torn,
        file_bytes=size,
    )


def step_schema(frames: list) -> int | None:
    """Id of the step table's schema."""
    for frame in frames:
        if not isinstance(frame, Damage) and frame.kind in ("schema", "segment"):
            record = decode_record(frame.kind, frame.payload)
            for schema in getattr(record, "schemas", (record,)):
                if schema.table == "step":
                    return schema.schema_id
    return None


def run(
    num_rounds: int,
    *,
    longest_seconds: float = 4.0,
    seed: int = 0,
    segments: bool = False,
    bound_seconds: float = BOUND_SECONDS,
    with_steps: bool = False,
) -> list[Round]:
    """Kill that many trainings; AssertionError at the first that breaks its word.

    `with_steps`: every second one lives until steps of it are on the disk.
    """
    moments = random.Random(seed)
    rounds = []
    settings = {"segments": True} if segments else {}
    with tempfile.TemporaryDirectory() as folder, Nursery(**settings) as nursery:
        for number in range(num_rounds):
            run_dir = Path(folder) / f"run{number}"
            seconds = moments.uniform(0, longest_seconds)
            more = (
                {"until": partial(has_steps, run_dir)}
                if with_steps and number % 2
                else {}
            )
            taken = nursery.live_and_die(run_dir, seconds, **more)
            rounds.append(judge(run_dir, taken, bound_seconds))
    return rounds


def main() -> None:
    num_rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    is_cut = "segments" in sys.argv
    rounds = run(num_rounds, segments=is_cut)
    what = "recordings in segments" if is_cut else "recordings"
    print(f"{num_rounds} {what} killed with SIGKILL, one step each 2 ms")
    print(f"{'':24}{'median':>12}{'highest':>12}")
    for name, values, unit in (
        ("lived", [r.lived_seconds for r in rounds], "s"),
        ("steps taken", [r.taken for r in rounds], ""),
        ("steps kept", [r.kept for r in rounds], ""),
        ("lost at the end", [r.lost_seconds for r in rounds], "s"),
        ("torn tail", [r.torn_bytes for r in rounds], "B"),
        ("files", [r.file_bytes for r in rounds], "B"),
    ):
        print(f"{name:24}{statistics.median(values):>12.2f}{max(values):>12.2f} {unit}")
    print("unreadable files: 0, gaps: 0 (either would have ended this run)")


if __name__ == "__main__":
    main()
