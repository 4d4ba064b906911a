"""One recording, written by the real writer as one file and as numbered segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memboard.collector.format.capture import encode_body
from memboard.collector.format.columns import AXES, STEP_TABLE, Column
from memboard.collector.format.names import RANK_FILES_DIR, rank_file_name
from memboard.collector.format.records import Capture, Close, Note, Schema
from memboard.collector.writing.rank_file import RankFile
from memboard.collector.writing.segments import SegmentPlan
from tests.builders import START_NS, make_header

if TYPE_CHECKING:
    from pathlib import Path

ATTEMPT = "20261120T101530123-1f2e3d4c"
STEP = Schema(
    schema_id=0,
    table=STEP_TABLE,
    phase="train",
    columns=(
        *AXES,
        Column(name="rss_bytes", unit="bytes", group="process", headline=True),
        Column(name="step_time_seconds", unit="seconds", group="timing", dtype="f4"),
    ),
)
HOST = Schema(
    schema_id=1,
    table="cpu",
    phase="train",
    columns=(*AXES, Column(name="cpu_total_pct", unit="percent", group="host")),
    interval_seconds=1.0,
)


_NOISE = np.random.default_rng(5).integers(2**30, 2**31, size=20_000)


def value_of(step: int) -> int:
    """The rss of a step: noise that does not deflate, the same each time."""
    return int(_NOISE[step])


class Written:
    """A recording under way. `segment_bytes` 0: one file."""

    def __init__(self, run_dir: Path, *, segment_bytes: int, rank: int = 0) -> None:
        self.folder = run_dir.joinpath(*RANK_FILES_DIR)
        self.finished: list[Path] = []
        plan = SegmentPlan(
            max_bytes=segment_bytes, seconds=1e9, finished=self.finished.append
        )
        header = make_header(rank, ATTEMPT, START_NS, job="", world_size=8)
        self.file = RankFile(max_bytes=0, segments=plan if segment_bytes else None)
        self.file.open(self.folder / rank_file_name(rank, ATTEMPT), header)
        self.file.add_schema(STEP)
        self.step = 0

    def steps(self, num_steps: int, *, per_flush: int = 20) -> Written:
        """Take steps; every 400 a note and a capture, and halfway another table."""
        for step in range(self.step, self.step + num_steps):
            now = START_NS + step * 10**8
            self.file.add_row(0, (now, step, value_of(step), step / 7))
            if step == 1000:
                self.file.add_schema(HOST)
            if step % 100 == 0 and step >= 1000:
                self.file.add_row(1, (now, step, step % 97))
            if step % 400 == 0:
                data = {"label": str(step)}
                self.file.notes.add(
                    Note(kind="mark", time_ns=now, step=step, data=data)
                )
                self.capture(step, now)
            if step % per_flush == 0:
                self.file.flush()
        self.step += num_steps
        self.file.flush()
        return self

    def capture(self, step: int, now: int) -> None:
        """A capture that says its step."""
        values = np.arange(200, dtype=np.int64) * (step + 1)
        capture = Capture(
            kind="modules",
            time_ns=now,
            step=step,
            phase="train",
            function="step",
            iteration=step,
            tables={"values": {"x": values}},
        )
        self.file.flush()
        assert self.file.write_capture(capture, encode_body(capture))

    def close(self) -> Written:
        """End it in order."""
        now = START_NS + self.step * 10**8
        self.file.close(Close(time_ns=now, how="closed", message=""))
        return self

    @property
    def paths(self) -> list[Path]:
        """Its files, in order."""
        return sorted(self.folder.glob("rank*.events"))
