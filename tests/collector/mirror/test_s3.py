"""The mirror at a server that speaks S3: what a job meets there, and what it leaves."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("s3fs", reason="s3fs is not installed")
pytest.importorskip("moto.server", reason="moto[server] is not installed")

import memboard as mb
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.cache import Cache
from memboard.tb_plugin.cli import main
from memboard.tb_plugin.formats.recording.series import SeriesKey, SeriesReader
from memboard.tb_plugin.index.logdirs import Logdir
from memboard.tb_plugin.index.store import Store
from tests.collector.mirror.s3_server import S3, SECRET
from tests.collector.recordings import ONLY_STEPS, wait_until

ROOT = Path(__file__).parents[3]


@pytest.fixture
def s3(monkeypatch):
    monkeypatch.setattr("memboard.collector.engine.SEGMENT_SECONDS", 0.3)
    monkeypatch.setattr("memboard.collector.mirror.uploads.RETRY_SECONDS", 0.5)
    server = S3()
    server.client().mkdir("bucket")
    yield server
    server.close()


def config_for(s3, url="s3://bucket/jobs/{run_name}", **remote):
    return {
        **ONLY_STEPS,
        "remote": {
            "url": url,
            "storage_options": s3.options,
            "close_seconds": 60.0,
            **remote,
        },
    }


def train(run_dir, config, *, steps=80, until=lambda: True, segments=0) -> int:
    """Take steps, at least so many, until something has come true; how many they were.

    `segments`: so many are to be finished before the end.
    """
    with mb.record(run_dir, config=config) as rec:
        deadline = time.monotonic() + 300
        for step in itertools.count():
            numbers = [int(p.suffixes[-2][1:]) for p in run_dir.rglob("*.events")]
            if step >= steps and max(numbers, default=0) >= segments and until():
                return step
            assert time.monotonic() < deadline, "trained in vain"
            rec.step(step)
            time.sleep(0.01)
    raise AssertionError("unreachable")


def local_files(run_dir) -> dict[str, int]:
    return {
        path.relative_to(run_dir).as_posix(): path.stat().st_size
        for path in run_dir.rglob("*")
        if path.is_file()
    }


def remote_files(s3, prefix="bucket/jobs/exp1") -> dict[str, int]:
    found = s3.client().find(prefix, detail=True)
    return {
        name.removeprefix(prefix + "/"): info["size"] for name, info in found.items()
    }


def download(s3, target, prefix="bucket/jobs") -> None:
    s3.client().get(f"{prefix}/", str(target), recursive=True)


def series_of(logdir) -> dict[int, dict[str, list]]:
    """Every column of every rank's steps, by rank, as the page reads them."""
    store = Store((Logdir(str(logdir), "", str(Path(logdir).resolve())),))
    store.look()
    while store.index.is_walking:
        store.look()
    (run,) = store.runs()
    run.update(Budget(30))
    found: dict[int, dict[str, list]] = {}
    for file in run.files.values():
        assert file.faults == []
        for schema in file.schemas.values():
            for column in schema.columns[2:]:
                key = SeriesKey(schema.table, column.name)
                reader = SeriesReader(Cache())
                rows = reader.row_by_row(file, key, None, -np.inf, np.inf, Budget(30))
                held = found.setdefault(file.rank, {})
                held[f"{schema.table}/{column.name}"] = [
                    rows.first.tolist(),
                    np.nan_to_num(rows.high, nan=-1).tolist(),
                ]
    return found


def test_a_downloaded_mirror_gives_the_same_series_and_report(s3, tmp_path, capsys):
    run_dir = tmp_path / "logs" / "exp1"
    num_steps = train(run_dir, config_for(s3), segments=2)
    assert remote_files(s3) == local_files(run_dir)
    segments = [name for name in remote_files(s3) if name.endswith(".events")]
    assert len(segments) > 2
    assert len(s3.proxy.puts) == len(set(s3.proxy.puts))
    download(s3, tmp_path / "mirror")
    here = series_of(tmp_path / "logs")
    assert series_of(tmp_path / "mirror") == here
    assert here[0]["step/step_time_seconds"][0] == list(range(num_steps))

    reports = []
    for logdir in ("logs", "mirror"):
        assert main(["report", str(tmp_path / logdir)]) == 0
        said = capsys.readouterr()
        assert said.err == ""
        reports.append(said.out.replace(f"/{logdir}", "/here"))
    assert reports[0] == reports[1]


def test_secrets_are_written_nowhere(s3, tmp_path):
    run_dir = tmp_path / "exp1"
    train(run_dir, config_for(s3), steps=5)
    for path in run_dir.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()
    client = s3.client()
    for name in client.find("bucket"):
        assert SECRET.encode() not in client.cat_file(name)


def test_a_bucket_that_is_missing_costs_the_mirror_alone(s3, tmp_path, caplog):
    run_dir = tmp_path / "exp1"
    config = config_for(s3, "s3://no-such-bucket/{run_name}", close_seconds=0.5)
    said = "Create the bucket, or correct remote.url"
    num_steps = train(run_dir, config, steps=40, until=lambda: said in caplog.text)
    assert "files were not copied" in caplog.text
    assert series_of(tmp_path)[0]["step/step_time_seconds"][0] == list(range(num_steps))
    assert not s3.client().exists("no-such-bucket")

    s3.client().mkdir("no-such-bucket")
    config["remote"]["close_seconds"] = 60.0
    train(run_dir, config, steps=5)  # the next start takes along what was left
    assert remote_files(s3, "no-such-bucket/exp1") == local_files(run_dir)


def test_missing_credentials_are_said_with_what_to_do(
    s3, tmp_path, caplog, monkeypatch
):
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    config = config_for(s3, close_seconds=0.5)
    for name in ("key", "secret"):
        del config["remote"]["storage_options"][name]
    said = "Give this process the store's credentials"
    until = {"until": lambda: said in caplog.text}
    num_steps = train(tmp_path / "exp1", config, steps=40, **until)
    assert len(series_of(tmp_path)[0]["step/step_time_seconds"][0]) == num_steps


def test_credentials_that_are_denied_are_said_so(s3, tmp_path, caplog):
    s3.proxy.denies = True
    said = "Allow these credentials to write"
    config = config_for(s3, close_seconds=0.5)
    num_steps = train(
        tmp_path / "exp1", config, steps=40, until=lambda: said in caplog.text
    )
    assert len(series_of(tmp_path)[0]["step/step_time_seconds"][0]) == num_steps
    s3.proxy.denies = False
    assert remote_files(s3) == {}


@pytest.mark.parametrize("how", ["num_to_refuse", "num_to_break_off"])
def test_an_upload_that_fails_midway_is_done_again_and_lies_there_once(
    s3, tmp_path, how
):
    setattr(s3.proxy, how, 3)
    run_dir = tmp_path / "exp1"
    train(run_dir, config_for(s3))
    assert getattr(s3.proxy, how) == 0
    assert remote_files(s3) == local_files(run_dir)
    puts = s3.proxy.puts
    assert len(puts) == len(set(puts)), "nothing was stored twice"


def test_a_server_that_is_gone_at_the_end_holds_the_job_up_for_a_bounded_time(
    s3, tmp_path, caplog
):
    run_dir = tmp_path / "exp1"
    rec = mb.record(run_dir, config=config_for(s3, close_seconds=1.5))
    num_steps = 0
    deadline = time.monotonic() + 300
    while num_steps < 60 or not rec._session.engine.remote._uploads.copied:
        assert time.monotonic() < deadline
        rec.step()
        num_steps += 1
        time.sleep(0.01)
    s3.go_away()
    began = time.monotonic()
    rec.close()
    assert time.monotonic() - began < 60
    assert "were not copied to s3://bucket/jobs/exp1" in caplog.text
    assert len(series_of(tmp_path)[0]["step/step_time_seconds"][0]) == num_steps


def test_pruned_files_are_all_there(s3, tmp_path):
    run_dir = tmp_path / "logs" / "exp1"
    num_steps = train(run_dir, config_for(s3, prune=True), segments=2)
    here = [name for name in local_files(run_dir) if name.endswith(".events")]
    assert len(here) == 1
    download(s3, tmp_path / "mirror")
    steps = series_of(tmp_path / "mirror")[0]["step/step_time_seconds"][0]
    assert steps == list(range(num_steps))


def test_two_ranks_share_one_mirror(s3, tmp_path):
    run_dir = tmp_path / "logs" / "exp1"
    for rank in (0, 1):
        train(run_dir, {**config_for(s3), "rank": rank, "world_size": 2}, steps=30)
    assert remote_files(s3) == local_files(run_dir)
    download(s3, tmp_path / "mirror")
    assert series_of(tmp_path / "mirror") == series_of(tmp_path / "logs")
    assert series_of(tmp_path / "mirror").keys() == {0, 1}


PROGRAM = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import memboard as mb, memboard.collector.engine
memboard.collector.engine.SEGMENT_SECONDS = 0.3
rec = mb.record(sys.argv[2], config=json.loads(sys.argv[3]))
print("ready", flush=True)
for step in range(int(sys.argv[4])):
    rec.step(step)
    time.sleep(0.01)
"""


def program(run_dir, config, steps) -> list[str]:
    text = json.dumps(config)
    return [sys.executable, "-c", PROGRAM, str(ROOT), str(run_dir), text, str(steps)]


def test_a_program_that_just_ends_leaves_a_whole_mirror(s3, tmp_path):
    """At exit nothing can look a name up: `localhost` is one."""
    run_dir = tmp_path / "exp1"
    config = config_for(s3)
    client = config["remote"]["storage_options"]["client_kwargs"]
    client["endpoint_url"] = client["endpoint_url"].replace("127.0.0.1", "localhost")
    done = subprocess.run(
        program(run_dir, config, 10), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert remote_files(s3) == local_files(run_dir)


def test_after_a_kill_the_next_start_uploads_the_rest(s3, tmp_path, monkeypatch):
    monkeypatch.setattr("memboard.collector.mirror.leftovers.QUIET_SECONDS", -1.0)
    run_dir = tmp_path / "logs" / "exp1"
    with subprocess.Popen(
        program(run_dir, config_for(s3), 10_000), stdout=subprocess.PIPE
    ) as training:
        wait_until(lambda: len(s3.proxy.puts) >= 2)
        training.kill()
    wait_until(lambda: s3.proxy.num_connected == 0)  # what was under way has ended
    assert remote_files(s3).keys() <= local_files(run_dir).keys()
    before = [path for path in s3.proxy.puts if path.endswith(".events")]
    config = {**config_for(s3), "enabled": True}
    train(run_dir, config, steps=30)
    assert {
        name: size
        for name, size in local_files(run_dir).items()
        if name.endswith(".events")
    } == {n: s for n, s in remote_files(s3).items() if n.endswith(".events")}
    after = [path for path in s3.proxy.puts if path.endswith(".events")]
    assert after[: len(before)] == before
    assert len(after) == len(set(after)), "nothing was uploaded twice"
