"""Steps that torch's profiler lengthens are marked, and no median or finding counts them.

A training and its profiler are played on a clock of their own: what each of them does
takes its time when it comes, as in a recorder, and nothing of the rule is used.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from memboard.tb_plugin.facts.ranks import rank_facts
from memboard.tb_plugin.formats.recording.captures import reading
from tests.builders import START_NS, RunBuilder
from tests.tb_plugin.client import Page, refresh

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders import RankBuilder

WAIT, WARMUP, ACTIVE = 20, 2, 3
STOP_MS, WRITE_MS = 300.0, 150.0


class Player:
    """Plays steps of about 100 ms and a schedule of cycles, one thread, one clock."""

    def __init__(
        self,
        num_steps: int,
        *,
        profiles: bool = True,
        ahead_ms: float = 0.0,
        begins_ms=(400.0, 60.0),
    ):
        self.dice = random.Random(7)
        self.now_ms = 0.0
        self.ends_ms: list[float] = []
        self.slowed: dict[int, str] = {}
        self.traces: list[dict[str, int]] = []
        writing_ms = 0.0
        for step in range(num_steps):
            place = step % (WAIT + WARMUP + ACTIVE)
            if profiles and place == WAIT:
                self.spend(step, "start", begins_ms[0])
            if profiles and place == WAIT + WARMUP:
                self.spend(step, "start", begins_ms[1])
            if writing_ms > 0:  # every other moment is the writer's
                self.spend(step, "save", min(50.0, writing_ms))
                writing_ms -= 50.0
            self.now_ms += 100 * (1 + 0.02 * self.dice.uniform(-1, 1))
            self.ends_ms.append(self.now_ms)
            if profiles and place == WAIT + WARMUP + ACTIVE - 1:
                self.traces.append({
                    "first_step": step - ACTIVE + 1,
                    "last_step": step,
                    "end_ns": self.ns(self.now_ms + ahead_ms),
                    "stop_us": round(1000 * STOP_MS),
                })  # fmt: skip
                self.spend(step + 1, "stop", STOP_MS)
                writing_ms = WRITE_MS

    def spend(self, step: int, what: str, ms: float) -> None:
        self.now_ms += ms
        if ms > 0:
            self.slowed.setdefault(step, what)

    @staticmethod
    def ns(ms: float) -> int:
        return START_NS + round(ms * 1e6)

    def write(
        self, folder: Path, *, says: bool = True, rows_per_chunk: int = 50
    ) -> Page:
        file = self.begin(folder)
        steps = range(len(self.ends_ms))
        self.record(file, steps, says=says, rows_per_chunk=rows_per_chunk)
        file.close()
        return Page(folder)

    @staticmethod
    def begin(folder: Path) -> RankBuilder:
        schedule = {"unit": "call", "wait": WAIT, "warmup": WARMUP, "active": ACTIVE}
        return RunBuilder(folder).rank(0, config={"schedule": schedule})

    def record(
        self,
        file: RankBuilder,
        steps: range,
        *,
        says: bool = True,
        rows_per_chunk: int = 50,
    ) -> None:
        befores = [0.0, *self.ends_ms]
        file.steps(
            steps,
            times=[self.ns(self.ends_ms[step]) for step in steps],
            step_time_seconds=[
                (self.ends_ms[step] - befores[step]) / 1e3 for step in steps
            ],
            rows_per_chunk=rows_per_chunk,
        )
        for cycle, meta in enumerate(self.traces if says else ()):
            if meta["last_step"] in steps:
                file.capture(
                    "trace",
                    meta=meta,
                    step=meta["last_step"],
                    time_ns=meta["end_ns"],
                    iteration=cycle + 1,
                )


def marked(page: Page) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for one in page.of_run("/steps", px=2000)["profiler_steps"]:
        for step in range(one["first"], one["last"] + 1):
            found.setdefault(step, set()).add(one["what"])
    return found


@pytest.mark.parametrize("ahead_ms", [0.0, -50.0, 50.0], ids=["same", "late", "ahead"])
def test_every_step_the_profiler_lengthened_is_marked(tmp_path: Path, ahead_ms: float):
    """Also where torch's clock and that of the rows are not the same."""
    player = Player(101, ahead_ms=ahead_ms)
    found = marked(player.write(tmp_path))
    for step, what in player.slowed.items():
        assert what in found.get(step, set()), step
    # Writing may be over earlier than it is taken to be: few more are left out.
    assert len(found) <= len(player.slowed) + 2 * len(player.traces)


def test_medians_and_findings_are_those_of_a_training_without_a_profiler(
    tmp_path: Path,
):
    player = Player(250, begins_ms=(0, 0))
    told = player.write(tmp_path / "told").of_run("/stragglers")
    untold = player.write(tmp_path / "untold", says=False).of_run("/stragglers")
    assert "slow_every_n" in {one["key"] for one in untold["findings"]}
    assert told["findings"] == []
    assert told["step_seconds"] == pytest.approx(0.100, rel=0.01)
    told_steps = re.search(
        r"\. ([\d,]+) of 250 steps are not counted", told["sentence"]
    )
    assert told_steps is not None
    assert int(told_steps[1]) >= len(player.slowed)


def test_throughput_is_the_median_of_the_other_steps(tmp_path: Path):
    page = Player(100).write(tmp_path)
    (rate,) = page.of_run("/steps", px=2000)["rates"]
    assert rate["median"] == pytest.approx(10, rel=0.02)


def test_a_training_that_is_profiled_nearly_always_keeps_its_medians(tmp_path: Path):
    player = Player(40, profiles=False)
    player.traces = [
        {"first_step": step, "last_step": step, "end_ns": 0, "stop_us": 0}
        for step in range(2, 38)
    ]
    found = player.write(tmp_path).of_run("/stragglers")
    assert "not counted" not in found["sentence"]
    assert found["step_seconds"] == pytest.approx(0.100, rel=0.05)


def test_captures_mark_the_step_they_are_taken_in(tmp_path: Path):
    file = RunBuilder(tmp_path).rank(0)
    file.steps(range(30), step_time_seconds=[0.1] * 30)
    file.capture("hooks", step=3)
    file.capture("history", step=10, context="end")
    file.capture("history", function="", step=15)
    file.capture("history", step=18, context="oom", label="oom")
    file.capture("spans", function="", step=20)
    file.capture("modules", step=5, phase="eval")
    file.capture("trace", step=25, meta={"first_step": "x", "last_step": -1})
    file.close()
    assert marked(Page(tmp_path)) == {step: {"capture"} for step in (3, 11, 15)}


def test_steps_that_ran_again_are_marked_where_they_ran_last(tmp_path: Path):
    run = RunBuilder(tmp_path)
    first = run.rank(0)
    first.steps(range(20), step_time_seconds=[0.1] * 20)
    first.capture("hooks", step=5)
    first.capture("hooks", step=15)
    first.close()
    again = run.rank(0, attempt=1)
    again.steps(range(10, 30), step_time_seconds=[0.1] * 20)
    again.close()
    assert marked(Page(tmp_path)) == {5: {"capture"}}


def test_each_trace_is_decoded_once_while_the_run_goes_on(tmp_path: Path, monkeypatch):
    """For all pages together, however many digests come."""
    num_decoded: Counter[int] = Counter()
    decode_capture = reading.decode_capture

    def counted(parts, wanted):
        capture = decode_capture(parts, wanted)
        num_decoded[capture.iteration] += 1
        return capture

    monkeypatch.setattr(reading, "decode_capture", counted)
    player = Player(250)
    file, page = player.begin(tmp_path), Page(tmp_path)
    for first in range(0, 250, 50):
        player.record(file, range(first, first + 50))
        file.digest()
        refresh(page)
        for route in ("/overview", "/steps", "/stragglers", "/timeline", "/trace"):
            page.of_run(route)
    assert num_decoded == Counter(range(1, len(player.traces) + 1))


def test_a_step_s_time_is_right_once_all_traces_were_read(tmp_path: Path, monkeypatch):
    def step_time(page: Page) -> float:
        headlines = page.of_run("/overview")["headlines"]
        by_key = {headline["key"]: headline["value"] for headline in headlines}
        value: float = by_key["step_time"]
        return value

    right = step_time(Player(250).write(tmp_path / "whole"))
    page = Player(250).write(tmp_path / "late")
    monkeypatch.setattr(rank_facts, "_CAPTURES_SECONDS", -1.0)
    assert step_time(page) > right
    monkeypatch.undo()
    assert step_time(page) == right
