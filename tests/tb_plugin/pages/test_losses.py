"""Steps that a recording lacks: one account, the same on the page and in every report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memboard.collector.format.records import Close, StepCounts
from memboard.tb_plugin.cli import main
from tests.builders import flip_bit
from tests.collector.recordings import read, record, wait_until
from tests.collector.writing.clockwork import (
    Clockwork,
    closed,
    only_file,
    rank_file,
    row,
)
from tests.recordings import Chunk, decoded
from tests.segmented import STEP, Written
from tests.tb_plugin.client import Page

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


@pytest.fixture
def report(capsys):
    """Runs `memboard report` and gives what it printed."""

    def printed(path: object, *options: str) -> str:
        main(["report", str(path), *options])
        return capsys.readouterr().out

    return printed


def losses_of(page: Page) -> list[dict]:
    return page.of_run("/overview", "exp")["losses"]


def missing_finding(page: Page) -> list[dict]:
    found = page.of_run("/findings", "exp")["findings"]
    return [one for one in found if one["key"] == "steps_missing"]


def lines_of(text: str) -> list[str]:
    return [line.strip(" -") for line in text.splitlines() if line.strip()]


def written(path: Path, num_steps: int, per_flush: int) -> int:
    """A rank's file of so many steps; where its chunks begin."""
    file = rank_file(path)
    rng = np.random.default_rng(0)
    for start in range(0, num_steps, per_flush):
        for step in range(start, min(num_steps, start + per_flush)):
            file.add_row(0, row(step, rng.random()))
        file.flush()
    closed(file)
    return read(path).chunk_offsets[0]


def test_a_whole_recording_lacks_nothing(tmp_path, report):
    with record(tmp_path / "exp") as rec:
        for _ in range(50):
            rec.step()
    page = Page(tmp_path)
    assert losses_of(page) == []
    assert missing_finding(page) == []
    assert "lack" not in report(tmp_path)


@given(
    at=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=30),
    per_flush=st.integers(5, 200),
)
@settings(max_examples=20, deadline=None)
def test_damage_is_counted_to_the_step(tmp_path_factory, at, per_flush):
    """Against what a reader of frames alone finds intact, wherever bits flip."""
    folder = tmp_path_factory.mktemp("flipped")
    path = folder / "exp/plugins/memboard/rank00000-20231114T221320001-00000000.events"
    first = written(path, 3000, per_flush)
    last = read(path).digest_offsets[-1]
    for share in at:
        flip_bit(path, first + int(share * (last - first)))
    intact = read(path).steps()
    missing = sorted(set(range(3000)) - set(intact))
    page = Page(folder)
    losses = losses_of(page)
    assert sum(one["num_damaged"] for one in losses) == len(missing)
    named = []
    for loss in losses:
        assert loss["num_steps"] == 3000
        assert (loss["num_dropped"], loss["num_unwritten"]) == (0, 0)
        for part in loss["damaged"]:
            low = 0 if part["first_step"] is None else part["first_step"]
            high = 2999 if part["last_step"] is None else part["last_step"]
            assert high - low + 1 == part["num_steps"]
            named += range(low, high + 1)
    assert sorted(named) == missing


@pytest.mark.parametrize("has_digest", [True, False])
def test_rows_whose_schema_is_lost_are_read_where_a_digest_repeats_it(
    run, tmp_path, has_digest
):
    rank = run.rank(0)
    rank.steps(range(200), rss_bytes=[300 * MIB] * 200)
    (schema,) = [start for kind, start, _ in rank.offsets if kind == "schema"]
    if has_digest:
        rank.digest()
    rank.digest()  # is damaged too, so that the file is read from its start
    (last, _) = [(start, end) for kind, start, end in rank.offsets if kind == "digest"][
        -1
    ]
    steps = StepCounts(taken=200, dropped=0, summed_up=0)
    rank.close(digest=False, steps=steps)
    for offset in (schema, last):
        flip_bit(rank.path, offset + 60)
    losses = losses_of(Page(tmp_path))
    if has_digest:
        assert losses == []
    else:
        (loss,) = losses
        assert loss["num_damaged"] == 200
        assert [one["phase"] for one in loss["damaged"]] == [""]
        (one,) = missing_finding(Page(tmp_path))
        assert "200 whose place is not known" in one["sentence"]


def test_every_form_says_the_same_and_equal_warnings_are_one(tmp_path, report):
    path = (
        tmp_path / "exp/plugins/memboard/rank00000-20231114T221320001-00000000.events"
    )
    written(path, 2000, 20)
    for offset in read(path).chunk_offsets[10:40:10]:
        flip_bit(path, offset + 40)
    account = (
        "60 of 2,000 steps: 60 damaged on disk (steps 200 to 219, steps 400 to 419,"
        " steps 600 to 619)"
    )
    page = Page(tmp_path)
    (one,) = missing_finding(page)
    assert one["sentence"] == f"Rank 0 lacks {account}."
    assert (one["severity"], one["step"]) == ("warning", 200)
    text, markdown = report(tmp_path), report(tmp_path, "--md")
    assert lines_of(text)[2] == f"Rank 0 lacks {account}."
    assert lines_of(markdown)[1] == f"Rank 0 lacks {account}."
    for form in (text, markdown):
        assert form.count("Rank 0 lacks") == 1
        assert form.count("is damaged") == 1
        assert "(3 times)" in form
    (run,) = json.loads(report(tmp_path, "--json"))["runs"]
    (loss,) = run["overview"]["losses"]
    assert (loss["num_steps"], loss["num_damaged"]) == (2000, 60)
    assert [one["first_step"] for one in loss["damaged"]] == [200, 400, 600]


def test_a_full_queue_is_warned_of_once_and_counted(tmp_path, caplog, report):
    clockwork = Clockwork(tmp_path / "exp", queue_rows=10)
    for step in range(25):
        clockwork.writer.put_row(0, row(step))
    with clockwork as writer:
        wait_until(lambda: "cannot take rows as fast" in caplog.text)
        for step in range(25, 60):
            writer.put_row(0, row(step))
    lost = 60 - len(read(only_file(tmp_path / "exp")).steps())
    assert lost >= 16
    assert caplog.text.count("cannot take rows as fast") == 1
    assert f"{lost} of 60 steps are not in" in caplog.text
    (loss,) = losses_of(Page(tmp_path))
    assert (loss["num_steps"], loss["num_dropped"]) == (60, lost)
    sentence = f"Rank 0 lacks {lost} of 60 steps: {lost} dropped in the queue"
    assert sentence in report(tmp_path)


def test_what_a_stuck_writer_drops_is_warned_of_by_training(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr("memboard.collector.writing.queues.rows._STUCK_SECONDS", 0.0)
    clockwork = Clockwork(tmp_path / "exp", queue_rows=10)  # its thread does not run
    for step in range(100):
        clockwork.writer.put_row(0, row(step))
    assert caplog.text.count("cannot take rows as fast") == 1


def test_what_was_not_written_at_the_end_is_counted(run, tmp_path, report):
    rank = run.rank(0)
    rank.steps(range(200), rss_bytes=[300 * MIB] * 200)
    steps = StepCounts(taken=950, dropped=50, summed_up=0)
    rank.close("exception", "ValueError: x", is_complete=False, steps=steps, step=950)
    (loss,) = losses_of(Page(tmp_path))
    assert (loss["num_dropped"], loss["num_unwritten"]) == (50, 700)
    assert not loss["is_stopped"]
    assert (
        "Rank 0 lacks 750 of 950 steps: 50 dropped in the queue, which was full; 700 not"
        " written when the program ended." in report(tmp_path)
    )


def test_of_a_killed_rank_nobody_knows_and_that_is_said(run, tmp_path, report):
    rank = run.rank(3, config={"flush_seconds": 4.0})
    rank.steps(range(200), step_time_seconds=[0.5] * 200)
    page = Page(tmp_path)
    (loss,) = losses_of(page)
    assert loss["is_stopped"]
    assert (loss["num_steps"], loss["cut_seconds"], loss["cut_steps"]) == (
        200,
        4.0,
        8.0,
    )
    assert missing_finding(page) == [], "how it ended is a finding of its own"
    line = (
        "Rank 3 stopped without closing the recording: up to the last 4 s (about 8 steps)"
        " may be missing; more if the disk hung."
    )
    assert lines_of(report(tmp_path))[2] == line


def test_several_ranks_are_one_line_and_one_finding(run, tmp_path, report):
    for number, dropped in ((0, 0), (1, 10), (2, 30)):
        rank = run.rank(number)
        rank.steps(range(200), rss_bytes=[300 * MIB] * 200)
        rank.close(steps=StepCounts(taken=200 + dropped, dropped=dropped, summed_up=0))
    page = Page(tmp_path)
    assert [one["rank"] for one in losses_of(page)] == [1, 2]
    (one,) = missing_finding(page)
    assert one["rank"] == 2
    assert one["sentence"].startswith("2 ranks lack 40 of 440 steps: 40 dropped")
    assert "Most on rank 2: 30 of 230 steps" in one["sentence"]
    assert len(one["others"]) == 1
    assert report(tmp_path).count("2 ranks lack") == 1


def test_what_is_only_summed_up_is_not_missing(tmp_path):
    path = (
        tmp_path / "exp/plugins/memboard/rank00000-20231114T221320001-00000000.events"
    )
    file = rank_file(path, 40_000)
    rng = np.random.default_rng(7)
    for step in range(5000):
        file.add_row(0, row(step, rng.random()))
        if step % 50 == 49:
            file.flush()
    kept = len(read(path).steps())
    file.close(Close(time_ns=1, how="closed", message="", steps=file.step_counts(0)))
    page = Page(tmp_path)
    (loss,) = losses_of(page)
    assert loss["num_summed_up"] == 5000 - kept
    assert (loss["num_dropped"], loss["num_unwritten"], loss["num_damaged"]) == (
        0,
        0,
        0,
    )
    assert missing_finding(page) == []


def num_steps_in(path: Path) -> int:
    """Steps in the chunks of one segment."""
    records = (record for _, record in decoded(path.read_bytes()))
    chunks = [one for one in records if isinstance(one, Chunk)]
    return sum(one.ref.num_rows for one in chunks if one.schema_id == STEP.schema_id)


def test_a_missing_segment_is_counted(tmp_path):
    recording = Written(tmp_path / "exp", segment_bytes=20_000).steps(3000).close()
    gone = recording.paths[1]
    missing = num_steps_in(gone)
    assert missing > 0
    gone.unlink()
    (loss,) = losses_of(Page(tmp_path))
    assert loss["num_damaged"] == missing
    (part,) = loss["damaged"]
    assert part["last_step"] - part["first_step"] + 1 == missing
