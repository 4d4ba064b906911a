"""A recording that is mirrored: as it goes, at its end, and what follows it."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import fsspec
import pytest

import memboard as mb
from memboard.collector.errors import ConfigError
from memboard.collector.format.names import MERGED_TRACE
from memboard.tb_plugin.cli.opening import read_whole, run_of_file
from tests.collector.mirror.conftest import files_in, who
from tests.collector.recordings import ONLY_STEPS, wait_until


def step_until(rec, condition, seconds=300.0) -> None:
    """Train a few steps, and until something has come true."""
    deadline = time.monotonic() + seconds
    num_steps = 0
    while num_steps < 10 or not condition():
        assert time.monotonic() < deadline, "trained in vain"
        rec.step()
        num_steps += 1
        time.sleep(0.01)


def test_a_recording_is_mirrored_as_it_goes(tmp_path, there, monkeypatch):
    monkeypatch.setattr("memboard.collector.engine.SEGMENT_SECONDS", 0.2)
    run_dir = tmp_path / "exp1"
    config = {**ONLY_STEPS, "remote": f"file://{there}/{{run_name}}"}
    with mb.record(run_dir, config=config) as rec:
        step_until(rec, lambda: list(there.rglob("*.0001.events")))
        copied = {path.name for path in there.rglob("*.events")}
        assert copied < {path.name for path in run_dir.rglob("*.events")}
    here, copied = files_in(run_dir), files_in(there / "exp1")
    assert here == copied
    assert any("tfevents" in name for name in copied)
    assert len([name for name in copied if name.endswith(".events")]) > 2


def test_a_rank_that_turns_out_to_be_another_leaves_one_recording(
    tmp_path, there, monkeypatch
):
    """As where `init_process_group` comes long after the recording's start."""
    known = [who(rank=0, world_size=1, settled=False)]
    monkeypatch.setattr("memboard.collector.engine.SEGMENT_SECONDS", 0.1)
    monkeypatch.setattr("memboard.collector.engine.identify", lambda _config: known[0])
    run_dir = tmp_path / "exp1"
    config = {**ONLY_STEPS, "remote": f"file://{there}/{{run_name}}"}
    with mb.record(run_dir, config=config) as rec:
        step_until(rec, lambda: list(there.rglob("rank00000*.0001.events")))
        known[0] = who(rank=3)
        step_until(rec, lambda: list(there.rglob("rank00003*.events")))
    assert files_in(there / "exp1") == files_in(run_dir)
    run = run_of_file(max(there.rglob("rank00003*.events")))
    read_whole(run)
    assert (run.ranks, run.problems) == ([3], ())


def test_the_merged_trace_follows_when_it_is_made(tmp_path, there):
    """A process of its own makes it after the end, and takes it to the mirror."""
    config = {**ONLY_STEPS, "spans": True, "merge_on_close": True}
    config["remote"] = f"file://{there}"
    with mb.record(tmp_path / "exp1", config=config) as rec:
        for _ in range(3):
            with rec.span("work"):
                rec.step()
    copied = there / MERGED_TRACE
    wait_until(copied.exists)
    assert copied.read_bytes() == (tmp_path / "exp1" / MERGED_TRACE).read_bytes()
    # Only until it is there does the next start need to know of it.
    wait_until(lambda: not list((tmp_path / "exp1").rglob("*.waiting.json")))


def test_the_end_waits_for_no_merging_and_the_mirror_has_all_else_by_then(
    tmp_path, there, monkeypatch
):
    """The merged trace is asked for when the mirror has closed, with a task of its own."""
    asked = []

    def start(module, arguments, _log, task):
        lying = sorted(path.suffix for path in there.rglob("*") if path.is_file())
        asked.append((module, arguments, json.loads(task), lying))

    monkeypatch.setattr("memboard.collector.afterwards.detached.start", start)
    config = {**ONLY_STEPS, "merge_on_close": True, "remote": f"file://{there}"}
    with mb.record(tmp_path / "exp1", config=config) as rec:
        rec.step()
    run_dir = tmp_path / "exp1"
    ((module, arguments, task, lying),) = asked
    assert module == "memboard.collector.mirror.finishing"
    assert arguments[:3] == ["memboard.tb_plugin.cli", "merge", str(run_dir)]
    assert task["seconds"] == 30
    assert ".events" in lying
    (listed,) = run_dir.rglob("*.waiting.json")
    for job in (*task["jobs"], *json.loads(listed.read_text())):
        assert (run_dir / job["path"], job["kind"]) == (
            run_dir / MERGED_TRACE,
            "merged",
        )


def test_a_merged_trace_that_nobody_took_goes_with_the_next_start(tmp_path, there):
    """The container ended between merging and uploading."""
    run_dir = tmp_path / "exp1"
    config = {**ONLY_STEPS, "remote": f"file://{there}"}
    with mb.record(run_dir, config=config) as rec:
        rec.step()
    stem = rec.path.name.split(".")[0]
    job = {"kind": "merged", "path": MERGED_TRACE, "key": MERGED_TRACE}
    listed = rec.path.with_name(f"{stem}.waiting.json")
    listed.write_text(json.dumps([{**job, "url": f"file://{there}"}]))
    (run_dir / MERGED_TRACE).write_bytes(b"merged")
    with mb.record(run_dir, config=config) as rec:
        rec.step()
        wait_until((there / MERGED_TRACE).exists)
    assert (there / MERGED_TRACE).read_bytes() == b"merged"
    assert not listed.exists()


def test_merging_that_fails_leaves_nothing_to_upload_and_the_log_says_why(
    tmp_path, there
):
    config = {**ONLY_STEPS, "merge_on_close": True, "remote": f"file://{there}"}
    run_dir = tmp_path / "exp1"
    with mb.record(run_dir, config=config) as rec:
        rec.step()
        rec.flush(60)
        (run_dir / MERGED_TRACE).mkdir()  # nothing can be written there
    (log,) = run_dir.rglob("merge.log")
    wait_until(lambda: "is not mirrored" in log.read_text())
    assert MERGED_TRACE in log.read_text()
    assert not (there / MERGED_TRACE).exists()


def test_what_its_package_lacks_is_said_before_training(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="fsspec does not know"):
        mb.record(tmp_path, config={"remote": "nonsense://a"})

    def lacking(_protocol):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "get_filesystem_class", lacking)
    with pytest.raises(ConfigError, match=r"Install memboard\[s3\]"):
        mb.record(tmp_path, config={"remote": "s3://a"})


def test_nothing_of_fsspec_is_loaded_without_a_mirror():
    code = (
        "import sys, memboard.collector.engine, memboard.collector.mirror.mirror;"
        "print([m for m in sys.modules if m.split('.')[0] in ('fsspec', 's3fs')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
